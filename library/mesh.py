"""Meshes as programs see them: triangles over points, and layers of values at corners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from types import MappingProxyType
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

    __slots__ = ("_core",)

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
        self._core = core.Mesh(found, corners, np.zeros(len(corners) // 3, np.int32), name=name)
        self.materials, self.normals, self.weights, self.uvs, self.colors = materials, normals, weights, uvs, colors
        if material_index is not None:
            self.material_index = material_index

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
        """(n, 3) float32 in the space of the node. Their number cannot change; shape keys keep their offsets."""
        return read_only(self._core.points)

    @points.setter
    def points(self, points: npt.ArrayLike) -> None:
        old, self._core.points = self._core.points, given_array("points", points, np.float32, self._core.points.shape)
        moved = (replace(key, points=key.points + (self._core.points - old)) for key in self._core.shape_keys)
        self._core.shape_keys = [*moved]

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
        self._core.shape_keys = [core.ShapeKey(key.name, key.points) for key in self._core.shape_keys]

    @property
    def uvs(self) -> tuple[Floats, ...]:
        """(m, 3, 2) float32 for each layer."""
        return tuple(map(self._corners, self._core.uvs))

    @uvs.setter
    def uvs(self, uvs: Sequence[npt.ArrayLike]) -> None:
        self._core.uvs = self._layers(self._core.uvs, "UVMap", uvs, 2)
        self._core.tangent = None
        self._core.shape_keys = [replace(key, tangent=None) for key in self._core.shape_keys]
        self._core.surfaces = [replace(one, uvs=None) for one in self._core.surfaces]

    @property
    def colors(self) -> tuple[npt.NDArray[Any], ...]:
        """(m, 3, 4) for each layer: uint8 encoded in sRGB, or linear float32; alpha is linear in both."""
        return tuple(map(self._corners, self._core.colors))

    @colors.setter
    def colors(self, colors: Sequence[npt.ArrayLike]) -> None:
        self._core.colors = self._layers(self._core.colors, "Color", colors, 4)
        self._core.surfaces = [replace(one, has_colors=True) for one in self._core.surfaces]

    @property
    def materials(self) -> tuple[str, ...]:
        """Names of the materials; ``material_index`` refers to them."""
        return tuple(self._core.materials)

    @materials.setter
    def materials(self, materials: str | Sequence[str]) -> None:
        own, materials = self._core, [materials] if isinstance(materials, str) else [*materials]
        index = given_array("material_index", own.material_index, np.int32, (-1,), below=max(len(materials), 1))
        changes = zip(own.surfaces, own.materials, materials, strict=False)
        # Some formats store names of surfaces, which materials of new scenes get.
        surfaces = [replace(one, name=new) if one.name == old else one for one, old, new in changes]
        own.surfaces = surfaces if len(materials) == len(own.materials) else []
        own.materials, own.material_index = materials, index

    @property
    def material_index(self) -> Ints:
        """(m,) int32 index of each triangle's material."""
        return read_only(self._core.material_index)

    @material_index.setter
    def material_index(self, index: npt.ArrayLike) -> None:
        known = max(len(self._core.materials), 1)
        count = self._core.triangle_count
        self._core.material_index = given_array("material_index", index, np.int32, (count,), below=known)
        self._core.surfaces = [replace(one, uvs=None, has_colors=True) for one in self._core.surfaces]

    @property
    def weights(self) -> Weights | None:
        """Joints of the node's skeleton and their weights, by point; None for a mesh that no skeleton deforms."""
        joints, weights = self._core.joint_indices, self._core.joint_weights
        return None if joints is None or weights is None else Weights(read_only(joints), read_only(weights))

    @weights.setter
    def weights(self, weights: tuple[npt.ArrayLike, npt.ArrayLike] | None) -> None:
        own, count = self._core, len(self._core.points)
        own.joint_indices = own.joint_weights = None
        if weights is not None:
            own.joint_indices = given_array("joints", weights[0], np.int32, (count, -1), below=2**31)
            own.joint_weights = given_array("weights", weights[1], np.float32, own.joint_indices.shape)

    @property
    def shape_keys(self) -> Mapping[str, Floats]:
        """(n, 3) float32 points of each shape by its name."""
        return MappingProxyType({key.name: read_only(key.points) for key in self._core.shape_keys})

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
        self, old: list[core.Layer], name: str, values: Iterable[npt.ArrayLike], width: int
    ) -> list[core.Layer]:
        if isinstance(values, np.ndarray):
            raise MeshferryError("A single array is not a list of layers; put it in a list")
        names = chain((layer.name for layer in old), [name], (f"{name}.{number:03}" for number in count(1)))
        return [self._layer(own, one, width) for own, one in zip(names, values, strict=False)]

    def _layer(self, name: str, values: npt.ArrayLike, width: int) -> core.Layer:
        """Return a layer of values of points (n, k) or corners (m, 3, k)."""
        found = np.asarray(values)
        kind: Any = np.uint8 if found.dtype == np.uint8 and width == 4 else np.float32
        if width == 4 and found.dtype.kind in "iu" and kind != np.uint8:
            raise MeshferryError("{} has integers of the type {}, not uint8 or floats", name, found.dtype)
        per_corner = found.ndim != 2
        shape = (self._core.triangle_count, 3, width) if per_corner else (len(self._core.points), width)
        found = given_array(name or "normals", found, kind, shape).reshape(-1, width)
        return core.Layer(name, found, per_corner=per_corner)


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
    is_number = found.dtype.kind in ("iu" if dtype == np.int32 and found.size else "iufb")
    fits = len(found.shape) == len(shape) and all(n in (-1, has) for has, n in zip(found.shape, shape, strict=True))
    if not is_number or not fits:
        wanted = ", ".join("n" if length < 0 else str(length) for length in shape)
        template = "{} has the shape {} and the type {}, not ({}) and {}"
        raise MeshferryError(template, name, found.shape, found.dtype, wanted, np.dtype(dtype).name)
    if below is not None and found.size and not 0 <= int(found.min()) <= int(found.max()) < below:
        raise MeshferryError("{} has values that are not from 0 to {}", name, below - 1)
    return np.array(found, dtype, order="C")
