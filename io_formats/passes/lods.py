"""Levels of detail in one mesh, distinguished by names of surfaces (``_lod_0``, ``_lod_1`` …), and as nodes.

Level 0 is the finest. Surfaces without such a name belong to the finest level.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.scene import Mesh, Node, Scene, Surface
from ..geometry.triangles import part_of_slots
from .join_meshes import join

_LEVEL = re.compile(r"_lod_(\d{1,4})$", re.IGNORECASE)


MOST_LEVELS = 64
"""Maximum number of levels; if there are more, the names have another meaning."""


def level_of(name: str) -> int | None:
    """Return the level in a surface's name, or None."""
    found = _LEVEL.search(name)
    return int(found[1]) if found else None


def without_level(name: str) -> str:
    """Return a surface's name without its level."""
    return _LEVEL.sub("", name)


def separate(scene: Scene) -> Scene:
    """Create a node for each level of detail.

    The finest level stays in its node. The coarser ones are appended with their ``lod`` (1, 2 …, without gaps) and
    ``lod_of``, the index of the finest node. Surfaces keep their names and ``order``, so that ``join_levels`` restores
    the mesh.
    """
    moving = {track.target for clip in scene.clips for track in clip.vertices}
    nodes = list(scene.nodes)
    for number, node in enumerate(scene.nodes):
        if node.mesh is None or number in moving:
            continue
        levels = _slots_of_levels(node.mesh)
        if len(levels) > MOST_LEVELS:
            template = "{:,} levels of detail are too many; not separated"
            scene.report.change("many-levels", template, len(levels), item=node.name)
        if not 1 < len(levels) <= MOST_LEVELS:
            continue
        ordered = replace(
            node.mesh, surfaces=[replace(surface, order=place) for place, surface in enumerate(node.mesh.surfaces)]
        )
        for lod, slots in enumerate(levels):
            part = replace(node, mesh=part_of_slots(ordered, slots))
            if lod == 0:
                nodes[number] = part
            else:
                part.name, part.lod = f"{node.name}_lod_{lod}", lod
                part.lod_of = number
                nodes.append(part)
    return replace(scene, nodes=nodes)


def _slots_of_levels(mesh: Mesh) -> list[list[int]]:
    """Return the material slots of each existing level, the finest first."""
    found: dict[int, list[int]] = {}
    for slot, surface in enumerate(mesh.surfaces):
        level = level_of(surface.name)
        found.setdefault(level or 0, []).append(slot)
    return [found[level] for level in sorted(found)]


def coarser_nodes(scene: Scene, number: int) -> list[Node]:
    """Return the nodes that are coarser levels of node ``number``, the finer first."""
    found = [
        node
        for place, node in enumerate(scene.nodes)
        if place != number and node.mesh is not None and node.lod_of == number
    ]
    return sorted(found, key=lambda node: node.lod)


def join_levels(finest: Node, coarser: Sequence[Node]) -> Node:
    """Return the finest node with all levels in its mesh, with separate surfaces named after their levels.

    A coarser surface is renamed by its node's ``lod`` (``Roof_lod_1``) if its name has no level, or equals that of a
    finer surface. A finer surface ``Roof`` then becomes ``Roof_lod_0``. Surfaces that had a position in the file
    (``order``) are sorted by it.
    """
    if finest.mesh is None or not coarser:
        return finest
    meshes = [_with_surfaces(node.mesh) for node in (finest, *coarser) if node.mesh is not None]
    mesh = join(meshes, merge_slots=False)
    slot = 0
    renamed: set[str] = set()
    taken: set[str] = set()
    for node in (finest, *coarser):
        count = max(len(node.mesh.materials), 1) if node.mesh is not None else 0
        surfaces = mesh.surfaces[slot : slot + count]
        for place, surface in enumerate(surfaces, slot):
            if node is not finest and (level_of(surface.name) is None or surface.name in taken):
                base = without_level(surface.name)
                renamed.add(base)
                mesh.surfaces[place] = replace(surface, name=f"{base}_lod_{max(node.lod, 1)}")
        taken |= {surface.name for surface in mesh.surfaces[slot : slot + count]}
        slot += count
    for place, surface in enumerate(mesh.surfaces):
        if surface.name in renamed and level_of(surface.name) is None:
            mesh.surfaces[place] = replace(surface, name=f"{surface.name}_lod_0")
    return replace(finest, mesh=_in_order(mesh))


def _with_surfaces(mesh: Mesh) -> Mesh:
    """Return a mesh whose material slots are surfaces, since the names of surfaces distinguish levels."""
    if mesh.surfaces or not mesh.materials:
        return mesh
    return replace(mesh, surfaces=[Surface(name) for name in mesh.materials])


def _in_order(mesh: Mesh) -> Mesh:
    """Sort surfaces by their imported order; surfaces without one come last."""
    places = [surface.order for surface in mesh.surfaces]
    order = sorted(range(len(places)), key=lambda slot: (places[slot] is None, places[slot] or 0, slot))
    if order == list(range(len(places))):
        return mesh
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return replace(
        mesh,
        material_index=rank[mesh.material_index],
        materials=[mesh.materials[slot] for slot in order],
        surfaces=[mesh.surfaces[slot] for slot in order],
    )
