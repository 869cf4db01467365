"""Dataclasses that mirror a UNIGINE skeleton file one to one (section 7 of docs/formats/unigine.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.scene import FloatArray, PassThrough
from ..bones import Bone


@dataclass
class Profile:
    """A named list of numbers: a blend mask, a time profile or a weight profile of a skeleton."""

    name: str
    values: FloatArray


@dataclass
class SkeletonFile(PassThrough):
    """A skeleton file.

    Parts that only the engine uses are kept, so that they can be written from the imported scene again.
    """

    version: str = "sn10"
    bones: list[Bone] = field(default_factory=list)
    transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """(nb, 10) float32 local bind transforms: translation, rotation (x, y, z, w), scale."""
    blend_masks: list[Profile] = field(default_factory=list)
    time_profiles: list[Profile] = field(default_factory=list)
    weight_profiles: list[Profile] = field(default_factory=list)
    retargeting: list[tuple[int, float]] = field(default_factory=list)
    """Retargeting of each bone: mode (0 pose, 1 bind, 2 proportion) and length (negative for the default)."""
    warnings: list[Any] = field(default_factory=list)
    """Warnings of the reader (section 11); not part of the file."""
