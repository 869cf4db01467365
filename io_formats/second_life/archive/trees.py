"""Trees, which the viewer grows from its own data: their species and height."""

from __future__ import annotations

import math

from ...core.placement import Marker, MarkerShape
from .document import Part

DEPTH = 0.1
"""Metres by which the viewer sinks the base of a tree below its position."""
_SPECIES = (
    ("Pine 1", 39.5),
    ("Oak", 10.25),
    ("Tropical Bush 1", 5.0),
    ("Palm 1", 13.25),
    ("Dogwood", 10.0),
    ("Tropical Bush 2", 4.5),
    ("Palm 2", 13.5),
    ("Cypress 1", 22.5),
    ("Cypress 2", 25.0),
    ("Pine 2", 33.0),
    ("Plumeria", 10.0),
    ("Winter Pine 1", 12.5),
    ("Winter Aspen", 12.0),
    ("Winter Pine 2", 7.5),
    ("Eucalyptus", 24.0),
    ("Fern", 3.5),
    ("Eelgrass", 3.0),
    ("Sea Sword", 2.0),
    ("Kelp 1", 4.9),
    ("Beach Grass 1", 2.5),
    ("Kelp 2", 4.9),
)
"""Name and height factor of each species, by ``Part.state``."""
_HEIGHT = 0.05


def species_of(part: Part) -> str:
    """Return the name of a tree's species; the viewer shows unknown ones as Pine 1."""
    return _of(part)[0]


def marker_of(part: Part) -> Marker:
    """Return an arrow as high as the tree."""
    return Marker(MarkerShape.ARROW, _of(part)[1] * math.hypot(*part.size) * _HEIGHT)


def _of(part: Part) -> tuple[str, float]:
    return _SPECIES[part.state if part.state < len(_SPECIES) else 0]
