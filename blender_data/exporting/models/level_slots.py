"""Material slots of the levels of one model: the same ones, in the same order, in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....io_formats.core.scene import Mesh, Surface


def without_unused_slots(mesh: Mesh) -> Mesh:
    """Return the finest mesh of a model with the slots to export.

    Slots with the same material are merged and slots without triangles are removed. Imported slots are not changed,
    since the target program may refer to them by index.
    """
    if any(surface.order is not None for surface in mesh.surfaces) or len(mesh.materials) < 2:
        return mesh
    used = set(np.unique(mesh.material_index).tolist())
    names = list(dict.fromkeys(name for slot, name in enumerate(mesh.materials) if slot in used))
    if not names or names == mesh.materials:
        return mesh
    table = [names.index(name) if name in names else 0 for name in mesh.materials]
    return _moved(mesh, table, names, [mesh.surfaces[mesh.materials.index(name)] for name in names])


def with_slots_of(mesh: Mesh, finest: Mesh, *, is_shape: bool = False) -> Mesh:
    """Return a coarser level or a physics shape with the slots of the finest mesh.

    Slots are matched by the names of their materials, repeated names in order. Triangles without a material go to the
    only slot of the finest mesh. A material that the finest mesh lacks gets an additional slot at the end, so that the
    checks can name it; in physics shapes, whose materials are not shown, its triangles go to the first slot.
    """
    if mesh.materials == finest.materials:
        return mesh
    names = list(finest.materials)
    places: dict[str, list[int]] = {}
    for slot, name in enumerate(names):
        places.setdefault(name, []).append(slot)
    seen: dict[str, int] = {}
    table = []
    used = set(np.unique(mesh.material_index).tolist())
    for slot, name in enumerate(mesh.materials):
        occurrence = seen[name] = seen.get(name, -1) + 1
        found = places.get(name)
        if found is not None:
            table.append(found[min(occurrence, len(found) - 1)])
        elif is_shape or slot not in used or (not name and len(finest.materials) == 1):
            table.append(0)
        else:
            places[name] = [len(names)]
            table.append(len(names))
            names.append(name)
    return _moved(mesh, table, names, _surfaces(mesh, finest, table, names))


def _surfaces(mesh: Mesh, finest: Mesh, table: Sequence[int], names: Sequence[str]) -> list[Surface]:
    """Return a surface for each slot: that of the mesh itself, or else a copy of the finest mesh's surface.

    Quantisation ranges are removed from copies.
    """
    found = [surface.without_domains() for surface in finest.surfaces[: len(names)]]
    found += [Surface(name) for name in names[len(found) :]]
    used = set(np.unique(mesh.material_index).tolist())
    for slot, surface in enumerate(mesh.surfaces):
        if slot in used or surface.name == found[table[slot]].name:
            found[table[slot]] = surface
    return found


def _moved(mesh: Mesh, table: Sequence[int], names: list[str], surfaces: list[Surface]) -> Mesh:
    index = np.array(table, np.int32)[mesh.material_index]
    return replace(mesh, material_index=index, materials=names, surfaces=surfaces)
