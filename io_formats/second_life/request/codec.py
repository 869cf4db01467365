"""An upload request, and the bodies of fee request and upload as LLSD XML (formats page, section 9)."""

import functools
import importlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import MissingLibraryError
from ...core.format import OutputFile
from ..asset import codec as asset_codec
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


EXTENSION = ".llsd"
FEE = ".fee"
"""Precedes the extension in the name of the fee request."""

MOVE_COPY_MODIFY_TRANSFER = 0x0008E000
"""Permissions of the next owner; the sender of the request can change them."""
_WOOD = 3
_NULL_ID = uuid.UUID(int=0)
"""Placeholder for inventory folders, which the sender replaces."""


def write_files(document: UploadRequest, stem: str) -> list[OutputFile]:
    """Encode ``stem.fee.llsd``, which requests the price, and ``stem.llsd``, which goes to the URL in the answer.

    Raises
    ------
    MissingLibraryError
        The ``llsd`` library is not installed.
    """
    format_xml = _library()
    meshes = [asset_codec.write(asset) for asset in document.meshes]
    fee = OutputFile(f"{stem}{FEE}{EXTENSION}", format_xml(fee_request(document, meshes)))
    return [fee, OutputFile(stem + EXTENSION, format_xml(resources(document, meshes)))]


def write(document: UploadRequest) -> bytes:
    """Encode the upload request, without the preceding request for the price."""
    return write_files(document, "")[-1].data


@functools.cache
def _library() -> Callable[[Any], bytes]:
    try:
        library: Any = importlib.import_module("llsd")  # Any: the library has no type hints
    except ImportError:
        raise MissingLibraryError(
            "Upload requests need the library 'llsd'. The installed extension brings it; "
            "elsewhere: python -m pip install llsd"
        ) from None
    format_xml: Callable[[Any], bytes] = library.format_xml
    return format_xml


def fee_request(document: UploadRequest, meshes: list[bytes]) -> dict[str, Any]:
    """Return the map that requests the price; textures are given by their sizes."""
    body = resources(document, meshes)
    body["texture_list"] = [b"" for _texture in document.textures]
    body["texture_info"] = [{"width": texture.width, "height": texture.height} for texture in document.textures]
    return {
        "folder_id": _NULL_ID,
        "texture_folder_id": _NULL_ID,
        "asset_type": "mesh",
        "inventory_type": "object",
        "name": document.name.encode("utf-8", "replace").decode(),
        "description": "(No Description)",
        "next_owner_mask": MOVE_COPY_MODIFY_TRANSFER,
        "group_mask": 0,
        "everyone_mask": 0,
        "asset_resources": body,
    }


def resources(document: UploadRequest, meshes: list[bytes]) -> dict[str, Any]:
    """Return the map of the upload."""
    return {
        "mesh_list": meshes,
        "texture_list": [texture.data for texture in document.textures],
        "instance_list": [_instance(instance) for instance in document.instances],
        "metric": "MUT_Unspecified",
    }


def _instance(instance: RequestInstance) -> dict[str, Any]:
    return {
        # Whole numbers must be written as reals too, since OpenSim accepts only reals for a size.
        "position": [float(value) for value in instance.position],
        "rotation": [float(value) for value in instance.rotation],
        "scale": [float(value) for value in instance.scale],
        "material": _WOOD,
        "physics_shape_type": instance.physics_shape,
        "mesh": instance.mesh,
        "mesh_name": instance.name.encode("utf-8", "replace").decode(),
        "face_list": [_face(face) for face in instance.faces],
    }


def _face(face: RequestFace) -> dict[str, Any]:
    look: dict[str, Any] = {"diffuse_color": [float(part) for part in face.color], "fullbright": face.fullbright}
    if face.texture is not None:
        look |= {"image": face.texture, "scales": 1.0, "scalet": 1.0, "offsets": 0.0, "offsett": 0.0, "imagerot": 0.0}
    return look
