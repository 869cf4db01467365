"""Scene -> document (formats page, sections 2, 3 and 6)."""

from dataclasses import replace

import numpy as np

from ..core.errors import ExportError
from ..core.messages import Report, Text, counted
from ..core.scene import AnyArray, FloatArray, Layer, Mesh, Scene
from ..encodings.quantization import U16_STEPS, dequantise_exactly, from_biased, quantised_exactly, to_biased, to_steps
from ..geometry.normals import any_perpendicular, repair, report_repaired, uv_sides, vertex_normals, vertex_tangents
from ..geometry.transforms import flip_winding
from ..geometry.vertices import drop_repeated_corners, report_loose, split_mesh
from ..passes.join_meshes import only_mesh
from .document import MOST, MOST_SAFE, Document, Variant
from .format import WriteOptions
from .scene_builder import interleave_range, to_blender, turned_domain


def split_by_vertices(mesh: Mesh, options: WriteOptions, tolerance: float, report: Report) -> Mesh:
    """Return a mesh with one point for each vertex of the file, and the written layers with one value for each point.

    Vertices keep the order of the points; vertices added by seams come last. Triangles keep their order.

    Parameters
    ----------
    tolerance:
        Largest difference of the normals of one vertex's corners.
    report:
        Receives warnings; its item is the name of the object.

    Raises
    ------
    ExportError
        The mesh has no faces, or NaN or infinite coordinates.
    """
    mesh = _written_part(mesh, options)
    mesh, dropped = drop_repeated_corners(mesh)
    if dropped:
        number = counted(dropped, "triangle uses", "triangles use")
        report.change("repeated-corners", "{} a vertex twice; left out", number)
    if not mesh.triangle_count:
        raise ExportError("'{}' has no faces; points alone cannot be exported. Exclude it from the export", report.item)
    if not np.isfinite(mesh.points[mesh.corner_point]).all():
        raise ExportError("'{}' has vertices with NaN or infinite coordinates; delete them", report.item)
    report_loose(mesh, report)
    if mesh.tangent is None and mesh.uvs and writes_tangents(mesh, options):
        return replace(split_mesh(_with_sides(mesh), tolerance)[0], tangent=None)
    return split_mesh(mesh, tolerance)[0]


def _with_sides(mesh: Mesh) -> Mesh:
    """Return a mesh with a tangent layer that separates corners at seams of mirrored UVs."""
    sides = np.zeros((len(mesh.corner_point), 4), np.float32)
    sides[:, 3] = uv_sides(mesh.uvs[0].at_corners(mesh.corner_point))
    return replace(mesh, tangent=Layer("tangent", sides, per_corner=True))


def _written_part(mesh: Mesh, options: WriteOptions) -> Mesh:
    """Return a mesh with only the layers that the file will hold."""
    uvs = mesh.uvs[:1] if options.use_stored_uvs else []
    tangents = writes_tangents(mesh, options)
    return replace(
        mesh,
        normal=mesh.normal if options.use_stored_normals or tangents else None,
        tangent=mesh.tangent if tangents else None,
        uvs=uvs if not tangents else mesh.uvs[:1],
        colors=[],
        custom=[],
        shape_keys=[],
        joint_indices=None,
        joint_weights=None,
    )


def writes_tangents(mesh: Mesh, options: WriteOptions) -> bool:
    """Return whether tangents are written: always, or if the imported file had them."""
    choice, tangent = options.mesh_tangents, mesh.tangent
    return choice == "ALWAYS" or (choice == "AUTO" and tangent is not None and tangent.stored is not None)


def is_too_large(mesh: Mesh) -> bool:
    """Return whether a mesh with one point for each vertex exceeds the limits of the original reader."""
    return max(len(mesh.points), mesh.triangle_count) > MOST_SAFE


def refuse_too_large(mesh: Mesh, name: str) -> None:
    """Raise ExportError for a mesh with one point for each vertex that a file cannot hold (section 4).

    Raises
    ------
    ExportError
        The message names the counts and what to do.
    """
    if max(len(mesh.points), mesh.triangle_count) > MOST:
        counts = Text(
            "{:,} vertices, counted where seams split them, and {:,} triangles", len(mesh.points), mesh.triangle_count
        )
        raise ExportError(refusal_of_size(name, counts))


def refusal_of_size(name: str, counts: str) -> str:
    """Return the error message for a mesh that a file cannot hold."""
    return Text(
        "'{}' has {}; a file holds {:,} vertices and {:,} triangles. Choose to split it into numbered files, or "
        "reduce the number of faces",
        name,
        counts,
        MOST,
        MOST,
    )


_ON_GRID = 0.01
"""Tolerance for deciding that values are on the grid of an imported file, in steps."""
_STEP = 1 / 127
"""Directions that differ by less from the imported ones are written with their imported bytes."""
_POSITION_MARGIN, _UV_MARGIN = 0.0005, 0.001
"""Half of the range that is written if all values are equal, since readers may divide by the range."""


class DocumentBuilder:
    """Map a scene with one mesh to a document."""

    def __init__(self, scene: Scene, options: WriteOptions) -> None:
        self.scene = scene
        self.options = options
        self.basis = to_blender(options.axes).inverse
        self.node, self.mesh = only_mesh(scene, "MeshSerializer2")
        self.report = scene.report.about(self.node.name)
        self.is_moved = True
        """Whether points or UVs differ from those of the imported file."""

    def build(self) -> Document:
        """Return the document.

        Raises
        ------
        ExportError
            The mesh has too many vertices, or numbers that the file cannot hold.
        """
        has_tangents = writes_tangents(self.mesh, self.options)
        self.mesh = split_by_vertices(self.mesh, self.options, self.scene.tolerance, self.report)
        refuse_too_large(self.mesh, self.node.name)
        document = self.quantised()
        normals, as_stored = self.normals()
        if self.options.use_stored_normals and (self.mesh.normal is not None or self.is_moved):
            # A mesh without normals stays without them only if its points and UVs are still those of the imported file.
            document.normals = self.normal_bytes(normals, as_stored)
        if has_tangents:
            document.tangents = self.tangent_bytes(normals, as_stored)
        if not self.options.use_stored_uvs:
            document.uvs = document.uv_bounds = None
        return document

    def quantised(self) -> Document:
        """Return a document with positions, UVs and triangles."""
        points = self.basis.vectors(self.mesh.points)
        domain = self.kept_domain(3, points)
        self.is_moved = domain is None
        if domain is None:
            domain = self.exact_domain(points, _POSITION_MARGIN, "it reaches")
        document = Document(
            Variant.CURRENT,
            to_steps(quantised_exactly(points, domain)),
            flip_winding(self.mesh.corner_point).reshape(-1, 3).astype(np.uint16),
            interleave_range(domain),
        )
        if self.mesh.uvs:
            uvs = self.finite_uvs()
            domain = self.kept_domain(2, uvs)
            self.is_moved |= domain is None
            if domain is None:
                domain = self.exact_domain(uvs, _UV_MARGIN, "its UVs reach")
            document.uvs, document.uv_bounds = to_steps(quantised_exactly(uvs, domain)), interleave_range(domain)
            stored = self.mesh.uvs[0].stored
            if stored is not None:
                is_same = (dequantise_exactly(stored, domain) == uvs).all(axis=1)
                document.uvs[is_same] = stored[is_same]
        return document

    def kept_domain(self, axes: int, values: FloatArray) -> FloatArray | None:
        """Return the value range of the imported file in the file's axes, or None if the values are not on its grid."""
        found = {surface.uv_domain if axes == 2 else surface.position_domain for surface in self.mesh.surfaces}
        numbers = next(iter(found)) if len(found) == 1 else None
        if numbers is None or len(numbers) != 2 * axes:
            return None
        domain = np.array(numbers, np.float32).reshape(2, axes)
        if not (np.isfinite(domain).all() and (domain[0] <= domain[1]).all()):
            return None
        if axes == 3:
            domain = turned_domain(domain, self.basis)
        return domain if is_on_grid(values, domain) else None

    def exact_domain(self, values: FloatArray, margin: float, what: str) -> FloatArray:
        """Return the range of the values, (2, k); axes with equal values get a small range.

        Raises
        ------
        ExportError
            The range is larger than float32 can hold.
        """
        domain = np.stack((values.min(axis=0), values.max(axis=0)))
        flat = domain[0] == domain[1]
        infinity = np.float32(np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            below, above = domain[0] - np.float32(margin), domain[1] + np.float32(margin)
            domain[0] = np.where(flat, np.minimum(below, np.nextafter(domain[0], -infinity)), domain[0])
            domain[1] = np.where(flat, np.maximum(above, np.nextafter(domain[1], infinity)), domain[1])
            if not np.isfinite(domain[1] - domain[0]).all():
                raise ExportError(
                    "{}: {} beyond the numbers that the file can hold; scale it down", self.node.name, what
                )
        return domain

    def finite_uvs(self) -> FloatArray:
        """Return UVs, (V, 2) float32, with NaN and infinite values replaced by 0."""
        layer = self.mesh.uvs[0]
        uvs = layer.values.astype(np.float32)
        broken = ~np.isfinite(uvs).all(axis=1)
        if broken.any():
            number = counted(int(np.count_nonzero(broken)), "UV", "UVs")
            self.report.change("nan-uv-coordinates", "{} in '{}' NaN or infinite; written as 0", number, layer.name)
            uvs[broken] = 0
        return uvs

    def normals(self) -> tuple[FloatArray, AnyArray]:
        """Return unit normals, (V, 3), and a mask (V,) of those unchanged since the import."""
        layer, mesh = self.mesh.normal, self.mesh
        none = np.zeros(len(mesh.points), bool)
        if layer is None:
            return vertex_normals(mesh.points, mesh.corner_point), none if self.is_moved else ~none
        normals, broken = repair(layer.values.astype(np.float32), mesh.points, mesh.corner_point)
        report_repaired(broken, self.report)
        if layer.stored is None:
            return normals, none
        stored, _ = repair(self.to_scene(layer.stored), mesh.points, mesh.corner_point)
        return normals, np.abs(stored - normals).max(axis=1) < _STEP

    def to_scene(self, stored: AnyArray) -> FloatArray:
        """Return directions (V, 3) in Blender's axes from the file's bytes; vectors without a direction become zero."""
        directions = self.basis.inverse.vectors(from_biased(stored))
        directions[np.abs(directions).max(axis=1) < 0.1] = 0
        return directions

    def normal_bytes(self, normals: FloatArray, as_stored: AnyArray) -> AnyArray:
        """Return normals, (V, 3) uint8; unchanged normals keep their imported bytes."""
        rounded = to_biased(self.basis.vectors(normals))
        stored = self.mesh.normal.stored if self.mesh.normal is not None else None
        return rounded if stored is None else np.where(as_stored[:, None], stored, rounded)

    def tangent_bytes(self, normals: FloatArray, as_stored: AnyArray) -> AnyArray | None:
        """Return tangents (V, 4) uint8, or None without a UV map; vertices in ``as_stored`` keep their imported bytes.

        Tangents themselves are not compared with the file's, since Blender and other programs compute different ones.
        """
        layer, mesh = self.mesh.tangent, self.mesh
        if layer is None and not mesh.uvs:
            self.report.loss("tangents-without-uvs", "it has no UV map, so no tangents were written")
            return None
        if layer is None:
            uvs = mesh.uvs[0].values.astype(np.float32)
            tangents = vertex_tangents(mesh.points, normals, uvs, mesh.corner_point)
        else:
            tangents = _whole_tangents(layer.values, normals)
        turned = self.basis.vectors(tangents)
        turned[:, 3] = np.where(tangents[:, 3] < 0, 1, -1) if self.basis.mirrors else tangents[:, 3]
        rounded = to_biased(turned)
        stored = None if layer is None or self.is_moved else layer.stored
        return rounded if stored is None else np.where(as_stored[:, None], stored, rounded)


@np.errstate(over="ignore", invalid="ignore")
def is_on_grid(values: FloatArray, domain: FloatArray) -> bool:
    """Return whether all values (n, k) are steps of a range (2, k), within the accuracy of single precision."""
    extent = domain[1].astype(np.float64) - domain[0]
    places = quantised_exactly(values, domain)
    blur = np.spacing(np.abs(domain).max(axis=0)).astype(np.float64)
    slack = _ON_GRID + np.where(extent > 0, blur * U16_STEPS / np.where(extent > 0, extent, 1), 0)
    inside = (places >= -slack) & (places <= U16_STEPS + slack) & (np.abs(places - np.rint(places)) <= slack)
    flat = extent == 0
    inside[:, flat] = (np.abs(values - domain[0]) <= blur)[:, flat]
    return bool(inside.all())


def _whole_tangents(tangents: AnyArray, normals: FloatArray) -> FloatArray:
    """Return unit tangents (V, 4) with a sign; undefined ones are replaced by a vector perpendicular to the normal."""
    whole = tangents.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(whole[:, :3], axis=1)
        none = ~((length > 0.1) & (length < 10)) | (whole[:, 3] == 0)
        whole[:, :3] /= np.where(none, 1, length)[:, None]
    whole[none, :3] = any_perpendicular(normals[none])
    whole[none, 3] = 1
    return whole
