"""Checksums that an import stores, by which edits of meshes, materials, armatures and actions are found."""

import json
import math
import zlib
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.messages import Named, Text
from ...io_formats.core.scene import AnyArray, FloatArray, IntArray
from .. import animated_blocks, arrays, compat
from ..animated_blocks import with_shape_keys
from ..armature_modifiers import armature_of
from . import vertex_weights


def material_checksum(material: bpy.types.Material) -> str:
    """Return a checksum of the nodes of a material with their values, images and links, and of its settings."""
    parts: list[Any] = [material.surface_render_method, material.use_backface_culling]
    tree = compat.node_tree(material)
    for node in tree.nodes if tree is not None else ():
        image = getattr(node, "image", None)
        parts += [node.bl_idname, node.name, node.mute, image.name if image is not None else ""]
        parts += [None if socket.is_linked else _value(socket) for socket in node.inputs]
    for link in tree.links if tree is not None else ():
        parts.append((link.from_socket.identifier, link.to_node.name))
    return str(zlib.crc32(repr(parts).encode()))


def _value(socket: bpy.types.NodeSocket) -> Any:
    value = getattr(socket, "default_value", None)
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def is_changed(material: bpy.types.Material) -> bool:
    """Return whether an imported material was changed since; False if its original checksum is not known."""
    known = material.meshferry.fingerprint
    return bool(known) and known != material_checksum(material)


_LABELS = {"position": "vertices", ".corner_vert": "faces", "material_index": "material assignment"}

_MOVED = 1e-5
"""Change of an entry of a bone's rest matrix above which the bone counts as edited; relative to the largest entry if
that is above 1.
"""


def store_fingerprint(made: bpy.types.Object) -> None:
    """Store checksums of the mesh that an import made, beside those that are already stored."""
    if isinstance(made.data, bpy.types.Mesh):
        _store(made.data, dict(_checksums(made.data, json.loads(made.data.meshferry.fingerprint or "{}"))))


def renew_fingerprint(mesh: bpy.types.Mesh) -> None:
    """Store the checksums of a new mesh again, after a reload transformed it; those of weights and colours stay."""
    mesh.meshferry.fingerprint = json.dumps(
        {**json.loads(mesh.meshferry.fingerprint or "{}"), **dict(_checksums(mesh))}
    )


def store_values(mesh: bpy.types.Mesh, attribute: str, values: AnyArray, *, is_uv: bool = False) -> None:
    """Store the checksum of an attribute as it was set.

    Checksums are made here since reading all values again would increase the peak memory use, and reading byte colours
    takes an eighth of an import.
    """
    if values.any() or attribute == "position":
        _store(mesh, {_attribute_label(attribute, is_uv): zlib.crc32(np.ascontiguousarray(values))})


def store_weights(mesh: bpy.types.Mesh, group_names: Sequence[str], groups: IntArray, weights: FloatArray) -> None:
    """Store checksums of the weights (P, k) of a new mesh, since reading them from Blender takes long."""
    vertex = np.repeat(np.arange(len(weights)), weights.shape[1])
    used = np.fmax(weights, np.float32(0))
    sums = _group_sums(len(group_names), vertex, groups.reshape(-1), used.reshape(-1))
    _store(mesh, {_group_label(name): sums[at] for at, name in enumerate(group_names)})


def _store(mesh: bpy.types.Mesh, checksums: Mapping[str, float]) -> None:
    kept = mesh.meshferry
    kept.fingerprint = json.dumps({**checksums, **json.loads(kept.fingerprint or "{}")})


def edits_of(obj: bpy.types.Object) -> list[str] | None:
    """Return the labels of the edited parts of an imported object's data, such as "UV map 'UVMap'".

    Return None if the edits are unknown.
    """
    data = obj.data
    if isinstance(data, bpy.types.Armature):
        edited = [bone.name for bone in data.bones if bone.meshferry.joint_name and _is_bone_edited(bone)]
        joints = "\n".join(bone.meshferry.joint_name for bone in data.bones)
        gone = {*data.meshferry.joint_names.split("\n")} - {"", *joints.split("\n")}
        return [Text("bone '{}'", Named("bone", name)) for name in (*edited, *sorted(gone))]
    if not isinstance(data, bpy.types.Mesh):
        return []
    if not data.meshferry.fingerprint:
        return None
    old = json.loads(data.meshferry.fingerprint)
    new = {**dict(_checksums(data)), **dict(_color_checksums(data)), **_weight_checksums(obj, old)}
    texts = {label: label for label in new}  # stored labels are plain strings, which cannot be translated
    found = [texts.get(label, label) for label in dict.fromkeys([*old, *new]) if old.get(label) != new.get(label)]
    if len(data.materials) != len(json.loads(data.meshferry.slot_names or "[]")):
        found.append("material slots")
    return found


def identity_of(mesh: bpy.types.Mesh) -> str:
    """Return the identifier of the import's mesh that a mesh comes from.

    Copies and edited meshes keep it; meshes made in Blender have an empty one.
    """
    fingerprint = mesh.meshferry.fingerprint
    return f"{zlib.crc32(fingerprint.encode()):08x}" if fingerprint else ""


def has_other_mesh(obj: bpy.types.Object) -> bool:
    """Return whether an object uses another mesh than the import of its placement gave it.

    Edited meshes and copies of the mesh do not count.
    """
    given = obj.meshferry.given_mesh
    return bool(given) and identity_of(obj.data) != given


def key_checksum(points: npt.NDArray[np.float32]) -> float:
    """Return a sum over the keys of an f-curve, (n, 2), which changes if a key is moved in time or value."""
    if len(points) == 1:  # fast path for most curves of large skeletons
        frame, value = points[0].tolist()
        return float((frame + 0.5) * value)
    keys = points.astype(np.float64)
    return float((keys[:, 0] + 0.5) @ keys[:, 1])


def edited_actions(obj: bpy.types.Object) -> list[bpy.types.Action]:
    """Return the imported actions of an object and its shape keys whose keys were edited since."""
    actions = [holder.action for owner in with_shape_keys([obj]) for holder in animated_blocks.action_holders(owner)]
    return [action for action in dict.fromkeys(actions) if action.meshferry.fingerprint and is_action_edited(action)]


def action_checksum(action: bpy.types.Action) -> float:
    """Return the sum of the checksums of all f-curves of an action."""
    curves = animated_blocks.action_curves(action, None)
    return sum((key_checksum(arrays.read(curve.keyframe_points, "co", 2)) for curve in curves), 0.0)


def is_action_edited(action: bpy.types.Action) -> bool:
    """Return whether the keys of an action were changed since its import."""
    total = action_checksum(action)
    return not math.isclose(total, float(action.meshferry.fingerprint), rel_tol=1e-9, abs_tol=1e-6)


def _is_bone_edited(bone: bpy.types.Bone) -> bool:
    now = np.array(bone.matrix_local).reshape(-1)
    return bool(np.abs(now - np.array(bone.meshferry.rest_matrix)).max() > _MOVED * max(1.0, np.abs(now).max()))


def _checksums(mesh: bpy.types.Mesh, known: Container[str] = ()) -> Iterator[tuple[str, float]]:
    """Yield label and checksum of each attribute and shape key whose label is not in ``known``.

    Attributes that are zero everywhere count as absent, since Blender adds and removes them at will.
    """
    for attribute in mesh.attributes:
        name, kind = attribute.name, attribute.data_type
        if kind not in arrays.ATTRIBUTES or (name.startswith(".") and name not in _LABELS) or name == "custom_normal":
            continue  # custom normals change together with the data that determines them
        label = _attribute_label(name, kind == "FLOAT2" and attribute.domain == "CORNER")
        if label in known:
            continue
        values = arrays.read_attribute(attribute)
        if values.any() or name == "position":
            yield label, zlib.crc32(values)
    keys = list(mesh.shape_keys.key_blocks) if mesh.shape_keys is not None else []
    for key in keys:
        points = arrays.read(key.points, "co", 3)
        if key == keys[0]:
            basis = points
        else:
            yield Text("shape key '{}'", Named("layer", key.name)), float(np.abs(points - basis).sum(dtype=np.float64))


def _attribute_label(name: str, is_uv: bool) -> str:
    return _LABELS.get(name, Text("UV map '{}'" if is_uv else "attribute '{}'", name))


def _color_checksums(mesh: bpy.types.Mesh) -> Iterator[tuple[str, int]]:
    for attribute in mesh.color_attributes:
        if attribute.data_type == "BYTE_COLOR":
            values = arrays.read(attribute.data, "color_srgb", 4)
            if values.any():
                named = Text("attribute '{}'", Named("layer", attribute.name))
                yield named, zlib.crc32(np.rint(values * 255).astype(np.uint8))


def _weight_checksums(obj: bpy.types.Object, old: Container[str]) -> dict[str, float]:
    """Return the checksum of each vertex group by its label.

    Groups that were renamed together with a bone keep the label of the import.
    """
    groups = obj.vertex_groups
    if not len(groups):
        return {}
    counts, group, weight = vertex_weights.read(obj.data)
    vertex = np.repeat(np.arange(len(counts)), counts)
    used = (weight > 0) & (group < len(groups))
    sums = _group_sums(len(groups), vertex[used], group[used], weight[used])
    rig = armature_of(obj)
    found = {}
    for name, number in zip(groups.keys(), sums, strict=True):
        bone = rig.data.bones.get(name) if rig is not None else None
        joint = bone.meshferry.joint_name if bone is not None and _group_label(name) not in old else ""
        found[_group_label(joint or name)] = number
    return found


def _group_sums(count: int, vertex: Any, group: IntArray, weight: FloatArray) -> list[float]:
    """Return a sum for each vertex group, which changes if a weight is changed or moved to another vertex."""
    sums: list[float] = np.bincount(group, weight * (vertex + 1.0), count).tolist()
    return [float(f"{number:.9g}") for number in sums]


def _group_label(name: str) -> str:
    return Text("vertex group '{}'", name)
