"""Entries in Blender's own menus: File > Import, File > Export and the context menu of collections in the Outliner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import bpy

from .translations import classes_factory


@dataclass(frozen=True)
class MenuEntry:
    """A draw function and the menu that it is appended to."""

    menu: str
    draw: Callable[[Any, Any], None]
    is_first: bool = False
    """Whether the entry is at the top of the menu."""


def add_entries(entries: Iterable[MenuEntry]) -> None:
    """Add the entries to their menus."""
    for entry in entries:
        menu = getattr(bpy.types, entry.menu)
        (menu.prepend if entry.is_first else menu.append)(entry.draw)


def remove_entries(entries: Iterable[MenuEntry]) -> None:
    """Remove the entries from their menus in reverse order."""
    for entry in reversed(tuple(entries)):
        getattr(bpy.types, entry.menu).remove(entry.draw)


def registration(
    classes: Sequence[type], entries: Sequence[MenuEntry]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return functions that register and unregister a module's classes and menu entries."""
    register_classes, unregister_classes = classes_factory(classes)

    def register() -> None:
        register_classes()
        add_entries(entries)

    def unregister() -> None:
        remove_entries(entries)
        unregister_classes()

    return register, unregister


def selected_collections(context: bpy.types.Context) -> list[Any]:
    """Return the collections selected in the Outliner; none if there is no Outliner (scripts, background mode)."""
    return [item for item in getattr(context, "selected_ids", None) or () if isinstance(item, bpy.types.Collection)]


def collection_under_pointer(context: bpy.types.Context) -> Any | None:
    """Return the collection whose context menu is open, or the active one."""
    item = getattr(context, "id", None)
    return item if isinstance(item, bpy.types.Collection) else context.collection
