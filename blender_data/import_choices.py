"""Choices of imports, stored on the objects that they made."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from ..io_formats.core.scene import ImportChoice


def write(made: bpy.types.Object, choices: Iterable[ImportChoice]) -> None:
    """Store the choices that an object was imported with."""
    for choice in choices:
        stored = made.meshferry.import_choices.add()
        stored.name, stored.value = choice.option, choice.value


def read(*objects: bpy.types.Object) -> tuple[ImportChoice, ...]:
    """Return the choices that these objects were imported with."""
    return tuple(
        ImportChoice(stored.name, stored.value, obj.name) for obj in objects for stored in obj.meshferry.import_choices
    )
