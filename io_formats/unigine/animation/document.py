"""Dataclasses that mirror a UNIGINE animation file one to one; sections refer to docs/formats/unigine.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.scene import FloatArray
from ..bones import Bone
from ..frames import DeltaFrames, FlaggedFrames


@dataclass
class AnimationFile:
    """An animation file of any version."""

    version: str
    """The magic number, e.g. ``an11``."""
    bones: list[Bone] = field(default_factory=list)
    transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """(nb, 10) float32 local bind transforms: translation, rotation (x, y, z, w), scale; empty in an12 and an13."""
    frames: DeltaFrames | FlaggedFrames | None = None
    """``DeltaFrames`` in an10, ``FlaggedFrames`` in the other versions."""
    name: str = ""
    """an10: name of the animation."""
    bounds: FloatArray = field(default_factory=lambda: np.zeros(10, np.float32))
    """an10: (10,) float32, the bounds of the mesh that the animation belongs to, or empty bounds."""
    skeleton_guid: str = ""
    """an12 and an13: identifier of the skeleton file."""
    skeleton_path: str = ""
    """an12 and an13: path of the skeleton file in the project."""
    fps: int = 0
    """an12 and an13: frames per second."""
    root_motion: bool = False
    """an12 and an13: whether movement of the root bone moves the whole figure."""
    warnings: list[Any] = field(default_factory=list)
    """Warnings of the reader (section 11); not part of the file."""
