"""Textures of a project as image files that Blender reads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.shading import Texture
from ...encodings import dds
from ...encodings.image_files import image_kind
from ..texture import reader
from .project import IMAGES, Project
from .references import FoundTexture, is_guid, plain_reference

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
    if data.startswith(reader.MAGICS):
        return dds.write(reader.read_picture(data))
    if not image_kind(data):
        raise UnsupportedFormatError("It is not an image file of a known format, or it is cut off")
    return data
