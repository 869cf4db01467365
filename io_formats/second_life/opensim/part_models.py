"""The parts of an archive -> models: one for each mesh asset, each sculpt, and prims of equal values."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Report, Text, counted, listed
from ...core.placement import EncodedPicture, PlacedModel
from ...core.scene import Layer, Mesh, Node, Scene
from ...geometry.normals import repair
from ..asset import codec as asset_codec
from ..asset.scene_builder import mesh_of_faces
from ..models.level_block import faces_of as faces_of_level
from .document import Part
from .face_materials import AssetStore, Pictures
from .prim_faces import UV_NAME, face_count, faces_of, mesh_of, planar_uvs
from .prims import PrimShape
from .sculpts import CYLINDER, INVERTED, KIND_MASK, MIRRORED, MOST_PIXELS, sculpt_face

FORMAT = "opensim_archive"
"""Name of the format."""
MOST_PRIMS = 20_000
"""Number of different prims that are built; others become boxes."""
_PLANAR = 2
"""Value of ``TextureFace.mapping``."""
_BOX = PrimShape()


@dataclass(frozen=True)
class PartModel:
    """The model of a part: its index in the placement, and the number of its faces, which are its material slots."""

    model: int
    faces: int


@dataclass(frozen=True)
class _Source:
    """A mesh that models are made of."""

    faces: int
    build: Callable[[], Mesh]
    picture: EncodedPicture | None = None
    is_rigged: bool = False
    report: Report = field(default_factory=Report)
    """What is repaired or left out; ``build`` adds to it."""


class PartModels:
    """The models of one import. Parts whose asset is missing or damaged have none, and :meth:`report` names them."""

    def __init__(self, assets: AssetStore, pictures: Pictures) -> None:
        self._assets = assets
        self._pictures = pictures
        self.models: list[PlacedModel] = []
        self._sources: dict[Hashable, _Source | Text] = {}
        """The mesh of each asset and prim so far, or the reason why there is none."""
        self._known: dict[Hashable, int] = {}
        self._prims: set[PrimShape] = set()
        self._boxes = 0
        self._rigged = 0
        self._left_out: dict[Text, list[str]] = {}

    def find(self, part: Part) -> PartModel | None:
        """Return the model of a part, or None if it is missing or damaged."""
        shape = self._shape(part)
        key: Hashable = shape or (part.sculpt_type, part.sculpt_asset)
        if key not in self._sources:
            try:
                self._sources[key] = _prim(shape) if shape is not None else self._source(part)
            except FormatError as problem:
                self._sources[key] = problem.sentence(with_file=False)
        source = self._sources[key]
        if isinstance(source, Text):
            self._left_out.setdefault(source, []).append(f"{part.name} ({part.sculpt_asset})")
            return None
        self._rigged += source.is_rigged
        planar = tuple(face for face in range(source.faces) if part.entry.face(face).mapping == _PLANAR)
        whole = (key, planar, part.size if planar else None)
        if whole not in self._known:
            self._known[whole] = len(self.models)
            read = partial(self._read, source, part.name, planar, part.size)
            self.models.append(PlacedModel(part.name, read, picture=source.picture))
        return PartModel(self._known[whole], source.faces)

    def report(self, report: Report) -> None:
        """Report the parts that have no model, and how others differ from the viewer's."""
        for reason, names in self._left_out.items():
            number = counted(len(names), "part is an empty", "parts are empties")
            report.loss("parts-without-mesh", "{}: {} ({})", number, listed(names), reason)
        if self._rigged:
            number = counted(self._rigged, "rigged mesh stands", "rigged meshes stand")
            report.loss("rigged-meshes-unposed", "{} unposed, without an armature", number)
        if self._boxes:
            number = counted(self._boxes, "part")
            template = "{} shown as boxes, since there are more than {:,} different prims"
            report.loss("too-many-prims", template, number, MOST_PRIMS)

    def _shape(self, part: Part) -> PrimShape | None:
        """Return the shape of a prim, or that of a box beyond the largest number of different ones."""
        if part.kind != "prim":
            return None
        if part.shape not in self._prims and len(self._prims) >= MOST_PRIMS:
            self._boxes += 1
            return _BOX
        self._prims.add(part.shape)
        return part.shape

    def _source(self, part: Part) -> _Source:
        if part.kind == "mesh":
            return self._mesh(part)
        if part.sculpt_type & KIND_MASK > CYLINDER:
            raise FormatError("The kind of shape is not known")
        return self._sculpt(part)

    def _mesh(self, part: Part) -> _Source:
        """Return the finest level of a part's mesh, whose conversion waits until it is needed."""
        content = self._assets.mesh(part.sculpt_asset)
        if content is None:
            raise FormatError("The mesh is not in the archive")
        asset, level = asset_codec.read_highest(content)
        report = Report(item=part.sculpt_asset)
        faces = faces_of_level(level, report)
        names = [str(number) for number in range(len(faces))]
        build = partial(mesh_of_faces, faces, names, report)
        is_rigged = "skin" in asset.header
        return _Source(len(faces), lambda: _turned(build(), part.sculpt_type), is_rigged=is_rigged, report=report)

    def _sculpt(self, part: Part) -> _Source:
        found = self._pictures.examined(part.sculpt_asset)
        if found is None:
            raise FormatError("The picture of the shape is missing or left out")
        if found.components < 3 or max(found.width, found.height) > MOST_PIXELS:
            raise FormatError("The picture of the shape has no colours, or over {:,} pixels a side", MOST_PIXELS)
        picture = EncodedPicture(part.sculpt_asset, partial(self._pictures.content, part.sculpt_asset))
        return _Source(1, partial(_sculpt_mesh, picture, part.sculpt_type), picture)

    def _read(self, source: _Source, name: str, planar: Sequence[int], size: tuple[float, float, float]) -> Scene:
        mesh = source.build()
        mesh.name = name
        if planar:
            mesh = _with_planar_uvs(mesh, planar, size)
        return Scene(name, [Node(name, mesh=mesh)], warnings=list(source.report.messages), format=FORMAT)


def _prim(shape: PrimShape) -> _Source:
    return _Source(face_count(shape), lambda: mesh_of(faces_of(shape), ""))


def _sculpt_mesh(picture: EncodedPicture, sculpt_type: int) -> Mesh:
    if picture.pixels is None:
        raise FormatError("Its picture {} was not decoded", picture.name)
    return mesh_of([sculpt_face(picture.pixels, sculpt_type)], "")


def _turned(mesh: Mesh, sculpt_type: int) -> Mesh:
    """Return a mesh mirrored at its centre or turned inside out, as the flags of its part demand."""
    is_mirrored, is_inverted = bool(sculpt_type & MIRRORED), bool(sculpt_type & INVERTED)
    if not (is_mirrored or is_inverted):
        return mesh
    points = -mesh.points if is_mirrored else mesh.points
    corners, normal = mesh.corner_point, mesh.normal
    if is_mirrored != is_inverted:
        corners = np.ascontiguousarray(corners.reshape(-1, 3)[:, ::-1]).reshape(-1)
        normal = replace(normal, values=-normal.values) if normal is not None else None
    return replace(mesh, points=points, corner_point=corners, normal=normal)


def _with_planar_uvs(mesh: Mesh, planar: Sequence[int], size: tuple[float, float, float]) -> Mesh:
    """Return a mesh whose faces with these numbers have UVs that are projected onto them."""
    normals = mesh.normal.values if mesh.normal is not None else np.zeros_like(mesh.points)
    normals, _ = repair(normals.copy(), mesh.points, mesh.corner_point)
    chosen = np.unique(mesh.corner_point.reshape(-1, 3)[np.isin(mesh.material_index, planar)])
    uvs = mesh.uvs[0].values.copy() if mesh.uvs else np.zeros((len(mesh.points), 2), np.float32)
    uvs[chosen] = planar_uvs(mesh.points[chosen], normals[chosen], size)
    return replace(mesh, uvs=[Layer(UV_NAME, uvs)])
