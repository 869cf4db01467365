"""Transforms of blueprints as channels in Blender's space, and back (format page, section 2)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ...core.placement import Channels

ORDER = "YXZ"
_TRANSFORM_AXES: Mapping[str, tuple[tuple[str, int, float], ...]] = {
    "Position": (("X", 0, -1.0), ("Y", 2, 1.0), ("Z", 1, -1.0)),
    "Rotation": (("X", 0, 1.0), ("Y", 2, -1.0), ("Z", 1, 1.0)),
    "Scale": (("X", 0, 1.0), ("Y", 2, 1.0), ("Z", 1, 1.0)),
}
"""For each number of a transform: its name, the index of its channel in Blender, and the sign."""
_CLEAN = 1e-4
"""Tolerance in degrees for multiples of 90."""

Triple = tuple[float, float, float]


@lru_cache(4096)
def to_channels(
    position: Triple = (0.0, 0.0, 0.0), rotation: Triple = (0.0, 0.0, 0.0), scale: Triple = (1.0, 1.0, 1.0)
) -> Channels:
    """Return the channels of finite numbers X, Y, Z as the file has them; rotations in degrees."""
    radians = [math.radians(angle) for angle in rotation]
    triples = (_mapped("Position", position), _mapped("Rotation", radians), _mapped("Scale", scale))
    return Channels(*triples, ORDER)


def changed_numbers(now: Channels, before: Channels | None = None) -> dict[str, dict[str, float]]:
    """Return the numbers of the file that differ between two transforms, all for None, by field and axis.

    Each is the shortest decimal that is read as the same channel again. Rotations near multiples of 90 degrees become
    these.
    """
    found: dict[str, dict[str, float]] = {}
    for part, axes in _TRANSFORM_AXES.items():
        channel = _channel(now, part)
        given = _channel(before, part) if before is not None else (math.nan,) * 3
        spell = _degrees if part == "Rotation" else shortest_decimal
        for name, index, sign in axes:
            if channel[index] != given[index]:
                found.setdefault(part, {})[name] = 0.0 + spell(sign * channel[index])
    return found


def shortest_decimal(value: float) -> float:
    """Return the shortest decimal with the same single precision."""
    return float(str(np.float32(value)))


def _mapped(field: str, values: Sequence[float]) -> Triple:
    """Return a channel of single precision."""
    channel = array("f", (0.0, 0.0, 0.0))  # ten times as fast as numbers of NumPy
    for (_name, index, sign), value in zip(_TRANSFORM_AXES[field], values, strict=True):
        channel[index] = sign * value
    return 0.0 + channel[0], 0.0 + channel[1], 0.0 + channel[2]


def _channel(channels: Channels, field: str) -> Triple:
    return {"Position": channels.location, "Rotation": channels.rotation, "Scale": channels.scale}[field]


def _degrees(angle: float) -> float:
    """Return an angle in degrees that is read as the same radians in single precision."""
    degrees = math.degrees(angle)
    clean = 90.0 * round(degrees / 90.0)
    if abs(degrees - clean) <= _CLEAN:
        return clean
    wanted = np.float32(angle)
    for digits in range(1, 17):
        short = float(f"{degrees:.{digits}g}")
        if np.float32(math.radians(short)) == wanted:
            return short
    return degrees
