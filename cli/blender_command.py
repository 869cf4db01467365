"""``blender --command meshferry …``: the command line inside an installed Blender."""

from typing import Any

import bpy

NAME = "meshferry"

_handles: list[Any] = []
"""Handles of registered commands, which Blender needs to unregister them."""


def register() -> None:
    """Add the command to Blender."""
    _handles.append(bpy.utils.register_cli_command(NAME, _run))


def unregister() -> None:
    """Unregister the command."""
    while _handles:
        bpy.utils.unregister_cli_command(_handles.pop())


def _run(argv: list[str]) -> int:
    from .main import main  # imported on use, so that Blender starts faster

    return main(argv, program=f"blender --command {NAME}")
