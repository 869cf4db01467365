"""The parts of an archive -> models: one for each mesh asset, each sculpt, and prims of equal values.

The face of a sculpt is a grid of points: the colours of a picture (docs/formats/opensim_archives.md, Sculpts).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isqrt

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Report, Text, counted, listed
from ...core.placement import EncodedPicture, PlacedModel
from ...core.scene import Layer, Mesh, Node, Scene
from ...geometry.normals import repair
from ..asset import codec as asset_codec
from ..asset.scene_builder import mesh_of_faces
from ..models.level_block import faces_of as faces_of_level
from .container import ContentStore
from .document import Part
from .face_materials import MESH, Pictures
from .prim_faces import UV_NAME, add_seam, face_count, faces_of, grid_faces, mesh_of, planar_uvs, unit_normals
from .prims import PrimShape, ShapeFace

SPHERE, TORUS, PLANE, CYLINDER = 1, 2, 3, 4
"""Ways to stitch the edges of a sculpt."""
KIND_MASK, INVERTED, MIRRORED = 0x07, 0x40, 0x80
"""Bits of the type of a sculpt."""

MOST_PIXELS = 2048
"""Largest side of a map."""
_MOST_CELLS = 1024


def sculpt_face(pixels: npt.NDArray[np.uint8], sculpt_type: int) -> ShapeFace:
    """Build the only face of a sculpt.

    Parameters
    ----------
    pixels:
        (height, width, components) with at least red, green and blue; rows from the bottom, not colour managed.
    sculpt_type:
        The whole byte: kind and flags. Every kind but sphere, torus and cylinder is stitched like a plane, as that of
        sculpts with type 0; other bits are ignored.

    Returns
    -------
    ShapeFace
        Its points are those of the whole grid, row by row, also those at poles of which most have no triangles.

    Raises
    ------
    FormatError
        The map has less than three components, no pixels or more than 2,048 on a side.
    """
    height, width, components = pixels.shape
    if components < 3:
        raise FormatError("The map of the sculpt has {} of the three components red, green and blue", components)
    if min(height, width) < 1 or max(height, width) > MOST_PIXELS:
        raise FormatError(
            "The map of the sculpt has {:,} × {:,} pixels; 1 to {:,} are allowed on a side", width, height, MOST_PIXELS
        )
    kind = sculpt_type & KIND_MASK
    is_mirrored = bool(sculpt_type & MIRRORED)
    is_reversed = bool(sculpt_type & INVERTED) != is_mirrored

    in_column, in_row = _cells(width, height)
    row_positions = np.append(_steps_below_one(in_column), np.float32(1))
    columns = _column_count(in_row)
    x, y = _pixel_indices(len(row_positions), columns, width, height, kind)
    u = np.arange(columns) / (columns - 1)
    if is_reversed:
        x, u = x[:, ::-1], 1 - u
    points = pixels[y, x, :3] / 255 - 0.5
    if is_mirrored:
        points[..., 0] *= -1
    uvs = np.empty((*x.shape, 2))
    uvs[..., 0] = u
    uvs[..., 1] = row_positions[:, None]

    triangles, sums = grid_faces(points)
    if kind == SPHERE:
        for row in (sums[0], sums[-1]):
            row[:] = row.sum(axis=0)
    if kind in (SPHERE, TORUS, CYLINDER):
        add_seam(sums[:, 0], sums[:, -1])
    if kind == TORUS:
        add_seam(sums[0], sums[-1])
    return ShapeFace("sculpt", points.reshape(-1, 3), uvs.reshape(-1, 2), unit_normals(sums.reshape(-1, 3)), triangles)


def _cells(width: int, height: int) -> tuple[int, int]:
    """Return the numbers of cells in a column and in a row of the grid for a map."""
    cells = min(_MOST_CELLS, width * height // 4) or _MOST_CELLS
    in_column = max(4, isqrt(cells * height // width))
    in_row = max(4, cells // in_column)
    return max(1, cells // in_row), in_row


def _steps_below_one(cells: int) -> npt.NDArray[np.float32]:
    """Return the multiples of 1 / cells below 1, added up in single precision, which may give one more than exact."""
    step = np.float32(1) / np.float32(cells)
    steps = np.full(cells + 2, step)
    steps[0] = 0
    positions = np.add.accumulate(steps)
    return positions[positions < 1]


def _column_count(cells: int) -> int:
    """Return the number of columns. A last one that is at most 0.0001 of a cell past the one before is left out."""
    positions = _steps_below_one(cells)
    return len(positions) + int((1 - positions[-1]) * np.float32(cells) > 1e-4)


def _pixel_indices(
    rows: int, columns: int, width: int, height: int, kind: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the pixel of each point of the grid as x and y, each (rows, columns)."""
    x = _scaled(columns, width)
    y = _scaled(rows, height)
    x[x == width] = width - 1 if kind not in (SPHERE, TORUS, CYLINDER) else 0
    is_pole = (y == 0) | (y == height) if kind == SPHERE else np.zeros(rows, bool)
    y[y == height] = 0 if kind == TORUS else height - 1
    return np.where(is_pole[:, None], width // 2, x), np.broadcast_to(y[:, None], (rows, columns))


def _scaled(count: int, pixels: int) -> npt.NDArray[np.intp]:
    """Return the pixels of ``count`` evenly spaced points, which end past the last one, in single precision."""
    return (np.arange(count, dtype=np.float32) / np.float32(count - 1) * np.float32(pixels)).astype(np.intp)


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

    def __init__(self, assets: ContentStore, pictures: Pictures) -> None:
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
        content = self._assets.get(part.sculpt_asset + MESH)
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
