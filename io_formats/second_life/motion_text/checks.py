"""Check a BVH file against the rules of the viewer's uploader (animation format page, section 7)."""

from __future__ import annotations

from ...core.messages import Message, Text, error
from ..animation.format import LONGEST
from .document import Bvh


def check(document: Bvh) -> list[Message]:
    """Return an error for a file that is too long. The reader checks the other rules."""
    duration = max(len(document.frames) - 2, 1) * document.frame_time
    if duration > LONGEST:
        template = "it is {:.1f} s long; viewers take up to {:.0f} s"
        return [error("animation-too-long", template, duration, LONGEST, item=Text("The animation"))]
    return []
