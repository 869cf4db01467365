"""Update the objects of an imported placement from a new import, which is then removed."""

import json
from collections.abc import Collection, Iterable, Mapping

import bpy

from .. import file_records, import_marks, names
from ..animation.action_ranges import same_path
from ..armature_modifiers import armature_of
from ..import_marks import objects_of
from ..importing.import_context import ImportResult
from ..importing.objects import hide_levels
from ..mesh_data.checksums import has_other_mesh
from ..properties import copy_group
from ..property_groups.ledger import follow_reload
from .data_updates import remove, replace_actions
from .matching import Pairs, pair
from .reload import ReloadReport

_OF_USER = frozenset(("file", "exports", "source_name", "given_name", "import_id"))
_OF_PLACE = ("node_path", "given_transform", "given_parent_key", "given_space", "given_hidden")


def replace_placed(
    context: bpy.types.Context,
    collection: bpy.types.Collection,
    result: ImportResult,
    unedited: Mapping[bpy.types.Object, bool],
    kept: Collection[bpy.types.Object] = (),
) -> ReloadReport:
    """Update the objects of an earlier import to the current content of the file and of the files that it refers to.

    Transforms, names, visibility, materials and custom properties that the user changed are kept. Objects whose nodes
    no longer exist are kept, too, and listed in the report; parts that a model no longer has are removed.

    Parameters
    ----------
    collection:
        The collection of the earlier import.
    result:
        The new import.
    unedited:
        The objects whose places an export would leave in their files; see ``unedited_places``.
    kept:
        Objects made in Blender whose meshes, materials and armatures stay.
    """
    report = ReloadReport(unchanged={*kept})
    homes = _homes(collection, result)
    pairs: Pairs = {}
    surplus: list[bpy.types.ID] = []
    characters: Pairs = {}
    for new, old in homes.items():
        before = objects_of(old)
        pairs.update(pair(before, objects_of(new)))
        gone = set(before) - set(pairs.values())
        surplus += _parts_of_pairs(gone, pairs)
        keys = {obj.meshferry.node_key: obj for obj in objects_of(new)}
        report.missing += sorted(obj.name for obj in gone if obj.meshferry.node_key not in {"", *keys})
        same = [(keys.get(obj.meshferry.node_key), obj) for obj in gone.intersection(kept)]
        characters.update((made, obj) for made, obj in same if made is not None and made not in pairs)
    below = (part for obj in characters for part in obj.children_recursive if not part.meshferry.node_key)
    unneeded = {*characters, *below}
    surplus += replace_actions(pairs, {}, {}, report.added)
    meshes = {old.data: new.data for new, old in pairs.items() if old.type == "MESH" and old.data != new.data}
    for new, old in pairs.items():
        if _update(old, new, pairs, unedited, is_kept=old in kept):
            report.unchanged.add(old)
        if old.type == "EMPTY":
            old.instance_type = new.instance_type
            old.instance_collection = homes.get(new.instance_collection, new.instance_collection)
    for new, old in characters.items():
        rig = armature_of(old)
        if rig is not None and old not in unedited and not rig.meshferry.import_id:
            import_marks.update_place(rig, new, pairs.get(new.parent, new.parent))
            _copy_place(rig, new)
    for new, old in homes.items():
        _add_objects(old, new, unneeded.union(pairs), pairs, homes, report)
        surplus += _update_groups(context, old, new, pairs)
        record = file_records.read(new)
        if record is not None:
            target = file_records.read(old)
            if target is None or same_path(str(target.path), old.meshferry.source_path):
                file_records.write([old], record)
                old.meshferry.unshown_nodes = ""
                follow_reload(old, record.digest, objects_of(old))
            old.meshferry.source_path = new.meshferry.source_path
    removed = {obj.data for obj in surplus if isinstance(obj, bpy.types.Object) and obj.data is not None}
    remove([*pairs, *homes, *surplus, *unneeded], result.made)
    for before, now in meshes.items():
        if not before.users:
            names.take_over(before, now)
    bpy.data.batch_remove([mesh for mesh in removed.union(meshes) if not mesh.users])
    return report


def _add_objects(
    old: bpy.types.Collection,
    new: bpy.types.Collection,
    known: Collection[bpy.types.ID],
    pairs: Pairs,
    homes: Mapping[bpy.types.Collection, bpy.types.Collection],
    report: ReloadReport,
) -> None:
    """Link new objects without an earlier counterpart to the earlier collection of their file."""
    for added in [obj for obj in objects_of(new) if obj not in known]:
        if (shown := added.instance_collection) is not None:
            added.instance_collection = homes.get(shown, shown)
        report.added.append(added.name)
        added.meshferry.import_id = old.meshferry.import_id
        if added.parent in pairs:
            added.parent = pairs[added.parent]
        for modifier in added.modifiers:
            if modifier.type == "ARMATURE" and modifier.object in pairs:
                modifier.object = pairs[modifier.object]
        old.objects.link(added)


def homes_of(collection: bpy.types.Collection) -> list[bpy.types.Collection]:
    """Return the collection of an import, and those of the files to which its file refers, also through others."""
    found = [collection]
    for part in found:
        instanced = dict.fromkeys(obj.instance_collection for obj in part.all_objects)
        found += [one for one in instanced if one is not None and one.meshferry.import_id and one not in found]
    return found


def _homes(collection: bpy.types.Collection, result: ImportResult) -> dict[bpy.types.Collection, bpy.types.Collection]:
    """Return, for collections of the new import, the corresponding collection of the earlier import."""
    parts = {part.meshferry.source_path: part for part in homes_of(collection)[1:]}
    homes = {result.collection: collection}
    for part in homes_of(result.collection)[1:]:
        old = parts.get(part.meshferry.source_path)
        if old is not None and old != part:
            homes[part] = old
    return homes


def _update(
    old: bpy.types.Object,
    new: bpy.types.Object,
    pairs: Pairs,
    unedited: Mapping[bpy.types.Object, bool],
    *,
    is_kept: bool,
) -> bool:
    """Update data, parent, transform and import marks of an object, except those that the user changed.

    Return whether its mesh stays: an export would change nothing in the file, and the model is as it was.
    """
    kept = old.meshferry
    new.name = "Replaced"  # frees its name for the old object
    stays = unedited.get(old) is False
    keeps_mesh = old.type == "MESH" and stays and _is_of_same_file(old, new)
    if old.type == "MESH" and not is_kept:
        _update_mesh(old, new, stays=keeps_mesh)
    parent = pairs.get(new.parent, new.parent)
    if unedited.get(old):
        import_marks.take_place(old, new, parent)
    elif not stays:
        import_marks.update_place(old, new, parent)
    if old.type == "EMPTY":
        old.empty_display_type, old.empty_display_size = new.empty_display_type, new.empty_display_size
    _update_properties(old, new)
    if old.hide_viewport == kept.given_hidden:
        old.hide_viewport, old.hide_render = new.hide_viewport, new.hide_render
    if new.meshferry.node_key and old.name == kept.given_name:
        if kept.source_name != new.meshferry.source_name:
            old.name = names.fit(new.meshferry.source_name)
        kept.source_name, kept.given_name = new.meshferry.source_name, old.name
    if is_kept:
        _copy_place(old, new)
    else:
        copy_group(new.meshferry, kept, _OF_USER, pairs)
    if stays:
        import_marks.mark_place(old)
    return keeps_mesh


def _copy_place(old: bpy.types.Object, new: bpy.types.Object) -> None:
    """Store on an object the marks of the place that the file gives a new one."""
    for name in _OF_PLACE:
        setattr(old.meshferry, name, getattr(new.meshferry, name))


def _is_of_same_file(old: bpy.types.Object, new: bpy.types.Object) -> bool:
    """Return whether a new import of a mesh found the same content in its file as the earlier one."""
    return bool(old.data.meshferry.fingerprint) and old.data.meshferry.fingerprint == new.data.meshferry.fingerprint


def _update_properties(old: bpy.types.Object, new: bpy.types.Object) -> None:
    """Copy the custom properties of the file to an object, except those that the user changed."""
    given, now = (json.loads(obj.meshferry.given_properties or "{}") for obj in (old, new))
    for name in {**given, **now}:
        if old.get(name) != given.get(name):
            continue
        if name in now:
            old[name] = now[name]
        else:
            del old[name]


def _update_mesh(old: bpy.types.Object, new: bpy.types.Object, *, stays: bool) -> None:
    """Replace the mesh of an object unless it stays, and its materials except those that the user chose."""
    given = [] if has_other_mesh(old) else old.meshferry.given_materials.split("\n")
    now = [slot.material for slot in old.material_slots]
    identities = import_marks.material_identities(old)
    old.data = old.data if stays else new.data
    for index, slot in zip(range(len(new.material_slots)), old.material_slots, strict=False):
        is_chosen = index < min(len(given), len(identities)) and identities[index] != given[index]
        slot.link = "OBJECT" if is_chosen else new.material_slots[index].link
        slot.material = now[index] if is_chosen else new.material_slots[index].material


def _parts_of_pairs(gone: Iterable[bpy.types.Object], pairs: Pairs) -> list[bpy.types.Object]:
    """Return parts of models that no longer exist, below nodes that still do."""
    remaining = set(pairs.values())
    found = []
    for obj in gone:
        above = obj
        while above is not None and above.meshferry.is_model_part and above not in remaining:
            above = above.parent
        if obj.meshferry.is_model_part and above in remaining:
            found.append(obj)
    return found


def _update_groups(
    context: bpy.types.Context, old: bpy.types.Collection, new: bpy.types.Collection, pairs: Pairs
) -> list[bpy.types.Collection]:
    """Link the objects of a file to the file's current groups; return the collections of groups that no longer exist.

    Links to collections that the user chose are kept.
    """
    groups = _pair_groups(context, old, new)
    paired = set(pairs.values())
    before = [old, *(group for group in old.children_recursive if group.meshferry.source_name)]
    own = set(before)
    for group, home in groups.items():
        for obj in [pairs.get(obj, obj) for obj in group.objects]:
            homes = set(obj.users_collection) & own
            if (homes or obj not in paired) and home not in homes:
                home.objects.link(obj)
            for other in homes - {home}:
                other.objects.unlink(obj)
    empty = [group for group in before[1:] if group not in groups.values() and not group.all_objects]
    return [*empty, *(group for group, home in groups.items() if home not in {group, old})]


def _pair_groups(
    context: bpy.types.Context, old: bpy.types.Collection, new: bpy.types.Collection
) -> dict[bpy.types.Collection, bpy.types.Collection]:
    """Return the earlier collection of each group of a file.

    Collections of new groups are moved into the earlier collections.
    """
    groups = {new: old}
    for above in (waiting := [new]):
        home = groups[above]
        before = {group.meshferry.source_name: group for group in home.children if group.meshferry.source_name}
        for group in [group for group in above.children if group.meshferry.source_name]:
            groups[group] = before.get(group.meshferry.source_name, group)
            waiting.append(group)
            if group == groups[group] and home != above:
                above.children.unlink(group)
                home.children.link(group)
                hide_levels(context.view_layer, [group] if group.hide_render else [])
    return groups
