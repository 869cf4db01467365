"""Document -> Scene (formats page, sections 2, 3, 5 and 7)."""

from datetime import datetime, timedelta

import numpy as np

from ..core.messages import Text, counted
from ..core.scene import AnyArray, FloatArray, Layer, Mesh, Node, Scene, Surface
from ..encodings.quantization import dequantise_exactly, from_biased, steps_beyond_floats
from ..geometry.normals import repair, report_repaired, unit
from ..geometry.transforms import Basis, flip_winding
from ..geometry.vertices import drop_repeated_corners
from .document import Document, Variant
from .format import ReadOptions

_TO_BLENDER = {"UNITY": Basis(order=(0, 2, 1), signs=(-1, -1, 1)), "SWAP_YZ": Basis(order=(0, 2, 1), signs=(1, 1, 1))}
"""By the value of the option ``axes``. Both mirror, so winding and bitangent signs are flipped."""


def to_blender(choice: str) -> Basis:
    """Return the conversion from the file's axes to Blender's."""
    return _TO_BLENDER[choice]


def interleave_range(domain: FloatArray) -> FloatArray:
    """Return a range (2, k), minimum and maximum, in the order of the file: (2 k,) minimum and maximum of each axis."""
    return np.ascontiguousarray(domain.T, np.float32).reshape(-1)


def domain_of(bounds: AnyArray) -> FloatArray:
    """Return a file's bounds (2 k,) as a range (2, k), minimum and maximum."""
    return np.ascontiguousarray(np.asarray(bounds, np.float32).reshape(-1, 2).T)


def turned_domain(domain: FloatArray, basis: Basis) -> FloatArray:
    """Return a range (2, 3) of points in other axes, exactly; negated axes exchange minimum and maximum."""
    least, most = basis.vectors(domain)
    back = np.array(basis.signs) < 0
    return np.stack((np.where(back, most, least), np.where(back, least, most)))


UV_NAME = "UVMap"
_LEAST_DIRECTION = 0.1
"""Shorter vectors have no direction: (128, 128, 128) is zero, and real normals are at least 0.98 long."""
_TICKS = 0x3FFF_FFFF_FFFF_FFFF
"""The bits of a .NET date that count 100 ns steps since year 1; the other bits state the time zone."""

_RELATIVES = {
    Variant.SUBMESHES: "a mesh of the variant with submeshes and bones",
    Variant.CACHED: "a mesh of a SALT mod cache",
    Variant.FIRST: "a mesh of the first MeshSerializer, of 2006",
    Variant.FIRST_TEXT: "a mesh of the first MeshSerializer, of 2006, as text for the web",
}


class SceneBuilder:
    """Map a document to a scene with one node."""

    def __init__(self, document: Document, name: str, options: ReadOptions) -> None:
        self.document = document
        self.basis = to_blender(options.axes)
        self.scene = Scene(name, warnings=list(document.warnings))
        self.name = document.name or name
        self.report = self.scene.report.about(self.name)

    def build(self) -> Scene:
        """Return the scene; it states if the file is of an older variant."""
        if self.document.variant is not Variant.CURRENT:
            template = "This is {}, a variant of MeshSerializer2; an export writes MeshSerializer2"
            self.scene.report.change("other-variant", template, self.variant_text())
        self.scene.nodes = [Node(self.name, mesh=self.mesh())]
        return self.scene

    def variant_text(self) -> Text:
        """Return a noun phrase for the variant of the file, with the date of a cached mesh."""
        date, variant = cache_date(self.document), Text(_RELATIVES[self.document.variant])
        return Text("{}, from {:%Y-%m-%d}", variant, date) if date else variant

    def mesh(self) -> Mesh:
        """Return the mesh: one point for each vertex, and one value for each point in every layer."""
        document = self.document
        slots = document.submeshes or [len(document.triangles)]
        names = [f"{self.name}_submesh_{number}" for number in range(1, len(slots) + 1)] if len(slots) > 1 else [""]
        mesh = Mesh(
            points=self.basis.vectors(
                self.values(document.positions, document.position_bounds, "vertex has", "vertices have")
            ),
            corner_point=flip_winding(document.triangles.astype(np.int32).reshape(-1)),
            material_index=np.repeat(np.arange(len(slots), dtype=np.int32), slots),
            materials=names,
            surfaces=[self.surface(name) for name in names],
        )
        if document.uvs is not None:
            bounds = document.uv_bounds
            steps = None if bounds is None else steps_beyond_floats(document.uvs, domain_of(bounds))
            mesh.uvs = [Layer(UV_NAME, self.values(document.uvs, bounds, "UV has", "UVs have"), stored=steps)]
        if not len(document.positions):
            self.report.change("no-vertices", "it has no vertices")
        elif not len(document.triangles):
            self.report.change("no-triangles", "it has no triangles, only points")
        mesh, dropped = drop_repeated_corners(mesh)
        if dropped:
            self.report.change(
                "repeated-corners", "{} a vertex twice; left out", counted(dropped, "triangle uses", "triangles use")
            )
        mesh.normal = self.normals(mesh)
        mesh.tangent = self.tangents()
        mesh.custom = self.weights()
        return mesh

    def surface(self, name: str) -> Surface:
        """Return a surface with the value ranges of the file."""
        document = self.document
        surface = Surface(name, uvs=(True,) * (document.uvs is not None))
        if document.position_bounds is not None:
            domain = turned_domain(domain_of(document.position_bounds), self.basis)
            surface.position_domain = tuple(domain.reshape(-1).tolist())
        if document.uv_bounds is not None:
            surface.uv_domain = tuple(domain_of(document.uv_bounds).reshape(-1).tolist())
        return surface

    def values(self, stored: AnyArray, bounds: AnyArray | None, one: str, many: str) -> FloatArray:
        """Return positions or UVs as floats; NaN and infinite values of version 1 become 0."""
        if bounds is not None:
            return dequantise_exactly(stored, domain_of(bounds))
        values = stored.astype(np.float32)
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            number = counted(int(np.count_nonzero(~finite)), one, many)
            self.report.change("nan-coordinates", "{} NaN or infinite coordinates; moved to 0", number)
            values[~finite] = 0
        return values

    def normals(self, mesh: Mesh) -> Layer | None:
        stored = self.document.normals
        if stored is None:
            return None
        directions = self.basis.vectors(_directions(stored))
        normals, broken = repair(_without_short(directions), mesh.points, mesh.corner_point)
        report_repaired(broken, self.report)
        return Layer("normal", normals, stored=_bytes(stored))

    def tangents(self) -> Layer | None:
        """Return unit tangents and the sign of the bitangent; (0, 0, 0, 0) where the file has no direction."""
        stored = self.document.tangents
        if stored is None:
            return None
        directions = self.basis.vectors(_directions(stored[:, :3]))
        tangents = np.zeros((len(stored), 4), np.float32)
        with np.errstate(invalid="ignore"):
            sides = (
                np.where(_directions(stored[:, 3:])[:, 0] < 0, 1, -1) if self.basis.mirrors else np.ones(len(stored))
            )
        directions = _without_short(directions)
        directions[~np.isfinite(directions).all(axis=1)] = 0
        tangents[:, :3] = unit(directions)
        tangents[:, 3] = np.where(directions.any(axis=1), sides, 0)
        return Layer("tangent", tangents, stored=_bytes(stored))

    def weights(self) -> list[Layer]:
        """Return bone weights as plain layers, since the file does not hold the bones."""
        weights, indices = self.document.joint_weights, self.document.joint_indices
        if weights is None or indices is None:
            return []
        text = "its weights became attributes: the file does not hold the bones that they belong to"
        self.report.change("weights-without-bones", text)
        return [
            Layer("bone_weights", np.nan_to_num(weights.astype(np.float32), posinf=0, neginf=0)),
            Layer("bone_indices", indices.astype(np.uint16)),
        ]


def cache_date(document: Document) -> datetime | None:
    """Return when a mesh was cached, or None if it was not or the date is invalid."""
    ticks = document.date & _TICKS
    try:
        date = datetime(1, 1, 1) + timedelta(microseconds=ticks // 10)
    except OverflowError:
        return None
    return date if document.variant is Variant.CACHED and ticks else None


def _directions(stored: AnyArray) -> FloatArray:
    """Return stored bytes, or the floats of version 1, as floats."""
    return from_biased(stored) if stored.dtype == np.uint8 else stored.astype(np.float32)


def _bytes(stored: AnyArray) -> AnyArray | None:
    """Return a copy of the stored values if they are bytes, otherwise None."""
    return stored.copy() if stored.dtype == np.uint8 else None


def _without_short(directions: FloatArray) -> FloatArray:
    """Replace vectors that are too short to have a direction by zero, in place."""
    with np.errstate(over="ignore", invalid="ignore"):
        short = np.einsum("ij,ij->i", directions, directions) < _LEAST_DIRECTION**2
    directions[short] = 0
    return directions
