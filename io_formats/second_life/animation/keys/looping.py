"""The jump from the end of a loop to its start (animation format page, section 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....core.scene import Keys
from ....passes.clips import values_at
from ..document import SecondLifeAnimation, decode_text
from . import curves, reduction

MOST_DEGREES = 0.5
"""Angle up to which a loop counts as closed."""
MOST_MILLIMETRES = 2.0
"""Distance up to which a loop counts as closed."""


@dataclass
class Jump:
    """Difference of one joint between the end of a loop (loop out) and its start (loop in)."""

    joint: str
    degrees: float
    millimetres: float

    @property
    def is_closed(self) -> bool:
        return self.degrees < MOST_DEGREES and self.millimetres < MOST_MILLIMETRES


def loop_jumps(document: SecondLifeAnimation) -> list[Jump]:
    """Return the jump of each joint of a looped animation, the largest first; empty if it does not loop.

    A loop of zero length has no jump.
    """
    loop_in, loop_out = (min(max(time, 0.0), document.duration) for time in (document.loop_in, document.loop_out))
    if not document.loop or loop_in >= loop_out:
        return []
    times = np.array((loop_in, loop_out))

    def ends(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
        start, end = values_at(keys, times)
        return start, end

    found = []
    for joint in document.joints:
        jump = Jump(decode_text(joint.name), 0.0, 0.0)
        if len(joint.rotation):
            jump.degrees = float(np.degrees(reduction.distances(*ends(curves.rotation_keys(document, joint)))))
        if len(joint.position):
            jump.millimetres = float(reduction.distances(*ends(curves.position_keys(document, joint)))) * 1000
        found.append(jump)
    return sorted(found, key=lambda jump: max(jump.degrees / MOST_DEGREES, jump.millimetres / MOST_MILLIMETRES))[::-1]
