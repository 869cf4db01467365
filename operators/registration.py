"""Registration of modules in Blender: their classes, the state of the window, and entries in Blender's menus.

A module's classes of Blender are registered in the order of their definition. ``WINDOW_STATE`` has the groups of
properties that it adds to the window manager, ``ENTRIES`` its menu entries.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import bpy
from bpy.props import PointerProperty

from ..blender_data.property_groups.translation_context import add_context


@dataclass(frozen=True)
class MenuEntry:
    """A draw function and the menu that it is appended to."""

    menu: str
    draw: Callable[[Any, Any], None]
    is_first: bool = False
    """Whether the entry is at the top of the menu."""


def register(classes: Iterable[type], state: Mapping[str, type], entries: Iterable[MenuEntry]) -> None:
    """Register classes, whose names are translated in the context of the add-on, window state and menu entries."""
    for cls in classes:
        add_context(cls)
        bpy.utils.register_class(cls)
    for name, group in state.items():
        setattr(bpy.types.WindowManager, name, PointerProperty(type=group, options={"SKIP_SAVE"}))
    for entry in entries:
        menu = getattr(bpy.types, entry.menu)
        (menu.prepend if entry.is_first else menu.append)(entry.draw)


def unregister(classes: Iterable[type], state: Mapping[str, type], entries: Iterable[MenuEntry]) -> None:
    """Unregister them in reverse order."""
    for entry in reversed(tuple(entries)):
        getattr(bpy.types, entry.menu).remove(entry.draw)
    for name in state:
        delattr(bpy.types.WindowManager, name)
    for cls in reversed(tuple(classes)):
        bpy.utils.unregister_class(cls)


def parts_of(module: ModuleType) -> tuple[list[type], Mapping[str, type], Iterable[MenuEntry]]:
    """Return the classes, the state of the window and the menu entries of a module."""
    defined = [cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == module.__name__]
    classes = [cls for cls in defined if issubclass(cls, bpy.types.bpy_struct)]
    return classes, getattr(module, "WINDOW_STATE", {}), getattr(module, "ENTRIES", ())
