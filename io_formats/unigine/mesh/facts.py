"""What ``meshferry inspect`` prints about a UNIGINE mesh."""

from __future__ import annotations

from typing import Any

from .document import MeshFile
from .scene_mapping import to_scene


def facts(document: MeshFile) -> dict[str, Any]:
    """Return counts of the stored data.

    ``vertices`` counts coordinate vertices; ``warnings`` lists unusual content.
    """
    scene = to_scene(document, "")
    mesh = scene.nodes[0].mesh
    surfaces = mesh.surfaces if mesh else []
    stored = [len(surface.targets[0].positions) for surface in document.surfaces if surface.targets]
    return {
        "version": document.version,
        "nodes": len(scene.nodes),
        "vertices": sum(stored) + sum(len(soup.vertices) for soup in document.soup),
        "triangles": scene.triangle_count,
        "surfaces": len(surfaces),
        "materials": len({surface.name for surface in surfaces if surface.name}),
        "uv_layers": len(mesh.uvs) if mesh else 0,
        "color_layers": len(mesh.colors) if mesh else 0,
        "bones": len(document.bones),
        "shape_keys": len(mesh.shape_keys) if mesh else 0,
        "clips": [
            {"name": animation.name, "kind": "bone", "frames": animation.frames.frame_count, "fps": 0.0}
            for animation in document.animations
        ],
        "warnings": list(dict.fromkeys([*document.warnings, *scene.warnings])),
    }
