"""Pair objects of an earlier import with objects of a new import of the same file."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

import bpy

from .. import names

Pairs = dict[bpy.types.Object, bpy.types.Object]
"""The earlier object for each new object."""


def pair(old: Iterable[bpy.types.Object], new: Sequence[bpy.types.Object], known: Pairs | None = None) -> Pairs:
    """Match objects by type, level of detail, role and node, except those of ``known`` pairs, which are added.

    Nodes are matched by key, then by their own and the parent's name, then by name. Parts of a placed model are only
    matched below the node of that model. If a file had one node of a kind and has one now, their names may differ.
    """
    waiting = sorted(old, key=_is_likely_copy)
    pairs: Pairs = known or {}
    keyed = [made for made in new if made.meshferry.node_key]
    _match([obj for obj in waiting if obj.meshferry.node_key], keyed, _node_key, pairs)
    if keyed:  # nodes with keys are matched by key only; parts of models have no key
        _match_parts(waiting, new, pairs)
        waiting = [obj for obj in waiting if not (obj.meshferry.node_key or obj.meshferry.is_model_part)]
        new = [made for made in new if not (made.meshferry.node_key or made.meshferry.is_model_part)]
    for key_of in (_path_key, _name_key):
        _match(waiting, new, key_of, pairs)
    kinds = [_kind(obj) for obj in new]
    single = [obj for obj in new if kinds.count(_kind(obj)) == 1]
    if len({_path_key(obj) for obj in waiting}) == len({_kind(obj) for obj in waiting}):
        _match(waiting, single, _kind, pairs)
    return pairs


def pair_unchanged(
    old: Iterable[bpy.types.Object], new: Sequence[bpy.types.Object], unchanged: Collection[str]
) -> Pairs:
    """Match the objects whose nodes an export would write as they are in the file, by their present names.

    Text, curves and instances are meshes in a file, so types may differ. Armatures are left out.
    """
    pairs: Pairs = {}
    kept, made = (
        [obj for obj in objects if obj.type != "ARMATURE" and is_unchanged(obj, unchanged)] for objects in (old, new)
    )
    pair_by_name(kept, made, pairs)
    return pairs


def pair_by_name(old: Iterable[bpy.types.Object], new: Sequence[bpy.types.Object], pairs: Pairs) -> None:
    """Add pairs of objects of any types by their present names."""
    _match([*old], new, names.name_in_file, pairs)


def is_unchanged(obj: bpy.types.Object, unchanged: Collection[str]) -> bool:
    """Return whether the present name of an object is among those of unchanged nodes."""
    return ("" if obj.type == "ARMATURE" else names.name_in_file(obj)) in unchanged


def copies(old: Iterable[bpy.types.Object], pairs: Pairs) -> list[bpy.types.Object]:
    """Return the unmatched objects that the user made as copies of matched ones."""
    matched = set(pairs.values())
    keys = {_path_key(obj) for obj in matched}
    return [obj for obj in old if obj not in matched and _path_key(obj) in keys]


def _match(
    old: Sequence[bpy.types.Object],
    new: Sequence[bpy.types.Object],
    key_of: Callable[[bpy.types.Object], Hashable],
    pairs: Pairs,
) -> None:
    """Add pairs of objects with equal keys; objects with the same key are paired in order."""
    waiting: dict[Hashable, list[bpy.types.Object]] = {}
    matched = set(pairs.values())
    for obj in old:
        if obj not in matched:
            waiting.setdefault(key_of(obj), []).append(obj)
    for made in new:
        if made not in pairs and waiting.get(key_of(made)):
            pairs[made] = waiting[key_of(made)].pop(0)


def _match_parts(old: Sequence[bpy.types.Object], new: Sequence[bpy.types.Object], pairs: Pairs) -> None:
    """Add pairs of parts of models with the same name, below parents that are a pair."""
    below, before = _parts_by_parent(new), _parts_by_parent(old)
    waiting = [(made, pairs[made]) for made in below if made in pairs]
    for above, old_above in waiting:
        _match(before.get(old_above, ()), below[above], _name_key, pairs)
        waiting += [(made, pairs[made]) for made in below[above] if made in pairs and made in below]


def _parts_by_parent(objects: Iterable[bpy.types.Object]) -> dict[bpy.types.Object, list[bpy.types.Object]]:
    found: dict[bpy.types.Object, list[bpy.types.Object]] = {}
    for obj in objects:
        if obj.meshferry.is_model_part:
            found.setdefault(obj.parent, []).append(obj)
    return found


def _kind(obj: bpy.types.Object) -> tuple[Hashable, ...]:
    return obj.type, obj.meshferry.role, obj.meshferry.lod


def _node_key(obj: bpy.types.Object) -> tuple[Hashable, ...]:
    return *_kind(obj), obj.meshferry.node_key


def _path_key(obj: bpy.types.Object) -> tuple[Hashable, ...]:
    return *_kind(obj), obj.meshferry.node_path or _name_of(obj)


def _name_key(obj: bpy.types.Object) -> tuple[Hashable, ...]:
    return *_kind(obj), _name_of(obj)


def _name_of(obj: bpy.types.Object) -> str:
    """Return the name of an object's node, without that of the parent."""
    path: str = obj.meshferry.node_path
    return path.partition("/")[2] if path else names.name_in_file(obj)


def _is_likely_copy(obj: bpy.types.Object) -> tuple[bool, str]:
    """Return a sort key that puts copies last; Blender gives copies the name of the original and a number."""
    return re.fullmatch(re.escape(names.fit(_name_of(obj))) + r"\.\d{3,}", obj.name) is not None, obj.name
