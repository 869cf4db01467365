"""Geometry of a document -> mesh of a Scene: slots, corner data and polygons (format page, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh
from ...encodings.quantization import srgb_to_linear
from ...geometry.normals import unit, vertex_normals, without_direction
from ...geometry.triangles import fan_corners, unfolded_corners
from .document import Geometry, Group, Values

UV_NAME = "UVMap"
_COLOR_NAME = "Color"


def symbols_of(geometry: Geometry) -> list[str]:
    """Return the symbols of a geometry in the order of their first appearance; each becomes a material slot."""
    return list(dict.fromkeys(group.symbol for group in geometry.groups))


def uv_sets(geometry: Geometry) -> list[tuple[int, int]]:
    """Return the UV sets of all groups in ascending order, as (set number, index among the sets with this number)."""
    return sorted({key for group in geometry.groups for key in _uvs_by_set(group)})


def shown_set(geometry: Geometry) -> int:
    """Return the index in :func:`uv_sets` of the UV set that the viewer shows.

    For triangles and polylists this is the set listed last, for polygons it is set 0.
    """
    sets = uv_sets(geometry)
    group = next((group for group in geometry.groups if group.uvs), None)
    if group is None:
        return 0
    if group.kind == "polygons":
        return sets.index((0, 0)) if (0, 0) in sets else 0
    return sets.index(list(_uvs_by_set(group))[-1])


def mesh_of(geometry: Geometry, materials: Sequence[str]) -> Mesh:
    """Return the mesh of a geometry as it is in the file, with names for the slots of :func:`symbols_of`."""
    groups = geometry.groups
    sizes = _joined([group.sizes for group in groups], np.int32)
    points = _joined([group.points for group in groups], np.int32)
    corners = _Corners(groups, _fan(geometry, points, sizes))
    symbols = symbols_of(geometry)
    triangles = [int(group.sizes.sum(dtype=np.int64)) - 2 * len(group.sizes) for group in groups]
    slots = np.array([symbols.index(group.symbol) for group in groups], np.int32)
    mesh = Mesh(
        points=geometry.positions,
        corner_point=corners.spread(points),
        material_index=np.repeat(slots, triangles),
        materials=list(materials),
        polygon_sizes=sizes if corners.fan is not None else None,
        name=geometry.name,
        render_uv=shown_set(geometry),
        symbols=_symbols_in_other_order(symbols, materials),
    )
    mesh.normal = _normals(corners, mesh)
    for number, key in enumerate(uv_sets(geometry)):
        name = UV_NAME if not number else f"{UV_NAME}.{number:03d}"
        values, index = corners.values([_uvs_by_set(group).get(key) for group in groups], 2, 0.0)
        mesh.uvs.append(Layer(name, values, index))
    for number in range(max((len(group.colors) for group in groups), default=0)):
        of_groups = [group.colors[number] if number < len(group.colors) else None for group in groups]
        values, index = corners.values(of_groups, 4, 1.0)
        values[:, :3] = srgb_to_linear(values[:, :3])
        mesh.colors.append(Layer(_COLOR_NAME, values, index))
    return mesh


def _fan(geometry: Geometry, points: IntArray, sizes: IntArray) -> AnyArray | None:
    """Return the polygon corner of each triangle corner, (3 T,); None if all polygons are triangles."""
    corners = fan_corners(sizes)
    order = None if corners is None else unfolded_corners(geometry.positions, points, sizes)
    return corners if corners is None or order is None else order[corners]


def _uvs_by_set(group: Group) -> dict[tuple[int, int], Values]:
    found: dict[tuple[int, int], Values] = {}
    for uvs in group.uvs:
        found[uvs.set_number, sum(number == uvs.set_number for number, _ in found)] = uvs
    return found


def _symbols_in_other_order(symbols: Sequence[str], materials: Sequence[str]) -> dict[str, str]:
    """Return the symbol of each material if sorting by symbols gives another order than sorting by material names.

    The viewer numbers faces in the order of the symbols, without regard to case.
    """
    slots = range(len(symbols))
    by_symbol = sorted(slots, key=lambda slot: symbols[slot].casefold())
    by_name = sorted(slots, key=lambda slot: materials[slot].casefold())
    return {} if by_symbol == by_name else dict(zip(materials, symbols, strict=True))


class _Corners:
    """The corners of all groups of a geometry.

    Parameters
    ----------
    corner_of:
        (3 T,) the corner of the polygons for each corner of the triangles; None if they are the same.
    """

    def __init__(self, groups: Sequence[Group], corner_of: AnyArray | None) -> None:
        self.groups = groups
        self.fan = corner_of

    def spread(self, values: IntArray) -> IntArray:
        """Return the values of polygon corners for the corners of triangles."""
        return values if self.fan is None else values.take(self.fan)

    def values(self, of_groups: Sequence[Values | None], width: int, missing: float) -> tuple[FloatArray, IntArray]:
        """Return a kind of values of all groups, (N, width), and the index of each corner of the triangles.

        Corners without a value refer to an additional last row filled with ``missing``, which exists only if needed.
        """
        starts: dict[int, int] = {}
        parts: list[AnyArray] = []
        index: list[IntArray] = []
        count = 0
        for group, found in zip(self.groups, of_groups, strict=True):
            if found is None:
                index.append(np.full(len(group.points), -1, np.int32))
                continue
            if id(found.values) not in starts:
                starts[id(found.values)] = count
                parts.append(found.values)
                count += len(found.values)
            start = starts[id(found.values)]
            index.append(found.index if not start else np.where(found.index < 0, -1, found.index + np.int32(start)))
        rows = self.spread(_joined(index, np.int32))
        lacks = rows < 0
        if lacks.any():
            parts.append(np.full((1, width), missing, np.float32))
            rows = np.where(lacks, np.int32(count), rows)
        if len(parts) == 1 and width < 4:
            return parts[0], rows
        return np.concatenate([*parts, np.empty((0, width), np.float32)]), rows


def _normals(corners: _Corners, mesh: Mesh) -> Layer | None:
    """Return the normals of all corners, or None if the file has none.

    A normal without direction is replaced by the smooth normal of the vertex.
    """
    if all(group.normals is None for group in corners.groups):
        return None
    values, index = corners.values([group.normals for group in corners.groups], 3, 0.0)
    bad = without_direction(values)
    if bad.any():
        of_corners = bad[index]
        index = np.where(of_corners, mesh.corner_point + np.int32(len(values)), index)
        values = np.concatenate((values, vertex_normals(mesh.points, mesh.corner_point)))
        values[: len(bad)][bad] = (0.0, 0.0, 1.0)
    return Layer("normal", unit(values), index)


def _joined(parts: Sequence[IntArray], dtype: type[np.generic]) -> IntArray:
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, dtype)])
