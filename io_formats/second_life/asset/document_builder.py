"""A prepared model -> assets (formats page, sections 2 to 6): quantised levels, rig and physics."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Report
from ...core.scene import FloatArray, Node
from ...encodings.quantization import dequantise, quantise, quantise_normals
from ...geometry.transforms import Matrix
from ..avatar.joint_positions import rows_of
from ..models import level_block, llsd_arrays, physics_block, skin_block
from ..models.faces import FaceArrays
from ..models.level_block import Face
from ..models.models import Model, SubmodelId
from ..models.physics_block import Hulls
from ..models.unit_cube import UnitCube
from ..options import LEVELS
from .binding import Rig
from .codec import BLOCKS, Asset
from .upload_model import Prepared

_FULL = 65535
_UNNAMED = re.compile(r"_face_\d+$|^$")
"""Material names that the importer generated for faces without a name, and empty names."""
_ROUNDING = 0.51 / _FULL
"""Tolerance of the test whether values are inside an imported range, as a share of it: half a quantisation step."""


@dataclass
class BuiltAsset:
    """An asset of a model or of one of its parts."""

    asset: Asset
    unit_cube: UnitCube
    materials: list[str]
    """Material name of each face; may be empty."""
    submodel: int
    """0, or 1, 2 … for the further parts of a model with more than 8 faces."""


def build(prepared: Prepared, number: int, report: Report, *, keeps_physics: bool = False) -> BuiltAsset:
    """Return one of a model's assets.

    Blocks are those of a native asset, in the viewer's order. Missing levels repeat the next finer one, the base hull
    is generated, and ``physics_mesh`` is left out if there are hulls. Models exported as imported are not completed.

    Parameters
    ----------
    number:
        Index in ``prepared.submodels``; parts beyond the first have no hulls.
    report:
        Gets warnings about the model.
    keeps_physics:
        Write the physics mesh also if there are hulls.

    Raises
    ------
    ExportError
        A value cannot be stored.
    """
    return _Builder(prepared, number, report).build(keeps_physics=keeps_physics)


class _Builder:
    """Builds the asset of one part of a model; the parameters are those of :func:`build`."""

    def __init__(self, prepared: Prepared, number: int, report: Report) -> None:
        self.prepared = prepared
        self.model: Model = prepared.model
        self.name = prepared.model.name
        self.unit_cube = prepared.unit_cube
        self.as_imported = prepared.as_imported
        self.faces = prepared.submodels[number]
        self.number = number
        self.report = report

    def build(self, *, keeps_physics: bool) -> BuiltAsset:
        """Encode skin, hulls and levels of the part, and add the header."""
        prepared, number = self.prepared, self.number
        levels = prepared.levels if self.as_imported else prepared.filled_levels()
        blocks: dict[str, Any] = {}
        if prepared.rig is not None:
            blocks["skin"] = skin_block.block_of(self.skin(prepared.rig))
        hulls = self.hulls() if number == 0 else Hulls()
        if hulls.base is None and not self.as_imported:
            self.add_base(hulls, levels)
        if hulls.hulls or hulls.base is not None:
            blocks["physics_convex"] = physics_block.block_of(hulls)
        encoded: dict[int, Any] = {}
        for level, faces in zip(LEVELS, levels, strict=True):
            if faces is None:
                continue
            if id(faces) not in encoded:
                encoded[id(faces)] = level_block.block_of(self.level([faces[number] for number in self.faces]))
            blocks[level] = encoded[id(faces)]
        physics = prepared.physics
        if physics is not None and (self.as_imported or keeps_physics or not hulls.hulls):
            chosen = [physics[number] for number in self.faces]
            if any(not face.is_empty for face in chosen):
                blocks["physics_mesh"] = level_block.block_of(self.level(chosen, is_physics=True))
        header: dict[str, Any] = {}
        kept = self.model.finest.pass_through
        if number:
            header["submodel_id"] = number
        elif isinstance(kept, SubmodelId):
            header["submodel_id"] = kept.number
        materials = [prepared.materials[number] for number in self.faces]
        if self.as_imported and not all(_UNNAMED.search(material) for material in materials):
            # Write the list if any name is from the imported file. If the importer generated all names, the file had no
            # list.
            header["material_list"] = materials
        asset = Asset(header, {name: blocks[name] for name in BLOCKS if name in blocks})
        return BuiltAsset(asset, self.unit_cube, materials, number)

    # -- levels ---------------------------------------------------------------------------------

    def level(self, faces: Sequence[FaceArrays], *, is_physics: bool = False) -> list[Face]:
        """Quantise the faces of a level: all positions over one range, or over their imported ranges."""
        points = [self.unit_cube.normalised(face.positions) for face in faces]
        held = [some for some in points if len(some)]
        shared = llsd_arrays.bounds(np.concatenate(held)) if held else np.zeros((2, 3))
        return [self.face(face, some, shared, is_physics) for face, some in zip(faces, points, strict=True)]

    def face(self, face: FaceArrays, points: FloatArray, shared: Matrix, is_physics: bool) -> Face:
        """Quantise a face; values that still equal the imported ones keep their codes.

        ``points`` are its positions in the unit cube, and ``shared`` the range of all faces of the level.
        """
        if face.is_empty:
            return level_block.empty_face()
        domain = self.kept_range(face.surface.position_domain if face.surface else None, points)
        if domain is None:
            domain = shared
        stored = Face(quantise(points, domain), domain, face.triangles.astype(np.uint16))
        if not is_physics or (self.as_imported and face.uvs is not None):
            stored.normals = quantise_normals(self.unit_cube.normals(face.normals))
            if face.uvs is not None:
                uv_range = self.kept_range(face.surface.uv_domain if face.surface else None, face.uvs)
                stored.uv_domain = llsd_arrays.bounds(face.uvs) if uv_range is None else uv_range
                with np.errstate(over="ignore"):
                    if not np.isfinite(np.diff(stored.uv_domain.astype(np.float32), axis=0)).all():
                        raise ExportError("{}: its UVs are beyond the numbers that the file can hold", self.name)
                stored.uvs = quantise(face.uvs, stored.uv_domain)
                if uv_range is not None and face.uv_steps is not None:
                    is_same = (dequantise(face.uv_steps, uv_range) == face.uvs).all(axis=1)
                    stored.uvs[is_same] = face.uv_steps[is_same]
        if self.prepared.rig is not None and not is_physics:
            self.weights(stored, face, self.prepared.rig)
        if not self.as_imported or (self.prepared.rig is None and not np.all(self.unit_cube.metres == 1)):
            stored.normalized_scale = tuple(self.unit_cube.metres.tolist())
        return stored

    def kept_range(self, stored: tuple[float, ...] | None, values: FloatArray) -> Matrix | None:
        """Return the imported range of a face's values, or None if a value is now outside of it."""
        if not self.as_imported or stored is None:
            return None
        domain = np.array(stored, np.float32).astype(np.float64).reshape(2, -1)
        slack = _ROUNDING * (domain[1] - domain[0]) + 1e-7 * np.abs(domain).max()
        if (values.min(axis=0) < domain[0] - slack).any() or (values.max(axis=0) > domain[1] + slack).any():
            return None
        return domain

    def weights(self, stored: Face, face: FaceArrays, rig: Rig) -> None:
        """Add weights as multiples of 1/65535, the strongest first; vertices without weights follow the first joint."""
        count = len(face.positions)
        indices, values = np.zeros((count, 4), np.uint8), np.zeros((count, 4), np.uint16)
        if face.joint_indices is not None and face.joint_weights is not None:
            values = np.minimum(np.rint(face.joint_weights.astype(np.float64) * _FULL), _FULL).astype(np.uint16)
            indices = np.where(values > 0, rig.index[face.joint_indices], 0).astype(np.uint8)
        if not self.as_imported:
            values[values[:, 0] == 0, 0] = _FULL
        stored.joint_indices, stored.joint_weights = indices, values
        stored.influences = (values > 0).sum(axis=1, dtype=np.uint8)

    # -- rig ------------------------------------------------------------------------------------

    def skin(self, rig: Rig) -> skin_block.SkinBlock:
        """Return the skin block of a binding."""
        bind_shape = self.unit_cube.transform if rig.bind_shape is None else rig.bind_shape
        alternative = rig.alt_inverse_bind
        matrices = [rig.inverse_bind, bind_shape, *(() if alternative is None else (alternative,))]
        with np.errstate(over="ignore", invalid="ignore"):
            finite = all(np.isfinite(np.asarray(matrix, np.float32)).all() for matrix in matrices)
        if not finite:
            raise ExportError("{}: its rig has NaN or infinite positions; correct its armature", self.name)
        return skin_block.SkinBlock(
            rig.joint_names,
            rows_of(rig.inverse_bind),
            rows_of(bind_shape),
            None if alternative is None else rows_of(alternative),
            rig.pelvis_offset,
            rig.lock_scale,
        )

    # -- physics --------------------------------------------------------------------------------

    def hulls(self) -> Hulls:
        """Return the hulls of the model, quantised over one range."""
        nodes = self.model.hulls
        if len(nodes) > physics_block.MOST_HULLS:
            template = "{} hulls, but at most {} are possible; the others were left out"
            self.report.loss("too-many-hulls", template, len(nodes), physics_block.MOST_HULLS)
            nodes = nodes[: physics_block.MOST_HULLS]
        points = [self.hull_points(node) for node in nodes]
        base = self.model.base_hull
        base_points = None if base is None else self.hull_points(base)
        held = [some for some in (*points, base_points) if some is not None and len(some)]
        if not held:
            return Hulls()
        domain = self.hull_range([*nodes, *([base] if base is not None else [])], np.concatenate(held))
        return Hulls(
            [quantise(some, domain) for some in points if len(some)],
            quantise(base_points, domain) if base_points is not None and len(base_points) else None,
            domain,
        )

    def hull_points(self, node: Node) -> FloatArray:
        """Return the points of a hull in the unit cube, at most as many as a hull may have."""
        points = self.unit_cube.normalised(node.mesh.points if node.mesh is not None else np.zeros((0, 3)))
        if not np.isfinite(points).all():
            raise ExportError("{}: it has points that are NaN or infinite; delete or correct them", node.name)
        if self.as_imported and len(points) <= physics_block.MOST_POINTS:
            return points
        different = len(np.unique(points, axis=0))
        few = physics_block.outermost_points(points)
        if different > physics_block.MOST_POINTS:
            self.report.loss(
                "hull-with-too-many-vertices",
                "hull '{}' has {:,} points, at most {} are possible; the {} outermost were kept",
                node.name,
                different,
                physics_block.MOST_POINTS,
                len(few),
            )
        return few

    def hull_range(self, nodes: Sequence[Node], points: FloatArray) -> Matrix:
        """Return the range of all hull points: the imported one if it still contains them."""
        surfaces = [surface for node in nodes if node.mesh is not None for surface in node.mesh.surfaces]
        kept = (self.kept_range(surface.position_domain, points) for surface in surfaces)
        return next((domain for domain in kept if domain is not None), llsd_arrays.bounds(points))

    def add_base(self, hulls: Hulls, levels: Sequence[list[FaceArrays] | None]) -> None:
        """Generate the base hull.

        It is made from the hulls; if there are none, from the first existing of physics mesh, low, medium and high
        level.
        """
        if hulls.hulls:
            source = np.concatenate([self.hull_points(node) for node in self.model.hulls[: physics_block.MOST_HULLS]])
        else:
            source = self.base_source([self.prepared.physics, levels[2], levels[1], levels[0]])
        points = physics_block.outermost_points(source, physics_block.BASE_POINTS)
        if not hulls.hulls:
            hulls.domain = llsd_arrays.bounds(points)
        hulls.base = quantise(points, hulls.domain)

    def base_source(self, candidates: Sequence[list[FaceArrays] | None]) -> FloatArray:
        for faces in candidates:
            chosen = [] if faces is None else [faces[number] for number in self.faces]
            held = [face.positions for face in chosen if not face.is_empty]
            if held:
                return self.unit_cube.normalised(np.concatenate(held))
        return np.zeros((1, 3), np.float32)


def material_list(built: BuiltAsset, name: str) -> list[str]:
    """Return a name for each face of an asset, including faces without a material."""
    return [material or f"{name}_face_{number}" for number, material in enumerate(built.materials, 1)]
