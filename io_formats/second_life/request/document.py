"""The content of an upload, used for both the fee request and the upload request (formats page, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..asset.codec import Asset

PRIM_SHAPE = 0
"""Physics shape type: the triangles or hulls of the mesh."""
NO_SHAPE = 1
CONVEX_SHAPE = 2
"""Physics shape type: the base hull."""


@dataclass
class RequestFace:
    """The appearance of a face of an object."""

    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """RGB, sRGB-encoded, and alpha, 0 to 1."""
    fullbright: bool = False
    texture: int | None = None
    """Index of the texture among the request's textures; None without a texture."""


@dataclass
class RequestInstance:
    """An object: a mesh with a transform. The first one of a request becomes the root."""

    name: str
    mesh: int
    """Index of the mesh among the request's meshes; for OpenSim the same as the index of the object."""
    position: tuple[float, float, float]
    rotation: tuple[float, float, float, float]
    """(x, y, z, w), unlike everywhere else in Meshferry."""
    scale: tuple[float, float, float]
    """Size in metres."""
    physics_shape: int
    faces: list[RequestFace]
    """Appearance of each face of the mesh, in its order. For OpenSim, a further one may follow."""


@dataclass
class RequestTexture:
    """A texture as the grid stores it."""

    name: str
    data: bytes
    """A JPEG 2000 codestream."""
    width: int
    height: int


@dataclass
class UploadRequest:
    """Meshes, textures and objects of an upload."""

    name: str
    meshes: list[Asset] = field(default_factory=list)
    textures: list[RequestTexture] = field(default_factory=list)
    instances: list[RequestInstance] = field(default_factory=list)
