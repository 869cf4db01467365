"""What ``meshferry inspect`` prints about a UNIGINE skeleton."""

from __future__ import annotations

from typing import Any

from .document import SkeletonFile
from .scene_mapping import to_scene


def facts(document: SkeletonFile) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    return {
        "version": document.version,
        "bones": len(document.bones),
        "warnings": to_scene(document, "").warnings,
    }
