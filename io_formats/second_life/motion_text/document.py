"""Dataclasses that mirror a BVH file one to one (animation format page, section 7)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass
class BvhJoint:
    """A joint of the hierarchy."""

    name: str
    parent: int
    """Index of its parent, which comes before it; -1 for the root."""
    offset: tuple[float, float, float]
    """In inches, in the axes of the file; the viewer ignores it."""
    has_position: bool
    """Whether its first three channels are a position, whatever their names are; there are then six channels."""
    order: str = "ZXY"
    """Axes of the three rotations as listed in the file; the first is the outermost."""

    @property
    def channel_count(self) -> int:
        return 6 if self.has_position else 3


@dataclass
class Bvh:
    """A BVH file: its joints and frames."""

    joints: list[BvhJoint] = field(default_factory=list)
    frame_time: float = 1 / 30
    """Seconds."""
    frames: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """(F, n) numbers, in the order of the joints and their channels: inches and degrees."""

    def channels(self, number: int) -> npt.NDArray[np.float64]:
        """Return the numbers of a joint, (F, 3) or (F, 6)."""
        first = sum(joint.channel_count for joint in self.joints[:number])
        return self.frames[:, first : first + self.joints[number].channel_count]
