"""Facts about a scene for the command line, under the names that ``inspect`` uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..io_formats.core.capabilities import Capabilities
from ..io_formats.core.placement import ModelUse, Placement
from ..io_formats.core.scene import Clip, Role, Scene


def scene_facts(scene: Scene, can: Capabilities | None = None) -> dict[str, Any]:
    """Return the facts of a scene, limited to what a format can hold, under the names that ``inspect`` uses.

    Objects, vertices and triangles of coarser levels of detail and physics shapes are not counted.
    """
    if can is not None:
        nodes = scene.nodes if can.meshes else []
        skeletons = scene.skeletons if can.skeletons else []
        scene = replace(scene, nodes=nodes, skeletons=skeletons, clips=[c for c in scene.clips if _is_held(c, can)])
    meshes = [node.mesh for node in scene.nodes if node.mesh is not None]
    objects = [node for node in scene.nodes if node.lod == 0 and node.role is Role.RENDER]
    finest = [node.mesh for node in objects if node.mesh is not None]
    shapes = sum(skeleton.slider_values is not None for skeleton in scene.skeletons)
    return {
        **({"body_shapes": shapes} if shapes and (can is None or can.sliders) else {}),
        "nodes": min(len(objects), 1) if can and can.joins_objects else len(objects),
        "vertices": sum(len(mesh.points) for mesh in finest),
        "triangles": sum(mesh.triangle_count for mesh in finest),
        "surfaces": sum(len(mesh.materials) for mesh in finest),
        "materials": 0
        if can and not can.materials
        else len({name for mesh in meshes for name in mesh.materials if name}),
        "uv_layers": _most((len(mesh.uvs) for mesh in meshes), can.uv_layers if can else None),
        "color_layers": _most((len(mesh.colors) for mesh in meshes), can.color_layers if can else None),
        "bones": sum(len(skeleton.joints) for skeleton in scene.skeletons),
        "shape_keys": 0 if can and not can.shape_keys else sum(len(mesh.shape_keys) for mesh in meshes),
        "clips": [_clip(clip) for clip in scene.clips],
    }


def placement_facts(placement: Placement) -> dict[str, Any]:
    """Return the facts of a new file that places models: its nodes, and each model once, however often it is placed.

    Raises
    ------
    FormatError
        A model cannot be read.
    """
    nodes = [node for part in placement.parts for node in part.nodes]
    shown = Counter(node.content.model for node in nodes if isinstance(node.content, ModelUse))
    models = {number: scene_facts(placement.models[number].read()) for number in shown}
    facts: dict[str, Any] = {"nodes": len(nodes)}
    for name in ("vertices", "triangles", "surfaces"):
        facts[name] = sum(models[number][name] * count for number, count in shown.items())
    for name in ("uv_layers", "color_layers"):
        facts[name] = max((one[name] for one in models.values()), default=0)
    for name in ("bones", "shape_keys"):
        facts[name] = sum(one[name] for one in models.values())
    return facts


def _clip(clip: Clip) -> dict[str, Any]:
    """Return the facts of a clip. A clip with keys at arbitrary times has a length instead of a number of frames."""
    found = {"name": clip.name, "kind": _kind(clip), "frames": clip.frame_count, "fps": clip.fps or clip.key_rate}
    return {**found, "seconds": round(clip.duration, 6)} if clip.keys else found


def _most(counts: Iterable[int], held: int | None) -> int:
    """Return the largest count, or the format's limit if that is lower. Without counts, return 0."""
    most = max(counts, default=0)
    return most if held is None else min(most, held)


def _is_held(clip: Clip, can: Capabilities) -> bool:
    """Return whether a format can hold at least a part of a clip, such as its name."""
    held = {"node": can.node_clips, "bone": can.joint_clips, "vertex": can.vertex_clips, "empty": can.clips}
    return any(held[kind] for kind in _kind(clip).split(" and "))


def _kind(clip: Clip) -> str:
    kinds = []
    if any(track.skeleton is None for track in clip.transforms):
        kinds.append("node")
    if clip.keys or any(track.skeleton is not None for track in clip.transforms):
        kinds.append("bone")
    if clip.vertices:
        kinds.append("vertex")
    return " and ".join(kinds) or "empty"
