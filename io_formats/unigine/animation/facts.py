"""What ``meshferry inspect`` prints about a UNIGINE animation."""

from __future__ import annotations

from typing import Any

from .document import AnimationFile
from .scene_mapping import to_scene


def facts(document: AnimationFile) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    frame_count = document.frames.frame_count if document.frames else 0
    return {
        "version": document.version,
        "bones": len(document.bones),
        "clips": [{"name": document.name, "kind": "bone", "frames": frame_count, "fps": float(document.fps)}],
        "warnings": to_scene(document, document.name).warnings,
    }
