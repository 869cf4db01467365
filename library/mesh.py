"""Meshes as programs see them: triangles over points, and layers of values at corners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..io_formats.core import scene as core
from ..io_formats.core.errors import MeshferryError

if TYPE_CHECKING:
    from ..io_formats.core.messages import Message

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


class Weights(NamedTuple):
    """Weights of points: (n, k) indices of joints, and (n, k) weights, 0 for unused entries."""

    joints: Ints
    weights: Floats


@dataclass(frozen=True)
class Vertices:
    """A mesh with one normal, UV and colour for each of v vertices, as graphics cards and most libraries need it."""

    points: Floats
    """(v, 3)."""
    triangles: Ints
    """(m, 3) indices of vertices, in the order of ``Mesh.triangles``."""
    normals: Floats | None
    """(v, 3)."""
    uvs: list[Floats]
    """(v, 2) for each layer."""
    colors: list[npt.NDArray[Any]]
    """(v, 4) for each layer, like ``Mesh.colors``."""
    weights: Weights | None
    point: Ints
    """(v,) index of each vertex's point in ``Mesh.points``."""


class Mesh:
    """Triangles over points that they share.

    The arrays of a mesh cannot be written to, since they are those of the codecs where possible. Assign new ones:
    ``mesh.points = mesh.points * 2``. Layers have values at the corners of triangles, (m, 3, k); values of points,
    (n, k), may be assigned, too.

    Parameters
    ----------
    points:
        (n, 3) float32 in metres.
    triangles:
        (m, 3) int32 indices of points, counter-clockwise.
    materials:
        Name of a material, or of several if ``material_index`` tells which one each triangle has.
    weights:
        Indices of joints and weights, each (n, k).
    """

    def __init__(
        self,
        points: npt.ArrayLike,
        triangles: npt.ArrayLike,
        *,
        normals: npt.ArrayLike | None = None,
        uvs: Sequence[npt.ArrayLike] = (),
        colors: Sequence[npt.ArrayLike] = (),
        materials: str | Sequence[str] = "",
        material_index: npt.ArrayLike | None = None,
        weights: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        name: str = "",
    ) -> None:
        found = given_array("points", points, np.float32, (-1, 3))
        corners = given_array("triangles", triangles, np.int32, (-1, 3), below=len(found)).reshape(-1)
        index = np.zeros(len(corners) // 3, np.int32)
        self._core = core.Mesh(found, corners, index, [materials] if isinstance(materials, str) else [*materials])
        self._core.name = name
        self.material_index = index if material_index is None else np.asarray(material_index)
        self.normals, self.weights = normals, weights  # type: ignore[assignment] # setters take what converts
        self.uvs, self.colors = uvs, colors  # type: ignore[assignment]

    @classmethod
    def _of(cls, mesh: core.Mesh) -> Mesh:
        made = cls.__new__(cls)
        made._core = mesh
        return made

    @property
    def name(self) -> str:
        """Name of the mesh in the file; empty if it is that of the node."""
        return self._core.name

    @property
    def points(self) -> Floats:
        """(n, 3) float32 in the space of the node. Their number cannot change."""
        return read_only(self._core.points)

    @points.setter
    def points(self, points: npt.ArrayLike) -> None:
        self._core.points = given_array("points", points, np.float32, self._core.points.shape)

    @property
    def triangles(self) -> Ints:
        """(m, 3) int32 indices of points, counter-clockwise; quads and larger polygons are triangulated."""
        return read_only(self._core.corner_point).reshape(-1, 3)

    @property
    def normals(self) -> Floats | None:
        """(m, 3, 3) float32 unit vectors, one for each corner of each triangle; None if the file has none."""
        return None if self._core.normal is None else self._corners(self._core.normal)

    @normals.setter
    def normals(self, normals: npt.ArrayLike | None) -> None:
        self._core.normal = None if normals is None else self._layer("", normals, 3)
        self._core.tangent = None

    @property
    def uvs(self) -> list[Floats]:
        """(m, 3, 2) float32 for each layer."""
        return [self._corners(layer) for layer in self._core.uvs]

    @uvs.setter
    def uvs(self, uvs: Sequence[npt.ArrayLike]) -> None:
        self._core.uvs = self._layers(self._core.uvs, "UVMap", uvs, 2)

    @property
    def colors(self) -> list[npt.NDArray[Any]]:
        """(m, 3, 4) for each layer: uint8 encoded in sRGB, or linear float32; alpha is linear in both."""
        return [self._corners(layer) for layer in self._core.colors]

    @colors.setter
    def colors(self, colors: Sequence[npt.ArrayLike]) -> None:
        self._core.colors = self._layers(self._core.colors, "Color", colors, 4)

    @property
    def materials(self) -> tuple[str, ...]:
        """Names of the materials; ``material_index`` refers to them."""
        return tuple(self._core.materials)

    @materials.setter
    def materials(self, materials: Sequence[str]) -> None:
        own = self._core
        changes = zip(own.surfaces, own.materials, materials, strict=False)
        # Some formats store names of surfaces, which materials of new scenes get.
        surfaces = [replace(one, name=new) if one.name == old else one for one, old, new in changes]
        own.surfaces = surfaces if len(materials) == len(own.materials) else []
        own.materials = [*materials]
        if self._core.triangle_count and int(self._core.material_index.max()) >= max(len(materials), 1):
            raise MeshferryError("There are {} materials, and triangles have others", len(materials))

    @property
    def material_index(self) -> Ints:
        """(m,) int32 index of each triangle's material."""
        return read_only(self._core.material_index)

    @material_index.setter
    def material_index(self, index: npt.ArrayLike) -> None:
        known = max(len(self._core.materials), 1)
        count = self._core.triangle_count
        self._core.material_index = given_array("material_index", index, np.int32, (count,), below=known)

    @property
    def weights(self) -> Weights | None:
        """Joints of the node's skeleton and their weights, by point; None for a mesh that no skeleton deforms."""
        own = self._core
        if own.joint_indices is None or own.joint_weights is None:
            return None
        return Weights(read_only(own.joint_indices), read_only(own.joint_weights))

    @weights.setter
    def weights(self, weights: tuple[npt.ArrayLike, npt.ArrayLike] | None) -> None:
        joints, values = (None, None) if weights is None else weights
        count = len(self._core.points)
        found = None if joints is None else given_array("joints", joints, np.int32, (count, -1), below=2**31)
        self._core.joint_indices = found
        self._core.joint_weights = None if found is None else given_array("weights", values, np.float32, found.shape)

    @property
    def shape_keys(self) -> Mapping[str, Floats]:
        """(n, 3) float32 points of each shape by its name."""
        return {key.name: read_only(key.points) for key in self._core.shape_keys}

    def vertices(self) -> Vertices:
        """Return the mesh with points split where normals, UVs or colours differ."""
        from ..io_formats.geometry.vertices import split_mesh

        mesh, found = split_mesh(replace(self._core, tangent=None, custom=[]), core.NORMAL_TOLERANCE)
        whole = Mesh._of(mesh)
        point = self._core.corner_point[found.vertex_corner]
        normals = None if mesh.normal is None else mesh.normal.values
        uvs, colors = ([layer.values for layer in layers] for layers in (mesh.uvs, mesh.colors))
        return Vertices(mesh.points, whole.triangles, normals, uvs, colors, whole.weights, point)

    def to_trimesh(self) -> tuple[Any, list[Message]]:
        """Return a ``trimesh.Trimesh`` with points, triangles, normals and first UV layer or colours, and the losses.

        Raises
        ------
        MissingLibraryError
            The library trimesh is not installed.
        """
        from .trimesh_exchange import to_trimesh

        return to_trimesh(self)

    def _corners(self, layer: core.Layer) -> npt.NDArray[Any]:
        values = layer.at_corners(self._core.corner_point)
        return read_only(values).reshape(-1, 3, values.shape[1])

    def _layers(
        self, old: list[core.Layer], name: str, values: Sequence[npt.ArrayLike], width: int
    ) -> list[core.Layer]:
        names = [layer.name for layer in old]
        names += [name if not number else f"{name}.{number:03}" for number in range(len(names), len(values))]
        return [self._layer(own, one, width) for own, one in zip(names, values, strict=False)]

    def _layer(self, name: str, values: npt.ArrayLike, width: int) -> core.Layer:
        """Return a layer of values of points (n, k) or corners (m, 3, k)."""
        found = np.asarray(values)
        kind: Any = np.uint8 if found.dtype == np.uint8 and width == 4 else np.float32
        if found.ndim == 2:
            return core.Layer(name, given_array(name or "normals", found, kind, (len(self._core.points), width)))
        shape = (self._core.triangle_count, 3, width)
        return core.Layer(name, given_array(name or "normals", found, kind, shape).reshape(-1, width), per_corner=True)


def read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = values.view()
    view.flags.writeable = False
    return view


def given_array(
    name: str, values: object, dtype: Any, shape: Sequence[int], *, below: int | None = None
) -> npt.NDArray[Any]:
    """Return values of a caller as an array of their own; -1 in ``shape`` stands for any length.

    Raises
    ------
    MeshferryError
        The values have another type or shape, or integers are not from 0 to below a limit.
    """
    try:
        found = np.asarray(values)
    except ValueError:
        found = np.empty(0, object)
    is_number = found.dtype.kind in ("iu" if np.dtype(dtype).kind == "i" and found.size else "iufb")
    wanted = ", ".join("n" if length < 0 else str(length) for length in shape)
    if not is_number or len(found.shape) != len(shape):
        raise MeshferryError("{} is not an array ({}) of {}", name, wanted, np.dtype(dtype).name)
    if any(length not in (-1, has) for has, length in zip(found.shape, shape, strict=True)):
        raise MeshferryError("{} has the shape {}, not ({})", name, found.shape, wanted)
    if below is not None and found.size and not 0 <= int(found.min()) <= int(found.max()) < below:
        raise MeshferryError("{} has values that are not from 0 to {}", name, below - 1)
    return np.array(found, dtype, order="C")
