"""Plan the nodes of an export: which objects become nodes, which are merged into others, and the parents of nodes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

import bpy

from .. import names
from ..armature_modifiers import MESHABLE


@dataclass
class PlannedNode:
    """A planned node: its object (None for a generated root), the index of its parent, and its parts."""

    name: str
    obj: bpy.types.Object | None
    parent: int = -1
    above: bpy.types.Object | None = None
    """The object of the parent node, or None."""
    parts: list[bpy.types.Object] = field(default_factory=list)
    """Objects whose meshes belong to the node."""
    instancers: list[bpy.types.Object] = field(default_factory=list)
    """Objects without a mesh that are merged into the node because of the instances that they show."""


def plan(objects: list[bpy.types.Object], root_name: str, *, merge: bool) -> list[PlannedNode]:
    """Plan the nodes of an export; ``objects`` has parents before children.

    An object is a root if it is marked as one and has no exported parent. If there is no root, one named ``root_name``
    without transform is added. With ``merge``, objects not named ``#…`` are merged into their nearest ancestor that is
    a node.
    """
    exported = set(objects)
    marked = [obj for obj in objects if obj.meshferry.is_root and _nearest(obj, exported) is None]
    if merge and len(marked) > 1:
        marked = []
    nodes: list[PlannedNode] = [] if marked else [PlannedNode(root_name, None)]
    place: dict[bpy.types.Object, int] = {}
    # Nodes without parent become children of the root, if there is exactly one.
    default_parent = 0 if len(marked) < 2 else -1
    if len(marked) == 1:
        objects = [marked[0], *(obj for obj in objects if obj is not marked[0])]
    for obj in objects:
        nearest = _nearest(obj, place)
        parent = default_parent if nearest is None else place[nearest]
        if obj in marked:
            parent = -1
        is_own = not merge or obj in marked or obj.name.startswith(names.MARK)
        if is_own:
            place[obj] = len(nodes)
            above = nodes[parent].obj if parent >= 0 else None
            nodes.append(PlannedNode(names.name_in_file(obj), obj, parent, above))
        if obj.type in MESHABLE:
            nodes[place[obj] if is_own else max(parent, 0)].parts.append(obj)
        elif not is_own:
            nodes[max(parent, 0)].instancers.append(obj)
    return nodes


def _nearest(obj: bpy.types.Object, among: Container[bpy.types.Object]) -> bpy.types.Object | None:
    """Return the nearest ancestor that is one of the given objects."""
    above = obj.parent
    while above is not None and above not in among:
        above = above.parent
    return above
