"""What a Scene promises to the floor above: Blender crashes, and does not complain, where an index is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np


class BrokenPromise(AssertionError):
    """A scene that breaks what ``io_formats/core/scene.py`` says about its arrays."""


def check_scene(scene: Any) -> None:
    """Raise :class:`BrokenPromise` where shapes, types, indices or parents are not as documented."""
    count = len(scene.nodes)
    for index, node in enumerate(scene.nodes):
        _promise(-1 <= node.parent < count and node.parent != index, f"parent {node.parent} of node {index}")
        _promise(
            np.isfinite([*node.translation, *node.rotation, *node.scale]).all(),
            f"transform of node {index} is not finite",
        )
        node.name.encode()
        if node.mesh is not None:
            _check_mesh(node.mesh)
    for clip in scene.clips:
        for track in clip.transforms:
            _promise(track.skeleton is not None or 0 <= track.target < count, f"clip target {track.target}")
            for values, width in ((track.translation, 3), (track.rotation, 4), (track.scale, 3)):
                _promise(
                    values.shape == (clip.frame_count, width),
                    f"track of shape {values.shape} for {clip.frame_count} frames",
                )
                _promise(np.isfinite(values).all(), "track is not finite")
        for track in clip.vertices:
            mesh = scene.nodes[track.target].mesh
            _promise(mesh is not None, f"vertex track of node {track.target} without a mesh")
            _promise(
                track.points.shape == (clip.frame_count, track.points.shape[1], 3)
                and track.points.shape[1] <= len(mesh.points),
                f"vertex track of shape {track.points.shape}",
            )
            _promise(np.isfinite(track.points).all(), "vertex track is not finite")


def check_placement(placement: Any) -> None:
    """Raise :class:`BrokenPromise` where parents, models, parts or matrices of a placement are not as documented."""
    if placement is None:
        return
    for part in placement.parts:
        for index, node in enumerate(part.nodes):
            _promise(-1 <= node.parent < max(index, len(part.nodes)), f"parent {node.parent} of node {index}")
            _promise(node.parent < index, "parents come before their children")
            _promise(node.matrix.shape == (4, 4) and np.isfinite(node.matrix).all(), f"matrix of node {index}")
            if node.instances is not None:
                _promise(np.isfinite(node.instances).all() and node.instances.shape[1:] == (4, 4), "instances")
            number = getattr(node.content, "model", 0)
            _promise(not hasattr(node.content, "model") or number < len(placement.models), f"model {number}")
            _promise(getattr(node.content, "part", 0) < len(placement.parts), "part")
    for model in placement.models:
        if model.picture is not None:  # only Blender decodes it
            model.picture.content()
            model.picture.pixels = np.arange(64 * 32 * 4, dtype=np.uint8).reshape(32, 64, 4)
        if not model.path:
            check_scene(model.read())


def expanded_if_small(placement: Any) -> Any:
    """Return a placement with its references followed, if that gives a few nodes."""
    from meshferry.io_formats.core.placement import PartUse
    from meshferry.io_formats.passes.placements import expand_references

    totals: dict[int, int] = {}

    def total(part: int) -> int:
        if part not in totals:
            uses = [node.content.part for node in placement.parts[part].nodes if isinstance(node.content, PartUse)]
            totals[part] = len(placement.parts[part].nodes) + sum(map(total, uses))
        return totals[part]

    return expand_references(placement) if total(0) < 5000 else None


def _check_mesh(mesh: Any) -> None:
    points, corners = len(mesh.points), len(mesh.corner_point)
    _promise(mesh.points.shape == (points, 3) and mesh.points.dtype == np.float32, "points")
    _promise(mesh.corner_point.dtype == np.int32 and corners % 3 == 0, "corner_point")
    _promise(_within(mesh.corner_point, points), "corner_point beyond the points")
    _promise(len(mesh.material_index) == corners // 3, "a material index for each triangle")
    _promise(
        _within(mesh.material_index, len(mesh.materials)) or not mesh.materials, "material_index beyond the materials"
    )
    for layer in mesh.layers():
        expected = corners if layer.per_corner else points
        if layer.index is not None:
            _promise(
                len(layer.index) == corners and _within(layer.index, len(layer.values)),
                f"index of layer '{layer.name}'",
            )
        else:
            _promise(
                len(layer.values) == expected, f"layer '{layer.name}' has {len(layer.values)} values for {expected}"
            )
        _promise(layer.values.ndim == 2, f"layer '{layer.name}' of {layer.values.ndim} dimensions")
    for key in mesh.shape_keys:
        _promise(key.points.shape == (points, 3), f"shape key '{key.name}'")


def _within(indices: Any, count: int) -> bool:
    return not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < count)


def _promise(kept: Any, what: str) -> None:
    if not kept:
        raise BrokenPromise(what)
