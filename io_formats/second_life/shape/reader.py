"""Bytes -> shape: an appearance export in XML, or a body part asset (shape format page, section 5)."""

from __future__ import annotations

from . import appearance, body_part, writer
from .document import Shape
from .sniffing import SIGNATURE


def read(data: bytes, *, inflated_limit: int | None = None) -> Shape:
    """Decode a shape file.

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Not used: nothing in these files is compressed.

    Raises
    ------
    FormatError
        The file is damaged, or is not the shape of an avatar.
    """
    text = data.decode("utf-8-sig", "replace")
    return body_part.read_body_part(text) if text.startswith(SIGNATURE) else appearance.read_appearance(data)


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same name and values of sliders, in single precision."""
    return one == other or writer.write(read(one)) == writer.write(read(other))
