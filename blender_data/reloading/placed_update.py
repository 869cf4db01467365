"""Update the objects of an imported file that places models by those of a new import, which is removed."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from .. import file_records, import_marks, names
from ..importing.importer import ImportResult
from ..mesh_data.mesh_edits import has_other_mesh
from ..properties import copy_group
from .matching import Pairs, objects_of, pair
from .reload import ReloadReport

_OF_USER = frozenset(("file", "source_name", "given_name", "import_id"))


def replace_placed(collection: bpy.types.Collection, result: ImportResult) -> ReloadReport:
    """Transfer what the file has now to the objects of an earlier import, also in the files that it refers to.

    Objects keep places, names, visibility and materials that the user gave them. Objects whose nodes are gone remain,
    and are named.

    Parameters
    ----------
    collection:
        The collection of the earlier import.
    result:
        The new import.
    """
    report = ReloadReport()
    homes = _homes(collection, result)
    pairs: Pairs = {}
    for new, old in homes.items():
        before = objects_of(old)
        pairs.update(pair(before, objects_of(new)))
        gone = set(before) - set(pairs.values())
        keys = {obj.meshferry.node_key for obj in objects_of(new)} - {""}
        report.missing += sorted(obj.name for obj in gone if obj.meshferry.node_key not in keys | {""})
    meshes = {old.data: new.data for new, old in pairs.items() if old.type == "MESH" and old.data != new.data}
    for new, old in pairs.items():
        _update(old, new, pairs)
        old.instance_type = new.instance_type
        old.instance_collection = homes.get(new.instance_collection, new.instance_collection)
    for new, old in homes.items():
        for added in [obj for obj in objects_of(new) if obj not in pairs]:
            added.instance_collection = homes.get(added.instance_collection, added.instance_collection)
            report.added.append(added.name)
            added.meshferry.import_id = old.meshferry.import_id
            if added.parent in pairs:
                added.parent = pairs[added.parent]
            for modifier in added.modifiers:
                if modifier.type == "ARMATURE" and modifier.object in pairs:
                    modifier.object = pairs[modifier.object]
            old.objects.link(added)
        record = file_records.read(new)
        if record is not None:
            file_records.write([old], record)
            old.meshferry.source_path = new.meshferry.source_path
    _remove(pairs, homes, result)
    for before, now in meshes.items():
        if not before.users:
            names.take_over(before, now)
    bpy.data.batch_remove([mesh for mesh in meshes if not mesh.users])
    return report


def _homes(collection: bpy.types.Collection, result: ImportResult) -> dict[bpy.types.Collection, bpy.types.Collection]:
    """Return the collection of the earlier import for each of the new one that has such."""
    parts = {part.meshferry.source_path: part for part in _parts_of(collection)}
    homes = {result.collection: collection}
    for part in _parts_of(result.collection):
        old = parts.get(part.meshferry.source_path)
        if old is not None and old != part:
            homes[part] = old
    return homes


def _parts_of(collection: bpy.types.Collection) -> list[bpy.types.Collection]:
    """Return the collections of the files that one refers to, directly or by others."""
    found = [collection]
    for part in found:
        instanced = dict.fromkeys(obj.instance_collection for obj in part.all_objects)
        found += [one for one in instanced if one is not None and one.meshferry.import_id and one not in found]
    return found[1:]


def _update(old: bpy.types.Object, new: bpy.types.Object, pairs: Pairs) -> None:
    """Update data, parent, place and marks of an object; what the user changed stays."""
    kept = old.meshferry
    new.name = "Replaced"  # leaves its name free
    if old.type == "MESH":
        _update_mesh(old, new)
    parent = pairs.get(new.parent, new.parent)
    if import_marks.has_given_parent(old) and old.parent != parent:
        old.parent, old.parent_type = parent, new.parent_type
        old.matrix_parent_inverse.identity()
    if not import_marks.is_moved(old):
        old.location, old.rotation_quaternion, old.scale = new.location, new.rotation_quaternion, new.scale
    if old.hide_viewport == kept.given_hidden:
        old.hide_viewport, old.hide_render = new.hide_viewport, new.hide_render
    if new.meshferry.node_key and old.name == kept.given_name:
        if kept.source_name != new.meshferry.source_name:
            old.name = names.fit(new.meshferry.source_name)
        kept.source_name, kept.given_name = new.meshferry.source_name, old.name
    copy_group(new.meshferry, kept, _OF_USER, pairs)


def _update_mesh(old: bpy.types.Object, new: bpy.types.Object) -> None:
    """Replace the mesh and the materials; those that the user chose stay."""
    given = [] if has_other_mesh(old) else old.meshferry.given_materials.split("\n")
    now = [slot.material for slot in old.material_slots]
    identities = import_marks.material_identities(old)
    old.data = new.data
    for index, slot in enumerate(old.material_slots):
        is_chosen = index < min(len(given), len(identities)) and identities[index] != given[index]
        slot.link = "OBJECT" if is_chosen else new.material_slots[index].link
        slot.material = now[index] if is_chosen else new.material_slots[index].material


def _remove(pairs: Pairs, homes: Iterable[bpy.types.Collection], result: ImportResult) -> None:
    """Remove the objects and collections of the new import that the earlier ones stand for, and unused data."""
    surplus = [*pairs, *homes]
    gone = set(surplus)
    made = [block for block in result.made if block not in gone]
    bpy.data.batch_remove(surplus)
    empty = [block for block in made if isinstance(block, bpy.types.Collection) and not block.all_objects]
    empty = [block for block in empty if not block.children and not block.meshferry.import_id]
    bpy.data.batch_remove(empty)
    made = [block for block in made if block not in set(empty)]
    while unused := [block for block in made if not block.users]:
        made = [block for block in made if block not in unused]
        bpy.data.batch_remove(unused)
