"""Textures of a project as image files that Blender reads."""

from __future__ import annotations

from functools import partial

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.shading import Texture
from ...images import dds
from ...images.kinds import image_kind
from ..texture import reader
from .project import Project
from .references import FoundTexture

_WRAPPED = (".dds", ".texture")
"""Extensions of files that become DDS files of one picture."""


def texture_of(project: Project, found: FoundTexture) -> Texture | None:
    """Return the texture of found files, or None if there are none. The files are read when its image is made.

    The source image is preferred. If it cannot be read, the runtime takes its place, unless the green of its normals
    has the other direction.
    """
    if found.file is None:
        return None
    files = [found.file]
    if found.runtime and found.runtime != found.file and not found.is_green_up:
        files.append(found.runtime)
    is_wrapped = found.file.lower().endswith(_WRAPPED)
    place = str(project.location(found.file))
    return Texture(
        found.name, path="" if is_wrapped else place, source=place, read=partial(_read_first, project, tuple(files))
    )


def _read_first(project: Project, files: tuple[str, ...]) -> bytes:
    """Return the content of an image file from the first file that can be read; raise the first FormatError if none."""
    problems: list[FormatError] = []
    for file in files:
        try:
            return _image_file(project.read(file))
        except FormatError as problem:
            problems.append(problem.in_file(file))
    raise problems[0]


def _image_file(data: bytes) -> bytes:
    """Return an image file that Blender reads."""
    if data.startswith(dds.MAGIC):
        return dds.write(dds.read(data))
    if data.startswith(reader.MAGICS):
        return dds.write(reader.read_picture(data))
    if not image_kind(data):
        raise UnsupportedFormatError("It is not an image file of a known format, or it is cut off")
    return data
