"""Node trees for formats without one: every mesh a root, in the space of the scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .scene import AnyArray, Layer, Mesh, Node, Scene

Matrix = npt.NDArray[np.float64]
_IDENTITY = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def flatten(scene: Scene) -> None:
    """Put the meshes of a scene's nodes where the nodes stand, and make all nodes with a mesh roots without transform.

    Scenes without a tree stay as they are, to the bit. Nodes without a mesh go. Skinned meshes lie in the space of
    their skeleton and are not moved. Tracks of nodes go, too: nothing is left that they could move.
    """
    if all(_rests(node) for node in scene.nodes):
        return
    worlds = _worlds(scene.nodes)
    flat: list[Node] = []
    places: dict[int, int] = {}
    for index, node in enumerate(scene.nodes):
        if node.mesh is None:
            continue
        places[index] = len(flat)
        mesh = node.mesh if node.skeleton is not None else moved(node.mesh, worlds[index])
        bare = Node(node.name, mesh=mesh, skeleton=node.skeleton, role=node.role, lod=node.lod)
        flat.append(replace(bare, properties=dict(node.properties)))
    for node in flat:
        finest = node.properties.pop("lod_of", None)
        if finest in places:
            node.properties["lod_of"] = places[finest]
    scene.nodes = flat
    for clip in scene.clips:
        clip.transforms = [track for track in clip.transforms if track.skeleton is not None]
        clip.vertices = []
    scene.clips = [clip for clip in scene.clips if clip.transforms]


def _rests(node: Node) -> bool:
    return node.parent < 0 and (node.translation, node.rotation, node.scale) == _IDENTITY


def _worlds(nodes: Sequence[Node]) -> list[Matrix]:
    """Return the (4, 4) world matrix of every node; parents may stand behind their children."""
    worlds: dict[int, Matrix] = {}
    for start in range(len(nodes)):
        chain = []
        index = start
        while index >= 0 and index not in worlds:
            chain.append(index)
            index = nodes[index].parent
        for index in reversed(chain):
            above = worlds.get(nodes[index].parent)
            local = _local(nodes[index])
            worlds[index] = local if above is None else above @ local
    return [worlds[index] for index in range(len(nodes))]


def _local(node: Node) -> Matrix:
    w, x, y, z = np.array(node.rotation, np.float64) / (np.linalg.norm(node.rotation) or 1.0)
    matrix = np.eye(4)
    matrix[:3, :3] = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    matrix[:3, :3] *= node.scale
    matrix[:3, 3] = node.translation
    return matrix


def moved(mesh: Mesh, world: Matrix) -> Mesh:
    """Return a mesh after a transform; a mirroring one turns its triangles and its tangents' signs around."""
    linear = world[:3, :3]
    mirrored = bool(np.linalg.det(linear) < 0)
    # The adjugate's transpose turns normals as the inverse's does, and exists where a scale is zero.
    across = np.cross(linear[:, [1, 2, 0]].T, linear[:, [2, 0, 1]].T).T * (-1.0 if mirrored else 1.0)
    moved = replace(
        mesh,
        points=_points(mesh.points, world),
        normal=mesh.normal and _normals(mesh.normal, across),
        tangent=mesh.tangent and _tangents(mesh.tangent, linear, mirrored=mirrored),
        shape_keys=[
            replace(
                key,
                points=_points(key.points, world),
                normal=key.normal and _normals(key.normal, across),
                tangent=key.tangent and _tangents(key.tangent, linear, mirrored=mirrored),
            )
            for key in mesh.shape_keys
        ],
    )
    return _turned_around(moved) if mirrored else moved


def _points(points: AnyArray, world: Matrix) -> AnyArray:
    return (points @ world[:3, :3].T + world[:3, 3]).astype(np.float32)


def _normals(layer: Layer, across: Matrix) -> Layer:
    return replace(layer, values=_unit(layer.values @ across.T))


def _tangents(layer: Layer, linear: Matrix, *, mirrored: bool) -> Layer:
    signs = layer.values[:, 3:] * np.float32(-1 if mirrored else 1)
    return replace(layer, values=np.hstack((_unit(layer.values[:, :3] @ linear.T), signs)))


def _unit(vectors: AnyArray) -> AnyArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _turned_around(mesh: Mesh) -> Mesh:
    """Return a mesh whose triangles run the other way round, each from the same first corner."""
    order = np.arange(len(mesh.corner_point)).reshape(-1, 3)[:, [0, 2, 1]].ravel()

    def change(layer: Layer) -> Layer:
        if layer.index is not None:
            return replace(layer, index=layer.index[order])
        return replace(layer, values=layer.values[order]) if layer.per_corner else layer

    return replace(mesh.with_layers(change), corner_point=mesh.corner_point[order])
