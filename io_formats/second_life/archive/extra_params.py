"""The extra parameters of a part: sculpts, lights and more (docs/formats/opensim_archives.md, section Shapes)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from .binary_text import uuid_text
from .document import PartLight

_HEAD, _LIGHT, _PROJECTOR = struct.Struct("<HI"), struct.Struct("<4B3f"), struct.Struct("<16s3f")
_SCULPT = 17
_FLEXIBLE = 16
_FLEXIBLE_TYPE, _LIGHT_TYPE, _SCULPT_TYPE, _PROJECTOR_TYPE, _OLD_MESH_TYPE, _MATERIALS_TYPE = (
    *(0x10, 0x20, 0x30, 0x40, 0x60, 0x80),
)
_SIZES = {
    _FLEXIBLE_TYPE: _FLEXIBLE,
    _LIGHT_TYPE: _LIGHT.size,
    _SCULPT_TYPE: _SCULPT,
    _PROJECTOR_TYPE: _PROJECTOR.size,
    _OLD_MESH_TYPE: _SCULPT,
}


@dataclass(frozen=True, slots=True)
class ExtraParams:
    """The extra parameters of a part."""

    sculpt: tuple[str, int] | None = None
    """UUID and type of a sculpt or mesh; None if the part is neither."""
    is_flexible: bool = False
    light: PartLight | None = None
    has_gltf_materials: bool = False


def read_extra_params(data: bytes) -> tuple[ExtraParams, bool]:
    """Decode extra parameters.

    Returns
    -------
    parameters, is_whole:
        The parameters; False if they are damaged. Those before the damage are used.
    """
    found, is_whole = _contents(data)
    light = None
    if _LIGHT_TYPE in found:
        *color, intensity, radius, _cutoff, _falloff = _LIGHT.unpack(found[_LIGHT_TYPE])
        red, green, blue = (value / 255 for value in color)
        light = PartLight((red, green, blue), intensity / 255, _length(radius))
        if _PROJECTOR_TYPE in found:
            picture, angle, _focus, _ambiance = _PROJECTOR.unpack(found[_PROJECTOR_TYPE])
            angle = min(_length(angle), math.pi)
            light = PartLight(light.color, light.intensity, light.radius, uuid_text(picture), angle)
    sculpt = found.get(_SCULPT_TYPE, found.get(_OLD_MESH_TYPE))
    return (
        ExtraParams(
            (uuid_text(sculpt[:16]), sculpt[16]) if sculpt is not None else None,
            _FLEXIBLE_TYPE in found,
            light,
            found.get(_MATERIALS_TYPE, b"\0")[:1] > b"\0",
        ),
        is_whole,
    )


def _contents(data: bytes) -> tuple[dict[int, bytes], bool]:
    """Return the content of each parameter by its type, and whether all are whole."""
    found: dict[int, bytes] = {}
    is_whole = True
    at = 1
    for _ in range(data[0] if data else 0):
        if at + _HEAD.size > len(data):
            return found, False
        kind, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + size > len(data):
            return found, False
        if size == _SIZES.get(kind, size):
            found[kind] = data[at : at + size]
        else:
            is_whole = False
        at += size
    return found, is_whole


def _length(value: float) -> float:
    """Return a number that is at least 0; 0 for NaN and infinity."""
    return max(value, 0.0) if math.isfinite(value) else 0.0
