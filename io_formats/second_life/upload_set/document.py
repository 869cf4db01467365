"""An upload set: the Collada files of each level and of physics, in the form that the viewer reads.

Formats page, section 10.1. Static geometry is in the space of its instance; rigged geometry is in the avatar's space
(metres, Z up, X forward, origin between the feet), in which its bind shape is the identity. Matrices are for column
vectors, (4, 4) float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...core.glb_materials import GltfMaterial
from ...core.scene import FloatArray, IntArray
from ...geometry.transforms import Matrix
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX

SUFFIXES = (*LEVEL_SUFFIXES, PHYSICS_SUFFIX)
"""Suffixes of the file names, the finest level first."""


@dataclass
class Triangles:
    """The triangles of one material, which become one face."""

    symbol: str
    """Identifier of the material in the file; equals :attr:`Material.symbol`."""
    corners: IntArray
    """(C, 2) or (C, 3) int32: indices of position, normal and, if the geometry has UVs, UV."""


@dataclass
class Geometry:
    """A mesh. The viewer matches levels of detail by ``name``."""

    name: str
    positions: FloatArray
    """(P, 3) float32."""
    normals: FloatArray
    """(N, 3) float32, of unit length."""
    uvs: FloatArray | None
    """(U, 2) float32, v upwards."""
    faces: list[Triangles]
    """The triangles of each symbol, which become one face; none is empty."""


@dataclass
class Skin:
    """The binding of a geometry to joints."""

    joint_names: list[str]
    inverse_bind: Matrix
    """(n, 4, 4) inverse bind matrix of each joint."""
    joint_indices: IntArray
    """(P, 4) int32 into ``joint_names``."""
    joint_weights: FloatArray
    """(P, 4) float32 with the sum 1; 0 for unused entries."""
    tree: int
    """Index in the file of the joint tree that moves the geometry."""


@dataclass
class JointNode:
    """A joint in the tree in which the viewer looks up joint positions."""

    name: str
    parent: int
    """Index of the parent; -1 for a root."""
    local: Matrix
    """Transform relative to the parent; for a bone only a translation."""


@dataclass
class JointTree:
    """The joints of one armature to which meshes are bound, and their ancestors; parents come before children."""

    name: str
    joints: list[JointNode]


@dataclass
class Instance:
    """An object. Rigged objects have no transform of their own."""

    geometry: Geometry
    """Geometry of the object; equal objects share it."""
    matrix: Matrix
    name: str
    """Name of the node; the viewer uses the name of the geometry instead."""
    skin: Skin | None = None
    object_name: str = ""
    """Name of the object in the scene, for messages."""


@dataclass
class ColladaFile:
    """One file: all objects at one level of detail, or their physics."""

    suffix: str
    """One of :data:`SUFFIXES`."""
    instances: list[Instance] = field(default_factory=list)
    """Objects of the file; files match them by the names of their geometries, and the first object becomes the root.
    The file of each level contains all objects, the physics file only objects with a physics shape of their own."""
    trees: list[JointTree] = field(default_factory=list)


@dataclass
class Image:
    """A texture that is copied beside the files or referenced by them."""

    name: str
    """A file name with extension, in ASCII letters, to which the prefix of the set is added."""
    path: Path | None = None
    """The file to copy or to reference; None if the content is in ``data``."""
    data: bytes = b""
    is_copied: bool = True


@dataclass
class Material:
    """A material; the symbol of its faces is the name that the viewer shows."""

    symbol: str
    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """sRGB-encoded as in the viewer's colour pickers, with alpha; 0 to 1."""
    emission: float = 0.0
    """Grey, 0 to 1; above 0.25 the viewer makes the face full bright."""
    image: int | None = None
    """Index of its texture among the set's images; the texture replaces the colour."""
    gltf: GltfMaterial | None = None
    """PBR material, which is written to a separate file, as the viewer uploads it separately."""


@dataclass
class UploadSet:
    """All files of an upload, the finest level first; the last one is the physics if an object has any."""

    files: list[ColladaFile] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)
    """Labels of the checkboxes to tick in the viewer's upload window."""
