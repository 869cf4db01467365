"""What ``meshferry inspect`` prints about a MeshSerializer2 file."""

from __future__ import annotations

from typing import Any

from .document import Document
from .scene_mapping import to_scene


def facts(document: Document) -> dict[str, Any]:
    """Count the stored data; ``version`` is the variant, ``warnings`` lists oddities."""
    return {
        "version": str(document.variant),
        "nodes": 1,
        "vertices": len(document.positions),
        "triangles": len(document.triangles),
        "surfaces": 1 if document.submeshes is None else len(document.submeshes),
        "uv_layers": int(document.uvs is not None),
        "warnings": to_scene(document, document.name or "Mesh").warnings,
    }
