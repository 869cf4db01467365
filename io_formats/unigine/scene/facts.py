"""What ``meshferry inspect`` prints about a UNIGINE node or world."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .document import MESH_KINDS, REFERENCE_FIELDS, SceneFile


def facts(document: SceneFile) -> dict[str, Any]:
    """Return counts of the elements of the file itself. Files that it refers to are not read."""
    nodes = document.nodes
    meshes = [node.geometry for node in nodes if node.geometry is not None]
    surfaces = [surface for mesh in meshes for surface in mesh.surfaces]
    return {
        "version": document.version,
        "nodes": len(nodes),
        "vertices": sum(len(surface.targets[0].positions) for surface in surfaces),
        "triangles": sum(len(surface.c_indices) // 3 for surface in surfaces),
        "surfaces": sum(len(node.surfaces) for node in nodes),
        "materials": len({surface.material for node in nodes for surface in node.surfaces if surface.material}),
        "uv_layers": 2 if any(surface.uv0 is not None for surface in surfaces) else 0,
        "color_layers": int(any(surface.colors is not None for surface in surfaces)),
        "types": dict(Counter(node.kind for node in nodes).most_common()),
        "meshes": len({node.values.get("mesh_name") for node in nodes if node.kind in MESH_KINDS} - {None}),
        "references": len({node.values.get(field) for node in nodes for field in REFERENCE_FIELDS.values()} - {None}),
        "warnings": document.warnings,
    }
