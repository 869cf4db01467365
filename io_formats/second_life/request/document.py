"""An upload, one to one: the fee request and the body that follows it hold the same (formats page, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..mesh.document import Asset

PRIM_SHAPE = 0
"""Physics by the model that came with the mesh: triangles or hulls."""
NO_SHAPE = 1
CONVEX_SHAPE = 2
"""Physics by the hull around everything."""


@dataclass
class RequestFace:
    """How a face of an object looks."""

    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """RGB, sRGB-encoded, and alpha, 0 to 1."""
    fullbright: bool = False
    texture: int | None = None
    """Number among the request's textures."""


@dataclass
class RequestInstance:
    """An object: a mesh in its place. The first of a request becomes the root."""

    name: str
    mesh: int
    """Number among the request's meshes."""
    position: tuple[float, float, float]
    rotation: tuple[float, float, float, float]
    """(x, y, z, w), unlike everywhere else in Meshferry."""
    scale: tuple[float, float, float]
    """Size in metres."""
    physics_shape: int
    faces: list[RequestFace]
    """One for each face of the mesh, in its order."""


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
    """What is uploaded: meshes, textures and the objects made of them."""

    name: str
    meshes: list[Asset] = field(default_factory=list)
    textures: list[RequestTexture] = field(default_factory=list)
    instances: list[RequestInstance] = field(default_factory=list)
