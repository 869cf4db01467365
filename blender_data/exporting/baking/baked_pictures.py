"""Baked maps -> pictures and values of a plain material."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ....io_formats.core.shading import Pixels
from ....io_formats.encodings.quantization import linear_to_srgb, to_unorm
from .emission_copies import Map
from .surface_shaders import BLACK

Values = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Maps = dict[Map, tuple[Values, Mask]]

_SAME = 1.0 / 255.0
"""Difference of encoded values below which a picture has one colour."""
_COVERED = 1e-3
"""Least coverage by which colours are divided."""


@dataclass
class Look:
    """What a plain material shows: for each input a value, a channel of a picture, or a picture."""

    is_emission: bool = False
    """Whether it only emits light."""
    base: Pixels | None = None
    """Colour and alpha, sRGB-encoded, (H, W, 4), the topmost row first; as all pictures."""
    has_alpha: bool = False
    surface: Pixels | None = None
    """Occlusion, roughness and metal, (H, W, 3)."""
    specular: Pixels | None = None
    normal: Pixels | None = None
    emission: Pixels | None = None
    strength: float = 1.0
    """Strength of the emission picture."""
    has_occlusion: bool = False
    values: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Values of inputs without a picture, by their keys in ``surface_shaders.INPUTS``."""


def look_of(maps: Maps, values: dict[str, tuple[float, ...]], *, is_emission: bool) -> Look:
    """Return the look of baked maps; ``values`` are those of the inputs that were not baked."""
    look = Look(is_emission, values=dict(values))
    cover, alpha = None, None
    if Map.COVERAGE in maps:
        found, mask = maps[Map.COVERAGE]
        cover = None if is_emission else np.maximum(found[..., 2:3], _COVERED)
        alpha = found[..., 0]
        shown = mask & (found[..., 2] > _COVERED)
        specular = found[..., 1] / np.maximum(found[..., 2], _COVERED)
        if "specular" not in values and not is_emission:
            look.specular = _channel(look, "specular", specular, shown)
        if _spread(alpha[mask]) < _SAME:
            look.values["alpha"], alpha = (_mean(alpha[mask]),), None
        else:
            alpha = np.where(mask, alpha, 1.0)
    _add_base(look, maps, cover, alpha)
    _add_surface(look, maps, cover)
    if Map.EMISSION in maps:
        _add_emission(look, *maps[Map.EMISSION])
    if Map.NORMAL in maps:
        normals, mask = maps[Map.NORMAL]
        if (np.abs(normals[mask] - (0.5, 0.5, 1.0)) > _SAME).any():
            look.normal = _encoded(filled(normals, mask))
    return look


def _add_base(look: Look, maps: Maps, cover: Values | None, alpha: Values | None) -> None:
    if Map.COLOR in maps:
        found, mask = _uncovered(*maps[Map.COLOR], cover)
        colors = _srgb(found)
        if _spread(colors[mask]) < _SAME:
            look.values["color"] = (*(found[mask].mean(axis=0).tolist() if mask.any() else BLACK[:3]), 1.0)
        else:
            look.base = np.dstack([filled(colors, mask), np.ones(mask.shape, np.float32)])
    if alpha is not None and "color" in look.values and look.base is None:
        one = np.array([[look.values["color"][:3]]], np.float32)
        look.base = np.dstack([np.broadcast_to(_srgb(one), (*alpha.shape, 3)), np.ones(alpha.shape, np.float32)])
    if alpha is not None and look.base is not None:
        look.base[..., 3], look.has_alpha = alpha, True
    look.base = None if look.base is None else _encoded(look.base)


def _uncovered(values: Values, mask: Mask, cover: Values | None) -> tuple[Values, Mask]:
    """Return values that are divided by their coverage, and the pixels that have some."""
    return (values, mask) if cover is None else (values / cover, mask & (cover[..., 0] > _COVERED))


def _add_surface(look: Look, maps: Maps, cover: Values | None) -> None:
    if Map.SURFACE not in maps:
        return
    values, mask = _uncovered(*maps[Map.SURFACE], cover)
    varying = False
    for channel, key in ((1, "roughness"), (2, "metallic")):
        if _spread(values[mask][:, channel]) < _SAME:
            look.values[key] = (_mean(values[mask][:, channel]),)
        else:
            look.values.pop(key, None)
            varying = True
    look.has_occlusion = bool(_spread(values[mask][:, 0]) >= _SAME)
    if varying or look.has_occlusion:
        look.surface = _encoded(filled(values, mask))


def _add_emission(look: Look, colors: Values, mask: Mask) -> None:
    most = float(colors[mask].max()) if mask.any() else 0.0
    look.strength = most
    if most <= 0.0:
        look.values["emission"] = (0.0, 0.0, 0.0, 1.0)
        look.strength = 0.0
        return
    encoded = _srgb(colors / most)
    if _spread(encoded[mask]) < _SAME:
        look.values["emission"] = (*(colors[mask].mean(axis=0) / most).tolist(), 1.0)
    else:
        look.emission = _encoded(filled(encoded, mask))


def _channel(look: Look, key: str, values: Values, mask: Mask) -> Pixels | None:
    """Return one channel as a grey picture; None, with its value in the look, if it is the same everywhere."""
    if _spread(values[mask]) < _SAME:
        look.values[key] = (_mean(values[mask]),)
        return None
    return _encoded(filled(np.repeat(values[..., None], 3, axis=2), mask))


def _spread(values: Values) -> float:
    return float(np.ptp(values, axis=0).max()) if len(values) else 0.0


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else 0.0


def _srgb(colors: Values) -> Values:
    """Encode linear colours (H, W, 3)."""
    rows = np.ones((colors.shape[0] * colors.shape[1], 4), np.float32)
    rows[:, :3] = colors.reshape(-1, 3)
    return linear_to_srgb(rows)[:, :3].reshape(colors.shape)


def _encoded(values: Values) -> Pixels:
    return to_unorm(values[::-1])


def filled(values: Values, mask: Mask) -> Values:
    """Return values (H, W, C) with the pixels outside of a mask filled from their surroundings, coarse to fine."""
    if mask.all() or not mask.any():
        return np.where(mask[..., None], values, 0.0).astype(np.float32)
    height, width = mask.shape
    if height == width == 1:
        return values
    weights = mask.astype(np.float32)[..., None]
    tall, wide = -(-height // 2) * 2, -(-width // 2) * 2
    sums = np.zeros((tall, wide, values.shape[2] + 1), np.float32)
    sums[:height, :width, :-1], sums[:height, :width, -1:] = values * weights, weights
    blocks = sums.reshape(tall // 2, 2, wide // 2, 2, -1).sum(axis=(1, 3))
    shares = blocks[..., -1:]
    coarse = filled(blocks[..., :-1] / np.maximum(shares, 1.0), shares[..., 0] > 0)
    fine = coarse.repeat(2, axis=0).repeat(2, axis=1)[:height, :width]
    return np.where(mask[..., None], values, fine)
