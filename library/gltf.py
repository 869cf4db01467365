"""Scenes -> GLB files: meshes with shape keys, skins, and clips with a key for each frame.

A root node turns the scene, whose Z axis is up, so that Y is up.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cli.conversions.blender_formats import GLB
from ..io_formats.core import scene as core
from ..io_formats.core.capabilities import losses
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.glb_materials import encode_glb
from ..io_formats.core.messages import Message, Report
from ..io_formats.encodings.quantization import from_unorm, srgb_to_linear
from ..io_formats.geometry.normals import repair_vertices, report_repaired
from ..io_formats.geometry.vertices import report_loose, split_mesh, usable_weights
from ..io_formats.passes.clips import DEFAULT_RATE, with_frames
from ..io_formats.passes.flatten import fit
from .posing import bindings, world_matrices

_HELD = replace(GLB.capabilities, vertex_clips=False)
_COMPONENTS = {"uint16": 5123, "uint32": 5125, "float32": 5126}
_Z_UP = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def encode_scene(scene: core.Scene) -> tuple[bytes, list[Message]]:
    """Return the GLB file of a scene, which is changed, and messages about what it lacks."""
    lost = losses(scene, _HELD)
    fit(scene, _HELD)
    writer = _Writer(with_frames(scene))
    return writer.encode(), [*lost, *writer.report.messages]


class _Writer:
    """Builds the JSON and the buffer of one file."""

    def __init__(self, scene: core.Scene) -> None:
        self.scene = scene
        self.report = Report()  # its item is the node or clip that is encoded
        self.buffer = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        names = [name for node in scene.nodes if node.mesh is not None for name in node.mesh.materials if name]
        self._materials = list(dict.fromkeys(names))

    def encode(self) -> bytes:
        """Return the file."""
        scene = self.scene
        parts: list[Sequence[core.Node | core.Joint]] = [scene.nodes, *(each.joints for each in scene.skeletons)]
        firsts = [1, *(1 + np.cumsum([len(part) for part in parts])).tolist()]
        nodes: list[dict[str, Any]] = [{"name": scene.name, "rotation": _Z_UP}]
        nodes += [_placed(part) for part in chain(*parts)]
        for first, part in zip(firsts, parts, strict=False):
            for number, each in enumerate(part, first):
                nodes[first + each.parent if each.parent >= 0 else 0].setdefault("children", []).append(number)
        meshes: dict[tuple[int, bool], dict[str, Any]] = {}
        skins: list[dict[str, Any]] = []
        for node, made, world in zip(scene.nodes, nodes[1:], world_matrices(scene)[0], strict=False):
            self.report.item = node.name
            if node.mesh is not None:
                report_loose(node.mesh, self.report)
            if node.mesh is None or not len(node.mesh.corner_point):
                continue
            is_skinned = node.skeleton is not None and node.mesh.joint_weights is not None
            key = (id(node.mesh), is_skinned)
            if key not in meshes:
                meshes[key] = self._mesh(node.mesh, node.name, is_skinned=is_skinned)
            made["mesh"] = [*meshes].index(key)
            if is_skinned and node.skeleton is not None:
                skeleton = scene.skeletons[node.skeleton]
                bound = bindings(skeleton, node, world).transpose(0, 2, 1).reshape(-1, 16)
                joints = [*range(firsts[node.skeleton + 1], firsts[node.skeleton + 2])]
                made["skin"] = len(skins)
                skins.append({"joints": joints, "inverseBindMatrices": self._add(bound, "MAT4")})
        colors = {material.name: material.color for material in scene.materials}
        content = {
            "nodes": nodes,
            "meshes": [*meshes.values()],
            "skins": skins,
            "materials": [
                {"name": name, "pbrMetallicRoughness": {"baseColorFactor": [*colors.get(name, (0.8, 0.8, 0.8, 1.0))]}}
                for name in self._materials
            ],
            "animations": [self._clip(clip, firsts) for clip in scene.clips if clip.transforms and clip.frame_count],
            "accessors": self.accessors,
            "bufferViews": self.views,
        }
        fixed = {"asset": {"version": "2.0", "generator": "Meshferry"}, "scene": 0, "scenes": [{"nodes": [0]}]}
        return encode_glb(fixed | {name: items for name, items in content.items() if items}, bytes(self.buffer))

    def _add(self, values: npt.NDArray[Any], kind: str, dtype: str = "float32") -> int:
        """Add an array; return the index of its accessor."""
        data = np.ascontiguousarray(values, dtype)
        _require_finite(data, self.report.item)
        self.views.append({"buffer": 0, "byteOffset": len(self.buffer), "byteLength": data.nbytes})
        self.buffer += data.tobytes() + bytes(-data.nbytes % 4)
        low, high = (np.atleast_1d(limit).tolist() for limit in (data.min(axis=0), data.max(axis=0)))
        accessor = {"bufferView": len(self.accessors), "componentType": _COMPONENTS[dtype], "count": len(data)}
        self.accessors.append(accessor | {"type": kind, "min": low, "max": high})
        return len(self.accessors) - 1

    def _mesh(self, mesh: core.Mesh, name: str, *, is_skinned: bool) -> dict[str, Any]:
        """Return a mesh with a primitive for each material."""
        found, vertices = split_mesh(replace(mesh, tangent=None, custom=[]), core.NORMAL_TOLERANCE)
        point = mesh.corner_point[vertices.vertex_corner]
        attributes = {"POSITION": self._add(found.points, "VEC3")}
        if found.normal is not None:
            corners, normals = vertices.vertex_corner, found.normal.values
            normals, repaired = repair_vertices(normals, corners, mesh.points, mesh.corner_point)
            report_repaired(repaired, self.report)
            attributes["NORMAL"] = self._add(normals, "VEC3")
        for number, layer in enumerate(found.uvs):
            attributes[f"TEXCOORD_{number}"] = self._add(layer.values * (1.0, -1.0) + (0.0, 1.0), "VEC2")
        for number, layer in enumerate(found.colors):
            linear = srgb_to_linear(from_unorm(layer.values)) if layer.values.dtype == np.uint8 else layer.values
            clamped = np.clip(linear, 0.0, 1.0)
            if (np.abs(clamped - linear) > 1e-6).any():
                self.report.loss("clamped-colors", "colours of '{}' are below 0 or above 1; clamped", layer.name)
            attributes[f"COLOR_{number}"] = self._add(clamped, "VEC4")
        if is_skinned and found.joint_indices is not None and found.joint_weights is not None:
            # Joints and weights have a multiple of 4 columns; the weights of each vertex have the sum 1.
            more = ((0, 0), (0, max(4 - (columns := found.joint_weights.shape[1]), -columns % 4)))
            weights = np.pad(usable_weights(found.joint_weights, self.report), more)
            weights[weights.sum(axis=1) <= 0, 0] = 1.0
            joints = np.where(weights > 0, np.pad(found.joint_indices, more), 0)
            for number in range(weights.shape[1] // 4):
                part = slice(4 * number, 4 * number + 4)
                attributes[f"JOINTS_{number}"] = self._add(joints[:, part], "VEC4", "uint16")
                shares = weights[:, part] / weights.sum(axis=1, keepdims=True)
                attributes[f"WEIGHTS_{number}"] = self._add(shares, "VEC4")
        targets = [{"POSITION": self._add((key.points - mesh.points)[point], "VEC3")} for key in mesh.shape_keys]
        primitives = []
        for slot in np.unique(mesh.material_index).tolist():
            corners = found.corner_point.reshape(-1, 3)[mesh.material_index == slot].reshape(-1)
            made: dict[str, Any] = {"attributes": attributes, "indices": self._add(corners, "SCALAR", "uint32")}
            if slot < len(mesh.materials) and mesh.materials[slot]:
                made["material"] = self._materials.index(mesh.materials[slot])
            primitives.append(made | ({"targets": targets} if targets else {}))
        names = {"extras": {"targetNames": [key.name for key in mesh.shape_keys]}} if targets else {}
        return {"name": mesh.name or name, "primitives": primitives} | names

    def _clip(self, clip: core.Clip, firsts: Sequence[int]) -> dict[str, Any]:
        """Return the animation of a clip."""
        self.report.item = clip.name
        channels: list[dict[str, Any]] = []
        samplers: list[dict[str, Any]] = []
        times = np.arange(clip.frame_count) / (clip.fps or DEFAULT_RATE) if clip.times is None else clip.times
        start = self._add(times, "SCALAR")
        for track in clip.transforms:
            node = firsts[0 if track.skeleton is None else track.skeleton + 1] + track.target
            turned = np.roll(track.rotation, -1, axis=1)
            for path, values in (("translation", track.translation), ("rotation", turned), ("scale", track.scale)):
                channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
                samplers.append({"input": start, "output": self._add(values, f"VEC{values.shape[1]}")})
        return {"name": clip.name, "channels": channels, "samplers": samplers}


def _require_finite(values: npt.ArrayLike, name: str) -> None:
    if not np.isfinite(values).all():
        raise MeshferryError("'{}' has values that are NaN or infinite", name)


def _placed(part: core.Node | core.Joint) -> dict[str, Any]:
    _require_finite([*part.translation, *part.rotation, *part.scale], part.name)
    w, x, y, z = (np.array(part.rotation) / (np.linalg.norm(part.rotation) or 1.0)).tolist()
    place = {"translation": [*part.translation], "rotation": [x, y, z, w], "scale": [*part.scale]}
    return {"name": part.name, **place}
