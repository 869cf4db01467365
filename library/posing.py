"""The places of joints, nodes and points at a time of a clip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..io_formats.core.scene import Clip, Node, Scene, Skeleton, TransformTrack
from ..io_formats.geometry import hierarchy
from ..io_formats.geometry.transforms import matrix_of_transform, rotation_matrices
from ..io_formats.passes.clips import DEFAULT_RATE, sample_clip
from .mesh import Mesh, Weights
from .scene import Matrix, local_matrices, transformed

Floats = npt.NDArray[np.float32]


def joint_matrices(scene: Scene, skeleton: int, clip: Clip, time: float) -> Matrix:
    """Return the (J, 4, 4) world matrices of a skeleton's joints at a time of a clip."""
    sampled, frame = _at(scene, clip, time)
    return _joints(scene.skeletons[skeleton], [t for t in sampled.transforms if t.skeleton == skeleton], frame)


def posed_points(scene: Scene, clip: Clip, time: float) -> list[Floats]:
    """Return the points (n, 3) of each node's mesh at a time of a clip, in the scene's space."""
    sampled, frame = _at(scene, clip, time)
    worlds = _worlds(scene.nodes, [track for track in sampled.transforms if track.skeleton is None], frame)
    poses = [
        _joints(skeleton, [t for t in sampled.transforms if t.skeleton == number], frame)
        for number, skeleton in enumerate(scene.skeletons)
    ]
    moving = {track.target: track.points for track in sampled.vertices}
    found: list[Floats] = []
    for number, (node, world) in enumerate(zip(scene.nodes, worlds, strict=True)):
        points = np.zeros((0, 3), np.float32) if node.mesh is None else node.mesh.points
        if number in moving:
            animated = _between(moving[number], frame)
            points = np.concatenate((animated, points[len(animated) :]))
        placed = transformed(points, world)
        weights = None if node.mesh is None or node.skeleton is None else Mesh._of(node.mesh).weights
        if weights is not None and node.skeleton is not None:
            binding = bindings(scene.skeletons[node.skeleton], node, world)
            placed = _skinned(weights, points, placed, poses[node.skeleton] @ binding)
        found.append(placed.astype(np.float32))
    return found


def bindings(skeleton: Skeleton, node: Node, world: Matrix) -> Matrix:
    """Return the matrices (J, 4, 4) from the space of a mesh to that of each joint, as the file binds them."""
    rest = hierarchy.world_matrices(local_matrices(skeleton.joints), [joint.parent for joint in skeleton.joints])
    found: Matrix = np.linalg.pinv(rest) @ world
    if node.skin is not None:
        places = {name: place for place, name in enumerate(node.skin.joint_names)}
        for number, joint in enumerate(skeleton.joints):
            if joint.name in places:
                found[number] = node.skin.inverse_bind[places[joint.name]] @ node.skin.bind_shape
    return found


def _at(scene: Scene, clip: Clip, time: float) -> tuple[Clip, float]:
    """Return a clip with frames, and the frame at a time, with a fraction."""
    if clip.keys:
        clip = sample_clip(clip, scene, clip.fps or clip.key_rate or DEFAULT_RATE, np.array([time], np.float64))
        return clip, 0.0
    frame = time * (clip.fps or DEFAULT_RATE)
    if clip.times is not None and len(clip.times):
        frame = float(np.interp(time, clip.times, np.arange(len(clip.times))))
    return clip, min(max(frame, 0.0), max(clip.frame_count - 1.0, 0.0))


def _joints(skeleton: Skeleton, tracks: Sequence[TransformTrack], frame: float) -> Matrix:
    local = local_matrices(skeleton.joints)
    for track in tracks:
        local[track.target] = _matrix(track, frame)
    return hierarchy.world_matrices(local, [joint.parent for joint in skeleton.joints])


def _worlds(nodes: Sequence[Node], tracks: Sequence[TransformTrack], frame: float) -> Matrix:
    local = np.array([matrix_of_transform(node.translation, node.rotation, node.scale) for node in nodes])
    for track in tracks:
        local[track.target] = _matrix(track, frame)
    return hierarchy.world_matrices(local.reshape(-1, 4, 4), [node.parent for node in nodes])


def _matrix(track: TransformTrack, frame: float) -> Matrix:
    rotation = _between(track.rotation, frame, is_rotation=True)
    matrix = np.identity(4)
    matrix[:3, :3] = rotation_matrices(rotation.astype(np.float64)) * _between(track.scale, frame)
    matrix[:3, 3] = _between(track.translation, frame)
    return matrix


def _between(values: Floats, frame: float, *, is_rotation: bool = False) -> Floats:
    """Return the values (F, …) of a frame, linear between two."""
    low = min(int(frame), len(values) - 1)
    a, b = values[low], values[min(low + 1, len(values) - 1)]
    if is_rotation and a @ b < 0:
        b = -b
    mixed: Floats = a + (b - a) * np.float32(frame - low)
    return mixed / np.float32(np.linalg.norm(mixed) or 1.0) if is_rotation else mixed


def _skinned(found: Weights, points: Floats, placed: Matrix, matrices: Matrix) -> Matrix:
    """Return points (n, 3) moved by the weighted matrices (J, 4, 4) of their joints; those without weights rest."""
    total = found.weights.sum(axis=1, dtype=np.float64)[:, None]
    moved = np.zeros_like(placed)
    for joints, weights in zip(found.joints.T, found.weights.T, strict=True):
        chosen = matrices[np.clip(joints, 0, len(matrices) - 1)]
        turned = np.einsum("nij,nj->ni", chosen[:, :3, :3], points) + chosen[:, :3, 3]
        moved += weights[:, None] * turned
    return np.where(total > 0, moved / np.where(total > 0, total, 1.0), placed)
