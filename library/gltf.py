"""Scenes -> GLB files: meshes with shape keys, skins, and clips with a key for each frame.

A root node turns the scene, whose Z axis is up, so that Y is up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cli.conversions.blender_formats import GLB
from ..io_formats.core import scene as core
from ..io_formats.core.capabilities import losses
from ..io_formats.core.glb_materials import encode_glb
from ..io_formats.core.messages import Message
from ..io_formats.encodings.quantization import from_unorm, srgb_to_linear
from ..io_formats.geometry.transforms import Quaternion, Vector3
from ..io_formats.passes.clips import DEFAULT_RATE, with_frames
from ..io_formats.passes.flatten import fit
from .mesh import Mesh, Vertices, Weights
from .posing import bindings
from .scene import Scene

_HELD = replace(GLB.capabilities, vertex_clips=False)
_COMPONENTS = {"uint16": 5123, "uint32": 5125, "float32": 5126}
_Z_UP = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]


def encode_scene(scene: core.Scene) -> tuple[bytes, list[Message]]:
    """Return the GLB file of a scene, which is changed, and messages about what it lacks."""
    lost = losses(scene, _HELD)
    fit(scene, _HELD)
    return _Writer(with_frames(scene)).encode(), lost


class _Writer:
    """Builds the JSON and the buffer of one file."""

    def __init__(self, scene: core.Scene) -> None:
        self.scene = scene
        self.buffer = bytearray()
        self.content: dict[str, list[Any]] = {name: [] for name in ("accessors", "bufferViews", "meshes", "skins")}
        names = [name for node in scene.nodes if node.mesh is not None for name in node.mesh.materials if name]
        self._materials = list(dict.fromkeys(names))
        self._meshes: dict[tuple[int, bool], int] = {}

    def encode(self) -> bytes:
        """Return the file."""
        scene, worlds = self.scene, [node.world_matrix for node in Scene(_core=self.scene).nodes]
        first = len(scene.nodes) + 1
        joints: list[range] = []  # the nodes of each skeleton's joints; node 0 is the root
        for skeleton in scene.skeletons:
            joints.append(range(first, first + len(skeleton.joints)))
            first += len(skeleton.joints)
        nodes: list[dict[str, Any]] = [{"name": scene.name, "rotation": _Z_UP}]
        for node, world in zip(scene.nodes, worlds, strict=True):
            made: dict[str, Any] = {"name": node.name, **_place(node.translation, node.rotation, node.scale)}
            if node.mesh is not None and len(node.mesh.corner_point):
                is_skinned = node.skeleton is not None and node.mesh.joint_weights is not None
                made["mesh"] = self._mesh(node.mesh, node.name, is_skinned=is_skinned)
                if is_skinned and node.skeleton is not None:
                    bound = bindings(scene.skeletons[node.skeleton], node, world).transpose(0, 2, 1)
                    inverse = self._add(bound.reshape(-1, 16), "MAT4")
                    self.content["skins"].append({"joints": [*joints[node.skeleton]], "inverseBindMatrices": inverse})
                    made["skin"] = len(self.content["skins"]) - 1
            nodes.append(made)
        parents = [node.parent + 1 for node in scene.nodes]
        for skeleton, own in zip(scene.skeletons, joints, strict=True):
            nodes += [{"name": j.name, **_place(j.translation, j.rotation, j.scale)} for j in skeleton.joints]
            parents += [own[joint.parent] if joint.parent >= 0 else 0 for joint in skeleton.joints]
        for number, parent in enumerate(parents, 1):
            nodes[parent].setdefault("children", []).append(number)
        known = {material.name: material.color for material in scene.materials}
        self.content["materials"] = [
            {"name": name, "pbrMetallicRoughness": {"baseColorFactor": [*known.get(name, (0.8, 0.8, 0.8, 1.0))]}}
            for name in self._materials
        ]
        self.content["animations"] = [made for clip in scene.clips if (made := self._clip(clip, joints))["channels"]]
        filled = {name: items for name, items in self.content.items() if items}
        asset = {"asset": {"version": "2.0", "generator": "Meshferry"}, "scene": 0, "scenes": [{"nodes": [0]}]}
        return encode_glb(asset | filled | {"nodes": nodes}, bytes(self.buffer))

    def _add(self, values: npt.NDArray[Any], kind: str, dtype: str = "float32", **more: Any) -> int:
        """Add an array; return the index of its accessor."""
        data = np.ascontiguousarray(values, dtype)
        view = {"buffer": 0, "byteOffset": len(self.buffer), "byteLength": data.nbytes}
        self.buffer += data.tobytes() + bytes(-data.nbytes % 4)
        self.content["bufferViews"].append(view)
        number = len(self.content["bufferViews"]) - 1
        accessor = {"bufferView": number, "componentType": _COMPONENTS[dtype], "count": len(data), "type": kind}
        self.content["accessors"].append(accessor | more)
        return number

    def _points(self, points: npt.NDArray[np.float32]) -> int:
        return self._add(points, "VEC3", min=points.min(axis=0).tolist(), max=points.max(axis=0).tolist())

    def _mesh(self, mesh: core.Mesh, name: str, *, is_skinned: bool) -> int:
        """Add a mesh, which nodes share, with a primitive for each material."""
        if (id(mesh), is_skinned) in self._meshes:
            return self._meshes[id(mesh), is_skinned]
        found = Mesh._of(mesh).vertices()
        attributes = self._attributes(found, with_weights=is_skinned)
        moved = [(key.points - mesh.points)[found.point] for key in mesh.shape_keys]
        targets = [{"POSITION": self._points(offsets)} for offsets in moved]
        primitives = []
        for slot in np.unique(mesh.material_index).tolist():
            corners = found.triangles[mesh.material_index == slot].reshape(-1)
            made: dict[str, Any] = {"attributes": attributes, "indices": self._add(corners, "SCALAR", "uint32")}
            if slot < len(mesh.materials) and mesh.materials[slot]:
                made["material"] = self._materials.index(mesh.materials[slot])
            primitives.append(made | ({"targets": targets} if targets else {}))
        entry: dict[str, Any] = {"name": mesh.name or name, "primitives": primitives}
        if targets:
            entry |= {"weights": [0.0] * len(targets), "extras": {"targetNames": [k.name for k in mesh.shape_keys]}}
        self.content["meshes"].append(entry)
        self._meshes[id(mesh), is_skinned] = len(self.content["meshes"]) - 1
        return self._meshes[id(mesh), is_skinned]

    def _attributes(self, found: Vertices, *, with_weights: bool) -> dict[str, int]:
        attributes = {"POSITION": self._points(found.points)}
        if found.normals is not None:
            attributes["NORMAL"] = self._add(found.normals, "VEC3")
        for number, uv in enumerate(found.uvs):
            attributes[f"TEXCOORD_{number}"] = self._add(uv * (1.0, -1.0) + (0.0, 1.0), "VEC2")
        for number, color in enumerate(found.colors):
            linear = srgb_to_linear(from_unorm(color)) if color.dtype == np.uint8 else color
            attributes[f"COLOR_{number}"] = self._add(linear, "VEC4")
        if with_weights and found.weights is not None:
            joints, weights = _in_fours(found.weights)
            for number in range(joints.shape[1] // 4):
                part = slice(4 * number, 4 * number + 4)
                attributes[f"JOINTS_{number}"] = self._add(joints[:, part], "VEC4", "uint16")
                attributes[f"WEIGHTS_{number}"] = self._add(weights[:, part], "VEC4")
        return attributes

    def _clip(self, clip: core.Clip, joints: list[range]) -> dict[str, Any]:
        """Return the animation of a clip."""
        channels, samplers = [], []
        times = np.arange(clip.frame_count) / (clip.fps or DEFAULT_RATE) if clip.times is None else clip.times
        has_frames = bool(len(times)) and bool(clip.transforms)
        start = self._add(times, "SCALAR", min=[float(times[0])], max=[float(times[-1])]) if has_frames else -1
        for track in clip.transforms if has_frames else ():
            node = track.target + 1 if track.skeleton is None else joints[track.skeleton][track.target]
            turned = np.roll(track.rotation, -1, axis=1)
            for path, values in (("translation", track.translation), ("rotation", turned), ("scale", track.scale)):
                samplers.append({"input": start, "output": self._add(values, f"VEC{values.shape[1]}")})
                channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": path}})
        return {"name": clip.name, "channels": channels, "samplers": samplers}


def _place(translation: Vector3, rotation: Quaternion, scale: Vector3) -> dict[str, list[float]]:
    w, x, y, z = (np.array(rotation) / (np.linalg.norm(rotation) or 1.0)).tolist()
    return {"translation": [*translation], "rotation": [x, y, z, w], "scale": [*scale]}


def _in_fours(found: Weights) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return joints and weights with a multiple of 4 columns; the weights of each vertex have the sum 1."""
    columns = -found.joints.shape[1] % 4
    weights = np.pad(found.weights, ((0, 0), (0, columns)))
    weights[weights.sum(axis=1) <= 0, 0] = 1.0
    joints = np.where(weights > 0, np.pad(found.joints, ((0, 0), (0, columns))), 0)
    return joints, weights / weights.sum(axis=1, keepdims=True)
