"""Check a BVH file against the rules of the viewer's uploader (animation format page, section 7)."""

from __future__ import annotations

from ...core.findings import Finding, error
from ..animation.options import LONGEST
from .document import Bvh


def check(document: Bvh) -> list[Finding]:
    """Return an error for a file that is too long; other rules are those of the reader."""
    duration = max(len(document.frames) - 2, 1) * document.frame_time
    if duration > LONGEST:
        return [error("The animation", f"it is {duration:.1f} s long; viewers take up to {LONGEST:.0f} s")]
    return []
