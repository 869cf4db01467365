"""The collections that menus of the Outliner concern."""

from typing import Any

import bpy


def selected_collections(context: bpy.types.Context) -> list[Any]:
    """Return the collections selected in the Outliner; none if there is no Outliner (scripts, background mode)."""
    return [item for item in getattr(context, "selected_ids", None) or () if isinstance(item, bpy.types.Collection)]


def collection_under_pointer(context: bpy.types.Context) -> Any | None:
    """Return the collection whose context menu is open, or the active one."""
    item = getattr(context, "id", None)
    return item if isinstance(item, bpy.types.Collection) else context.collection
