"""Every property of every data block, written down, to compare a scene before and after."""

from __future__ import annotations

from typing import Any

import pytest

bpy = pytest.importorskip("bpy", reason="Blender is absent")

# Blender 4.2 crashes on reading uv_sculpt; reading an attribute turns its storage_type.
_UNSTABLE = {
    "use_nodes",
    "uv_sculpt",
    "storage_type",
    "rna_type",
    "is_updated",
    "is_evaluated",
    "original",
    "session_uid",
    "depsgraph",
    "bl_rna",
    "is_valid",
}
_KINDS_OF_WINDOWS = {"window_managers", "screens", "workspaces", "brushes", "libraries"}


def _dump(owner: Any, path: str, found: dict[str, Any], seen: set[tuple[int, str]]) -> None:
    """Write down all properties of a structure and of what it owns, by path."""
    for description in owner.bl_rna.properties:
        name = description.identifier
        here = f"{path}.{name}"
        if name in _UNSTABLE:
            continue
        try:
            value = getattr(owner, name)
        except (AttributeError, UnicodeDecodeError):
            continue
        if description.type == "COLLECTION":
            found[f"{here} count"] = len(value)
            for number, element in enumerate(value):
                _dump_pointer(element, f"{here}[{number}]", found, seen)
        elif description.type == "POINTER":
            _dump_pointer(value, here, found, seen)
        elif getattr(description, "is_array", False):
            found[here] = repr([list(row) if hasattr(row, "__len__") else row for row in value])
        else:
            found[here] = repr(value)
    for name in owner.keys() if isinstance(owner, bpy.types.ID) else ():
        found[f"{path}[{name!r}]"] = str(owner[name])


def _dump_pointer(value: Any, here: str, found: dict[str, Any], seen: set[tuple[int, str]]) -> None:
    if value is None or (isinstance(value, bpy.types.ID) and not value.is_embedded_data):
        found[here] = repr(value)
        return
    this = (value.as_pointer(), value.bl_rna.identifier)
    found[here] = value.bl_rna.identifier
    if this not in seen and value.bl_rna.identifier not in {"Depsgraph", "ViewLayer"}:
        _dump(value, here, found, seen | {this})


def snapshot() -> dict[str, Any]:
    """Write down every property of every data block, what is selected, active and hidden, and the mode."""
    found: dict[str, Any] = {}
    for description in bpy.data.bl_rna.properties:
        if description.type == "COLLECTION" and description.identifier not in _KINDS_OF_WINDOWS:
            for block in getattr(bpy.data, description.identifier):
                _dump(block, f"{description.identifier}[{block.name_full}]", found, set())
    layer = bpy.context.view_layer
    found["selected"] = sorted(obj.name for obj in layer.objects.selected)
    found["active"] = repr(layer.objects.active)
    found["mode"] = bpy.context.mode
    found["hidden"] = sorted(obj.name for obj in layer.objects if obj.hide_get())
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what differs between two snapshots, by path."""
    paths = before.keys() | after.keys()
    return {path: (before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)}
