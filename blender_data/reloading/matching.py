"""Pairs of objects of an earlier import and of a new import of the same file."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence

import bpy

from .. import names

Pairs = dict[bpy.types.Object, bpy.types.Object]
"""The earlier object of each new one."""


def objects_of(collection: bpy.types.Collection) -> list[bpy.types.Object]:
    """Return the objects that belong to the import of a collection, wherever the user moved them.

    A duplicate of the collection has the same identifier, so objects in it do not count.
    """
    inside = set(collection.all_objects)
    identifier = collection.meshferry.import_id
    if not identifier:  # imported by version 0.2 or earlier
        return list(collection.all_objects)
    others = [one for one in bpy.data.collections if one.meshferry.import_id == identifier and one != collection]
    elsewhere = {item for other in others for item in other.all_objects} - inside
    found = [item for item in bpy.data.objects if item.meshferry.import_id == identifier]
    return [item for item in found if item not in elsewhere]


def pair(old: Iterable[bpy.types.Object], new: Sequence[bpy.types.Object]) -> Pairs:
    """Match objects by type, level of detail, role and node; nodes by the name with their parent's, then by name.

    If a file has one node of a kind before and after, the node may be renamed.
    """
    waiting = sorted(old, key=_is_likely_copy)
    pairs: Pairs = {}
    for key_of in (_path_key, _name_key):
        _match(waiting, new, key_of, pairs)
    kinds = [_kind(item) for item in new]
    single = [item for item in new if kinds.count(_kind(item)) == 1]
    if len({_path_key(item) for item in waiting}) == len({_kind(item) for item in waiting}):
        _match(waiting, single, _kind, pairs)
    return pairs


def copies(old: Iterable[bpy.types.Object], pairs: Pairs) -> list[bpy.types.Object]:
    """Return the objects without a match that the user copied from matched ones."""
    matched = set(pairs.values())
    keys = {_path_key(item) for item in matched}
    return [item for item in old if item not in matched and _path_key(item) in keys]


def _match(
    old: Sequence[bpy.types.Object],
    new: Sequence[bpy.types.Object],
    key_of: Callable[[bpy.types.Object], Hashable],
    pairs: Pairs,
) -> None:
    """Add pairs of equal keys; objects of the same key are matched in order."""
    waiting: dict[Hashable, list[bpy.types.Object]] = {}
    matched = set(pairs.values())
    for item in old:
        if item not in matched:
            waiting.setdefault(key_of(item), []).append(item)
    for made in new:
        if made not in pairs and waiting.get(key_of(made)):
            pairs[made] = waiting[key_of(made)].pop(0)


def _kind(item: bpy.types.Object) -> tuple[Hashable, ...]:
    return item.type, item.meshferry.role, item.meshferry.lod


def _path_key(item: bpy.types.Object) -> tuple[Hashable, ...]:
    return *_kind(item), item.meshferry.node_path or _name_of(item)


def _name_key(item: bpy.types.Object) -> tuple[Hashable, ...]:
    return *_kind(item), _name_of(item)


def _name_of(item: bpy.types.Object) -> str:
    """Return the name of an object's node, without that of the parent."""
    path: str = item.meshferry.node_path
    return path.partition("/")[2] if path else names.name_in_file(item)


def _is_likely_copy(item: bpy.types.Object) -> tuple[bool, str]:
    """Return a key that sorts copies, to which Blender gives the name of the original and a number, to the end."""
    return re.fullmatch(re.escape(names.fit(_name_of(item))) + r"\.\d{3,}", item.name) is not None, item.name
