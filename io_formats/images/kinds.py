"""Recognition of image files, without decoding them."""

from __future__ import annotations

import re

_MAGICS = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"v/1\x01": "OpenEXR",
    b"#?RADIANCE": "Radiance HDR",
    b"#?RGBE": "Radiance HDR",
    b"8BPS": "PSD",
    b"BM": "BMP",
}
_EXTENSIONS = (
    (b"\x89PNG", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"BM", ".bmp"),
    (b"\xff\x4f\xff\x51", ".j2c"),
    (b"\0\0\0\x0cjP", ".jp2"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
    (b"DDS ", ".dds"),
    (b"RIFF", ".webp"),
    (b"v/1\x01", ".exr"),
)
_BEGINNING = re.compile(
    rb"\x89PNG|\xff\xd8\xff|(II|MM)(\*\0|\0[*+]|\+\0)|v/1\x01|#\?RADIANCE|#\?RGBE|8BPS|DDS |\xff\x4f\xff\x51"
    rb"|\0\0\0\x0cjP|GIF8|SDPX|XPDS|\x80\x2a\x5f\xd7|\x01\xda[\0\1]|BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0"
    rb"|RIFF.{4}(WEBP|AVI )|.{4}(ftyp|moov|mdat|wide)|\x1a\x45\xdf\xa3|OggS|FLV\x01|\0\0\x01[\xba\xb3]"
    rb"|\x30\x26\xb2\x75",
    re.DOTALL,
)
"""Matches the beginnings of pictures and films that Blender may read; Targa has none."""
JPEG_2000 = (".j2c", ".jp2")
"""Extensions of JPEG 2000 files, without and with a container."""
_PNG_END = b"IEND"
_TARGA_HEADER = 18
_TARGA_TYPES = {1, 2, 3, 9, 10, 11}
_TARGA_DEPTHS = {8, 15, 16, 24, 32}


def image_kind(data: bytes) -> str:
    """Return the name of an image file's format, or an empty string if Blender cannot read it or it is cut off.

    DDS is left out, since files of others must not be given to Blender as they are.
    """
    for magic, name in _MAGICS.items():
        if data.startswith(magic):
            return "" if name == "PNG" and _PNG_END not in data[-64:] else name
    return "Targa" if _is_targa(data) else ""


def begins_as_picture(data: bytes) -> bool:
    """Return whether the first 64 bytes of a file are those of a picture or film that Blender may read."""
    return _BEGINNING.match(data) is not None or _is_targa(data)


def extension_of(data: bytes, given: str) -> str:
    """Return the extension of an image file by its content, or ``given`` if the content is unknown."""
    return next((extension for magic, extension in _EXTENSIONS if data.startswith(magic)), given)


def _is_targa(data: bytes) -> bool:
    """Targa files have no magic number, so that the fields of the header decide."""
    if len(data) < _TARGA_HEADER:
        return False
    has_palette, kind, depth = data[1], data[2], data[16]
    width, height = int.from_bytes(data[12:14], "little"), int.from_bytes(data[14:16], "little")
    return has_palette < 2 and kind in _TARGA_TYPES and depth in _TARGA_DEPTHS and width > 0 and height > 0
