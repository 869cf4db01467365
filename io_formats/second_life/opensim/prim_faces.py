"""The faces of a prim from the numbers of its shape, as the viewer shows it at its highest level of detail.

It follows docs/formats/second_life_prims.md in double precision, with exact parameters, and is within 6e-5 of the
viewer, which computes in single precision.
"""

from collections.abc import Iterator, Sequence
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.scene import Layer, Mesh
from ...geometry.transforms import Floats, bounds, cross
from . import prims
from .prim_paths import Path, Profile, path_of, profile_of

_LEAST_AREA = 1e-12
"""Triangles of twice this area or less, in the unit cube, count as having none. Rounding gives about 1e-16."""


def grid_faces(points: Floats) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return the triangles of a grid of points, and the sums of normals at its points.

    Parameters
    ----------
    points:
        (h, w, 3): rows along t, columns along s.

    Returns
    -------
    triangles:
        (m, 3) int32 into the points row by row, two for each cell, without those that have no area. Their front is
        where s is to the right and t upwards.
    sums:
        (h, w, 3) area-weighted, not normalised. As in the viewer, each triangle counts twice at the corner (s + 1,
        t + 1) of its cell.
    """
    corner = points[:-1, :-1]
    diagonal = points[1:, 1:] - corner
    one = np.stack((diagonal, points[:-1, 1:] - corner), axis=2)
    other = np.stack((points[1:, :-1] - corner, diagonal), axis=2)
    normals = cross(one, other)
    triangles = cell_triangles(*points.shape[:2])[has_area(normals)]
    left, right = normals[:, :, 0], normals[:, :, 1]
    both = left + right
    sums = np.zeros(points.shape)
    sums[:-1, :-1] = both
    sums[1:, 1:] += 2 * both
    sums[1:, :-1] += left
    sums[:-1, 1:] += right
    return triangles, sums


def cell_triangles(height: int, width: int) -> npt.NDArray[np.int32]:
    """Return the triangles of the cells of a grid of points, (height - 1, width - 1, 2, 3) int32."""
    index = np.arange(height * width, dtype=np.int32).reshape(height, width)[:-1, :-1, None, None]
    return index + np.array(((0, width + 1, width), (0, 1, width + 1)), np.int32)


def has_area(normals: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Return which triangles with these cross products (…, 3) have an area, (…)."""
    found: npt.NDArray[np.bool_] = np.einsum("...i,...i->...", normals, normals) > _LEAST_AREA**2
    return found


def unit_normals(sums: Floats) -> Floats:
    """Normalise sums (…, 3); those without a direction, at points without triangles, become (0, 0, 1)."""
    length = np.sqrt(np.einsum("...i,...i->...", sums, sums))[..., None]
    is_flat = length == 0
    return np.where(is_flat, (0.0, 0.0, 1.0), sums / np.where(is_flat, 1.0, length))


def add_seam(sums: Floats, other: Floats) -> None:
    """Replace the sums of two rows or columns that meet by their total."""
    sums += other
    other[...] = sums


Triangles = npt.NDArray[np.int32]

_IN_LINE = 1e-12
"""Twice the area up to which the corners of a triangle count as being in line, which the viewer leaves to rounding.

Such triangles are avoided, so that caps have all points of the sides that they meet.
"""


def caps_of(
    parameters: prims.PrimParameters, profile: Profile, path: Path, placed: Floats
) -> tuple[prims.ShapeFace, prims.ShapeFace]:
    """Return the top and the bottom of a prim with an open path.

    ``placed`` (h, n, 3) are the points of the profile in all rows of the path.
    """
    top, bottom = placed[-1], placed[0]
    bottom_uvs = profile.points[:, :2] * (1, -1) + 0.5
    if _is_parallelogram(parameters, profile):
        # The viewer exchanges the corners of the top, which mirrors the UVs of the bottom.
        corners = np.arange(4) * profile.segments
        triangles = cell_triangles(profile.segments + 1, profile.segments + 1).reshape(-1, 3)
        top_uvs = _parallelogram(bottom_uvs[corners[[3, 2, 0]]], profile.segments)
        bottom_uvs = _parallelogram(bottom_uvs[corners[[0, 1, 3]]], profile.segments)
        top = _parallelogram(top[corners[[0, 1, 3]]], profile.segments)
        bottom = _parallelogram(bottom[corners[[0, 1, 3]]], profile.segments)
    else:
        top_uvs = profile.points[:, :2] + 0.5
        if profile.is_hollow:
            triangles = _zip_triangles(profile.points)
        else:
            triangles = _fan_triangles(len(profile.points), is_open=profile.is_open)
            if not profile.is_open:
                top, top_uvs, bottom, bottom_uvs = map(_with_middle, (top, top_uvs, bottom, bottom_uvs))
    return (
        _cap("top", top, top_uvs, path.normal(-1), triangles),
        _cap("bottom", bottom, bottom_uvs, -path.normal(0), triangles[:, [0, 2, 1]]),
    )


def _cap(role: str, points: Floats, uvs: Floats, normal: Floats, triangles: Triangles) -> prims.ShapeFace:
    a, b, c = points[triangles.T]
    normals = np.broadcast_to(normal, points.shape).copy()
    return prims.ShapeFace(role, points, uvs, normals, triangles[has_area(cross(b - a, c - a))])


def _is_parallelogram(parameters: prims.PrimParameters, profile: Profile) -> bool:
    """Return whether the viewer makes the caps from three corners of a square."""
    is_whole = parameters.path_begin == 0 and parameters.path_end == prims.CUT_STEPS
    is_box = parameters.profile_curve == prims.SQUARE and parameters.path_curve == prims.LINE
    return is_box and is_whole and not profile.is_open and not profile.is_hollow


def _parallelogram(corners: Floats, parts: int) -> Floats:
    """Return a grid of points ((parts + 1)², k) from corners (3, k): the first, the next along s, the one along t."""
    share = np.arange(parts + 1)[:, None] / parts
    origin, along_s, along_t = corners
    grid: Floats = origin + share * (along_s - origin) + share[:, None] * (along_t - origin)
    return np.concatenate(grid)


def _with_middle(values: Floats) -> Floats:
    """Append the middle of the bounding box to points or UVs (n, k)."""
    return np.concatenate([values, bounds(values).mean(axis=0, keepdims=True)])


def _fan_triangles(count: int, *, is_open: bool) -> Triangles:
    """Return a fan that is not closed, around the last point if the profile is open, else around one more point."""
    hub = count - 1 if is_open else count
    first = np.arange(hub - 1, dtype=np.int32)
    return np.stack((np.full_like(first, hub), first, first + 1), axis=1)


def _zip_triangles(profile_points: Floats) -> Triangles:
    """Return the triangles between outline and hole, from both ends of the points (n, 3) until they meet.

    Each triangle depends on the one before, and there are less than 80.
    """
    points = profile_points.tolist()

    def is_reversed(a: int, b: int, c: int) -> bool:
        (ax, ay, _), (bx, by, _), (cx, cy, _) = points[a], points[b], points[c]
        return bool((bx - ax) * (cy - ay) - (by - ay) * (cx - ax) < _IN_LINE)

    steps = profile_points[1:] - profile_points[:-1]
    lengths = np.einsum("ij,ij->i", steps, steps).tolist()
    triangles = []
    first, last = 0, len(points) - 1
    while last - first > 1:
        after, before = first + 1, last - 1
        takes_first = not is_reversed(first, after, last) and not is_reversed(last, after, before)
        if takes_first and not is_reversed(last, first, before) and not is_reversed(first, before, after):
            takes_first = lengths[first] < lengths[before]
        if takes_first:
            triangles.append((first, after, last))
            first = after
        else:
            triangles.append((first, before, last))
            last = before
    return np.array(triangles, np.int32)


UV_NAME = "UVMap"
_STEPS = 2**24
"""Points are moved to multiples of 1 / this, which float32 holds exactly up to 1, so that points of several faces are
equal if they only differ by rounding."""


def mesh_of(faces: Sequence[prims.ShapeFace], name: str) -> Mesh:
    """Return a mesh with the faces of a shape, in the unit cube.

    Its material slots are the numbers of all faces, "0", "1" and so on, also of those without triangles. Faces do not
    share points; points without triangles are left out. Normals and UVs are those of the points.
    """
    offsets = np.cumsum([0, *(len(face.points) for face in faces)])
    triangles = np.concatenate([face.triangles + offset for face, offset in zip(faces, offsets, strict=False)])
    is_used = np.zeros(offsets[-1], bool)
    is_used[triangles] = True
    new_index = np.cumsum(is_used, dtype=np.int32) - 1
    points = np.concatenate([face.points for face in faces])[is_used]
    normals = np.concatenate([face.normals for face in faces])[is_used]
    uvs = np.concatenate([face.uvs for face in faces])[is_used]
    counts = [len(face.triangles) for face in faces]
    return Mesh(
        # Adding 0 makes -0 equal to 0 in every comparison.
        points=(np.round(points * _STEPS) / _STEPS + 0.0).astype(np.float32),
        corner_point=new_index[triangles.reshape(-1)].astype(np.int32),
        material_index=np.repeat(np.arange(len(faces), dtype=np.int32), counts),
        materials=[str(number) for number in range(len(faces))],
        normal=Layer("normal", normals.astype(np.float32)),
        uvs=[Layer(UV_NAME, uvs.astype(np.float32))],
        name=name,
    )


def planar_uvs(points: npt.NDArray[np.floating], normals: npt.NDArray[np.floating], size: Sequence[float]) -> Floats:
    """Return the UVs of planar mapping at vertices, before repeats, offsets and rotation.

    Parameters
    ----------
    points:
        (n, 3) in the unit cube.
    normals:
        (n, 3) of unit length, in the space of ``points``.
    size:
        Size of the part in metres.

    Returns
    -------
    Floats
        (n, 2) float64, v upwards. Half a metre is a whole texture.
    """
    x, y, z = (points * np.asarray(size, np.float64)).T
    normal_x, normal_y, normal_z = normals.T.astype(np.float64)
    along_y = np.abs(normal_x) >= 0.5
    sign = np.where(along_y, np.where(normal_x < 0, -1.0, 1.0), np.where(normal_y > 0, -1.0, 1.0))
    u = sign * np.where(along_y, y, x)
    # The tangent is the cross product of this axis and the normal.
    v = sign * np.where(along_y, normal_z * x - normal_x * z, normal_y * z - normal_z * y)
    return np.stack((0.5 + 2 * u, 0.5 - 2 * v), axis=1)


_COINCIDENT = 0.001
"""Distance below which a column of points counts as a pole."""

Columns = tuple[npt.NDArray[np.intp], Floats]
"""The columns of a face's grid: indices of profile points (w,), and u (w,)."""


def outer_columns(profile: Profile) -> Iterator[Columns]:
    """Yield the columns of each outer face.

    Where a cut near a corner leaves fewer points than sides, the indices run on to the centre or the hole, and from the
    last point to the first, as in the viewer.
    """
    count = len(profile.points)
    for side in range(profile.side_count):
        index = np.arange(side * profile.segments, (side + 1) * profile.segments + 1)
        u = np.where(index < count, profile.points[index % count, 2], 1.0)
        yield index % count, u - floor(u[0])


def inner_columns(profile: Profile) -> Columns:
    """Return the columns of the inner face of a hollow profile; each twice if it has facets."""
    index = np.arange(profile.outline_count, len(profile.points))
    if profile.has_facets:
        index = np.append(np.repeat(index, 2)[1:], index[-1 if profile.is_open else 0])
    return index, profile.points[index, 2]


def cut_columns(profile: Profile) -> Iterator[Columns]:
    """Yield the columns of the two cut faces of an open profile."""
    u = np.array((0.0, 1.0))
    yield np.array((len(profile.points) - 1, 0)), u
    yield np.array((profile.outline_count - 1, profile.outline_count)), u


def side_of(
    role: str, columns: Columns, parameters: prims.PrimParameters, profile: Profile, path: Path, placed: Floats
) -> prims.ShapeFace:
    """Return a face from its columns. ``placed`` (h, n, 3) are the points of the profile in all rows of the path."""
    index, u = columns
    points = placed[:, index]
    triangles, sums = grid_faces(points)
    if not path.is_open:
        add_seam(sums[0], sums[-1])
    is_pole = [gap @ gap < _COINCIDENT**2 for gap in points[0, [0, -1]] - points[-2, [0, -1]]]
    if not profile.is_open and not is_pole[0]:
        add_seam(sums[:, 0], sums[:, -1])
    if parameters.path_curve == prims.CIRCLE_PATH and parameters.profile == prims.HALF_CIRCLE:
        for column, x in ((0, 1.0), (-1, -1.0)):
            if is_pole[column]:
                sums[:, column] = (x, 0.0, 0.0)
    uvs = np.empty((*points.shape[:2], 2))
    uvs[..., 0] = u
    uvs[..., 1] = path.position[:, None]
    return prims.ShapeFace(
        role, points.reshape(-1, 3), uvs.reshape(-1, 2), unit_normals(sums.reshape(-1, 3)), triangles
    )


def face_count(shape: prims.PrimShape) -> int:
    """Return the number of faces of a prim, without building them."""
    parameters = prims.parameters_of(shape)
    profile, path = profile_of(parameters), path_of(parameters)
    return profile.side_count + profile.is_hollow + 2 * (path.is_open + profile.is_open)


def faces_of(shape: prims.PrimShape) -> list[prims.ShapeFace]:
    """Build the faces of a prim, in the order of their numbers.

    Any integers are accepted, since they are clamped to the viewer's limits. Flexible prims are at rest. There is
    always a face, with less than 20,000 points in all. Edges between faces are sharp.
    """
    parameters = prims.parameters_of(shape)
    profile, path = profile_of(parameters), path_of(parameters)
    placed = path.place(profile.points[:, 0], profile.points[:, 1])
    sides = [("outer", columns) for columns in outer_columns(profile)]
    if profile.is_hollow:
        sides.append(("inner", inner_columns(profile)))
    cuts = [("cut", columns) for columns in cut_columns(profile)] if profile.is_open else []
    top, bottom = caps_of(parameters, profile, path, placed) if path.is_open else (None, None)
    faces = [
        top,
        *(side_of(role, columns, parameters, profile, path, placed) for role, columns in sides),
        bottom,
        *(side_of(role, columns, parameters, profile, path, placed) for role, columns in cuts),
    ]
    return [face for face in faces if face is not None]
