"""What ``meshferry inspect`` prints about a BVH file."""

from __future__ import annotations

from typing import Any

from .document import Bvh


def facts(document: Bvh) -> dict[str, Any]:
    """Count the stored data."""
    frames = len(document.frames)
    return {
        "bones": len(document.joints),
        "clips": [{"name": "", "kind": "bone", "frames": frames, "fps": round(1 / document.frame_time, 6)}],
    }
