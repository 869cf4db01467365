"""Dataclasses that mirror the messages of a Timbermesh file one to one (docs/formats/timbermesh.md, messages)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
"""(x, y, z, w), as stored."""


class ScalarType(IntEnum):
    """Type of a vertex property's components; all real files use FLOAT32."""

    UNSPECIFIED = 0
    UINT8 = 1
    UINT32 = 2
    INT32 = 3
    FLOAT32 = 4
    FLOAT64 = 5


DTYPES: dict[int, np.dtype[np.generic]] = {
    # The game reads float32 whatever the type is, so "unspecified" means float32.
    ScalarType.UNSPECIFIED: np.dtype("<f4"),
    ScalarType.UINT8: np.dtype("u1"),
    ScalarType.UINT32: np.dtype("<u4"),
    ScalarType.INT32: np.dtype("<i4"),
    ScalarType.FLOAT32: np.dtype("<f4"),
    ScalarType.FLOAT64: np.dtype("<f8"),
}


class _Arrays:
    """Bitwise equality of dataclasses with arrays, for comparing documents."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(getattr(self, one.name), getattr(other, one.name)) for one in fields(self))  # type: ignore[arg-type]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return bool(one == other)


@dataclass
class VertexProperty:
    """Raw values of all vertices: ``dimension`` little-endian scalars each."""

    name: str
    scalar_type: int = ScalarType.FLOAT32
    dimension: int = 0
    data: bytes = b""
    unknown: bytes = b""

    @classmethod
    def of(cls, name: str, values: npt.NDArray[np.generic], scalar_type: int = ScalarType.FLOAT32) -> VertexProperty:
        """Return a property with the values of an (n, k) array."""
        return cls(name, scalar_type, values.shape[1], values.astype(DTYPES[scalar_type], copy=False).tobytes())

    def values(self, count: int) -> npt.NDArray[np.generic] | None:
        """Return the (count, dimension) values as a view, or None if the length of the data does not match."""
        dtype = DTYPES.get(self.scalar_type)
        if dtype is None or self.dimension <= 0 or len(self.data) != count * self.dimension * dtype.itemsize:
            return None
        return np.frombuffer(self.data, dtype).reshape(count, self.dimension)


@dataclass(eq=False)
class Mesh(_Arrays):
    """Triangles of one material: ``indices`` (3 t,) int32 into the node's vertices."""

    indices: npt.NDArray[np.int32]
    material: str = ""
    unknown: bytes = b""


@dataclass
class VertexAnimationFrame:
    """One frame: the vertex properties ``offset`` and ``rotation``."""

    properties: list[VertexProperty] = field(default_factory=list)
    unknown: bytes = b""


@dataclass
class VertexAnimation:
    """Frames of ``offset`` and ``rotation`` for the node's first ``animated_vertex_count`` vertices."""

    name: str
    framerate: float = 0.0
    animated_vertex_count: int = 0
    frames: list[VertexAnimationFrame] = field(default_factory=list)
    unknown: bytes = b""


@dataclass(eq=False)
class NodeAnimation(_Arrays):
    """The local transform of the node in each frame.

    ``positions`` (F, 3), ``rotations`` (F, 4; x, y, z, w) and ``scales`` (F, 3) are float32. ``present`` (F, 3) bool
    marks which of the three a frame stores; the others are zero.
    """

    name: str
    framerate: float
    positions: npt.NDArray[np.float32]
    rotations: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    present: npt.NDArray[np.bool_]
    unknown: bytes = b""

    @property
    def frame_count(self) -> int:
        return len(self.positions)


@dataclass
class Node:
    """A node. ``parent`` is an index into the model's nodes, -1 for a root. None means that the message is absent."""

    parent: int = 0
    name: str = ""
    position: Vector3 | None = None
    rotation: Quaternion | None = None
    scale: Vector3 | None = None
    vertex_count: int = 0
    properties: list[VertexProperty] = field(default_factory=list)
    meshes: list[Mesh] = field(default_factory=list)
    vertex_animations: list[VertexAnimation] = field(default_factory=list)
    node_animations: list[NodeAnimation] = field(default_factory=list)
    unknown: bytes = b""

    def find(self, name: str) -> VertexProperty | None:
        """Return the first property with this name, which is the one that the game uses."""
        return next((found for found in self.properties if found.name == name), None)


@dataclass
class Model:
    """A whole file. ``warnings`` has the warnings of the reader and is not part of the file."""

    version: int = 0
    name: str = ""
    nodes: list[Node] = field(default_factory=list)
    unknown: bytes = b""
    warnings: list[Any] = field(default_factory=list, compare=False)
    compression: str = field(default="BALANCED", compare=False)
