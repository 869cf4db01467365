"""Make Blender scenes, export them, and decode the written bytes without the package's own reader.

Two sides are compared: ``Exported`` (the file, decoded by protobuf from the table of the format page and mapped to
Blender's space by the page's formulas) and ``shown`` (Blender's own evaluated objects).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from encoding import encode_scene
from timbermesh_oracle import message_class

bpy = pytest.importorskip("bpy", reason="Blender is absent")

Array = npt.NDArray[np.float64]

# --------------------------------------------------------------------------------------------- the file, decoded

TO_BLENDER = np.array([[-1, 0, 0], [0, 0, -1], [0, 1, 0]], float)
"""(x, y, z) = (-X, -Z, Y)."""


class Exported:
    """An exported file: its bytes, its decoded message, and the warnings."""

    def __init__(self, data: bytes, said: Sequence[str]) -> None:
        self.data = data
        self.said = list(said)
        assert data[:2] == b"\x78\x9c"
        self.model: Any = message_class("Model").FromString(zlib.decompress(data))  # also checks the Adler-32

    @property
    def nodes(self) -> list[Any]:
        return list(self.model.nodes)

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.nodes]

    def node(self, name: str) -> Any:
        (found,) = [node for node in self.nodes if node.name == name]
        return found

    def parent_of(self, name: str) -> str:
        parent = self.node(name).parent
        return "" if parent == -1 else str(self.nodes[parent].name)

    def has_notice(self, *words: str) -> bool:
        """Return whether one of the messages contains all the words."""
        return any(all(word in text for word in words) for text in self.said)

    @property
    def clip_names(self) -> set[str]:
        return {clip.name for node in self.nodes for clip in (*node.nodeAnimations, *node.vertexAnimations)}

    def clip(self, node: str, name: str = "Default") -> Any:
        """Return the one animation of that name in a node."""
        animations = (*self.node(node).nodeAnimations, *self.node(node).vertexAnimations)
        (found,) = [clip for clip in animations if clip.name == name]
        return found

    def clip_kinds(self, node: str) -> str:
        found = self.node(node)
        return "NODE " * len(found.nodeAnimations) + "VERTEX " * len(found.vertexAnimations)

    def materials(self, node: str) -> dict[str, int]:
        """Return the triangles of each material of a node."""
        return {mesh.material: len(mesh.indices) // 3 for mesh in self.node(node).meshes}

    def matrix(self, index: int, clip: str = "", frame: int = 0) -> Array:
        """Return a node's world matrix in file space, (4, 4), at rest or in a frame of a clip."""
        node = self.nodes[index]
        above = np.identity(4) if node.parent == -1 else self.matrix(node.parent, clip, frame)
        playing = [found for found in node.nodeAnimations if found.name == clip]
        pose = playing[0].frames[frame] if playing else node
        x, y, z, w = pose.rotation.x, pose.rotation.y, pose.rotation.z, pose.rotation.w
        assert x * x + y * y + z * z + w * w == pytest.approx(1, abs=1e-5)
        local = np.identity(4)
        local[:3, :3] = rotation_matrices(np.array([[x, y, z, w]]))[0] * _xyz(pose.scale)
        local[:3, 3] = _xyz(pose.position)
        return np.asarray(above @ local, float)

    def triangles(self, clip: str = "", frame: int = 0, only: Iterable[str] = ()) -> Array:
        """Return all triangles, (T, 3, 3), counter-clockwise in Blender's world space."""
        runs = [np.empty((0, 3, 3))]
        for index, node in enumerate(self.nodes):
            if (only and node.name not in only) or not node.vertexCount:
                continue
            points = values(node, "position").copy()
            for moving in (found for found in node.vertexAnimations if found.name == clip):
                count = moving.animatedVertexCount
                points[:count] += values_of(moving.frames[frame], "offset", 3, node.vertexCount)[:count]
            world = self.matrix(index, clip, frame)
            points = (points @ world[:3, :3].T + world[:3, 3]) @ TO_BLENDER.T
            corners = np.concatenate([indices(mesh) for mesh in node.meshes])[:, ::-1]
            runs.append(points[corners if np.linalg.det(world[:3, :3]) > 0 else corners[:, ::-1]])
        return np.concatenate(runs)

    def corners(self, node: str, name: str) -> Array:
        """Return position and a property of each corner, (C, 3 + k), in file order and Blender's space."""
        found = self.node(node)
        given = values(found, name)
        if name in {"normal", "tangent"}:
            given = np.concatenate([given[:, :3] @ TO_BLENDER.T, given[:, 3:]], axis=1)
        rows = np.concatenate([values(found, "position") @ TO_BLENDER.T, given], axis=1)
        return np.asarray(rows[np.concatenate([indices(mesh)[:, ::-1].reshape(-1) for mesh in found.meshes])])


def _xyz(vector: Any) -> Array:
    return np.array([vector.x, vector.y, vector.z], float)


def indices(mesh: Any) -> npt.NDArray[np.int64]:
    return np.array(mesh.indices, np.int64).reshape(-1, 3)


def values_of(owner: Any, name: str, width: int, count: int) -> Array:
    """Return a vertex property of a node or a frame, (count, width); its data must have just that size."""
    (found,) = [entry for entry in owner.vertexProperties if entry.name == name]
    assert (found.scalarType, found.scalarTypeDimension) == (4, width)
    assert len(found.data) == count * width * 4
    return np.frombuffer(found.data, "<f4").reshape(-1, width).astype(float)


_WIDTHS = {"position": 3, "normal": 3, "tangent": 4, "color": 4, "uv0": 2, "uv1": 2, "uv2": 2}


def values(node: Any, name: str) -> Array:
    return values_of(node, name, _WIDTHS[name], node.vertexCount)


def has(node: Any, name: str) -> bool:
    return any(entry.name == name for entry in node.vertexProperties)


def rotation_matrices(quaternions: Array) -> Array:
    """Return the matrices of unit quaternions (n, 4) x, y, z, w."""
    x, y, z, w = quaternions.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


# ------------------------------------------------------------------------------------------ Blender's own picture


def shown(*objects: Any) -> Array:
    """Return the triangles of evaluated objects, (T, 3, 3), counter-clockwise in world space."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    runs = []
    for obj in objects:
        seen = obj.evaluated_get(depsgraph)
        mesh = seen.to_mesh()
        mesh.calc_loop_triangles()
        world = np.array(seen.matrix_world, float)
        points = np.array([vertex.co for vertex in mesh.vertices], float) @ world[:3, :3].T + world[:3, 3]
        corners = np.array([triangle.vertices[:] for triangle in mesh.loop_triangles], int)
        runs.append(points[corners if np.linalg.det(world[:3, :3]) > 0 else corners[:, ::-1]])
        seen.to_mesh_clear()
    return np.concatenate(runs)


def shown_corners(obj: Any, read: Callable[[Any, Any], Sequence[float]]) -> Array:
    """Return position and ``read(mesh, loop index)`` of each corner of an evaluated object, in its own space."""
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = seen.to_mesh()
    mesh.calc_loop_triangles()
    loops = [loop for triangle in mesh.loop_triangles for loop in triangle.loops]
    rows = np.array([(*mesh.vertices[mesh.loops[loop].vertex_index].co, *read(mesh, loop)) for loop in loops], float)
    seen.to_mesh_clear()
    return rows


def assert_same_rows(found: Array, expected: Array, tolerance: float = 1e-5) -> None:
    """Require the same rows in any order."""
    assert found.shape == expected.shape
    apart = np.abs(found[:, None] - expected[None]).max(axis=2)
    assert apart.min(axis=1).max() < tolerance
    assert apart.min(axis=0).max() < tolerance


def assert_same_triangles(found: Array, expected: Array, tolerance: float = 1e-5) -> None:
    """Require the same triangles, whichever corner each begins with, in any order."""
    assert found.shape == expected.shape
    turned = np.stack([np.roll(expected, by, axis=1) for by in range(3)])
    apart = np.abs(found[:, None, None] - turned.transpose(1, 0, 2, 3)[None]).max(axis=(3, 4)).min(axis=2)
    assert apart.min(axis=1).max() < tolerance
    assert apart.min(axis=0).max() < tolerance


def volume(triangles: Array) -> float:
    """Return the signed volume that counter-clockwise triangles enclose."""
    return float(np.einsum("ti,ti->", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])) / 6)


def center(triangles: Array) -> Array:
    return np.asarray((triangles.reshape(-1, 3).min(axis=0) + triangles.reshape(-1, 3).max(axis=0)) / 2)


# ----------------------------------------------------------------------------------------------- scenes and export

TETRA = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
"""Unlike in every direction, so that no swap of axes or mirroring goes unseen; its volume is 1."""
TETRA_FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
SQUARE = [(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)]


def model_collection(name: str = "Model") -> Any:
    """Return the collection of that name in the scene, made where it is not there."""
    found = bpy.data.collections.get(name)
    if found is None:
        found = bpy.data.collections.new(name)
        bpy.context.scene.collection.children.link(found)
    return found


def add(name: str, data: Any = None, collection: Any = None, **attributes: Any) -> Any:
    """Add an object (without data: an empty) and set its attributes."""
    made = bpy.data.objects.new(name, data)
    (collection or model_collection()).objects.link(made)
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    bpy.context.view_layer.update()
    return made


def mesh_of(name: str, points: Sequence[Any] = TETRA, faces: Sequence[Any] = TETRA_FACES) -> Any:
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(points, [], faces)
    mesh.update()
    return mesh


def tetra(name: str = "Tetra", collection: Any = None, **attributes: Any) -> Any:
    return add(name, mesh_of(name), collection, **attributes)


def square(name: str = "Square", collection: Any = None, *, uv: bool = False, **attributes: Any) -> Any:
    made = add(name, mesh_of(name, SQUARE, [(0, 1, 2, 3)]), collection, **attributes)
    if uv:
        add_uv(made.data)
    return made


def grid(name: str = "Grid", side: int = 4, **attributes: Any) -> Any:
    """Add a square of ``side`` × ``side`` faces over 0 … 1 with a UV map."""
    points = [(x / side, y / side, 0) for y in range(side + 1) for x in range(side + 1)]
    row = side + 1
    faces = [(i, i + 1, i + row + 1, i + row) for y in range(side) for i in range(y * row, y * row + side)]
    made = add(name, mesh_of(name, points, faces), **attributes)
    add_uv(made.data)
    return made


def add_uv(mesh: Any, name: str = "UVMap") -> None:
    """Add a UV map that is x, y."""
    layer = mesh.uv_layers.new(name=name)
    for loop in mesh.loops:
        layer.uv[loop.index].vector = mesh.vertices[loop.vertex_index].co[:2]


def armature(name: str = "Rig", collection: Any = None, **attributes: Any) -> Any:
    """Add an armature with one bone "Bone" from its origin 1 up."""
    made = add(name, bpy.data.armatures.new(name), collection, **attributes)
    with active(made, mode="EDIT"):
        bone = made.data.edit_bones.new("Bone")
        bone.head, bone.tail = (0, 0, 0), (0, 0, 1)
    return made


class active:
    """Make an object active and selected, in a mode; back to object mode at the end."""

    def __init__(self, obj: Any, mode: str = "OBJECT") -> None:
        self.obj, self.mode = obj, mode

    def __enter__(self) -> None:
        bpy.context.view_layer.objects.active = self.obj
        self.obj.select_set(True)
        bpy.ops.object.mode_set(mode=self.mode)

    def __exit__(self, *_: object) -> None:
        bpy.ops.object.mode_set(mode="OBJECT")


def materials(obj: Any, *names: str | None) -> None:
    """Give an object's mesh a slot for each name; None: an empty slot."""
    for name in names:
        made = None if name is None else bpy.data.materials.get(name) or bpy.data.materials.new(name)
        obj.data.materials.append(made)


def node_group(name: str = "Nodes", *inputs: tuple[str, str]) -> tuple[Any, Any, Any]:
    """Make a geometry node group with a geometry in and out; return it and its input and output nodes."""
    group = bpy.data.node_groups.new(name, "GeometryNodeTree")
    group.interface.new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    for label, kind in inputs:
        group.interface.new_socket(label, in_out="INPUT", socket_type=kind)
    group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    return group, group.nodes.new("NodeGroupInput"), group.nodes.new("NodeGroupOutput")


def add_nodes(obj: Any, group: Any) -> Any:
    modifier = obj.modifiers.new("Nodes", "NODES")
    modifier.node_group = group
    return modifier


def curves(action: Any) -> list[Any]:
    """Return all curves of an action."""
    if not hasattr(action, "layers"):
        return list(action.fcurves)
    bags = (bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags)
    return [curve for bag in bags for curve in bag.fcurves]


def key(owner: Any, path: str, keys: Mapping[float, Any], index: int = -1) -> None:
    """Key a property linearly at some frames; leave it as in the last of them."""
    for frame, value in keys.items():
        if index >= 0:
            getattr(owner, path)[index] = value
        else:
            setattr(owner, path, value)
        assert owner.keyframe_insert(path, frame=frame, index=index)
    for curve in curves(owner.id_data.animation_data.action):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"


def new_action(owner: Any, name: str, path: str, keys: Mapping[float, Any], index: int = -1) -> Any:
    """Key a property in a new action, which becomes the active one."""
    if owner.animation_data is not None:
        owner.animation_data.action = None
    key(owner, path, keys, index)
    owner.animation_data.action.name = name
    return owner.animation_data.action


def push_down(owner: Any, name: str, start: int | None = None) -> Any:
    """Put the active action of a data block in an NLA strip of its own; return the strip."""
    data = owner.animation_data
    action = data.action
    slot = getattr(data, "action_slot", None)
    strip = data.nla_tracks.new().strips.new(name, int(action.frame_range[0]) if start is None else start, action)
    if slot is not None:
        strip.action_slot = slot
    data.action = None
    return strip


def drive(owner: Any, path: str, expression: str, index: int = -1) -> None:
    """Drive a property by a simple expression of ``frame``."""
    owner.driver_add(path, *([index] if index >= 0 else [])).driver.expression = expression


def export(source: Any = None, origin: Any = None, **options: Any) -> Exported:
    """Export a collection (``Model`` unless given), or a kind of source, and decode the file."""
    from meshferry.blender_data import export_options
    from meshferry.blender_data.export_options import EXPORT_OPTIONS
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats.core.options import resolve
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    if isinstance(source, str):
        taken = object_selection.Source(source)
    else:
        taken = object_selection.Source("COLLECTION", source or model_collection(), origin=origin)
    target = TIMBERMESH
    values = resolve(EXPORT_OPTIONS, options)
    scene = exporter.export_scene(
        export_options.ExportRequest(
            bpy.context, taken, export_options.ExportOptions.of(values), "Named", target.capabilities
        )
    )
    return Exported(*encode_scene(scene, target))


def assert_plays_as_shown(
    made: Exported, *objects: Any, frames: Iterable[float], clip: str = "Default", tolerance: float = 2e-5
) -> None:
    """Require each frame of a clip to show what Blender shows, and the clip to move at all."""
    scene = bpy.context.scene
    frames = list(frames)
    pictures = []
    for number, frame in enumerate(frames):
        scene.frame_set(int(frame // 1), subframe=frame % 1)
        pictures.append(shown(*objects))
        assert_same_triangles(made.triangles(clip, number), pictures[-1], tolerance)
    assert max(float(np.abs(picture - pictures[0]).max()) for picture in pictures) > 0.1
    counts = {len(found.frames) for node in made.nodes for found in (*node.nodeAnimations, *node.vertexAnimations)}
    assert counts == {len(frames)}
