"""Document <-> Scene, and what ``meshferry inspect`` prints."""

import math
from typing import Any

from ...core.options import Options
from ...core.scene import Scene
from .codec import UV_NAMES, Model
from .format import WriteOptions
from .scene_builder import build_scene


def to_scene(model: Model, name: str, options: Options) -> Scene:
    """Map a model to Blender's space; there are no options.

    ``scene.warnings`` reports what the read rules of docs/formats/timbermesh.md reject or repair. Nodes keep their
    order; roots have the property ``is_root``.
    """
    return build_scene(model, name)


def from_scene(scene: Scene, options: WriteOptions) -> Model:
    """Map a scene to a model.

    Nodes without parent become roots. ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        Coordinates are NaN or infinite, or an animation has no name or no frames.
    """
    from .document_builder import ModelBuilder  # slow to import, and reading does not need it

    return ModelBuilder(scene, options).build()


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return the scenes that each become a file: one, since a Timbermesh file holds a whole scene."""
    return [scene]


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
        "warnings": build_scene(model, model.name).warnings,
    }


def _clip(name: str, kind: str, frames: int, fps: float) -> dict[str, Any]:
    return {"name": name, "kind": kind, "frames": frames, "fps": fps if math.isfinite(fps) else 0.0}
