"""Baked maps -> pictures and values of a plain material."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....io_formats.encodings.quantization import linear_to_srgb, to_unorm
from .cycles_bakes import Baked
from .surface_shaders import Map

Values = npt.NDArray[np.float32]

_CHANNELS = {
    Map.COVERAGE: {"Alpha": slice(0, 1), "Specular IOR Level": slice(1, 2)},
    Map.COLOR: {"Base Color": slice(0, 3)},
    Map.SURFACE: {"Occlusion": slice(0, 1), "Roughness": slice(1, 2), "Metallic": slice(2, 3)},
    Map.EMISSION: {"Emission Color": slice(0, 3)},
    Map.NORMAL: {"Normal": slice(0, 3)},
}
_FLAT = ((0.5, 0.5, 1.0),)
_COLORS = {"Base Color", "Emission Color"}
_SAME = 1.0 / 255.0
"""Difference of encoded values below which a picture has one colour."""
_COVERED = 1e-3
"""Least coverage by which colours are divided."""


def pictures_of(maps: dict[Map, Baked], values: dict[str, tuple[float, ...]]) -> dict[str, Values]:
    """Return the pictures of baked maps, encoded, (H, W, C), the lowest row first, by inputs of a Principled BSDF.

    Inputs that have one value everywhere are added to ``values`` instead.
    """
    pictures: dict[str, Values] = {}
    cover = maps[Map.COVERAGE][0][..., 2:] if Map.COVERAGE in maps else None
    for kind, (found, mask) in maps.items():
        if kind is Map.EMISSION:
            most = found[mask].max()
            found, values["Emission Strength"] = found / (most or 1.0), (float(most),)
        for name, channels in _CHANNELS[kind].items():
            part, inside = found[..., channels], mask
            if cover is not None and name not in {"Alpha", "Emission Color"}:
                part = part / np.maximum(cover, _COVERED) if kind is not Map.NORMAL else part
                inside = mask & (cover[..., 0] > _COVERED)
            shown = linear_to_srgb(part.reshape(-1, 3)).reshape(part.shape) if name in _COLORS else part
            samples = np.concatenate([shown[inside], _FLAT if kind is Map.NORMAL else shown[inside][:1]])
            if np.ptp(samples, axis=0).max(initial=0.0) >= _SAME:
                pictures[name] = filled(shown, inside)
            elif kind is not Map.NORMAL and inside.any():
                values[name] = tuple(part[inside].mean(axis=0, dtype=np.float64).tolist())
    return pictures


def packed(pictures: dict[str, Values], values: dict[str, tuple[float, ...]], *names: str) -> npt.NDArray[np.uint8]:
    """Return the channels of some inputs as one picture, the topmost row first; those without picture are constant."""
    shape = next(pictures[name].shape[:2] for name in names if name in pictures)
    parts = []
    for name in names:
        value = np.array([values.get(name, (1.0,))[:3]], np.float32)
        value = linear_to_srgb(value) if name in _COLORS else value
        parts.append(pictures.get(name, np.broadcast_to(value, (*shape, value.shape[1]))))
    return to_unorm(np.dstack(parts)[::-1])


def filled(values: Values, mask: npt.NDArray[np.bool_]) -> Values:
    """Return values (H, W, C) with the pixels outside of a mask filled from their surroundings, coarse to fine."""
    values = np.where(mask[..., None], values, np.float32(0.0))
    if mask.all() or not mask.any():
        return values
    height, width = mask.shape
    sums = np.pad(np.dstack([values, mask]), ((0, height % 2), (0, width % 2), (0, 0)))
    sums = sums.reshape(-(-height // 2), 2, -(-width // 2), 2, -1).sum(axis=(1, 3))
    coarse = filled(sums[..., :-1] / np.maximum(sums[..., -1:], 1.0), sums[..., -1] > 0)
    return np.where(mask[..., None], values, coarse.repeat(2, axis=0).repeat(2, axis=1)[:height, :width])
