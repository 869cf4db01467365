"""Conversions between quantised integers and floats; values are rounded to the nearest integer."""

from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 16
"""Number of values in one pass, few enough for the processor's cache, which makes the passes several times faster."""


def to_unorm(values: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    """Map 0..1 to 0..255, rounded and clamped; NaN becomes 0."""
    flat = np.ascontiguousarray(values).reshape(-1)
    rounded = np.empty(len(flat), np.uint8)
    for start in range(0, len(flat), _BLOCK):
        # fmax ignores NaN, so NaN becomes 0.
        scaled = np.fmax(flat[start : start + _BLOCK], np.float32(0))
        np.fmin(scaled, np.float32(1), out=scaled)
        scaled *= np.float32(255)
        rounded[start : start + _BLOCK] = np.rint(scaled, out=scaled)
    return rounded.reshape(values.shape)


def from_unorm(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    """Map 0..255 to 0..1 float32; ``to_unorm`` restores the same integers."""
    return values.astype(np.float32) / np.float32(255)


def linear_to_srgb(values: npt.NDArray[np.float32], *, keep_negative: bool = False) -> npt.NDArray[np.float32]:
    """Encode linear colours (n, 4) float32 as sRGB (IEC 61966-2-1); alpha stays linear.

    Negative values become 0, or with ``keep_negative`` continue the linear part of the curve.
    """
    encoded = values.astype(np.float32, copy=True)
    linear = values[:, :3] if keep_negative else np.clip(values[:, :3], 0.0, None)
    with np.errstate(over="ignore", invalid="ignore"):
        encoded[:, :3] = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * np.power(linear, 1 / 2.4) - 0.055)
    return encoded


def color_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return colours (n, 4) as sRGB bytes: bytes unchanged, linear floats encoded."""
    return values if values.dtype == np.uint8 else to_unorm(linear_to_srgb(values))


def srgb_to_linear(values: npt.NDArray[np.float32], *, keep_negative: bool = False) -> npt.NDArray[np.float32]:
    """Decode sRGB colours (n, 3 or 4) float32 (IEC 61966-2-1); alpha stays linear.

    Negative values become 0, or with ``keep_negative`` continue the linear part of the curve.
    """
    linear = values.astype(np.float32, copy=True)
    encoded = values[:, :3] if keep_negative else np.clip(values[:, :3], 0.0, None)
    with np.errstate(over="ignore", invalid="ignore"):
        linear[:, :3] = np.where(encoded <= 0.04045, encoded / 12.92, np.power((encoded + 0.055) / 1.055, 2.4))
    return linear


U16_STEPS = 65535


def dequantise(steps: npt.NDArray[np.uint16], domain: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Map 0..65535 onto a range: ``u / 65535 * (most - least) + least``, each operation in single precision.

    Parameters
    ----------
    steps:
        (n, k) uint16.
    domain:
        (2, k): minimum and maximum.
    """
    least, most = np.asarray(domain, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(steps).astype(np.float32)
        values /= np.float32(U16_STEPS)
        values *= most - least
        values += least
    return values


def steps_beyond_floats(steps: npt.NDArray[np.uint16], domain: npt.ArrayLike) -> npt.NDArray[np.uint16] | None:
    """Return the steps (n, k) if single precision cannot distinguish some of them in their range, otherwise None.

    Far from zero, floats are coarser than the steps: the 65,536 steps between 1000 and 1001 share 16,384 floats.
    """
    least, most = np.asarray(domain, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        is_fine = np.spacing(np.maximum(abs(least), abs(most))) * U16_STEPS < 0.5 * (most - least)
    if is_fine.all() or np.array_equal(quantise(dequantise(steps, domain), domain), steps):
        return None
    return steps


def quantise(values: npt.ArrayLike, domain: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Map a range onto 0..65535, rounded and clamped; an empty range is mapped to 0.

    ``dequantise`` with the same ``domain``, (2, k), restores values (n, k) to within half a step.
    """
    least, most = np.asarray(domain, np.float32)
    extent = most - least
    flat = extent == 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = np.asarray(values, np.float32) - least
        scaled /= np.where(flat, np.float32(1), extent)
        scaled *= np.float32(U16_STEPS)
        scaled[..., flat] = 0
        return _rounded(scaled)


def dequantise_exactly(steps: npt.NDArray[np.uint16], domain: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Dequantise like :func:`dequantise`, but with operations in double precision and one final rounding."""
    least, most = np.asarray(domain, np.float64)
    values: npt.NDArray[np.float64] = steps / float(U16_STEPS) * (most - least) + least
    return values.astype(np.float32)


def quantised_exactly(values: npt.ArrayLike, domain: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the positions of values (n, k) in a range (2, k), in unrounded steps of 1/65535; 0 for an empty range."""
    least, most = np.asarray(domain, np.float64)
    extent = most - least
    steps: npt.NDArray[np.float64] = np.asarray(values, np.float64) - least
    steps *= np.where(extent > 0, U16_STEPS / np.where(extent > 0, extent, 1), 0)
    return steps


def to_steps(places: npt.NDArray[np.float64]) -> npt.NDArray[np.uint16]:
    """Round the result of :func:`quantised_exactly` to the nearest step, halves upwards, and clamp it."""
    return np.clip(np.floor(places + 0.5), 0, U16_STEPS).astype(np.uint16)


def from_biased(steps: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Map 1, 128, 255 to -1, 0, 1; 0 becomes slightly less than -1."""
    return (steps.astype(np.float32) - np.float32(128)) / np.float32(127)


def to_biased(values: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Map -1, 0, 1 to 1, 128, 255, rounded and clamped; NaN becomes 128 (zero)."""
    scaled = np.nan_to_num(np.asarray(values, np.float64), posinf=1, neginf=-1) * 127 + 128
    return np.clip(np.floor(scaled + 0.5), 1, 255).astype(np.uint8)


def dequantise_normals(steps: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Map 0..65535 to -1..1 in single precision, (n, 3); the results are not exactly of unit length."""
    values = np.asarray(steps).astype(np.float32)
    values /= np.float32(U16_STEPS)
    values *= np.float32(2)
    values -= np.float32(1)
    return values


def quantise_normals(normals: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Map -1..1 to 0..65535, rounded and clamped, (n, 3)."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.asarray(normals, np.float32) + np.float32(1)
        scaled *= np.float32(0.5 * U16_STEPS)
        return _rounded(scaled)


def _rounded(scaled: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round to integers within 0..65535, in place; NaN becomes 0."""
    np.fmax(scaled, np.float32(0), out=scaled)
    np.fmin(scaled, np.float32(U16_STEPS), out=scaled)
    return np.rint(scaled, out=scaled).astype(np.uint16)
