"""Axes, unit and names of an FBX file, binary or text; its geometry is read by Blender's importer.

A property of ``GlobalSettings`` is a record ``P`` (before version 7 ``Property``) of strings, the first of which is its
name, and a number: in binary files each string has the letter S and its length in front, each number a letter for its
type. Names of objects are followed by the bytes 0 and 1 and their class; in text files ``class::`` is in front.
"""

import re
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import FormatError

BINARY_MAGIC = b"Kaydara FBX Binary  \0"
_TEXT_MARKS = (b"; FBX", b"FBXHeaderExtension")
_HEAD = 4096
_DEFAULTS = {"UpAxis": 1, "UpAxisSign": 1, "FrontAxis": 2, "FrontAxisSign": 1, "CoordAxis": 0, "CoordAxisSign": 1}
_BINARY_CLASS = re.compile(rb"\x00\x01(?:Model|Geometry|Material)")
_LONGEST_NAME = 1000
_TEXT_NAME = re.compile(rb'"(?:Model|Geometry|Material)::([^"\r\n]{1,1000})"')
_NUMBERS = {b"I": "<i", b"L": "<q", b"F": "<f", b"D": "<d"}
_TEXT_NUMBER = rb'\s*(?:,\s*"[^"\r\n]*"\s*){1,3},\s*([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?)'


@dataclass(frozen=True)
class FbxHead:
    """Axes, unit and names that are read from an FBX file in addition to its objects."""

    to_blender: npt.NDArray[np.float64]
    """(3, 3): rotation from the axes of the file to Blender's, whose -Y is the front."""
    unit: float
    """Centimetres that a unit of the file is."""
    names: list[str]
    """Names of objects, meshes and materials, in the order of the file."""


def read_head(data: bytes) -> FbxHead:
    """Return axes, unit and names of an FBX file.

    Raises
    ------
    FormatError
        It is not an FBX file.
    """
    is_binary = data.startswith(BINARY_MAGIC)
    if not is_binary and not any(mark in data[:_HEAD] for mark in _TEXT_MARKS):
        raise FormatError("The content is not that of an FBX file")
    find = _binary_number if is_binary else _text_number

    def number(name: str, default: float) -> float:
        found = find(data, name)
        return default if found is None or not np.isfinite(found) else found

    axes = {name: int(number(name, default)) for name, default in _DEFAULTS.items()}
    unit = number("UnitScaleFactor", 1.0)
    names = _binary_names(data) if is_binary else _TEXT_NAME.findall(data)
    decoded = dict.fromkeys(name.decode("utf-8", "replace") for name in names)
    return FbxHead(_rotation(axes), unit if unit > 0 else 1.0, list(decoded))


def _rotation(axes: dict[str, int]) -> npt.NDArray[np.float64]:
    rows = np.zeros((3, 3))
    for row, name, sign in ((0, "CoordAxis", 1), (1, "FrontAxis", -1), (2, "UpAxis", 1)):
        rows[row, axes[name] % 3] = sign * (-1 if axes[f"{name}Sign"] < 0 else 1)
    if abs(np.linalg.det(rows)) < 0.5:  # two axes are the same
        return _rotation(_DEFAULTS)
    return rows


def _binary_number(data: bytes, name: str) -> float | None:
    """Return the first number of a property of a binary FBX file; it follows the strings for name, type and flags."""
    wanted = struct.pack("<cI", b"S", len(name)) + name.encode()
    at = data.find(wanted)
    if at < 0:
        return None
    try:
        while data[at : at + 1] == b"S":
            at += 5 + int(struct.unpack_from("<I", data, at + 1)[0])
        layout = _NUMBERS.get(data[at : at + 1])
        return float(struct.unpack_from(layout, data, at + 1)[0]) if layout else None
    except struct.error:  # the file ends here
        return None


def _text_number(data: bytes, name: str) -> float | None:
    found = re.search(rb'"%s"%s' % (name.encode(), _TEXT_NUMBER), data)
    return float(found[1]) if found is not None else None


def _binary_names(data: bytes) -> list[bytes]:
    ends = [mark.start() for mark in _BINARY_CLASS.finditer(data)]
    return [data[data.rfind(b"\0", max(0, end - _LONGEST_NAME), end) + 1 : end] for end in ends]
