"""What is in a file, measured so that two files can be compared, whatever they are.

Files of our formats are read by our readers, all others by Blender's own importers, and measured there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LETTERS = {
    "P": "positions",
    "p": "positions within each object; the location of the object is lost",
    "N": "normals",
    "U": "UV layers, as many as the number says",
    "C": "colour layers, as many as the number says",
    "c": "colour layers without their alpha",
    "M": "materials of triangles",
    "H": "parents of objects",
    "K": "shape keys",
    "W": "bones and their weights",
    "B": "bone animation",
    "b": "rotations of animated bones; the bones are those of the avatar",
    "O": "object animation",
    "V": "vertex animation",
    "L": "levels of detail",
    "F": "physics shapes",
}

PLACE, DIRECTION, UV, COLOR, WEIGHT = 2e-3, 0.06, 3e-3, 0.012, 0.02
"""Largest differences that are quantization: of 16 bits over a model of metres, of normals of 8 bits, …"""


@dataclass
class Measured:
    """Everything at rest in world space, corner by corner."""

    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    centred: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    """As ``points``, relative to the middle of each object."""
    normals: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    uvs: list[np.ndarray] = field(default_factory=list)
    colors: list[np.ndarray] = field(default_factory=list)
    materials: list[str] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    shapes: dict[str, np.ndarray] = field(default_factory=dict)
    """How far each corner moves."""
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    bones: dict[str, np.ndarray] = field(default_factory=dict)
    """Where each bone begins at rest."""
    posed: dict[str, np.ndarray] = field(default_factory=dict)
    """Where it begins in the last frame of the animation."""
    turned: dict[str, np.ndarray] = field(default_factory=dict)
    """How it is rotated there relative to its rest, (3, 3)."""
    placed: dict[str, np.ndarray] = field(default_factory=dict)
    """How each object that moves stands in the last frame, (4, 4)."""
    moved: dict[str, np.ndarray] = field(default_factory=dict)
    """Where the corners of each object that deforms are in the last frame."""
    levels: int = 0
    shapes_of_physics: int = 0


class _Gatherer:
    """Collects the corners of one object after the other."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []

    def add(self, points: np.ndarray, **more: Any) -> None:
        self.parts.append({"points": points, "centred": points - points.mean(axis=0), **more})

    def into(self, found: Measured) -> Measured:
        if not self.parts:
            return found

        def joined(values: Iterable[np.ndarray]) -> np.ndarray:
            return np.concatenate(list(values))

        found.points = joined(part["points"] for part in self.parts)
        found.centred = joined(part["centred"] for part in self.parts)
        found.normals = joined(part["normals"] for part in self.parts)
        for name, store, width in (("uvs", found.uvs, 2), ("colors", found.colors, 4)):
            for number in range(max(len(part[name]) for part in self.parts)):
                store.append(
                    joined(
                        part[name][number] if number < len(part[name]) else np.full((len(part["points"]), width), -1.0)
                        for part in self.parts
                    )
                )
        found.materials = [name for part in self.parts for name in part["materials"]]
        for key, store2 in (("shapes", found.shapes), ("weights", found.weights)):
            for name in dict.fromkeys(name for part in self.parts for name in part[key]):
                width = next(part[key][name].shape[1:] for part in self.parts if name in part[key])
                store2[name] = joined(
                    part[key].get(name, np.zeros((len(part["points"]), *width))) for part in self.parts
                )
        found.moved = {part["name"]: part["moved"] for part in self.parts if part.get("moved") is not None}
        return found


def measured_scenes(scenes: Iterable[Any]) -> Measured:
    """Measure scenes, those of all files that one became."""
    from meshferry.io_formats.geometry import hierarchy
    from meshferry.io_formats.passes import flatten
    from meshferry.io_formats.passes.clips import with_frames
    from meshferry.io_formats.passes.lods import separate

    found, gatherer = Measured(), _Gatherer()
    for whole in map(with_frames, scenes):
        found.levels = max(found.levels, len(_levels_in_names(whole)) - 1)
        scene = separate(whole) if _levels_in_names(whole) else whole
        worlds = hierarchy.placed_matrices(scene.nodes)
        moving = {track.target for clip in scene.clips for track in clip.vertices}
        for number, node in enumerate(scene.nodes):
            if node.lod > 0 or node.role.value != "render":
                continue
            parent = node.parent
            while parent >= 0 and _plain(scene.nodes[parent].name) == _plain(node.name):
                parent = scene.nodes[parent].parent
            if parent >= 0 and node.mesh is not None:
                found.links.add((_plain(node.name), _plain(scene.nodes[parent].name)))
            if node.mesh is not None:
                track = next((t for c in scene.clips for t in c.vertices if t.target == number), None)
                joints = scene.skeletons[node.skeleton].joints if node.skeleton is not None else []
                mesh = flatten.moved(node.mesh, worlds[number])
                _add_mesh(gatherer, _plain(node.name), mesh, worlds[number], track, joints)
        found.levels = max(found.levels, len({node.lod for node in scene.nodes if node.lod > 0}))
        found.shapes_of_physics += sum(node.role.value != "render" for node in scene.nodes)
        for number, skeleton in enumerate(scene.skeletons):
            _add_bones(found, scene, number, skeleton)
        for clip in scene.clips[:1]:
            for track in clip.transforms:
                if track.skeleton is None and track.target not in moving and len(track.translation):
                    found.placed[scene.nodes[track.target].name] = _placed(scene, track, worlds)
    return gatherer.into(found)


def _levels_in_names(scene: Any) -> set[str]:
    from meshferry.io_formats.passes.lods import without_level

    names = {name for node in scene.nodes if node.mesh for name in node.mesh.materials}
    return {name[len(without_level(name)) :] for name in names if without_level(name) != name} - {""}


def _add_mesh(gatherer: _Gatherer, name: str, mesh: Any, world: np.ndarray, track: Any, joints: Any) -> None:
    from meshferry.io_formats.passes.lods import without_level

    corners = mesh.corner_point
    weights: dict[str, np.ndarray] = {}
    if mesh.joint_weights is not None and len(joints):
        for column in range(mesh.joint_weights.shape[1]):
            for joint in np.unique(mesh.joint_indices[:, column]):
                mine = np.where(mesh.joint_indices[:, column] == joint, mesh.joint_weights[:, column], 0.0)
                bone = joints[joint].name
                weights[bone] = weights.get(bone, 0.0) + mine[corners]
    moved = None
    if track is not None:
        last = np.array(mesh.points, np.float64)
        last[: track.points.shape[1]] = track.points[-1] @ world[:3, :3].T + world[:3, 3]
        moved = last[corners]
    gatherer.add(
        mesh.points[corners].astype(np.float64),
        name=name,
        normals=mesh.normal.at_corners(corners) if mesh.normal else np.zeros((len(corners), 3)),
        uvs=[layer.at_corners(corners) for layer in mesh.uvs],
        colors=[_unit_colors(layer.at_corners(corners)) for layer in mesh.colors],
        materials=[without_level(mesh.materials[slot]) if mesh.materials else "" for slot in mesh.material_index],
        shapes={key.name: key.points[corners] - mesh.points[corners] for key in mesh.shape_keys},
        weights={bone: values for bone, values in weights.items() if values.max(initial=0) > 0},
        moved=moved,
    )


def _unit_colors(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.uint8:
        return values / 255
    low = values[:, :3] * 12.92
    high = 1.055 * np.maximum(values[:, :3], 0) ** (1 / 2.4) - 0.055
    return np.column_stack((np.where(values[:, :3] < 0.0031308, low, high), values[:, 3]))


def _add_bones(found: Measured, scene: Any, number: int, skeleton: Any) -> None:
    from meshferry.io_formats.geometry.transforms import matrix_of_transform

    local = [matrix_of_transform(j.translation, j.rotation, j.scale) for j in skeleton.joints]
    rest = _chained(local, [joint.parent for joint in skeleton.joints])
    for joint, matrix in zip(skeleton.joints, rest, strict=True):
        found.bones[joint.name] = matrix[:3, 3]
    for clip in scene.clips[:1]:
        tracks = [track for track in clip.transforms if track.skeleton == number and len(track.translation)]
        for track in tracks:
            local[track.target] = matrix_of_transform(track.translation[-1], track.rotation[-1], track.scale[-1])
        if tracks:
            posed = _chained(local, [joint.parent for joint in skeleton.joints])
            for joint, before, after in zip(skeleton.joints, rest, posed, strict=True):
                found.posed[joint.name] = after[:3, 3]
                found.turned[joint.name] = after[:3, :3] @ np.linalg.inv(before[:3, :3])


def _chained(local: list[np.ndarray], parents: list[int]) -> list[np.ndarray]:
    def world(index: int) -> np.ndarray:
        return local[index] if parents[index] < 0 else world(parents[index]) @ local[index]

    return [world(index) for index in range(len(local))]


def _placed(scene: Any, track: Any, worlds: list[np.ndarray]) -> np.ndarray:
    from meshferry.io_formats.geometry.transforms import matrix_of_transform

    parent = scene.nodes[track.target].parent
    local = matrix_of_transform(track.translation[-1], track.rotation[-1], track.scale[-1])
    return worlds[parent] @ local if parent >= 0 else local


def measured_blender() -> Measured:
    """Measure the open file: at rest is where its animation begins."""
    import bpy

    scene = bpy.context.scene
    first, last = _range()
    found, gatherer = Measured(), _Gatherer()
    objects = [obj for obj in scene.objects if obj.type in {"MESH", "EMPTY", "ARMATURE"}]
    shown = [obj for obj in objects if not obj.meshferry.lod and obj.meshferry.role == "RENDER"]
    found.levels = len({obj.meshferry.lod for obj in objects if obj.meshferry.lod})
    found.shapes_of_physics = sum(obj.meshferry.role != "RENDER" for obj in objects)
    rigs = [obj for obj in shown if obj.type == "ARMATURE"]
    for rig in rigs:
        rig.data.pose_position = "REST"
        for bone in rig.data.bones:
            found.bones[bone.name] = np.array(rig.matrix_world @ bone.head_local)
    scene.frame_set(first)
    before = {obj.name: np.array(obj.matrix_world) for obj in shown}
    rest = {obj.name: _corner_places(obj) for obj in shown if obj.type == "MESH"}
    scene.frame_set(last)
    after = {obj.name: _corner_places(obj) for obj in shown if obj.type == "MESH"}
    for obj in shown:
        if last > first and not np.allclose(before[obj.name], np.array(obj.matrix_world), atol=1e-3):
            found.placed[_plain(obj.name)] = np.array(obj.matrix_world)
    for rig in rigs:
        rig.data.pose_position = "POSE"
    bpy.context.view_layer.update()
    for rig in rigs:
        for bone in rig.pose.bones:
            found.posed[bone.name] = np.array(rig.matrix_world @ bone.head)
            turn = np.array(rig.matrix_world @ bone.matrix)[:3, :3]
            found.turned[bone.name] = turn @ np.linalg.inv(np.array(rig.matrix_world @ bone.bone.matrix_local)[:3, :3])
    scene.frame_set(first)
    for obj in shown:
        if obj.type == "MESH" and obj.data.polygons:
            parent = obj.parent
            while parent is not None and _plain(parent.name) == _plain(obj.name):
                parent = parent.parent  # some files have a place and a mesh where Blender has one object
            if parent is not None and not _is_rig(parent):
                found.links.add((_plain(obj.name), _plain(parent.name)))
            itself = before[obj.name] @ np.linalg.inv(np.array(obj.matrix_world))
            assert np.allclose(itself, np.identity(4), atol=1e-3)
            _add_object(gatherer, obj, rest[obj.name], after[obj.name])
    still = all(np.allclose(found.posed[name], found.bones[name], atol=1e-4) for name in found.bones)
    if still:
        found.posed, found.turned = {}, {}
    return gatherer.into(found)


def _is_rig(obj: Any) -> bool:
    return obj.type == "ARMATURE" or any(child.type == "ARMATURE" for child in obj.children)


def _plain(name: str) -> str:
    return re.sub(r"\.\d{3}$", "", name)


def _range() -> tuple[int, int]:
    import bpy

    ranges = [tuple(action.frame_range) for action in bpy.data.actions]
    caches = bpy.data.cache_files
    if not ranges or caches:
        ranges.append((bpy.context.scene.frame_start, bpy.context.scene.frame_end))
    if not bpy.data.actions and not caches:
        return bpy.context.scene.frame_start, bpy.context.scene.frame_start
    return round(min(start for start, _ in ranges)), round(max(end for _, end in ranges))


def _corner_places(obj: Any) -> np.ndarray:
    """Return where the corners of an object's triangles are, (C, 3)."""
    import bpy

    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = seen.to_mesh()
    points = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", points)
    corners = np.empty(len(mesh.loops), np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    world = np.array(obj.matrix_world)
    seen.to_mesh_clear()
    return points.reshape(-1, 3)[corners] @ world[:3, :3].T + world[:3, 3]


def _add_object(gatherer: _Gatherer, obj: Any, rest: np.ndarray, after: np.ndarray) -> None:
    mesh = obj.data
    assert all(polygon.loop_total == 3 for polygon in mesh.polygons)
    count = len(mesh.loops)
    corners = np.empty(count, np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    normals = np.array([tuple(normal.vector) for normal in mesh.corner_normals])
    turn = np.linalg.inv(np.array(obj.matrix_world)[:3, :3]).T
    normals = normals @ turn.T
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    uvs = []
    for layer in mesh.uv_layers:
        values = np.empty(2 * count, np.float32)
        layer.uv.foreach_get("vector", values)
        uvs.append(values.reshape(-1, 2))
    colors = []
    for attribute in mesh.color_attributes:
        values = np.array([tuple(element.color_srgb) for element in attribute.data])
        colors.append(values if attribute.domain == "CORNER" else values[corners])
    slots = [slot.material.name if slot.material else "" for slot in obj.material_slots]
    keys = mesh.shape_keys
    animated = _is_animated(keys)
    shapes = {}
    if keys is not None and not animated:
        linear = np.array(obj.matrix_world)[:3, :3]
        base = np.array([tuple(point.co) for point in keys.reference_key.data])
        for block in list(keys.key_blocks)[1:]:
            points = np.array([tuple(point.co) for point in block.data])
            shapes[block.name] = ((points - base) @ linear.T)[corners]
    weights: dict[str, np.ndarray] = {}
    rigs = [m.object for m in obj.modifiers if m.type == "ARMATURE" and m.object]
    bones = {bone.name for rig in rigs for bone in rig.data.bones}
    for group in obj.vertex_groups:
        if group.name in bones:
            values = np.zeros(len(mesh.vertices))
            for vertex in mesh.vertices:
                for element in vertex.groups:
                    if element.group == group.index:
                        values[vertex.index] = element.weight
            if values.max() > 0:
                weights[group.name] = values[corners]
    deforms = animated or any(m.type == "MESH_SEQUENCE_CACHE" for m in obj.modifiers)
    gatherer.add(
        rest,
        name=_plain(obj.name),
        normals=normals,
        uvs=uvs,
        colors=colors,
        materials=[slots[p.material_index] if p.material_index < len(slots) else "" for p in mesh.polygons],
        shapes=shapes,
        weights=weights,
        moved=after if deforms and not np.allclose(rest, after, atol=1e-4) else None,
    )


def _is_animated(keys: Any) -> bool:
    """Tell whether shape keys play an animation; importers give curves to those that rest, too."""
    from meshferry.blender_data import animated_blocks

    data = getattr(keys, "animation_data", None)
    if data is None or data.action is None:
        return False
    curves = animated_blocks.action_curves(data.action, data.action_slot)
    return any(np.ptp([key.co[1] for key in curve.keyframe_points]) > 1e-4 for curve in curves)


def measured_file(path: Path, others: Iterable[Path] = ()) -> Measured:
    """Measure a file and the others that came with it."""
    from meshferry.cli.conversions import blender_exchange, blender_formats
    from meshferry.cli.conversions.blend_files import BlendSession
    from meshferry.cli.conversions.settings import Settings
    from meshferry.io_formats import api

    known = blender_formats.by_path(path)
    if known is None:
        return measured_scenes([api.read_scene(one) for one in (path, *others)])
    with BlendSession() as session:
        blender_exchange.open_file(session, known, path, None, Settings())
        return measured_blender()


def _same_turns(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    """Return whether bones of the same names are rotated alike; of those that the other lacks, no one may be."""
    still = np.identity(3)
    return all(np.abs(turn - other.get(name, still)).max() <= WEIGHT for name, turn in one.items())


def letters(source: Measured) -> str:
    """Return what a file holds."""
    return survived(source, source)


def survived(source: Measured, target: Measured) -> str:
    """Return what of a file is found in another, as letters."""
    found = ""
    order = None
    if len(source.points):
        for letter, one, other in (("P", source.points, target.points), ("p", source.centred, target.centred)):
            order = _match(one, other)
            if order is not None:
                found += letter
                break
    if order is not None:
        mine, theirs = order
        by_triangle = mine[::3] // 3, theirs[::3] // 3
        if _near(source.normals[mine], target.normals[theirs], DIRECTION):
            found += "N"
        found += _layers("U", source.uvs, target.uvs, order, UV)
        opaque = [[layer[:, :3] for layer in one.colors] for one in (source, target)]
        found += _layers("C", source.colors, target.colors, order, COLOR) or _layers("c", *opaque, order, COLOR)
        names = [
            [one.materials[at] for at in places] for one, places in ((source, by_triangle[0]), (target, by_triangle[1]))
        ]
        if any(names[0]) and names[0] == names[1]:
            found += "M"
    if source.links and source.links <= target.links:
        found += "H"
    if order is not None:
        found += _corner_values("K", source.shapes, target.shapes, order, 4 * PLACE)
        found += _corner_values("W", source.weights, target.weights, order, WEIGHT)
    elif not len(target.points) and source.bones and _same_places(source.bones, target.bones):
        found += "W"
    if source.posed and _same_places(source.posed, target.posed):
        found += "B"
    elif source.turned and _same_turns(source.turned, target.turned):
        found += "b"
    if source.placed and _same_places(source.placed, target.placed):
        found += "O"
    there = {name: target.moved.get(name, np.zeros((0, 3))) for name in source.moved}
    if there and all(_match(corners, there[name]) is not None for name, corners in source.moved.items()):
        found += "V"
    found += "L" if source.levels and target.levels >= source.levels else ""
    found += "F" if source.shapes_of_physics and target.shapes_of_physics >= 1 else ""
    return found


def _match(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the orders in which the corners of two models are the same, triangle by triangle; None: they are not."""
    if one.shape != other.shape or not len(one):
        return None
    size = float(np.ptp(one, axis=0).max())
    orders = [_canonical(points) for points in (one, other)]
    if _near(one[orders[0]], other[orders[1]], PLACE * max(1.0, size)):
        return orders[0], orders[1]
    return _nearest(one, other, PLACE * max(1.0, size))


def _canonical(points: np.ndarray) -> np.ndarray:
    triangles = points.reshape(-1, 3, 3)
    first = np.argmin(triangles @ np.array([0.9, 0.31, 0.17]), axis=1)
    turned = (first[:, None] + np.arange(3)) % 3 + 3 * np.arange(len(triangles))[:, None]
    centres = np.rint(triangles.mean(axis=1) / PLACE / 4)
    return turned[np.lexsort(centres.T)].ravel()


def _nearest(one: np.ndarray, other: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray] | None:
    centres = [points.reshape(-1, 3, 3).mean(axis=1) for points in (one, other)]
    if len(centres[0]) > 4000:
        return None
    distance = np.linalg.norm(centres[0][:, None] - centres[1][None], axis=2)
    partner = distance.argmin(axis=1)
    if len(set(partner.tolist())) < len(partner):
        return None
    mine, theirs = _turned(one), _turned(other)[partner]
    if _near(one[mine.ravel()], other[theirs.ravel()], most):
        return mine.ravel(), theirs.ravel()
    return None


def _turned(points: np.ndarray) -> np.ndarray:
    triangles = points.reshape(-1, 3, 3)
    first = np.argmin(triangles @ np.array([0.9, 0.31, 0.17]), axis=1)
    return (first[:, None] + np.arange(3)) % 3 + 3 * np.arange(len(triangles))[:, None]


def _near(one: np.ndarray, other: np.ndarray, most: float) -> bool:
    return one.shape == other.shape and bool(np.abs(one - other).max(initial=0.0) <= most)


def _layers(letter: str, one: list[np.ndarray], other: list[np.ndarray], order: Any, most: float) -> str:
    kept = 0
    for mine, theirs in zip(one, other, strict=False):
        there = mine[order[0]][:, 0] >= 0
        kept += _near(mine[order[0]][there], theirs[order[1]][there], most)
    return f"{letter}{kept}" if kept else ""


def _corner_values(
    letter: str, one: dict[str, np.ndarray], other: dict[str, np.ndarray], order: Any, most: float
) -> str:
    same = one and all(
        name in other and _near(values[order[0]], other[name][order[1]], most) for name, values in one.items()
    )
    return letter if same else ""


def _same_places(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(name in other and _near(place, other[name], 0.01) for name, place in one.items())
