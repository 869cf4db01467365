"""Options with which objects were imported, stored on these objects."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from ..io_formats.core.scene import ImportChoice


def write_choices(made: bpy.types.Object, choices: Iterable[ImportChoice]) -> None:
    """Store the options with which an object was imported."""
    for choice in choices:
        stored = made.meshferry.import_choices.add()
        stored.name, stored.value = choice.option, choice.value


def read_choices(*objects: bpy.types.Object) -> tuple[ImportChoice, ...]:
    """Return the options with which these objects were imported."""
    return tuple(
        ImportChoice(stored.name, stored.value, obj.name) for obj in objects for stored in obj.meshferry.import_choices
    )
