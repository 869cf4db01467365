"""The places of joints, nodes and points at a time of a clip."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..io_formats.core.scene import Clip, Joint, Node, Scene, Skeleton
from ..io_formats.geometry import hierarchy
from ..io_formats.geometry.transforms import matrix_of_transform
from .mesh import Mesh, Weights
from .scene import Matrix


def world_matrices(scene: Scene, frame: Clip | None = None) -> list[Matrix]:
    """Return the matrices (n, 4, 4) of the nodes, then those of each skeleton's joints, in a clip of one frame."""
    parts: list[Sequence[Node | Joint]] = [scene.nodes, *(skeleton.joints for skeleton in scene.skeletons)]
    local = [hierarchy.local_matrices(part) for part in parts]
    for track in frame.transforms if frame is not None else ():
        number = 0 if track.skeleton is None else track.skeleton + 1
        place = (track.translation[0].tolist(), track.rotation[0].tolist(), track.scale[0].tolist())
        local[number][track.target] = matrix_of_transform(*place)
    pairs = zip(local, parts, strict=True)
    return [hierarchy.world_matrices(matrices, [each.parent for each in part]) for matrices, part in pairs]


def posed_points(scene: Scene, frame: Clip) -> list[npt.NDArray[np.float32]]:
    """Return the points (n, 3) of each node's mesh in a clip of one frame, in the scene's space."""
    worlds, *poses = world_matrices(scene, frame)
    moving = {track.target: track.points[0] for track in frame.vertices}
    found: list[npt.NDArray[np.float32]] = []
    for number, (node, world) in enumerate(zip(scene.nodes, worlds, strict=True)):
        points = np.zeros((0, 3), np.float32) if node.mesh is None else node.mesh.points
        if number in moving:
            points = np.concatenate((moving[number], points[len(moving[number]) :]))
        placed = points @ world[:3, :3].T + world[:3, 3]
        weights = None if node.mesh is None else Mesh._of(node.mesh).weights
        if weights is not None and node.skeleton is not None:
            binding = bindings(scene.skeletons[node.skeleton], node, world)
            placed = _skinned(weights, points, placed, poses[node.skeleton] @ binding)
        found.append(placed.astype(np.float32))
    return found


def bindings(skeleton: Skeleton, node: Node, world: Matrix) -> Matrix:
    """Return the matrices (J, 4, 4) from the space of a mesh to that of each joint, as the file binds them."""
    found: Matrix = np.linalg.pinv(hierarchy.placed_matrices(skeleton.joints)) @ world
    if node.skin is not None:
        bound = dict(zip(node.skin.joint_names, node.skin.inverse_bind, strict=True))
        for number, joint in enumerate(skeleton.joints):
            if joint.name in bound:
                found[number] = bound[joint.name] @ node.skin.bind_shape
    found[:, 3] = (0, 0, 0, 1)  # glTF allows no rounding errors there
    return found


def _skinned(found: Weights, points: npt.NDArray[np.float32], placed: Matrix, matrices: Matrix) -> Matrix:
    """Return points (n, 3) moved by the weighted matrices (J, 4, 4) of their joints; those without weights rest."""
    total = found.weights.sum(axis=1, dtype=np.float64)[:, None]
    mixed = np.zeros((len(points), 3, 4))
    for joints, weights in zip(found.joints.T, found.weights.T, strict=True):
        mixed += weights[:, None, None] * matrices[np.clip(joints, 0, len(matrices) - 1), :3]
    moved = np.einsum("nij,nj->ni", mixed[:, :, :3], points) + mixed[:, :, 3]
    return np.where(total > 0, moved / np.where(total > 0, total, 1.0), placed)
