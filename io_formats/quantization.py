"""Integer domains <-> floats: the one place, rounding to nearest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 16
"""Values a pass: small enough for the processor's cache, which makes the passes several times faster."""


def to_unorm(values: npt.NDArray[np.floating], highest: int = 255) -> npt.NDArray[np.uint8]:
    """Map 0..1 to 0..``highest`` (at most 255), rounded to nearest and clamped; what is no number becomes 0."""
    flat = np.ascontiguousarray(values).reshape(-1)
    rounded = np.empty(len(flat), np.uint8)
    for start in range(0, len(flat), _BLOCK):
        # fmax takes the number of the two, so what is no number becomes 0.
        scaled = np.fmax(flat[start : start + _BLOCK], np.float32(0))
        np.fmin(scaled, np.float32(1), out=scaled)
        scaled *= np.float32(highest)
        rounded[start : start + _BLOCK] = np.rint(scaled, out=scaled)
    return rounded.reshape(values.shape)


def from_unorm(values: npt.NDArray[np.generic], highest: int = 255) -> npt.NDArray[np.float32]:
    """Map 0..``highest`` to 0..1 float32; ``to_unorm`` gives the same integers back."""
    return values.astype(np.float32) / np.float32(highest)


def linear_to_srgb(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Encode linear colours (n, 4) float32 as sRGB (IEC 61966-2-1); alpha stays linear."""
    encoded = values.astype(np.float32, copy=True)
    linear = np.clip(values[:, :3], 0.0, None)
    with np.errstate(over="ignore", invalid="ignore"):
        encoded[:, :3] = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * np.power(linear, 1 / 2.4) - 0.055)
    return encoded
