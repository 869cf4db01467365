"""Codes of keys <-> seconds, unit quaternions and metres (animation format page, sections 2.1 and 2.2)."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from ....core.scene import AnyArray, FloatArray
from ....geometry.transforms import euler_matrices, matrices_to_quaternions

MOST = 65535
FARTHEST = 5.0
"""Largest coordinate of a position key, in metres."""
_NEARLY_HALF_TURN = 0.2
"""Quaternion component w below which one step of a code rotates the joint noticeably, since w is computed from the
other three components."""

Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]


def values_of(codes: AnyArray, reach: float) -> FloatArray:
    """Decode codes over -``reach`` to ``reach`` in float32 like the viewer: both middle codes are exactly 0."""
    low, width = np.float32(-reach), np.float32(2 * reach)
    values = codes.astype(np.float32) * np.float32(1 / MOST) * width + low
    values[np.abs(values) < width / np.float32(MOST)] = 0
    return values


def codes_of(values: Floats, reach: float) -> Codes:
    """Encode values to the nearest codes over -``reach`` to ``reach``; values beyond are clamped."""
    return np.rint((np.clip(values, -reach, reach) + reach) / (2 * reach) * MOST).astype(np.uint16)


def times_of(codes: AnyArray, duration: float) -> Floats:
    """Decode time codes (n,) to seconds in float32, as the viewer does, returned as float64."""
    seconds = codes.astype(np.float32) * np.float32(1 / MOST) * np.float32(duration)
    return np.asarray(seconds, np.float64)


def time_codes_of(seconds: Floats, duration: float) -> Codes:
    """Encode seconds (n,) to the nearest time codes; 0 for an animation without duration."""
    if duration <= 0:
        return np.zeros(len(seconds), np.uint16)
    return np.rint(np.clip(seconds / duration, 0, 1) * MOST).astype(np.uint16)


def rotations_of(codes: AnyArray) -> Floats:
    """Decode rotation codes (…, 3) to unit quaternions (…, 4; w, x, y, z) float64, w >= 0."""
    vector = values_of(codes, 1.0).astype(np.float64)
    rest = 1 - (vector * vector).sum(axis=-1, keepdims=True)
    found = np.concatenate((np.sqrt(np.maximum(rest, 0)), vector), axis=-1)
    unit: Floats = found / np.linalg.norm(found, axis=-1, keepdims=True)
    return unit


_CORNERS = np.array(list(itertools.product((0, 1), repeat=3)), np.float64)


def rotation_codes_of(rotations: Floats) -> Codes:
    """Encode unit quaternions (n, 4; w, x, y, z) to codes (n, 3).

    The nearest codes are used. Near half turns, w is poorly determined; the eight surrounding codes are compared there,
    and the code is used that turns the joint least away from the given rotation.
    """
    rotations = np.where(rotations[:, :1] < 0, -rotations, rotations)
    codes = codes_of(rotations[:, 1:], 1.0)
    steep = np.flatnonzero(rotations[:, 0] < _NEARLY_HALF_TURN)
    if len(steep):
        exact = (np.clip(rotations[steep, 1:], -1, 1) + 1) / 2 * MOST
        around = np.clip(np.floor(exact)[:, None] + _CORNERS, 0, MOST)
        decoded = rotations_of(around.reshape(-1, 3)).reshape(-1, 8, 4)
        closeness = np.abs((decoded * rotations[steep, None]).sum(axis=-1))
        best = closeness.argmax(axis=1)
        codes[steep] = around[np.arange(len(steep)), best].astype(np.uint16)
    return codes


def encode_values(values: Floats) -> Codes:
    """Encode unit quaternions (…, 4; w, x, y, z), or positions (…, 3), to codes (…, 3)."""
    if values.shape[-1] == 3:
        return codes_of(values, FARTHEST)
    return rotation_codes_of(values.reshape(-1, 4)).reshape(*values.shape[:-1], 3)


def decode_values(codes: AnyArray, *, is_rotation: bool) -> Floats:
    """Decode codes (…, 3) to unit quaternions (…, 4; w, x, y, z), w >= 0, or to positions (…, 3)."""
    return rotations_of(codes) if is_rotation else values_of(codes, FARTHEST).astype(np.float64)


def euler_rotations(degrees: AnyArray) -> Floats:
    """Convert the Euler angles of version 0.1, (n, 3) degrees, to unit quaternions (n, 4; w, x, y, z): Rx Ry Rz."""
    return matrices_to_quaternions(euler_matrices(degrees.astype(np.float64), "XYZ"))
