"""The lights of parts."""

from __future__ import annotations

from ...core.placement import Light, LightKind
from .document import PartLight

_USUAL_RADIUS = 10.0
"""Metres within which the light of a new part shines."""
_LARGEST_RADIUS = 20.0
"""The viewer's limit."""
_SIZE = 0.05
"""Radius in metres of the light itself."""


def light_of(light: PartLight) -> Light:
    """Return a light, whose brightness is approximate: it grows with the square of the distance that it reaches."""
    intensity = light.intensity * (min(light.radius, _LARGEST_RADIUS) / _USUAL_RADIUS) ** 2
    if not light.projector:
        return Light(LightKind.POINT, light.color, intensity, _SIZE)
    return Light(LightKind.SPOT, light.color, intensity, _SIZE, cone=light.field_of_view, softness=0.15)
