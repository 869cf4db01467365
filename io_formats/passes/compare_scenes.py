"""Describe the differences of two scenes in a few phrases, for the summary of a repeated export."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.messages import Text, counted, listed, of_kind
from ..core.scene import AnyArray, Clip, FloatArray, IntArray, Keys, Mesh, Node, Scene, VertexTrack
from ..geometry.vertices import drop_repeated_corners, weld_map

_NORMAL, _UV, _COLOR, _WEIGHT = 0.05, 2e-3, 6e-3, 6e-3
"""Tolerances for rounding: normals that Blender stores differ by up to 0.02, colours in bytes by 1/255."""

_MOVED = 2e-5
"""Tolerance for positions along an axis, as a share of the mesh's size: files store them in 65,535 steps."""

_TRANSLATION = 1e-4
"""Tolerance for animated translations, in metres; if a clip has translations above one metre, as a share of the
largest. Blender's bones have single precision: those of a real model, 20 m apart, come back with 0.3 mm difference.
"""

_MOST_NODES = 3
"""Maximum number of changed nodes that are described; the others are counted."""


def differences(old: Scene, new: Scene) -> list[str]:
    """Return the differences as phrases such as "1 surface added ('Glass')"; empty if nothing differs.

    Nodes, surfaces, bones and animations are compared by name. Triangles of which two corners are at the same position
    are ignored, since an import leaves them out.
    """
    old, new = _without_collapsed_triangles(old), _without_collapsed_triangles(new)
    found: list[str] = [
        *_members("object", [node.name for node in old.nodes], [node.name for node in new.nodes]),
        *_changed_nodes(old, new),
        *_members("bone", _joints(old), _joints(new)),
        *_members("animation", [clip.name for clip in old.clips], [clip.name for clip in new.clips]),
    ]
    clips = {clip.name: clip for clip in old.clips}
    both = [(clips[clip.name], clip) for clip in new.clips if clip.name in clips]
    changed = [after.name for before, after in both if not _same_clip(before, after, old, new)]
    if changed:
        found.append(Text("{} changed ({})", counted(len(changed), "animation"), listed(of_kind("animation", changed))))
    return found


def equal_nodes(old: Scene, new: Scene) -> set[str]:
    """Return the names of the nodes that are exactly equal in two scenes, with their skeletons and animations.

    Of nodes with the same name, all are equal or none. The empty name stands for the skeletons and their animations.
    """
    before, after = _contents(old), _contents(new)
    return {name for name in before if name in after and pickle.dumps(before[name]) == pickle.dumps(after[name])}


def _contents(scene: Scene) -> dict[str, list[Any]]:
    """Return what belongs to each node, by name: without indices, which change with other nodes."""
    skeletons = [_with_tracks(scene, None, [skeleton, number]) for number, skeleton in enumerate(scene.skeletons)]
    found: dict[str, list[Any]] = {"": skeletons}
    for number, node in enumerate(scene.nodes):
        above = scene.nodes[node.parent].name if node.parent >= 0 else ""
        rig = skeletons[node.skeleton] if node.skeleton is not None else None
        alone = replace(node, parent=-1, skeleton=None, lod_of=None, shape_of=None, choices=())
        found.setdefault(node.name, []).append(_with_tracks(scene, number, [alone, above, rig]))
    return found


def _with_tracks(scene: Scene, target: int | None, content: list[Any]) -> list[Any]:
    """Add the tracks of a node to its content, or those of all joints if ``target`` is None."""
    for clip in scene.clips:
        moved = [
            track if track.skeleton is not None else replace(track, target=0)
            for track in clip.transforms
            if (track.skeleton is not None if target is None else (track.skeleton, track.target) == (None, target))
        ]
        shaped = [replace(track, target=0) for track in clip.vertices if track.target == target]
        keyed = clip.keys if target is None else []
        if moved or shaped or keyed:
            content.append(replace(clip, transforms=moved, vertices=shaped, keys=keyed, original=b"", worlds=None))
    return content


def _without_collapsed_triangles(scene: Scene) -> Scene:
    """Return a scene without the triangles of which two corners are at the same position."""

    def thinned(mesh: Mesh) -> Mesh:
        return drop_repeated_corners(mesh, weld_map([mesh.points])[0])[0]

    return replace(scene, nodes=[replace(n, mesh=thinned(n.mesh)) if n.mesh else n for n in scene.nodes])


def _members(noun: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Text]:
    """Yield the added and removed names; repeated names are counted as often as they occur."""
    added, removed = _without(new, old), _without(old, new)
    if added:
        yield Text("{} added ({})", counted(len(added), noun), listed(added))
    if removed:
        yield Text("{} removed ({})", counted(len(removed), noun), listed(removed))


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    rest = list(others)
    found = []
    for name in names:
        if name in rest:
            rest.remove(name)
        else:
            found.append(name)
    return found


def _joints(scene: Scene) -> list[str]:
    return [joint.name for skeleton in scene.skeletons for joint in skeleton.joints]


def _changed_nodes(old: Scene, new: Scene) -> Iterator[Text]:
    """Yield the differences of nodes that both scenes have, with their name if a scene has several nodes.

    Of nodes with the same name, the first is compared with the first, and so on.
    """
    before: dict[str, list[Node]] = {}
    for node in reversed(old.nodes):
        before.setdefault(node.name, []).append(node)
    pairs = [(before[node.name].pop(), node) for node in new.nodes if before.get(node.name)]
    changed = [(node.name, texts) for was, node in pairs if (texts := _node(was, node))]
    for name, texts in changed[:_MOST_NODES]:
        for text in texts:
            yield text if len(new.nodes) == 1 else Text("'{}': {}", name, text)
    rest = len(changed) - _MOST_NODES
    if rest > 0:
        yield Text("{} changed", counted(rest, "more object"))


def _node(old: Node, new: Node) -> list[Text]:
    found = []
    transforms = [(*node.translation, *node.rotation, *node.scale) for node in (old, new)]
    if not np.allclose(transforms[0], transforms[1], rtol=0, atol=1e-6):
        found.append(Text("moved"))
    if old.mesh is not None and new.mesh is not None:
        found += _mesh(old.mesh, new.mesh)
    elif old.mesh is not new.mesh:
        found.append(Text("mesh added" if old.mesh is None else "mesh removed"))
    return found


def _mesh(old: Mesh, new: Mesh) -> list[Text]:
    """Return the differences of two meshes, ignoring the order of vertices and triangles.

    Vertices are counted by position, not as split by seams. Moved vertices are counted if the triangles are the same.
    """
    found = list(_members("surface", _surfaces(old), _surfaces(new)))
    found += _members("shape key", [key.name for key in old.shape_keys], [key.name for key in new.shape_keys])
    before, after = _topology(old), _topology(new)
    in_order = np.array_equal(before.corners, after.corners)
    if in_order:
        size = float(np.ptp(before.points, axis=0).max(initial=0)) if len(before.points) else 0.0
        moved = int(np.count_nonzero((np.abs(after.points - before.points) > _MOVED * size).any(axis=1)))
        if moved:
            found.append(Text("{} moved", counted(moved, "vertex", "vertices")))
    else:
        added, removed = _triangle_changes(old, new)
        if added:
            found.append(Text("{} added", counted(added, "triangle")))
        if removed:
            found.append(Text("{} removed", counted(removed, "triangle")))
    if in_order:
        found += _changed_layers(old, new)
    return found


@dataclass(frozen=True)
class _Topology:
    """Triangles by the positions of their corners, numbered by first use."""

    corners: IntArray
    points: FloatArray
    """(n, 3) the positions."""


def _topology(mesh: Mesh) -> _Topology:
    points = mesh.points + np.float32(0)  # -0 becomes 0
    place, _first = weld_map([points])
    used, first, corners = np.unique(place[mesh.corner_point], return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(used), np.int32)
    number[order] = np.arange(len(used), dtype=np.int32)
    return _Topology(number[corners.reshape(-1)], points[mesh.corner_point[np.sort(first)]])


def _triangle_changes(old: Mesh, new: Mesh) -> tuple[int, int]:
    """Return the numbers of added and removed triangles, compared by positions."""
    rows = [_triangle_rows(mesh) for mesh in (old, new)]
    _, number = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    number = number.reshape(-1)
    counts = [np.bincount(part, minlength=number.max(initial=-1) + 1) for part in np.split(number, [len(rows[0])])]
    more = counts[1] - counts[0]
    return int(more[more > 0].sum()), int(-more[more < 0].sum())


def _triangle_rows(mesh: Mesh) -> FloatArray:
    """Return the coordinates of each triangle's corners, (T, 9), starting with its smallest corner."""
    corners = (mesh.points + np.float32(0))[mesh.corner_point].reshape(-1, 3, 3)
    start = np.zeros(len(corners), np.int64)
    rows = np.arange(len(corners))
    for corner in (1, 2):
        least, other = corners[rows, start], corners[:, corner]
        differs = other != least
        axis = np.argmax(differs, axis=1)
        is_less = differs.any(axis=1) & (other[rows, axis] < least[rows, axis])
        start = np.where(is_less, corner, start)
    turned = corners[rows[:, None], (start[:, None] + np.arange(3)) % 3]
    return np.ascontiguousarray(turned.reshape(-1, 9))


def _changed_layers(old: Mesh, new: Mesh) -> Iterator[Text]:
    """Yield the layers of two meshes with equal triangles that differ by more than rounding."""
    if _surfaces(old) == _surfaces(new) and not np.array_equal(old.material_index, new.material_index):
        yield Text("triangles assigned to other surfaces")
    for name, before, after, tolerance in (
        ("normals", [old.normal] if old.normal else [], [new.normal] if new.normal else [], _NORMAL),
        ("UVs", old.uvs, new.uvs, _UV),
        ("colours", old.colors, new.colors, _COLOR),
    ):
        pairs = zip(before, after, strict=False)
        if len(before) != len(after) or not all(
            _same(a.at_corners(old.corner_point), b.at_corners(new.corner_point), tolerance) for a, b in pairs
        ):
            yield Text("{} changed", Text(name))
    if old.joint_weights is not None and new.joint_weights is not None:
        sums = [_weights(mesh) for mesh in (old, new)]
        if not _same(sums[0], sums[1], _WEIGHT):
            yield Text("weights changed")
    elif old.joint_weights is not new.joint_weights:
        yield Text("weights changed")


def _weights(mesh: Mesh) -> FloatArray:
    """Return the weights of each corner's vertex in descending order; the bones are not compared."""
    if mesh.joint_weights is None:
        return np.empty((0, 0), np.float32)
    weights: FloatArray = -np.sort(-mesh.joint_weights, axis=1)[mesh.corner_point]
    return weights


def _surfaces(mesh: Mesh) -> list[str]:
    return [surface.name for surface in mesh.surfaces] or list(mesh.materials)


def _same(old: AnyArray | None, new: AnyArray | None, tolerance: float = 1e-4) -> bool:
    if old is None or new is None:
        return old is new
    return old.shape == new.shape and bool(np.allclose(old, new, rtol=0, atol=tolerance, equal_nan=True))


def _same_rotations(old: AnyArray, new: AnyArray) -> bool:
    """Return whether quaternions are equal; two of opposite signs are the same rotation."""
    if old.shape != new.shape:
        return False
    return _same(old, np.where((old * new).sum(axis=-1, keepdims=True) < 0, -new, new))


def _same_clip(old: Clip, new: Clip, before: Scene, after: Scene) -> bool:
    """Return whether two animations have the same length, rate and tracks."""
    if (old.frame_count, len(old.transforms), len(old.vertices)) != (
        new.frame_count,
        len(new.transforms),
        len(new.vertices),
    ):
        return False
    tracks = zip(old.transforms, new.transforms, strict=True)
    size = max((float(np.abs(track.translation).max(initial=0)) for track in old.transforms), default=0.0)
    return (
        abs(old.fps - new.fps) < 1e-3
        and abs(old.duration - new.duration) < 1e-3
        and _same_keys(old, new)
        and all(
            a.target == b.target
            and _same(a.translation, b.translation, _TRANSLATION * max(1.0, size))
            and _same_rotations(a.rotation, b.rotation)
            and _same(a.scale, b.scale)
            for a, b in tracks
        )
        and all(
            _same_vertex_track(a, b, before.nodes[a.target].mesh, after.nodes[b.target].mesh)
            for a, b in zip(old.vertices, new.vertices, strict=True)
        )
    )


def _same_keys(old: Clip, new: Clip) -> bool:
    """Return whether the tracks of two animations have the same keys."""
    if [(a.target, a.skeleton) for a in old.keys] != [(b.target, b.skeleton) for b in new.keys]:
        return False
    return all(
        _same_channel(a.translation, b.translation, _same) and _same_channel(a.rotation, b.rotation, _same_rotations)
        for a, b in zip(old.keys, new.keys, strict=True)
    )


def _same_channel(old: Keys | None, new: Keys | None, compare: Callable[[AnyArray, AnyArray], bool]) -> bool:
    if old is None or new is None:
        return old is new
    return _same(old.times, new.times) and compare(old.values, new.values)


def _same_vertex_track(old: VertexTrack, new: VertexTrack, before: Mesh | None, after: Mesh | None) -> bool:
    """Return whether corners move alike; vertices may be split and ordered in different ways.

    Meshes whose triangles differ are not compared: their triangles are reported.
    """
    if before is None or after is None or not np.array_equal(_topology(before).corners, _topology(after).corners):
        return True
    size = float(np.ptp(old.points, axis=(0, 1)).max(initial=0)) if old.points.size else 0.0
    return _same(_corner_points(old, before), _corner_points(new, after), max(_MOVED * size, 1e-6))


def _corner_points(track: VertexTrack, mesh: Mesh) -> FloatArray:
    """Return the points of each corner, (F, C, 3)."""
    still = mesh.points[track.points.shape[1] :]
    resting = np.broadcast_to(still, (len(track.points), *still.shape))
    return np.concatenate([track.points, resting], axis=1)[:, mesh.corner_point]
