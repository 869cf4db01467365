"""Generation of missing levels of detail with Blender's Decimate, in a temporary scene."""

from dataclasses import replace

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import FloatArray, IntArray, Layer, Mesh
from ....io_formats.geometry.connectivity import open_points, sewn
from ....io_formats.geometry.normals import face_normals, unit, vertex_normals
from ....io_formats.geometry.vertices import weld_map
from ....io_formats.passes.join_meshes import join
from ... import arrays
from ..reading.material_reading import slot_of_faces

_NORMAL = "level_normal"
_GROUP = "level_fixed"
_FEWEST = 4
"""Smallest number of triangles that a level keeps: Decimate does not reduce fewer."""
_FAR = 4.0
"""Length of the slivers that hold material borders in place, relative to the diagonal of the mesh. They are so long
that no edge collapse can flip them."""
_THIN = 1e-3
"""Width of these slivers, relative to their length."""
_ROOM = 8
"""Smallest number of triangles for each outermost point at which that point is fixed. A fixed point preserves the
triangles around it, which a level with few triangles cannot afford."""
_Flags = npt.NDArray[np.bool_]


@np.errstate(over="ignore", invalid="ignore")  # points may have extreme coordinates
def make_level(mesh: Mesh, ratio: float, *, keep_borders: bool) -> Mesh:
    """Return a simplified mesh with about ``ratio`` times the triangles: at least one, never more than the original.

    The user's scene is not touched, and nothing stays behind in the .blend file. References to data of evaluated
    objects may become invalid: read all objects before making levels.

    Parameters
    ----------
    mesh:
        Triangles with any layers, in any space; it is not changed. UVs, normals and joint weights are interpolated,
        materials and surfaces kept; tangents, colours, custom layers and shape keys are left out.
    keep_borders:
        Do not move points of open edges. Seams of UVs and normals do not count as open edges, even if the triangles on
        both sides have separate points at the same position.

    Returns
    -------
    Mesh
        A mesh with the bounding box of the original. Borders between material slots stay about where they are, and
        each slot keeps a triangle unless fewer triangles than slots are wanted. Fixed borders may prevent the
        reduction. A mesh with NaN or infinite points is returned unchanged.
    """
    count = mesh.triangle_count
    wanted = max(1, round(ratio * count))
    if wanted >= count or not np.isfinite(mesh.points).all():
        return mesh
    source = replace(sewn(mesh), tangent=None, colors=[], custom=[])
    if source.triangle_count < _FEWEST:
        return mesh
    fixed = np.zeros(len(source.points), bool)
    outermost = _outermost(source, np.ones(6, bool))
    if wanted >= _ROOM * len(outermost):
        fixed[outermost] = True
    if keep_borders:
        fixed |= open_points(source.corner_point, len(source.points))
    made = _decimated(source, wanted, fixed)
    used = np.unique(source.material_index)
    if len(used) <= wanted:
        lost = np.setdiff1d(used, made.material_index)
    else:
        lost = used[:0] if made.triangle_count else np.array([-1])
    if len(lost):
        # The triangles at fixed points are not collapsed, so the slot keeps one of them.
        for slot in lost.tolist():
            fixed[_largest(source, slot)] = True
        made = _decimated(source, wanted, fixed)
    made.points = _in_box(made, source, source.points[fixed])
    return made


def has_open_borders(mesh: Mesh) -> bool:
    """Return whether a mesh has open edges; seams of UVs or normals do not count."""
    source = sewn(mesh)
    return bool(open_points(source.corner_point, len(source.points)).any())


def _outermost(mesh: Mesh, sides: _Flags) -> list[int]:
    """Return points at the given sides (6,) of the box of a mesh, one for each side; lower sides come first.

    A point at several sides is preferred, and the point at the most sides is the first.
    """
    points = mesh.points[mesh.corner_point]
    at_sides = sides & np.concatenate((points == points.min(axis=0), points == points.max(axis=0)), axis=1)
    found: list[int] = []
    while at_sides.any():
        corner = int(at_sides.sum(axis=1).argmax())
        found.append(int(mesh.corner_point[corner]))
        at_sides &= ~at_sides[corner]
    return found


def _in_box(made: Mesh, source: Mesh, kept: FloatArray) -> FloatArray:
    """Extend a level to the bounding box of its source; return its points.

    For each side that the level does not reach, the nearest point is moved to an outermost point of the source, except
    points at the positions ``kept``. Otherwise programs that scale each file to a bounding box would stretch the level.
    """
    low, high = (side(source.points[source.corner_point], axis=0) for side in (np.min, np.max))
    points = np.clip(made.points, low, high)  # Decimate can move points slightly outside of the mesh
    used = np.zeros(len(points), bool)
    used[made.corner_point] = True
    place = weld_map([np.concatenate([kept, made.points])])[0]
    is_kept = place[len(kept) :] <= place[: len(kept)].max(initial=-1)
    free = np.flatnonzero(used & ~is_kept)
    while len(free):
        missing = np.concatenate((points[used].min(axis=0) > low, points[used].max(axis=0) < high))
        if not missing.any():
            break
        outermost = source.points[_outermost(source, missing)[0]]
        nearest = free[((points[free] - outermost) ** 2).sum(axis=1).argmin()]
        points[nearest] = outermost
        free = free[free != nearest]
    return np.ascontiguousarray(points, np.float32)


def _largest(mesh: Mesh, slot: int) -> IntArray:
    """Return the points of the largest triangle of a material slot, or of the whole mesh if ``slot`` is negative."""
    area = np.linalg.norm(face_normals(mesh.points, mesh.corner_point), axis=1)
    if slot >= 0:
        area = np.where(mesh.material_index == slot, area, -1.0)
    corners: IntArray = mesh.corner_point.reshape(-1, 3)[int(np.argmax(area))]
    return corners


def _decimated(source: Mesh, wanted: int, fixed: _Flags) -> Mesh:
    """Collapse edges of a mesh with joined seams, except at fixed points, until ``wanted`` triangles are left."""
    joints = int(source.joint_indices.max()) + 1 if source.joint_indices is not None and len(source.points) else 0
    held = _with_held_borders(source, fixed)
    added = held.triangle_count - source.triangle_count
    fixed = np.concatenate([fixed, np.ones(len(held.points) - len(source.points), bool)])
    data = bpy.data.meshes.new("level")
    obj = bpy.data.objects.new("level", data)
    scene = bpy.data.scenes.new("level")
    try:
        scene.collection.objects.link(obj)
        _fill(data, held, joints)
        modifier = obj.modifiers.new("Decimate", "DECIMATE")
        modifier.ratio = (wanted + added) / held.triangle_count
        if fixed.any():
            group = obj.vertex_groups.new(name=_GROUP)
            group.add(np.flatnonzero(fixed).tolist(), 1.0, "REPLACE")
            modifier.vertex_group = _GROUP
            modifier.invert_vertex_group = True
        layer = scene.view_layers[0]
        layer.update()
        return _read(obj.evaluated_get(layer.depsgraph).data, source, joints)
    finally:
        bpy.data.batch_remove([scene, obj, data])


def _with_held_borders(source: Mesh, fixed: _Flags) -> Mesh:
    """Add slivers, in an additional slot, to a mesh with joined seams; they hold the borders between materials.

    Decimate limits the distance of points from the planes of their triangles, and a hundred times as strictly from open
    edges. It ignores materials, so borders in a flat surface would drift. So each border gets open edges: from both
    ends of each of its edges a long, thin sliver extends along it. Points can then move along the border and the
    surface, but not across it. The far ends of the slivers are new points, which must be fixed; points that are
    ``fixed`` need no sliver.
    """
    start, end, across = _material_borders(source)
    one, other = np.concatenate([start, end]), np.concatenate([end, start])
    across = np.concatenate([across, across])
    free = ~fixed[one]
    one, other, across = one[free], other[free], across[free]
    points = source.points.astype(np.float64)
    # The tips of the slivers may be anywhere, but coordinates in the range of the mesh preserve precision.
    long = _FAR * float(np.linalg.norm(np.ptp(points, axis=0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        along = points[other] - points[one]
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        across = across / np.linalg.norm(across, axis=1, keepdims=True)
        tips = points[one, None] + long * (along[:, None] + _THIN * across[:, None] * np.array([[1.0], [-1.0]]))
    tips = tips.astype(np.float32)
    good = np.isfinite(tips).all(axis=(1, 2))  # at edges without length, slivers are NaN
    one, tips = one[good], tips[good]
    made = len(one)
    if not made:
        return source
    slots = max(len(source.materials), int(source.material_index.max()) + 1)
    # Each sliver has two points of its own; its first corner, where it touches the surface, is set below.
    corner_point = np.insert(np.arange(2 * made, dtype=np.int32), slice(None, None, 2), 0)
    slivers = Mesh(tips.reshape(-1, 3), corner_point, np.zeros(made, np.int32), [""])
    held = join([replace(source, materials=[""] * slots, surfaces=[]), slivers], merge_slots=False)
    held.corner_point[len(source.corner_point) :: 3] = one
    return held


def _material_borders(mesh: Mesh) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the edges between triangles of different slots: both points, each (n,), and a vector across, (n, 3)."""
    count = len(mesh.points)
    start = mesh.corner_point.astype(np.int64)
    end = np.roll(start.reshape(-1, 3), -1, axis=1).reshape(-1)
    key = np.minimum(start, end) * count + np.maximum(start, end)
    slot = np.repeat(mesh.material_index, 3)
    order = np.lexsort([slot, key])
    one, other = order[:-1], order[1:]
    is_border = (key[one] == key[other]) & (slot[one] != slot[other])
    one, other = one[is_border], other[is_border]
    points = mesh.points.astype(np.float64)
    normals = unit(face_normals(points, mesh.corner_point))
    along = points[end[one]] - points[start[one]]
    across = np.cross(normals[one // 3] + normals[other // 3], along)
    return start[one], end[one], across


def _fill(data: bpy.types.Mesh, mesh: Mesh, joints: int) -> None:
    """Fill a mesh data block with the triangles, and store values in layers that Decimate interpolates.

    Decimate interpolates only UVs and float colours of corners, so normals are stored as colours.
    """
    arrays.fill_triangles(data, mesh.points, mesh.corner_point)
    for _slot in range(max(len(mesh.materials), int(mesh.material_index.max()) + 1)):
        data.materials.append(None)
    arrays.add_attribute(data, "material_index", "INT", "FACE", mesh.material_index)
    for number, uv in enumerate(mesh.uvs):
        arrays.add_attribute(data, _uv_name(number), "FLOAT2", "CORNER", uv.at_corners(mesh.corner_point))
    if mesh.normal is not None:
        normals = mesh.normal.at_corners(mesh.corner_point)
        colors = np.column_stack([normals, np.zeros(len(normals), np.float32)])
        arrays.add_attribute(data, _NORMAL, "FLOAT_COLOR", "CORNER", colors)
    if joints:
        weights = _weight_of_joints(mesh, joints)
        for start in range(0, weights.shape[1], 4):
            of_four = weights[:, start : start + 4]
            arrays.add_attribute(data, _weights_name(start), "FLOAT_COLOR", "POINT", of_four)
    data.update(calc_edges=True)


def _read(data: bpy.types.Mesh, source: Mesh, joints: int) -> Mesh:
    """Return the simplified mesh with the layers of the source mesh."""
    # Collapsing may move a point outside of the bounding box.
    points = np.clip(arrays.points_of(data), source.points.min(axis=0), source.points.max(axis=0))
    corner_point = arrays.corner_vertices(data)
    material_index = slot_of_faces(data)
    # the additional slot contains the slivers, which are dropped
    stays = material_index <= source.material_index.max(initial=0)
    corners = np.repeat(stays, 3)
    used, renumbered = np.unique(corner_point[corners], return_inverse=True)
    made = Mesh(
        points[used],
        renumbered.astype(np.int32),
        material_index[stays],
        list(source.materials),
        uvs=[
            Layer(uv.name, _values(data, _uv_name(number), 2)[corners], per_corner=True)
            for number, uv in enumerate(source.uvs)
        ],
        surfaces=[surface.without_domains() for surface in source.surfaces],
    )
    if source.normal is not None:
        normals = _values(data, _NORMAL, 4)[corners, :3]
        faces_out = _facing(source, source.normal) > 0
        made.normal = Layer(
            source.normal.name, _with_valid_normals(normals, made, faces_out=faces_out), per_corner=True
        )
    if joints and source.joint_weights is not None:
        blocks = [_values(data, _weights_name(start), 4)[used] for start in range(0, joints, 4)]
        made.joint_indices, made.joint_weights = _strongest(
            np.concatenate(blocks, axis=1)[:, :joints], source.joint_weights.shape[1]
        )
    return made


def _uv_name(number: int) -> str:
    return f"level_uv_{number}"


def _weights_name(start: int) -> str:
    return f"level_weights_{start}"


def _values(data: bpy.types.Mesh, name: str, width: int) -> FloatArray:
    """Return the values of an attribute, (n, width); an empty mesh has no attributes."""
    attribute = data.attributes.get(name)
    return np.empty((0, width), np.float32) if attribute is None else arrays.read_attribute(attribute)


def _weight_of_joints(mesh: Mesh, joints: int) -> FloatArray:
    """Return the weight of each joint for each point, (P, number of joints rounded up to a multiple of four)."""
    weights = np.zeros((len(mesh.points), (joints + 3) // 4 * 4), np.float32)
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return weights
    rows = np.arange(len(mesh.points))
    for column in range(mesh.joint_weights.shape[1]):
        # Add up the weights if a point lists a joint twice.
        weights[rows, mesh.joint_indices[:, column]] += np.maximum(mesh.joint_weights[:, column], 0)
    return weights


def _strongest(weights: FloatArray, most: int) -> tuple[IntArray, FloatArray]:
    """Return indices and weights, each (P, most), of the joints with the largest weights of each point.

    They are in descending order, scaled to the original sum of all weights of the point.
    """
    most = min(most, weights.shape[1])
    order = np.argsort(-weights, axis=1, kind="stable")[:, :most]
    chosen = np.take_along_axis(weights, order, axis=1)
    before, after = weights.sum(axis=1), chosen.sum(axis=1)
    chosen *= np.where(after > 0, before / np.where(after > 0, after, 1), 1)[:, None].astype(np.float32)
    return order.astype(np.int32), chosen


def _with_valid_normals(normals: FloatArray, made: Mesh, *, faces_out: bool) -> FloatArray:
    """Return unit normals (C, 3), zero normals replaced by the normal of their triangle.

    Inverted normals are replaced too, if normals face the front of their triangles (``faces_out``).
    """
    faces = unit(face_normals(made.points, made.corner_point))
    of_face = np.repeat(faces, 3, axis=0)
    length = np.linalg.norm(normals, axis=1)
    broken = ~(length > 1e-3)
    if faces_out:
        broken |= np.einsum("ij,ij->i", normals, of_face) < 0
    normals = np.where(broken[:, None], of_face, normals)
    flat = np.linalg.norm(normals, axis=1) < 1e-6  # corners of triangles without area
    if flat.any():
        normals[flat] = vertex_normals(made.points, made.corner_point)[made.corner_point[flat]]
    return unit(np.ascontiguousarray(normals, np.float32))


def _facing(mesh: Mesh, normal: Layer) -> float:
    """Return the mean cosine between a mesh's normals and those of its triangles; negative if they point backwards."""
    of_face = np.repeat(unit(face_normals(mesh.points, mesh.corner_point)), 3, axis=0)
    return float(np.nan_to_num(np.einsum("ij,ij->i", normal.at_corners(mesh.corner_point), of_face)).mean())
