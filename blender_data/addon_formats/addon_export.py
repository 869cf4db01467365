"""Preparation of the open file for Blender's own exporters: selection, and fixes for data that they cannot export.

The functions change the open .blend file, so they are only used if it is not saved afterwards.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import bpy
import numpy as np

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Message, Report, joined, listed
from .. import animated_blocks, arrays, compat
from ..animated_blocks import with_shape_keys
from ..animation.clip_sources import clip_name
from ..armature_modifiers import MESHABLE
from ..exporting.object_selection import enabled_objects, is_disabled, is_of_body, shown_by
from ..exporting.reading import mesh_reading
from ..rigging import shown_bindings

_OWN = "meshferry"
_DATA_COLLECTIONS = {
    "MESH": "meshes",
    "ARMATURE": "armatures",
    "CURVE": "curves",
    "CAMERA": "cameras",
    "LIGHT": "lights",
}
"""Collection of ``bpy.data`` with the data of each type of object."""
_LINKABLE = ("collections", "objects", *_DATA_COLLECTIONS.values(), "materials", "node_groups", "images", "volumes")
"""Collections of ``bpy.data`` that exporters read, users before what they use."""
_SHARP = 0.05
"""Smallest difference, per component, between two corner normals of a vertex for which an edge is visibly sharp."""


def chosen_objects(
    context: bpy.types.Context, collection: bpy.types.Collection | None, *, use_hidden: bool
) -> tuple[list[bpy.types.Object], list[bpy.types.Object]]:
    """Return the objects of a collection (None: the scene) to export, and those that are left out intentionally.

    Coarser LODs, physics shapes and hidden objects are left out. Bodies to fit clothes on are in neither list.
    """
    members = collection.all_objects if collection is not None else context.scene.objects
    candidates = [obj for obj in members if not is_of_body(obj)]
    enabled = set(enabled_objects(context.view_layer.layer_collection))
    chosen: list[bpy.types.Object] = []
    left_out: list[bpy.types.Object] = []
    for obj in dict.fromkeys(candidates):
        seen = obj in enabled and (use_hidden or obj.visible_get(view_layer=context.view_layer))
        (chosen if seen and not belongs_to_another(obj) else left_out).append(obj)
    return chosen, left_out


def belongs_to_another(obj: bpy.types.Object) -> bool:
    """Return whether an object is a coarser level of detail or a physics shape."""
    kept = obj.meshferry
    return kept.lod_of is not None or kept.lod > 0 or kept.role != "RENDER"


def disabled_in_instances(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Return the objects of instanced collections that Blender does not show and no shown object needs.

    Armatures and parents of shown objects are needed. Collections linked from other files are ignored, since they
    cannot be changed.
    """
    members = shown_by(objects)
    needed: set[bpy.types.Object] = set()
    for member in members:
        above = None if is_disabled(member) else member.parent
        while above is not None and above not in needed:
            needed.add(above)
            above = above.parent
    return [
        obj
        for obj in members
        if is_disabled(obj)
        and obj.type != "ARMATURE"
        and obj not in needed
        and all(home.is_editable and home.override_library is None for home in obj.users_collection)
    ]


def unlink_disabled(objects: Iterable[bpy.types.Object]) -> None:
    """Unlink disabled objects from instanced collections, since the glTF exporter would write them."""
    for obj in disabled_in_instances(objects):
        for home in obj.users_collection:
            home.objects.unlink(obj)


def make_local() -> None:
    """Make linked data local: its names cannot change. Take separators out of names of which exporters make paths."""
    for name in _LINKABLE:
        for block in [block for block in getattr(bpy.data, name) if block.library is not None]:
            block.make_local()
    for block in (*bpy.data.images, *bpy.data.volumes):
        block.name = re.sub(r"[/\\]", "_", block.name)


def select(context: bpy.types.Context, objects: Sequence[bpy.types.Object]) -> None:
    """Select exactly these objects, even if they were hidden or not selectable.

    Raises
    ------
    ExportError
        Blender does not select some of them, so that its exporters would not see them.
    """
    layer = context.view_layer
    active = layer.objects.active
    if active is not None and active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for collection in bpy.data.collections:
        collection.hide_select = False
    _show(layer.layer_collection)
    for obj in objects:
        obj.hide_select = False
        obj.hide_set(False)
    layer.update()
    for obj in layer.objects:
        obj.select_set(False)
    for obj in objects:
        obj.select_set(True)
    layer.objects.active = objects[0] if objects else None
    missed = [obj.name for obj in objects if not obj.select_get()]
    if missed:
        raise ExportError("{}: Blender does not select them for export; show them in the viewport", listed(missed))


def _show(layer: bpy.types.LayerCollection) -> None:
    layer.hide_viewport = False
    for child in layer.children:
        _show(child)


def apply_modifiers(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> list[Message]:
    """Apply the modifiers of objects except armatures.

    Return messages about objects whose modifiers could not be applied.

    Objects with shape keys keep their modifiers, since shape keys do not fit the modified mesh.
    """
    report = Report()
    waiting: list[bpy.types.Object] = []
    for obj in objects:
        shown_bindings.hide(obj)
        shown = [one for one in obj.modifiers if one.show_viewport and one.type != "ARMATURE"]
        if obj.type != "MESH" or not shown:
            continue
        if obj.data.shape_keys is not None:
            names = joined([one.name for one in shown])
            text = "modifiers left out, since the mesh has shape keys: {}"
            report.loss("modifiers-left-out", text, names, item=obj.name)
            continue
        waiting.append(obj)
    armatures = [one for obj in waiting for one in obj.modifiers if one.type == "ARMATURE" and one.show_viewport]
    for modifier in armatures:
        modifier.show_viewport = False
    depsgraph = context.evaluated_depsgraph_get()
    made = [
        bpy.data.meshes.new_from_object(
            obj.evaluated_get(depsgraph), preserve_all_data_layers=True, depsgraph=depsgraph
        )
        for obj in waiting
    ]
    for modifier in armatures:
        modifier.show_viewport = True
    for obj, mesh in zip(waiting, made, strict=True):
        before, obj.data = obj.data, mesh
        name = before.name
        if not before.users:
            bpy.data.meshes.remove(before)
        mesh.name = name
        for modifier in [one for one in obj.modifiers if one.type != "ARMATURE"]:
            obj.modifiers.remove(modifier)
    return report.messages


def count_faces(context: bpy.types.Context, objects: Iterable[bpy.types.Object], *, triangulated: bool) -> int:
    """Return how many faces the evaluated objects have, or how many triangles these form if ``triangulated``."""
    depsgraph = context.evaluated_depsgraph_get()
    faces = corners = 0
    for obj in objects:
        if obj.type not in MESHABLE:
            continue
        with arrays.mesh_of(obj.evaluated_get(depsgraph)) as mesh:
            faces += len(mesh.polygons)
            corners += len(mesh.loops)
    return corners - 2 * faces if triangulated else faces


def report_without_faces(context: bpy.types.Context, objects: Iterable[bpy.types.Object], report: Report) -> None:
    """Report meshes with faces of which modifiers leave nothing."""
    depsgraph = context.evaluated_depsgraph_get()
    for obj in objects:
        seen = obj.evaluated_get(depsgraph)
        if obj.type == "MESH" and len(obj.data.polygons) and not len(seen.data.vertices):
            mesh_reading.report_without_faces(report, obj, seen, seen.data)


def sharp_objects(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> list[str]:
    """Return the names of objects with vertices whose corners have different normals."""
    depsgraph = context.evaluated_depsgraph_get()
    names: list[str] = []
    for obj in objects:
        if obj.type not in MESHABLE:
            continue
        with arrays.mesh_of(obj.evaluated_get(depsgraph)) as mesh:
            normals = arrays.read(mesh.corner_normals, "vector", 3)
            vertices = arrays.corner_vertices(mesh)
            last = np.empty((len(mesh.vertices), 3), np.float32)
            last[vertices] = normals
            if np.abs(last[vertices] - normals).max(initial=0.0) > _SHARP:
                names.append(obj.name)
    return names


def name_data_after_objects(objects: Sequence[bpy.types.Object]) -> None:
    """Give each object its own copy of its data, with the object's name.

    If a file stores a transform and a mesh for one object, importers create an object with the name of the mesh.
    """
    owners = [obj for obj in objects if obj.type in _DATA_COLLECTIONS and obj.data is not None]
    for number, obj in enumerate(owners):
        if obj.data.users > 1:
            obj.data = obj.data.copy()
        obj.data.name = f"{_OWN} {number}"  # a temporary name, so that the final names are free
    for obj in owners:
        taken = getattr(bpy.data, _DATA_COLLECTIONS[obj.type]).get(obj.name)
        if taken is not None:
            taken.name = f"{_OWN} other"
        obj.data.name = obj.name


def forget_own_properties(objects: Iterable[bpy.types.Object]) -> None:
    """Remove the extension's own properties from objects and their data; exporters would write them to the file."""
    for obj in objects:
        blocks: list[Any] = [obj, obj.data, getattr(obj.data, "shape_keys", None)]
        blocks += [slot.material for slot in obj.material_slots]
        blocks = [block for block in blocks if block is not None]
        blocks += [holder.action for block in blocks for holder in animated_blocks.action_holders(block)]
        for block in blocks:
            kept = compat.declared_properties(block)
            if kept is not None and _OWN in kept:
                del kept[_OWN]


def set_range(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> list[bpy.types.Action]:
    """Set the frame range of the scene to that of the objects' actions; return these actions, each once."""
    playing = dict.fromkeys(data.action for _block, data in _players(objects))
    actions = [action for action in playing if action is not None and animated_blocks.action_curves(action, None)]
    if actions:
        context.scene.frame_start = int(min(action.frame_range[0] for action in actions))
        context.scene.frame_end = max(
            context.scene.frame_start, round(max(action.frame_range[1] for action in actions))
        )
    return actions


def playing_clips(objects: Iterable[bpy.types.Object]) -> set[str]:
    """Return the names of the clips that objects and their shape keys are playing."""
    return {clip_name(data.action) for _block, data in _players(objects)}


def name_clips(objects: Iterable[bpy.types.Object]) -> None:
    """Add the actions of objects to muted tracks named after their clips, by which exporters group them."""
    for block, data in _players(objects):
        animated_blocks.stash_action(block, data.action, data.action_slot, clip_name(data.action))


def _players(objects: Iterable[bpy.types.Object]) -> list[tuple[bpy.types.ID, bpy.types.AnimData]]:
    """Return the objects and their shape keys that play an action, with their animation data."""
    players = [(block, block.animation_data) for block in with_shape_keys(objects)]
    return [(block, data) for block, data in players if data is not None and data.action is not None]


def key_interval(actions: Iterable[bpy.types.Action]) -> float:
    """Return the smallest time between two keys of actions, in frames; 0 with fewer than two keys."""
    least = 0.0
    for action in actions:
        for curve in animated_blocks.action_curves(action, None):
            gaps = np.diff(arrays.read(curve.keyframe_points, "co", 2)[:, 0])
            gaps = gaps[gaps > 1e-3]
            if len(gaps):
                least = min(least or np.inf, float(gaps.min()))
    return least
