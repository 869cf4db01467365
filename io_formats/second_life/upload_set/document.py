"""An upload set, one to one: the Collada files of each level and of physics, as the viewer reads them.

Formats page, section 10.1. Static geometry is in the space of its instance; rigged geometry is in the avatar's own
(metres, Z up, X forward, origin between the feet), for which its bind shape is the identity. Matrices are for column
vectors, (4, 4) float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray, IntArray
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX

SUFFIXES = (*LEVEL_SUFFIXES, PHYSICS_SUFFIX)
"""What stands behind the chosen name in the name of each file, the finest level first."""

Matrix = npt.NDArray[np.float64]


@dataclass
class Triangles:
    """The triangles of one material, which become one face."""

    symbol: str
    """Of the material."""
    corners: IntArray
    """(C, 2) or (C, 3) int32: numbers of position, normal and, where the geometry has them, UV."""


@dataclass
class Geometry:
    """A mesh. ``name`` is what the viewer pairs the levels by."""

    name: str
    positions: FloatArray
    """(P, 3) float32."""
    normals: FloatArray
    """(N, 3) float32, of unit length."""
    uvs: FloatArray | None
    """(U, 2) float32, v upwards."""
    faces: list[Triangles]
    """No two of one symbol, none without triangles."""


@dataclass
class Skin:
    """The binding of a geometry to joints."""

    joint_names: list[str]
    inverse_bind: Matrix
    """(n, 4, 4)."""
    joint_indices: IntArray
    """(P, 4) int32 into ``joint_names``."""
    joint_weights: FloatArray
    """(P, 4) float32, adding up to 1; 0: the slot does not count."""
    tree: int
    """Which of the file's trees of joints moves it."""


@dataclass
class JointNode:
    """A joint in the tree that the viewer looks up joint positions in."""

    name: str
    parent: int
    """-1: a root."""
    local: Matrix
    """Relative to the parent; of a bone a pure translation."""


@dataclass
class JointTree:
    """The joints of one armature: those that meshes are bound to and all above them, parents before children."""

    name: str
    joints: list[JointNode]


@dataclass
class Instance:
    """An object. Rigged ones have no place of their own: the joints have."""

    geometry: Geometry
    matrix: Matrix
    skin: Skin | None = None


@dataclass
class ColladaFile:
    """One file: all objects in one level of detail, or as physics."""

    suffix: str
    """One of :data:`SUFFIXES`."""
    instances: list[Instance] = field(default_factory=list)
    """As many in each file, paired by the names of their geometries; the first becomes the root."""
    trees: list[JointTree] = field(default_factory=list)


@dataclass
class Image:
    """A texture that goes beside the files, or that they point to."""

    name: str
    """A file name with its extension, in plain letters; the set's own name is put before it."""
    path: Path | None = None
    """What it is copied from, or what the files point to; None: ``data``."""
    data: bytes = b""
    is_copied: bool = True


@dataclass
class Material:
    """A material; the symbol of its faces is the name that the viewer knows."""

    symbol: str
    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """sRGB-encoded, as the viewer's own pickers show it, and alpha; 0 to 1."""
    emission: float = 0.0
    """Grey, 0 to 1; above 0.25 the viewer makes the face full bright."""
    image: int | None = None
    """Its texture among the set's images, which takes the colour's place."""


@dataclass
class UploadSet:
    """All files of an upload, the finest level first."""

    files: list[ColladaFile] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
