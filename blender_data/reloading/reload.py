"""Replace the data of imported objects by that of a new import, which is then removed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import bpy

from .. import names
from ..armature_modifiers import armature_of
from ..import_marks import objects_of, space_given, update_place
from ..importing.import_context import ImportResult
from ..importing.objects import hide_levels
from ..properties import copy_group
from ..rigging import body_shapes, shown_bindings
from . import data_updates
from .agreement import take_back
from .data_updates import replace_mesh
from .matching import Pairs, copies

_OF_USER = frozenset(
    ("file", "exports", "source_name", "given_name", "physics_shape", "usage", "bone_palettes", "binding")
)
"""Properties of an object that do not come from its file, so that a reload does not change them."""

_PARTS = ("medium_level", "low_level", "lowest_level", "physics_object")
"""References of an object that the user may have set. They are only replaced if the file has such parts."""


@dataclass
class ReloadReport:
    """Names of objects and data that a reload added or did not change."""

    added: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Names of objects, and of bones with their armatures, that the file no longer has."""
    unchanged: set[bpy.types.Object] = field(default_factory=set)
    """Objects whose data was not replaced."""
    linked: list[str] = field(default_factory=list)
    """Names of objects whose data is linked from other .blend files, so that it was not replaced."""


def replace_data(
    context: bpy.types.Context,
    collection: bpy.types.Collection | None,
    pairs: Pairs,
    results: Sequence[ImportResult],
    paths: Mapping[str, str],
    unchanged: Collection[bpy.types.Object] = (),
) -> ReloadReport:
    """Transfer data, actions and file properties from new objects to old ones; remove everything new that is unused.

    Parameters
    ----------
    collection:
        The collection of the earlier import; None to replace only actions.
    pairs:
        The old object of each new one. New objects without a pair are added to the collection.
    results:
        The new imports, that of the collection's file first.
    paths:
        The earlier path of each moved file.
    unchanged:
        New objects whose old ones stay as they are.
    """
    report = ReloadReport()
    pending = {new: old for new, old in pairs.items() if new not in unchanged}
    changed = {
        new: old for new, old in pending.items() if old.is_editable and (old.data is None or old.data.is_editable)
    }
    report.unchanged = {*(objects_of(collection) if collection is not None else ())} - {*pending.values()}
    report.linked = [old.name for new, old in pending.items() if new not in changed]
    surplus: list[bpy.types.ID] = list(pairs)
    if collection is not None:
        surplus += _add_objects(context, collection, results[0], pairs, report)
        for new in unchanged:
            if pairs[new].meshferry.import_id:
                pairs[new].meshferry.import_id = collection.meshferry.import_id
    _update_armatures(context, changed, report)
    if collection is not None and results[0].shapes:
        for new, old in changed.items():
            if old.type == "ARMATURE":
                body_shapes.set_percents(old, body_shapes.percents_of(new))
    surplus += _update_data(changed, pairs, paths, report)
    if collection is not None:
        _refer_to_old((obj for obj in results[0].objects if obj not in pairs), pairs)
    for armature in dict.fromkeys(armature for obj in changed.values() if (armature := armature_of(obj)) is not None):
        shown_bindings.update(context, armature)
    data_updates.remove(surplus, [block for result in results for block in result.made])
    return report


def _add_objects(
    context: bpy.types.Context,
    collection: bpy.types.Collection,
    result: ImportResult,
    pairs: Pairs,
    report: ReloadReport,
) -> list[bpy.types.ID]:
    """Link objects without a pair to the collection of related objects; return the collections that are not needed."""
    old = objects_of(collection)
    report.added = [obj.name for obj in result.objects if obj not in pairs]
    matched = set(pairs.values())
    gone = [obj for obj in old if obj not in matched]
    copied = copies(old, pairs)
    report.missing = [obj.name for obj in gone if obj not in copied]
    own = [collection, *collection.children_recursive]
    surplus: list[bpy.types.ID] = []
    for part in (result.collection, *result.collection.children_recursive):
        beside = [home for new in part.objects if new in pairs for home in pairs[new].users_collection if home in own]
        home = collection if part == result.collection else next(iter(beside), None)
        wanted = [pairs.get(new, new) for new in part.objects]
        wanted = [obj for obj in wanted if not obj.users_collection or obj not in matched]
        if home is None and wanted:
            home = bpy.data.collections.new(part.name)
            names.take_over(part, home)
            home.hide_render = part.hide_render
            collection.children.link(home)
            context.view_layer.update()
            hide_levels(context.view_layer, [home] if home.hide_render else [])
        for obj in wanted:
            home.objects.link(obj)
        surplus.append(part)
    for obj in gone:
        is_kept = obj not in copied and obj.meshferry.node_path
        obj.meshferry.import_id = result.collection.meshferry.import_id if is_kept else ""
    for name in ("import_id", "source_name", "source_path", "import_options"):
        setattr(collection.meshferry, name, getattr(result.collection.meshferry, name))
    return surplus


def _update_armatures(context: bpy.types.Context, changed: Pairs, report: ReloadReport) -> None:
    """Give existing armatures the bones of the new ones; report bones that the file no longer has."""
    rigs = [(new, old) for new, old in changed.items() if old.type == "ARMATURE" and old.data != new.data]
    for new, old in rigs:
        data_updates.adopt_names(new.data, old.data)
    posed = {old: set(old.pose.bones.keys()) for _new, old in rigs}
    for new, old in rigs:
        missing = data_updates.update_armature(context, old.data, new.data)
        report.missing += [f"{old.name}/{name}" for name in missing]
    context.view_layer.update()  # creates the pose bones of new bones
    for new, old in rigs:
        for bone in old.pose.bones:
            if bone.name not in posed[old] and bone.name in new.pose.bones:
                bone.rotation_mode = new.pose.bones[bone.name].rotation_mode


def _update_data(changed: Pairs, pairs: Pairs, paths: Mapping[str, str], report: ReloadReport) -> list[bpy.types.ID]:
    """Replace meshes and actions, and update the objects; return the old meshes and actions."""
    kept = set(pairs.values()) - set(changed.values())
    in_use = {obj.data for obj in kept}
    grouped = {old for old in changed.values() if len(old.vertex_groups)}
    others = {new: old for new, old in pairs.items() if new not in changed}
    actions = data_updates.replace_actions(changed, paths, others, report.added)
    users: dict[bpy.types.ID, list[bpy.types.Object]] = {}
    for obj in bpy.data.objects:
        if obj.type == "MESH" and obj.is_editable and obj not in kept:
            users.setdefault(obj.data, []).append(obj)
    replaced: list[bpy.types.ID] = []
    for new, old in changed.items():
        if old.type == "MESH" and old.data in users:
            take_back(new, old)
            replaced.append(old.data)
            # several objects may use the mesh
            replace_mesh(old.data, new.data, users.pop(old.data), stays=old.data in in_use)
    for new, old in changed.items():
        _update_object(old, new, pairs, is_bound=old in grouped)
    return [*(mesh for mesh in replaced if mesh not in in_use), *actions]


def _update_object(old: bpy.types.Object, new: bpy.types.Object, pairs: Pairs, *, is_bound: bool) -> None:
    """Update parent, transform, modifiers and stored properties of an object."""
    kept = old.meshferry
    parent = pairs.get(new.parent, new.parent)
    update_place(old, new, parent)
    parts = [name for name in _PARTS if getattr(new.meshferry, name) is None]
    applied = ("given_space",) if "applied" in space_given(old) else ()
    copy_group(new.meshferry, kept, {*_OF_USER, *parts, *applied}, pairs)
    for entry, slot in zip(kept.surfaces, old.material_slots, strict=False):
        entry.material = slot.material
    for modifier in new.modifiers:
        there = next((one for one in old.modifiers if one.type == modifier.type), None)
        if modifier.type == "ARMATURE" and there is None and not is_bound:
            old.modifiers.new(modifier.name, "ARMATURE").object = pairs.get(modifier.object, modifier.object)
        elif modifier.type == "MESH_CACHE" and there is not None:
            there.filepath = modifier.filepath


def _refer_to_old(added: Iterable[bpy.types.Object], pairs: Pairs) -> None:
    """Make new objects without a pair refer to old objects in place of their new counterparts."""
    used: dict[bpy.types.Object | None, None] = {}
    for obj in added:
        kept = obj.meshferry
        pointers = (getattr(kept, name) for name in (*_PARTS, "lod_of", "shape_of"))
        rigs = (modifier.object for modifier in obj.modifiers if modifier.type == "ARMATURE")
        used.update(dict.fromkeys((obj.parent, *pointers, *rigs)))
    for new in used:
        if new in pairs:
            new.user_remap(pairs[new])
