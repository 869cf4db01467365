"""Changes of an upload request for OpenSim, whose released servers misread requests that Second Life takes.

Versions 0.9.1.1 to 0.9.3.0 use the index of an object as the index of its mesh, which fails if there are more objects
than meshes. They give faces without a texture the first texture of the request. They store the last face as the
default of all others, so that white faces get its colour, and faces that are not full bright its brightness.
"""

from __future__ import annotations

from .document import RequestFace, RequestInstance, RequestTexture, UploadRequest

_WHITE_SIDE = 32
_WHITE = bytes.fromhex(
    "ff4fff51002f000000000020000000200000000000000000000000200000002000000000000000000003070101070101070101"
    "ff52000c00000001010504040001ff5c00134040484850484850484850484850484850"
    "ff90000a0000000000230001ff93cfb404008080808080808080808080808080808080ffd9"
)
"""JPEG 2000 codestream of 32 x 32 white RGB pixels. Written by Blender 4.5 (Image.save_render, codec J2K, quality 100,
thus lossless), without the comment of its encoder."""


def adapt_to_opensim(request: UploadRequest) -> None:
    """Change a request, which has a mesh for each object, so that all servers show every face as stated."""
    _add_white_texture(request)
    for instance in request.instances:
        if instance.faces and _last_face_spreads(instance):
            # A further face, of which the mesh has no triangles, becomes the default in place of the last one.
            instance.faces = [*instance.faces, RequestFace(texture=instance.faces[-1].texture)]


def _add_white_texture(request: UploadRequest) -> None:
    """Give faces without a texture a white one."""
    faces = [face for instance in request.instances for face in instance.faces if face.texture is None]
    if not faces:
        return
    for face in faces:
        face.texture = len(request.textures)
    request.textures.append(RequestTexture("white", _WHITE, _WHITE_SIDE, _WHITE_SIDE))


def _last_face_spreads(instance: RequestInstance) -> bool:
    """Return whether a released server gives other faces the colour or the brightness of the last face."""
    *others, last = instance.faces
    white = RequestFace().color
    takes_color = last.color != white and any(face.color == white for face in others)
    return takes_color or (last.fullbright and not all(face.fullbright for face in others))
