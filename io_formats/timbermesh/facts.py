"""What ``meshferry inspect`` prints about a Timbermesh file."""

from __future__ import annotations

import math
from typing import Any

from .document import Model
from .scene_mapping import to_scene
from .space import UV_NAMES


def facts(model: Model) -> dict[str, Any]:
    """Count the stored data, usable or not; ``warnings`` lists unusable data."""
    meshes = [mesh for node in model.nodes for mesh in node.meshes]
    layers = {found.name for node in model.nodes if node.vertex_count for found in node.properties}
    clips: dict[tuple[str, str], dict[str, Any]] = {}
    for node in model.nodes:
        for animation in node.node_animations:
            clips.setdefault(
                (animation.name, "node"), _clip(animation.name, "node", animation.frame_count, animation.framerate)
            )
        for moved in node.vertex_animations:
            clips.setdefault((moved.name, "vertex"), _clip(moved.name, "vertex", len(moved.frames), moved.framerate))
    return {
        "version": model.version,
        "nodes": len(model.nodes),
        "vertices": sum(len(found.data) // 12 for found in (node.find("position") for node in model.nodes) if found),
        "triangles": sum(len(mesh.indices) // 3 for mesh in meshes),
        "surfaces": len(meshes),
        "materials": len({mesh.material for mesh in meshes if mesh.material}),
        "uv_layers": len(layers & set(UV_NAMES)),
        "color_layers": len(layers & {"color"}),
        "clips": list(clips.values()),
        "warnings": to_scene(model, model.name).warnings,
    }


def _clip(name: str, kind: str, frames: int, fps: float) -> dict[str, Any]:
    return {"name": name, "kind": kind, "frames": frames, "fps": fps if math.isfinite(fps) else 0.0}
