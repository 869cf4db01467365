"""Convert a mesh to Collada geometry: shared positions, and separately indexed normals and UVs of corners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Warn, counted
from ...core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh
from ...geometry.normals import face_normals, unit, vertex_normals
from ...geometry.submeshes import pool
from ...geometry.vertices import drop_repeated_corners, weld_map
from .document import Geometry, Triangles

Points = npt.NDArray[np.intp]


def geometry_of(
    mesh: Mesh, name: str, symbols: Sequence[str], warn: Warn, *, has_uvs: bool = True
) -> tuple[Geometry, Points]:
    """Return a mesh as geometry, and the index in the mesh of each of its positions, (P,).

    Unused points and triangles that use a point twice are left out.

    Parameters
    ----------
    name:
        Name of the geometry.
    symbols:
        Symbols of the materials, one for each of the mesh's slots. Slots with the same symbol become one face.
    warn:
        Called with each warning, without the object's name.

    Raises
    ------
    ExportError
        NaN or infinite coordinates or UVs.
    """
    mesh, dropped = drop_repeated_corners(mesh)
    if dropped:
        warn(f"{counted(dropped, 'triangle uses', 'triangles use')} a vertex twice; left out")
    used = pool(mesh.corner_point)
    points = np.arange(len(mesh.points))[used.chosen]
    positions = np.ascontiguousarray(mesh.points[used.chosen], np.float32)
    _refuse_nonfinite(positions, name, "vertex has", "vertices have", "coordinates")
    normals, normal_index = _normals(mesh, points, used.index, warn)
    columns = [used.index, normal_index]
    uvs: FloatArray | None = None
    if mesh.uvs and has_uvs:
        values, uv_index = _shared(mesh.uvs[0], points, used.index)
        uvs = np.ascontiguousarray(values, np.float32)
        _refuse_nonfinite(uvs, name, "UV has", "UVs have", "coordinates")
        columns.append(uv_index)
    corners = np.stack(columns, axis=1).astype(np.int32, copy=False)
    slot = np.clip(mesh.material_index, 0, len(symbols) - 1)
    faces: list[Triangles] = []
    for symbol in dict.fromkeys(symbols):
        of_symbol = [number for number, other in enumerate(symbols) if other == symbol]
        chosen = np.isin(slot, of_symbol) if len(symbols) > 1 else np.ones(len(slot), bool)
        if chosen.all():
            faces.append(Triangles(symbol, corners))
            break
        if chosen.any():
            faces.append(Triangles(symbol, corners[np.repeat(chosen, 3)]))
    return Geometry(name, positions, normals, uvs, faces if len(corners) else []), points


def box_of(least: FloatArray, most: FloatArray) -> Mesh:
    """Return a box with outward triangles, or a two-sided sheet if the box is flat; arguments are float32 (3,)."""
    extent = most - least
    flat = extent <= 1e-5 * max(float(extent.max()), 1e-30)
    unit_cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
    points = (least + unit_cube * extent).astype(np.float32)
    # Point indices of the six sides of the box, counter-clockwise from outside: -x, +x, -y, +y, -z, +z.
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    kept = [side for number, side in enumerate(sides) if not np.delete(flat, number // 2).any()]
    triangles = [corner for a, b, c, d in kept for corner in (a, b, c, a, c, d)]
    corner_point = np.array(triangles, np.int32)
    normal = Layer("", unit(np.repeat(face_normals(points, corner_point), 3, axis=0)), per_corner=True)
    return Mesh(points, corner_point, np.zeros(len(corner_point) // 3, np.int32), normal=normal)


def _refuse_nonfinite(values: FloatArray, name: str, one: str, many: str, what: str) -> None:
    broken = int(np.count_nonzero(~np.isfinite(values).all(axis=1)))
    if broken:
        raise ExportError(
            f"{name}: {counted(broken, one, many)} {what} that are NaN or infinite; delete or correct them"
        )


def _shared(layer: Layer, points: Points, corner_position: IntArray) -> tuple[AnyArray, IntArray]:
    """Return the values of corners without most duplicates, and the index of each corner's value.

    Corners of a point usually agree: only those that differ from their point's first corner are sorted.
    """
    if layer.index is not None:
        used = pool(layer.index)
        return layer.values[used.chosen], used.index
    if not layer.per_corner:
        return layer.values[points], corner_position
    count = len(corner_position)
    first = np.empty(len(points), np.intp)
    first[corner_position[::-1]] = np.arange(count - 1, -1, -1)
    values = layer.values[first]
    differs = (layer.values != values[corner_position]).any(axis=1)
    differs[first] = False  # otherwise NaN, which differs from itself, would be added again
    differing = np.flatnonzero(differs)
    if not len(differing):
        return values, corner_position
    index = corner_position.copy()
    others, kept = weld_map([layer.values[differing].astype(np.float32, copy=False)])
    index[differing] = others + len(values)
    return np.concatenate((values, layer.values[differing[kept]])), index


def _normals(mesh: Mesh, points: Points, corner_position: IntArray, warn: Warn) -> tuple[FloatArray, IntArray]:
    """Return unit normals and the index for each corner; undefined ones are computed from the triangles."""
    if mesh.normal is None:
        return vertex_normals(mesh.points, mesh.corner_point)[points], corner_position
    values, index = _shared(mesh.normal, points, corner_position)
    normals = values.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = np.einsum("ij,ij->i", normals, normals)
        broken = np.flatnonzero(~((squared > 1e-12) & (squared < 1e30)))
    if len(broken):
        corner = np.zeros(len(normals), np.intp)
        corner[index[::-1]] = np.arange(len(index) - 1, -1, -1)
        triangles = mesh.corner_point.reshape(-1, 3)[corner[broken] // 3].reshape(-1)
        of_triangles = unit(np.nan_to_num(face_normals(mesh.points, triangles)))
        of_triangles[~of_triangles.any(axis=1)] = (0, 0, 1)
        normals = normals.copy()
        normals[broken] = of_triangles
        warn(f"{counted(len(broken), 'normal has', 'normals have')} no direction; computed from the triangles")
    return unit(normals), index
