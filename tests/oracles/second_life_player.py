"""Plays Second Life animations like the viewer, after sections 2, 2.2 and 2.3 of the format page."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def curves_of(data: bytes) -> tuple[float, dict[str, tuple[Array, Array]]]:
    """Return the duration of a file of version 1.0, and the codes (n, 4) of rotations and positions of each joint."""
    place = 0

    def take(kind: str) -> Any:
        nonlocal place
        values = struct.unpack_from("<" + kind, data, place)
        place += struct.calcsize("<" + kind)
        return values if len(values) > 1 else values[0]

    def text() -> str:
        nonlocal place
        end = data.index(b"\0", place)
        start, place = place, end + 1
        return data[start:end].decode()

    def keys() -> Array:
        nonlocal place
        count = take("i")
        start, place = place, place + 8 * count
        return np.frombuffer(data, "<u2", 4 * count, start).reshape(count, 4).astype(np.float64)

    assert take("HH") == (1, 0)
    _priority, duration = take("if")
    text()
    take("ffiffI")
    joints = {}
    for _ in range(take("I")):
        name, _own = text(), take("i")
        joints[name] = keys(), keys()
    return duration, joints


def decoded(codes: Array, reach: float) -> Array:
    """Return the values of codes over -reach to reach; both middle codes are 0."""
    values = codes / 65535 * 2 * reach - reach
    return np.where(np.abs(values) < 2 * reach / 65535, 0.0, values)


def rotations_of(codes: Array) -> Array:
    """Return unit quaternions (n, 4; w, x, y, z) of codes (n, 3)."""
    vector = decoded(codes, 1.0)
    w = np.sqrt(np.maximum(0.0, 1 - (vector**2).sum(axis=1)))
    found = np.column_stack((w, vector))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def nlerp_or_slerp(a: Array, b: Array, share: float) -> Array:
    """Return the rotation between two keys."""
    cosine = float(a @ b)
    if cosine >= 0:
        mixed = (1 - share) * a + share * b
        return mixed / np.linalg.norm(mixed)
    angle = np.arccos(min(-cosine, 1.0))
    if angle < 1e-6:
        return a
    return (np.sin((1 - share) * angle) * a - np.sin(share * angle) * b) / np.sin(angle)


def lerp(a: Array, b: Array, share: float) -> Array:
    """Return the position between two keys."""
    return (1 - share) * a + share * b


def played(times: Array, values: Array, at: float, between: Callable[[Array, Array, float], Array]) -> Array:
    """Return the value of a curve at a time; it is held before the first and after the last key."""
    after = int(np.searchsorted(times, at, side="right"))
    if after == 0 or after == len(times):
        return values[0 if after == 0 else -1]
    share = (at - times[after - 1]) / (times[after] - times[after - 1])
    return between(values[after - 1], values[after], share)


def degrees_between(a: Array, b: Array) -> float:
    """Return the angle between two rotations."""
    return float(np.degrees(4 * np.arcsin(min(np.linalg.norm(a - b), np.linalg.norm(a + b)) / 2)))
