"""Split a mesh into faces, one for each material slot, with separate vertices (formats page, sections 3 and 4.1)."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Named, Report, Text, counted
from ...core.scene import AnyArray, FloatArray, IntArray, Mesh, Surface
from ...geometry.normals import repair_vertices, report_repaired, vertex_normals
from ...geometry.triangles import pool_rows, triangle_runs
from ...geometry.vertices import Split, drop_repeated_corners, layer_keys, split, usable_weights

MOST_FACES = 8
"""Most faces of a mesh."""
MOST_VERTICES = 65_500
"""Most vertices of a face (section 12)."""
MOST_INFLUENCES = 4
NORMAL_TOLERANCE = 5e-4
"""Default tolerance of normals: corners of a point whose normals differ by no more are one vertex."""

OFF_ONE = 5 / 65535
"""Tolerance for sums of four weights. Files round each weight down to a multiple of 1/65535, so sums this close to 1
stay unchanged."""

Places = npt.NDArray[np.intp]


@dataclass
class FaceArrays:
    """One face: V vertices, T triangles, in the axes and units of the mesh."""

    slot: int
    """Index of the material slot."""
    part: int
    """0; or 1, 2 … for the further faces of a slot with more vertices than one face may have."""
    material: str
    """Name of the slot's material; may be empty."""
    positions: FloatArray
    """(V, 3) float32."""
    normals: FloatArray
    """(V, 3) float32, of unit length."""
    uvs: FloatArray | None
    """(V, 2) float32, v upwards; None if the slot has no UVs."""
    triangles: IntArray
    """(T, 3) int32 into the V vertices, counter-clockwise, with three different corners."""
    points: IntArray
    """(V,) int32: the point in ``Mesh.points`` of each vertex."""
    joint_indices: IntArray | None = None
    """(V, 4) int32 into the joints of the scene's skeleton, the strongest first; None if the mesh has no weights."""
    joint_weights: FloatArray | None = None
    """(V, 4) float32, unused entries 0; each row sums to 1 within ``OFF_ONE``, or to 0 without weights."""
    surface: Surface | None = None
    uv_steps: AnyArray | None = None
    """(V, 2) uint16: the imported file's quantised UVs, if ``uvs`` do not determine them."""

    @property
    def is_empty(self) -> bool:
        return not len(self.triangles)


def empty_face(slot: int, part: int, material: str) -> FaceArrays:
    """Return a face without triangles."""
    return FaceArrays(
        slot,
        part,
        material,
        np.empty((0, 3), np.float32),
        np.empty((0, 3), np.float32),
        None,
        np.empty((0, 3), np.int32),
        np.empty(0, np.int32),
    )


def faces_of(
    mesh: Mesh, *, tolerance: float = NORMAL_TOLERANCE, name: str = "", report: Report | None = None
) -> list[FaceArrays]:
    """Return the faces of a mesh, one for each slot in order, including slots without triangles.

    If every point of the mesh has one normal and one UV, vertices keep their order, even if some are equal. Otherwise
    points are split along seams, and vertices are sorted by their first use. Points without triangles are dropped.

    Parameters
    ----------
    tolerance:
        Largest difference of the normals of one vertex's corners.
    name:
        Name of the object, for errors.
    report:
        Gets warnings about the object.

    Raises
    ------
    ExportError
        NaN or infinite points or UVs.
    """
    report = report or Report()
    mesh = replace(mesh, tangent=None, uvs=mesh.uvs[:1], colors=[], custom=[], shape_keys=[])
    mesh, dropped = drop_repeated_corners(mesh)
    if dropped:
        triangles = counted(dropped, "triangle uses", "triangles use")
        report.loss("repeated-corners", "{} a vertex twice; left out", triangles)
    _refuse_nonfinite(mesh, name)
    found = split(mesh.corner_point, len(mesh.points), layer_keys(mesh, tolerance))
    vertices = _Vertices(mesh, found, report)
    names = mesh.materials or [""]
    slot = np.clip(mesh.material_index, 0, len(names) - 1)
    faces: list[FaceArrays] = []
    for number, material in enumerate(names):
        chosen = np.flatnonzero(slot == number) if len(names) > 1 else np.arange(len(slot))
        surface = mesh.surfaces[number] if number < len(mesh.surfaces) else None
        parts = list(triangle_runs(found.corner_vertex.reshape(-1, 3)[chosen], MOST_VERTICES))
        if len(parts) > 1:
            template = "{} has more than {:,} vertices; split into {} faces"
            report.change("too-many-vertices", template, material_text(material, number), MOST_VERTICES, len(parts))
        for part, run in enumerate(parts):
            corners = found.corner_vertex.reshape(-1, 3)[chosen[run]]
            faces.append(vertices.face(number, part, material, surface, corners))
    return faces


def material_text(name: str, slot: int) -> Text:
    """Return the name of a material for a message, or the number of its slot."""
    return Text("material '{}'", Named("material", name)) if name else Text("material slot {}", slot + 1)


def _refuse_nonfinite(mesh: Mesh, name: str) -> None:
    """Raise ExportError for NaN and infinite values that would be written (section 12)."""
    owner = f"{name}: " if name else ""
    finite = np.isfinite(mesh.points)
    broken = 0 if finite.all() else int(np.count_nonzero(~finite[mesh.corner_point].all(axis=1)))
    if broken:
        raise ExportError(
            "{}{} NaN or infinite coordinates; delete or correct these vertices",
            owner,
            counted(broken, "corner has", "corners have"),
        )
    if mesh.uvs and not np.isfinite(mesh.uvs[0].values).all():
        broken = int(np.count_nonzero(~np.isfinite(mesh.uvs[0].values).all(axis=1)))
        if broken:
            raise ExportError(
                "{}{} NaN or infinite in '{}'; unwrap these faces anew",
                owner,
                counted(broken, "UV is", "UVs are"),
                mesh.uvs[0].name,
            )


class _Vertices:
    """Points, normals, UVs and weights of all vertices of a mesh; the method ``face`` extracts those of one face."""

    def __init__(self, mesh: Mesh, found: Split, report: Report) -> None:
        self.mesh = mesh
        corner = found.vertex_corner
        self.point: IntArray = mesh.corner_point[corner]
        used = np.zeros(len(mesh.points), bool)
        used[self.point] = True
        self.is_split = len(corner) > int(np.count_nonzero(used))
        self.normals = self._normals(corner, report)
        uvs = mesh.uvs[0].on_vertices(corner, self.point) if mesh.uvs else None
        self.uvs = None if uvs is None else uvs.values.astype(np.float32, copy=False)
        self.uv_steps = None if uvs is None else uvs.stored
        self.weights = strongest(mesh.joint_indices, mesh.joint_weights, report)

    def _normals(self, corner: Places, report: Report) -> FloatArray:
        """Return unit normals of all vertices; undefined ones are computed from the triangles."""
        mesh = self.mesh
        if mesh.normal is None:
            return vertex_normals(mesh.points, mesh.corner_point)[self.point]
        given = mesh.normal.at_vertices(corner, self.point).astype(np.float32, copy=False)
        normals, broken = repair_vertices(given, corner, mesh.points, mesh.corner_point)
        report_repaired(broken, report)
        return normals

    def face(self, slot: int, part: int, material: str, surface: Surface | None, corners: IntArray) -> FaceArrays:
        """Return the face of the given triangles, (T, 3) into the mesh's vertices."""
        mesh = self.mesh
        used = pool_rows(np.ascontiguousarray(corners).reshape(-1))
        chosen, index = np.arange(len(self.point))[used.chosen], used.index
        if self.is_split:
            chosen, index = _by_first_use(chosen, index)
        points = self.point[chosen]
        holds_uvs = self.uvs is not None and (surface is None or not surface.uvs or surface.uvs[0])
        face = FaceArrays(
            slot,
            part,
            material,
            np.ascontiguousarray(mesh.points[points], np.float32),
            self.normals[chosen],
            self.uvs[chosen] if self.uvs is not None and holds_uvs else None,
            index.reshape(-1, 3),
            points,
            surface=surface,
            uv_steps=None if self.uv_steps is None else self.uv_steps[chosen],
        )
        if self.weights is not None:
            face.joint_indices, face.joint_weights = self.weights[0][points], self.weights[1][points]
        return face


def _by_first_use(chosen: Places, index: IntArray) -> tuple[Places, IntArray]:
    """Sort vertices by the first triangle that uses them, so that vertices close in the list are close in the mesh.

    This improves the use of processor caches and the compression by zlib.
    """
    first = np.empty(len(chosen), np.intp)
    first[index[::-1]] = np.arange(len(index) - 1, -1, -1)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return chosen[order], rank[index]


def strongest(
    indices: IntArray | None, weights: FloatArray | None, report: Report
) -> tuple[IntArray, FloatArray] | None:
    """Return the four strongest weights of each point, the strongest first, with the sum 1, or None without weights.

    Parameters
    ----------
    indices, weights:
        (P, k) int32 and float32.
    report:
        Gets warnings about points with more weights or invalid weights.

    Returns
    -------
    (P, 4) int32 and (P, 4) float32; entries without weight refer to joint 0.
    """
    if indices is None or weights is None:
        return None
    weights = usable_weights(weights, report)
    if weights.shape[1] < MOST_INFLUENCES:
        missing = ((0, 0), (0, MOST_INFLUENCES - weights.shape[1]))
        indices, weights = np.pad(indices, missing), np.pad(weights, missing)
    over = int(np.count_nonzero((weights > 0).sum(axis=1) > MOST_INFLUENCES))
    if over:
        number = counted(over, "vertex has", "vertices have")
        report.loss("too-many-weights", "{} more than {} weights; the strongest are kept", number, MOST_INFLUENCES)
    if np.any(weights[:, :-1] < weights[:, 1:]):
        order = np.argsort(-weights, axis=1, kind="stable")[:, :MOST_INFLUENCES]
        indices, weights = np.take_along_axis(indices, order, axis=1), np.take_along_axis(weights, order, axis=1)
    indices, weights = indices[:, :MOST_INFLUENCES], weights[:, :MOST_INFLUENCES]
    total = weights.sum(axis=1, dtype=np.float64)
    off = (np.abs(total - 1) > OFF_ONE) & (total > 0)
    if off.any():
        weights = weights.copy()
        weights[off] = weights[off] / total[off, None]
    return (np.where(weights > 0, indices, 0).astype(np.int32), np.ascontiguousarray(weights, np.float32))
