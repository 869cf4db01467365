"""Adapt node trees to formats without them: every mesh becomes a root, in scene space or with its own transform."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.capabilities import Capabilities
from ..core.scene import AnyArray, Layer, Mesh, Node, Role, Scene
from ..geometry import hierarchy
from ..geometry.transforms import MIRROR, cofactors, matrices_to_quaternions
from ..geometry.triangles import with_corners
from .lods import separate, without_level

Matrix = npt.NDArray[np.float64]
_REST: Mapping[str, Any] = {"translation": (0.0, 0.0, 0.0), "rotation": (1.0, 0.0, 0.0, 0.0), "scale": (1.0, 1.0, 1.0)}
_ROUNDED = 2e-7
"""Largest difference of the length of a unit vector in single precision from 1."""
_ALIGNED = 1e-6
"""Tolerance for comparing matrices with the identity after an inversion."""


@np.errstate(over="ignore", invalid="ignore")
def fit(scene: Scene, can: Capabilities, came_from: Capabilities | None = None) -> None:
    """Convert the nodes of a scene to a structure that a format can hold.

    Coarser levels of detail and physics shapes are removed if the format cannot hold them. For a format without node
    trees, the rest is flattened, or placed if each of its objects has a transform. :func:`.capabilities.losses` must be
    called before, to report what is lost.

    Parameters
    ----------
    came_from:
        Capabilities of the format of the imported file; None for a scene read from Blender.
    """
    _leave_out(
        scene,
        [(node.lod == 0 or can.levels_of_detail) and (node.role is Role.RENDER or can.physics) for node in scene.nodes],
    )
    if can.lod_models:
        if came_from is not None and not came_from.lod_models:
            # In the source format, names of surfaces mark levels of detail; here, each level is an object with the same
            # materials.
            scene.nodes = _with_slots_of_finest(separate(scene).nodes)
        place(scene)
    elif not can.node_hierarchy:
        flatten(scene)


def _with_slots_of_finest(nodes: Sequence[Node]) -> list[Node]:
    """Name the materials of all levels of a model like those of the finest, without level suffix, in the same order."""
    owners = [node.lod_of for node in nodes]
    named: dict[int, list[str]] = {}
    for owner in owners:
        mesh = nodes[owner].mesh if owner is not None else None
        if owner is not None and mesh is not None:
            named[owner] = list(dict.fromkeys(without_level(name) for name in mesh.materials))
    result: list[Node] = []
    for number, node in enumerate(nodes):
        owner = owners[number]
        names = named.get(number if owner is None else owner)
        if names is None or node.mesh is None:
            result.append(node)
            continue
        bare = [without_level(name) for name in node.mesh.materials]
        materials = list(dict.fromkeys([*names, *bare]))
        slots = np.array([materials.index(name) for name in bare] or [0], np.int32)
        mesh = replace(node.mesh, materials=materials, material_index=slots[node.mesh.material_index], surfaces=[])
        result.append(replace(node, mesh=mesh))
    return result


def _leave_out(scene: Scene, kept: Sequence[bool]) -> None:
    """Remove nodes from a scene; a node with remaining children stays, without its mesh."""
    if all(kept):
        return
    parents = {node.parent for node, stays in zip(scene.nodes, kept, strict=True) if stays}
    places: dict[int | None, int] = {}
    left: list[Node] = []
    for number, node in enumerate(scene.nodes):
        if kept[number] or number in parents:
            places[number] = len(left)
            left.append(node if kept[number] else replace(node, mesh=None, skeleton=None, skin=None))
    scene.nodes = [_renumbered(replace(node, parent=places.get(node.parent, -1)), places) for node in left]
    for clip in scene.clips:
        clip.vertices = [replace(t, target=places[t.target]) for t in clip.vertices if t.target in places]
        tracks = [t if t.skeleton is not None else replace(t, target=places.get(t.target, -1)) for t in clip.transforms]
        clip.transforms = [track for track in tracks if track.target >= 0]


def _renumbered(node: Node, places: Mapping[int | None, int]) -> Node:
    """Return a node with updated indices of other nodes."""
    return replace(node, lod_of=places.get(node.lod_of), shape_of=places.get(node.shape_of))


def place(scene: Scene) -> None:
    """Make every mesh of a scene a root with its world transform, for formats that store a transform for each object.

    Mirroring, which such a transform cannot represent, is applied to the points, always as the same mirroring, and
    shear with the whole transform but its location. Coarser levels of detail and physics shapes get the transform of
    their finest node and are converted to its space. Skinned meshes are not changed: their transform leads to the space
    of their skeleton. Nodes without a mesh and tracks of nodes are removed.
    """
    if any(node.parent >= 0 or min(node.scale) <= 0 for node in scene.nodes):
        scene.nodes = _placed(scene.nodes)
    _leave_out(scene, [node.mesh is not None for node in scene.nodes])


def _placed(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes without parents, with world transforms; shear and mirroring go into copies of the meshes."""
    worlds = hierarchy.placed_matrices(nodes)
    placed: list[Node] = []
    for number, node in enumerate(nodes):
        if node.mesh is None or node.skeleton is not None:
            placed.append(replace(node, parent=-1))
            continue
        owner = number if node.model is None else node.model
        if not (0 <= owner < len(nodes)) or nodes[owner].mesh is None:
            owner = number
        frame = _frame(nodes[owner], worlds[owner])
        rest = np.linalg.inv(hierarchy.local_matrices([frame])[0]) @ worlds[number]
        if np.allclose(rest, MIRROR, rtol=0, atol=_ALIGNED):
            rest = MIRROR  # exactly, so that all mirrored instances of a mesh have equal points
        aligned = np.allclose(rest, np.identity(4), rtol=0, atol=_ALIGNED)
        mesh = node.mesh if aligned else moved(node.mesh, rest)
        translation, rotation, scale = frame.translation, frame.rotation, frame.scale
        placed.append(replace(node, parent=-1, translation=translation, rotation=rotation, scale=scale, mesh=mesh))
    return placed


def _frame(node: Node, world: Matrix) -> Node:
    """Return a root without mesh at a world transform, without its mirroring; with its location alone if sheared."""
    if node.parent < 0 and min(node.scale) > 0:
        return Node(node.name, -1, node.translation, node.rotation, node.scale)
    x, y, z = world[:3, 3].tolist()
    linear = world[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    if scale.min() > 0:
        turn = linear / scale
        if np.linalg.det(turn) < 0:
            turn = turn @ MIRROR[:3, :3]
        if np.allclose(turn.T @ turn, np.identity(3), rtol=0, atol=_ALIGNED):
            w, i, j, k = matrices_to_quaternions(turn[None])[0].tolist()
            return Node(node.name, -1, (x, y, z), (w, i, j, k), tuple(scale.tolist()))
    return Node(node.name, -1, (x, y, z))


def flatten(scene: Scene) -> None:
    """Apply the world transforms of nodes to their meshes.

    All nodes with a mesh become roots without transform.

    Scenes without a tree are not changed at all. Nodes without a mesh are removed. Skinned meshes are in the space of
    their skeleton and are not moved, unless their binding includes a transform into that space. Tracks of nodes are
    removed too.
    """
    if all(_rests(node) for node in scene.nodes):
        return
    worlds = hierarchy.placed_matrices(scene.nodes)
    flat: list[Node] = []
    places: dict[int | None, int] = {}
    for index, node in enumerate(scene.nodes):
        if node.mesh is None:
            continue
        places[index] = len(flat)
        in_place = node.skeleton is not None and node.skin is None
        mesh = node.mesh if in_place else moved(node.mesh, worlds[index])
        flat.append(replace(node, parent=-1, mesh=mesh, skin=None, **_REST))
    scene.nodes = [_renumbered(node, places) for node in flat]
    for clip in scene.clips:
        clip.transforms = [track for track in clip.transforms if track.skeleton is not None]
        clip.vertices = []
    scene.clips = [clip for clip in scene.clips if clip.transforms or clip.keys]


def _rests(node: Node) -> bool:
    return node.parent < 0 and (node.translation, node.rotation, node.scale) == tuple(_REST.values())


def moved(mesh: Mesh, world: Matrix) -> Mesh:
    """Apply a transform to a mesh; a mirroring one also reverses triangles and tangent signs."""
    placed = transformed(mesh, world)
    return _turned_around(placed) if np.linalg.det(world[:3, :3]) < 0 else placed


@np.errstate(over="ignore", invalid="ignore")
def transformed(mesh: Mesh, world: Matrix) -> Mesh:
    """Apply a transform to the values of a mesh; a mirroring one also reverses tangent signs, but not triangles."""
    linear = world[:3, :3]
    mirrored = bool(np.linalg.det(linear) < 0)
    # The adjugate's transpose transforms normals like the inverse's, and also exists if a scale is zero.
    across = cofactors(linear) * (-1.0 if mirrored else 1.0)
    return replace(
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
        surfaces=[surface.without_domains() for surface in mesh.surfaces],
    )


def meshes_in_one_space(nodes: Sequence[Node]) -> list[Mesh]:
    """Return the nodes' meshes in the space of the first node with a skeleton, or of the first node (``world``)."""
    meshes = []
    first = next((node for node in nodes if node.skeleton is not None), nodes[0])
    origin = np.linalg.pinv(_world(first))
    for node in nodes:
        if node.mesh is not None:
            place = origin @ _world(node)
            here = np.allclose(place, np.identity(4), rtol=0, atol=_ALIGNED)
            meshes.append(node.mesh if here else moved(node.mesh, place))
    return meshes


def _world(node: Node) -> Matrix:
    return np.identity(4) if node.world is None else node.world


def _points(points: AnyArray, world: Matrix) -> AnyArray:
    return (points @ world[:3, :3].T + world[:3, 3]).astype(np.float32)


def _normals(layer: Layer, across: Matrix) -> Layer:
    return replace(layer, values=_unit(layer.values @ across.T))


def _tangents(layer: Layer, linear: Matrix, *, mirrored: bool) -> Layer:
    signs = layer.values[:, 3:] * np.float32(-1 if mirrored else 1)
    return replace(layer, values=np.hstack((_unit(layer.values[:, :3] @ linear.T), signs)))


def _unit(vectors: AnyArray) -> AnyArray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # Unit vectors in single precision stay as they are, so that a rotation there and back gives them again.
    is_kept = (lengths == 0) | (np.abs(lengths - 1) < _ROUNDED)
    return (vectors / np.where(is_kept, 1.0, lengths)).astype(np.float32)


def _turned_around(mesh: Mesh) -> Mesh:
    """Reverse the triangles of a mesh; each still starts at the same corner."""
    return with_corners(mesh, np.arange(len(mesh.corner_point)).reshape(-1, 3)[:, [0, 2, 1]].ravel())
