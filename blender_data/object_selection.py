"""Which objects an export takes, and what it says of those it leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import bpy

from ..io_formats.errors import ExportError

MESHABLE = frozenset({"MESH", "CURVE", "SURFACE", "FONT", "META"})
"""Types of objects that have a surface to export."""

_SILENT = frozenset({"ARMATURE", "LATTICE"})
"""Types that act through others: their effect on meshes is exported, they themselves are no loss."""

_KINDS = {"LIGHT": "light", "CAMERA": "camera", "LIGHT_PROBE": "light probe", "SPEAKER": "speaker", "VOLUME": "volume"}


@dataclass(frozen=True)
class Source:
    """What to export: ``COLLECTION`` (with ``collection``), ``SELECTION`` or ``SCENE``."""

    kind: str
    collection: bpy.types.Collection | None = None


@dataclass
class Selected:
    """Objects to export, parents before children, and notices about the others."""

    objects: list[bpy.types.Object] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def select(context: bpy.types.Context, source: Source, *, use_hidden: bool) -> Selected:
    """Choose the objects of an export.

    Objects that Blender does not evaluate (disabled in viewports, in excluded collections) come
    without their modifiers, so they are left out and named; hidden ones are an option.

    Raises
    ------
    ExportError
        Nothing is left to export.
    """
    candidates = _candidates(context, source)
    enabled = set(_enabled(context.view_layer.layer_collection))
    chosen = Selected()
    left_out: dict[str, list[str]] = {}
    for candidate in candidates:
        if candidate.type not in MESHABLE and candidate.type != "EMPTY":
            if candidate.type not in _SILENT:
                kind = _KINDS.get(candidate.type, candidate.type.lower().replace("_", " "))
                left_out.setdefault(f"{kind}s cannot be exported", []).append(candidate.name)
        elif candidate not in enabled:
            left_out.setdefault("disabled in viewports or in excluded collections, left out", []).append(candidate.name)
        elif not use_hidden and not candidate.visible_get(view_layer=context.view_layer):
            left_out.setdefault("hidden, left out", []).append(candidate.name)
        else:
            chosen.objects.append(candidate)
    chosen.notices = [f"{listed(names)}: {why}" for why, names in left_out.items()]
    if not chosen.objects:
        why = f" ({'; '.join(chosen.notices)})" if chosen.notices else ""
        raise ExportError(f"There is nothing to export in {_label(source)}{why}")
    chosen.objects = parents_first(chosen.objects)
    return chosen


def _candidates(context: bpy.types.Context, source: Source) -> list[bpy.types.Object]:
    if source.kind == "COLLECTION":
        if source.collection is None:
            raise ExportError("No collection was chosen to export")
        return list(dict.fromkeys(source.collection.all_objects))
    if source.kind == "SELECTION":
        return list(context.view_layer.objects.selected)
    return list(context.scene.objects)


def _enabled(layer: bpy.types.LayerCollection) -> Iterator[bpy.types.Object]:
    """Yield the objects that Blender evaluates for their own sake, hidden ones too.

    The dependency graph's list lacks hidden ones, and what it holds besides may be there for a modifier of another.
    """
    if layer.collection.hide_viewport:
        return
    if not layer.exclude:
        yield from (thing for thing in layer.collection.objects if not thing.hide_viewport)
    for child in layer.children:
        yield from _enabled(child)


def _label(source: Source) -> str:
    if source.collection is not None:
        return f"collection '{source.collection.name}'"
    return "the selection" if source.kind == "SELECTION" else "the scene"


def listed(names: list[str], most: int = 8) -> str:
    """Return the first names, quoted, and how many more there are."""
    rest = len(names) - most
    return ", ".join(f"'{name}'" for name in names[:most]) + (f" and {rest} more" if rest > 0 else "")


def parents_first(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Order objects so that parents stand before their children, and otherwise as they were."""
    remaining = dict.fromkeys(objects)
    ordered: dict[bpy.types.Object, None] = {}

    for start in remaining:
        line = [start]
        while line[-1].parent is not None:
            line.append(line[-1].parent)
        for member in reversed(line):
            if member in remaining:
                ordered.setdefault(member)
    return list(ordered)
