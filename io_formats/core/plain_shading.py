"""Shading of materials of which a file knows only colour, image and emission."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .scene import Material
from .shading import Channel, Factor, ImageMap, Opacity, Shading, Tint

_WHITE = 0.999
_DARK = 1e-3
_BRIGHTEST = 1e6


def plain_shading(given: Material, *, has_vertex_color: bool) -> Shading:
    """Return the shading of a material of which only colour, image and emission are known.

    Colour attributes are multiplied onto the colour, as game shaders do. The emitted colour is the base colour; the
    file's emission is the mean of that colour times the strength.
    """
    red, green, blue, alpha = _within_one(given.color)
    image = ImageMap(given.texture, is_color=True) if given.texture is not None else None
    base = Tint((red, green, blue), image, has_vertex_color)
    mean = (red + green + blue) / 3
    is_dark = mean <= _DARK
    return Shading(
        base_color=base,
        roughness=Factor(0.8),
        emission=(Tint() if is_dark and base == Tint(base.value) else base) if given.emission > 0 else None,
        emission_strength=min(given.emission, _BRIGHTEST) / (1.0 if is_dark else mean),
        opacity=Opacity.DITHERED,
        alpha=Factor(1.0, image, Channel.ALPHA) if alpha >= _WHITE else Factor(alpha),
    )


def _within_one(color: Sequence[float]) -> tuple[float, float, float, float]:
    """Return a colour clamped to 0..1, with NaN replaced by 0."""
    red, green, blue, alpha = (0.0 if math.isnan(part) else min(max(part, 0.0), 1.0) for part in color)
    return (red, green, blue, alpha)
