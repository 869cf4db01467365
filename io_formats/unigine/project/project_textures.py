"""Textures of a project as image files that Blender reads (docs/formats/unigine_textures.md)."""

from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.shading import Texture
from ...encodings import dds, lz4_block
from ...encodings.byte_reader import ByteStream
from ...encodings.dds import Layout, Picture, check_size
from ...encodings.image_files import image_kind
from .guids import FoundTexture, is_guid, plain_reference
from .project import IMAGES, Project

MAGICS = (b"tx10", b"tx11")
_VOLUME, _HIGHEST_KIND = 1, 4
"""Numbers of texture types: the types are plane, volume, cube, array and array of cubes."""
_LZ4 = (3, 4)
_CODES = {
    0: Layout.R8, 1: Layout.RG8, 2: Layout.RGB8, 3: Layout.RGBA8,
    21: Layout.BC1, 22: Layout.BC2, 23: Layout.BC3, 24: Layout.BC4, 25: Layout.BC5,
}  # fmt: skip
_OTHER_NAMES = {
    4: "R16", 5: "RG16", 6: "RGB16", 7: "RGBA16", 8: "R16F", 9: "RG16F", 10: "RGB16F", 11: "RGBA16F", 12: "R32F",
    13: "RG32F", 14: "RGB32F", 15: "RGBA32F", 16: "RGB565", 17: "RGBA4", 18: "RGB5A1", 19: "RGB10A2", 20: "RG11B10F",
}  # fmt: skip


def read_picture(data: bytes) -> Picture:
    """Return the largest mipmap of the first face and layer; smaller mipmaps are not decoded.

    Raises
    ------
    UnsupportedFormatError
        A volume texture, or pixels that are neither 8-bit integers nor BC1 to BC5.
    FormatError
        The data breaks the format.
    """
    stream = ByteStream(data, item="texture")
    magic = bytes(stream.take(4, "the magic"))
    if magic == b"tx10":
        kind, code, width, height, depth, _mipmaps, _layers = (stream.i32("the header") for _ in range(7))
        stream.skip(12, "the header")  # number of faces, flags and 0; the type determines the number of faces
        compression = stream.i32("the compression")
    elif magic == b"tx11":
        kind, code, compression, _mipmaps = (stream.u8("the header") for _ in range(4))
        _layers, width, height, depth = stream.array("u2", 4, "the header").tolist()
    else:
        raise UnsupportedFormatError("Not a UNIGINE texture of tx10 or tx11: it starts with {!r}", magic)
    if not 0 <= kind <= _HIGHEST_KIND:
        raise stream.error("The file is damaged: {} is not a type of texture", kind)
    if kind == _VOLUME or depth > 1:
        raise UnsupportedFormatError("It is a volume texture, which has no counterpart in Blender")
    layout = _CODES.get(code)
    if layout is None:
        raise UnsupportedFormatError("Its pixel format ({}) is not supported", _OTHER_NAMES.get(code, str(code)))
    check_size(width, height)
    return Picture(layout, width, height, _read_pixels(stream, compression, layout.size(width, height)))


def _read_pixels(stream: ByteStream, compression: int, size: int) -> memoryview | bytearray:
    """Return the first block of pixels, of ``size`` bytes once decoded."""
    if not compression:
        return stream.take(size, "the pixels")
    start = stream.position
    stored = stream.i64("the size of the pixels")
    if stored == size:
        return stream.take(size, "the pixels")
    if compression not in _LZ4:
        raise UnsupportedFormatError("Its compression ({}) is not supported", compression)
    if stored < 0 or size > lz4_block.HIGHEST_RATIO * stored:
        raise stream.error("{:,} bytes cannot be decoded to the {:,} bytes of the pixels", stored, size, offset=start)
    return lz4_block.decode(stream.take(stored, "the pixels"), size, item="texture")


_WRAPPED = (".dds", ".texture")
"""Extensions of files that are converted to a DDS file of one picture."""


def texture_of(project: Project, found: FoundTexture) -> Texture | None:
    """Return a texture for the files found, or None if there are none.

    The files are read when the image is made. The source image is preferred. If it cannot be read, the runtime is used
    instead, unless it is a normal map whose green channel has the other direction.
    """
    if found.file is None:
        return None
    files = [found.file]
    if found.runtime and found.runtime != found.file and not found.is_green_up:
        files.append(found.runtime)
    is_wrapped = found.file.lower().endswith(_WRAPPED)
    place = str(project.files.location(found.file))
    return Texture(
        found.name, path="" if is_wrapped else place, source=place, read=partial(_read_first, project, tuple(files))
    )


class TextureFinder:
    """Finds textures in a project, and those that the project lacks in another folder.

    Parameters
    ----------
    project:
        The project.
    other:
        Another project, or any folder with textures, or None.
    """

    def __init__(self, project: Project, other: Project | None = None) -> None:
        self._project = project
        self._other = other
        self._owners: dict[FoundTexture, Project] = {}

    def find(self, reference: str) -> FoundTexture:
        """Return the files of the texture that a reference means."""
        own = self._project.texture(reference)
        if own.file is not None or own.engine_name or self._other is None:
            return own
        for candidate in _other_names(own):
            found = self._other.texture(candidate)
            if found.file is not None and found.file.lower().endswith((*IMAGES, ".texture")):
                if candidate == own.name:  # a source image whose ``.meta`` file is in the project
                    found = replace(found, is_green_up=own.is_green_up)
                self._owners[found] = self._other
                return found
        return own

    def load(self, found: FoundTexture) -> Texture | None:
        """Return the texture of files that :meth:`find` returned."""
        return texture_of(self._owners.get(found, self._project), found)

    def label(self, reference: str) -> str:
        """Return the name of a texture for a message: that of its file, else the reference."""
        return self._project.texture(reference).name or reference


def _other_names(missing: FoundTexture) -> list[str]:
    """Return the references by which another folder may have a missing texture, the most likely first."""
    plain = plain_reference(missing.reference)
    names = [plain]
    if is_guid(plain):
        names += [f"{plain}.texture", f"{plain}.dds"]
    if missing.name:
        stem = PurePosixPath(missing.name).stem
        names += [missing.name, f"{stem}.texture", f"{stem}.dds"]
    return names


def _read_first(project: Project, files: tuple[str, ...]) -> bytes:
    """Return the content of the first file that can be read.

    Raise the FormatError of the first file if none can be read.
    """
    problems: list[FormatError] = []
    for file in files:
        try:
            return _image_file(project.files.read(file))
        except FormatError as problem:
            problems.append(problem.in_file(file))
    raise problems[0]


def _image_file(data: bytes) -> bytes:
    """Convert the content of a file to an image file that Blender can read."""
    if data.startswith(dds.MAGIC):
        return dds.write(dds.read(data))
    if data.startswith(MAGICS):
        return dds.write(read_picture(data))
    if not image_kind(data):
        raise UnsupportedFormatError("It is not an image file of a known format, or it is cut off")
    return data
