"""Readers of the files of a project that an import reads besides models."""

from __future__ import annotations

from collections.abc import Callable

from . import unigine_project_cases
from .checkout import load_package


class WrappedAgainError(Exception):
    """A picture that changes when the file that was made of it is read."""


def reader_of(data: bytes) -> Callable[[bytes], object] | None:
    """Return the reader of a file that begins so, or None for models."""
    if data.startswith((b"tx1", b"DDS ")):
        return _read_picture
    if data.startswith(unigine_project_cases.MAGIC):
        return unigine_project_cases.read
    return None


def _read_picture(data: bytes) -> object:
    """Read a picture, wrap it and read it again."""
    load_package()
    from meshferry.io_formats.encodings import dds
    from meshferry.io_formats.unigine.project import project_textures

    picture = dds.read(data) if data.startswith(dds.MAGIC) else project_textures.read_picture(data)
    again = dds.read(dds.write(picture))
    if (again.layout, again.width, again.height) != (picture.layout, picture.width, picture.height):
        raise WrappedAgainError(f"{picture.layout} of {picture.width} x {picture.height} is {again.layout}")
    if bytes(again.pixels) != bytes(picture.pixels):
        raise WrappedAgainError("other pixels")
    return picture
