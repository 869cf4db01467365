"""Copies of rigged meshes for another armature: vertex groups merged by name, vertices moved with their bones."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ...io_formats.core.messages import Report, of_kind
from .. import animated_blocks, arrays, names
from ..armature_modifiers import armature_modifiers, armature_of, refer_to_copies
from . import joint_weights, shown_bindings
from .joint_poses import Array
from .joint_weights import JointWeights


def bound_meshes(context: bpy.types.Context, armature: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the mesh objects of the scene that an armature deforms or that are parented to one of its bones."""
    return [
        obj
        for obj in context.scene.objects
        if obj.type == "MESH" and (armature_of(obj) == armature or _bone_of(obj, armature))
    ]


def rest_matrix(obj: bpy.types.Object, armature: bpy.types.Object) -> Array:
    """Return the world matrix of a bound object while its armature is in the rest pose, (4, 4)."""
    world = np.array(obj.matrix_world, np.float64)
    if not (bone := _bone_of(obj, armature)):
        return world
    of_bone = armature.pose.bones[bone].matrix, armature.data.bones[bone].matrix_local
    posed, rest = (np.array(armature.matrix_world @ matrix, np.float64) for matrix in of_bone)
    return rest @ np.linalg.pinv(posed) @ world


def copy_bound(
    obj: bpy.types.Object,
    armature: bpy.types.Object,
    target: bpy.types.Object,
    groups: Mapping[str, str],
    prefix: str,
    keep: Callable[[bpy.types.ID], Any],
) -> bpy.types.Object:
    """Copy a mesh object and bind the copy to another armature, with merged vertex groups.

    The copy is located where the object is in the rest pose of its armature. The copy of an object that is not bound,
    such as a physics shape, only gets the new armature as its parent.

    Parameters
    ----------
    groups:
        Name of the new vertex group for each bone.
    prefix:
        Beginning of the copy's name, so that suffixes keep their meaning.
    keep:
        Called with each new data block, so that it is removed after a failure.
    """
    bone = _bone_of(obj, armature)
    copy: bpy.types.Object = keep(obj.copy())
    copy.data = keep(obj.data.copy())
    copy.name = names.fit(prefix + obj.name)
    copy.data.name = names.fit(prefix + obj.data.name)
    shown_bindings.hide(copy)
    copy.animation_data_clear()
    copy.constraints.clear()
    if bone:
        for group in list(copy.vertex_groups):
            copy.vertex_groups.remove(group)
        copy.vertex_groups.new(name=bone).add(range(len(copy.data.vertices)), 1.0, "REPLACE")
    merge_groups(copy, groups)
    for modifier in copy.modifiers:
        if modifier.type != "ARMATURE" and (name := getattr(modifier, "vertex_group", "")) in groups:
            modifier.vertex_group = groups[name]
    found = armature_modifiers(copy)
    for modifier in found:
        if modifier.object == armature:
            modifier.object = target
    if not found and (bone or armature_of(obj) == armature):
        copy.modifiers.new("Armature", "ARMATURE").object = target
        copy.modifiers.move(len(copy.modifiers) - 1, 0)
    copy.delta_location, copy.delta_rotation_euler, copy.delta_scale = (0, 0, 0), (0, 0, 0), (1, 1, 1)
    copy.delta_rotation_quaternion = (1, 0, 0, 0)
    copy.parent, copy.parent_type, copy.parent_bone = target, "OBJECT", ""
    world = rest_matrix(obj, armature)
    local = np.linalg.inv(np.array(target.matrix_world, np.float64)) @ world
    # The copy keeps location, rotation and scale; together with the parent inverse, shear from parents is kept as well.
    basis = np.array(copy.matrix_basis, np.float64)
    copy.matrix_parent_inverse = Matrix((local @ np.linalg.pinv(basis)).tolist())
    return copy


def merge_groups(obj: bpy.types.Object, groups: Mapping[str, str]) -> None:
    """Rename the vertex groups of a mesh object; add the weights of groups that get the same name."""
    merged: dict[str, list[bpy.types.VertexGroup]] = {}
    for group in obj.vertex_groups:
        name = groups.get(group.name, group.name)
        if group.name in groups or name in groups.values():
            merged.setdefault(name, []).append(group)
    weights = joint_weights.read(obj, {group.name for parts in merged.values() if len(parts) > 1 for group in parts})
    for number, (first, *others) in enumerate(merged.values()):
        if others:
            sums = weights.for_joints([group.name for group in (first, *others)]).sum(axis=1)
            vertices = np.flatnonzero(sums > 0)
            values = sums[vertices].tolist()
            deque(map(first.add, vertices[:, None].tolist(), values, repeat("REPLACE")), maxlen=0)
        first.name = f"\x7f{number}"  # a temporary name that no group has, until all final names are free
    removed = [group.name for _first, *others in merged.values() for group in others]
    final = [(first.name, name) for name, (first, *_others) in merged.items()]
    for name in removed:
        obj.vertex_groups.remove(obj.vertex_groups[name])
    for before, name in final:
        obj.vertex_groups[before].name = name


def deform(obj: bpy.types.Object, matrices: Mapping[str, Array], default: Array) -> None:
    """Move the vertices and shape keys of a mesh object by the weighted transforms of its vertex groups.

    Afterwards the object has no transform of its own: its vertices are in the space of the parent.

    Parameters
    ----------
    matrices:
        (4, 4) transform in the space of the parent for each vertex group that takes part.
    default:
        Transform of vertices without weights in these groups.
    """
    local = np.array(obj.matrix_parent_inverse, np.float64) @ np.array(obj.matrix_basis, np.float64)
    transforms = blended(joint_weights.read(obj, matrices), matrices, default) @ local
    move(obj.data, transforms)
    _turn_free_normals(obj.data, transforms[:, :3, :3])
    if np.linalg.det(local[:3, :3]) < 0:
        obj.data.flip_normals()
    obj.matrix_parent_inverse = Matrix()
    obj.matrix_basis = Matrix()
    obj.data.update()


def move(data: bpy.types.Mesh, transforms: Array) -> None:
    """Move the vertices and shape keys of a mesh by a transform for each vertex, (V, 4, 4)."""
    places = [data.vertices] + ([key.data for key in data.shape_keys.key_blocks] if data.shape_keys else [])
    for points in places:
        points.foreach_set("co", arrays.flat(moved(arrays.read(points, "co", 3), transforms)))


def moved(points: Array, transforms: Array) -> Array:
    """Return points (V, 3), each moved by its transform (V, 4, 4), or all by one (4, 4)."""
    return np.einsum("...ij,...j->...i", transforms[..., :3, :3], points) + transforms[..., :3, 3]


def relate_copies(copies: Mapping[bpy.types.Object, bpy.types.Object]) -> None:
    """Make copies refer to other copies where their originals refer to each other, as levels of detail do."""
    for copy in copies.values():
        refer_to_copies(copy.meshferry, copies)


def link_beside(context: bpy.types.Context, copies: Mapping[bpy.types.Object, bpy.types.Object]) -> None:
    """Link copies to the collections of their originals; copies of hidden objects are hidden."""
    for obj, copy in copies.items():
        homes = [collection for collection in obj.users_collection if collection.is_editable]
        for collection in homes or [context.scene.collection]:
            collection.objects.link(copy)
    context.view_layer.update()
    hide(context, [copy for obj, copy in copies.items() if obj.hide_get(view_layer=context.view_layer)])


def hide(context: bpy.types.Context, items: Iterable[bpy.types.Object]) -> None:
    """Hide those of the objects that are in the view layer."""
    there = set(context.view_layer.objects)
    for obj in items:
        if obj in there:
            obj.hide_set(True)


def blended(weights: JointWeights, matrices: Mapping[str, Array], default: Array) -> Array:
    """Return the weighted transform of each vertex, (V, 4, 4), as the Armature modifier blends them.

    Parameters
    ----------
    matrices:
        (4, 4) transform of each joint.
    default:
        Transform of vertices without weights.
    """
    of_groups = np.array([matrices[name] for name in weights.joints]).reshape(-1, 16)
    total = weights.values.sum(axis=1, dtype=np.float64)[:, None]
    sums = weights.values.astype(np.float64) @ of_groups
    found = np.where(total > 0, sums / np.where(total > 0, total, 1), default.reshape(16))
    return found.reshape(-1, 4, 4)


def report_left_behind(armature: bpy.types.Object, meshes: Iterable[bpy.types.Object], report: Report) -> None:
    """Report the actions, constraints and drivers of an armature and its meshes that copies do not have or follow."""
    objects = [armature, *meshes]
    actions = {holder.action.name: None for obj in objects for holder in animated_blocks.action_holders(obj)}
    owners = [*objects, *armature.pose.bones]
    constraints = [f"{owner.name} ({constraint.name})" for owner in owners for constraint in owner.constraints]
    keys = [obj.data.shape_keys for obj in meshes if obj.data.shape_keys is not None]
    drivers = [
        f"{block.name}: {curve.data_path}"
        for block in (*objects, armature.data, *keys)
        for curve in (block.animation_data.drivers if block.animation_data is not None else ())
        if block not in keys or any(one.id == armature for value in curve.driver.variables for one in value.targets)
    ]
    text = "{} left with the original armature, since bones of the copy have other axes: {}"
    report.loss_of("actions-left-behind", text, of_kind("animation", list(actions)), "action")
    report.loss_of("constraints-left-behind", text, constraints, "constraint")
    report.loss_of("drivers-left-behind", text, drivers, "driver")


def _turn_free_normals(data: bpy.types.Mesh, linear: Array) -> None:
    """Rotate custom normals that are stored as vectors with their vertices."""
    normals = data.attributes.get("custom_normal")
    if normals is None or normals.data_type != "FLOAT_VECTOR" or normals.domain not in {"POINT", "CORNER"}:
        return
    values = arrays.read(normals.data, "vector", 3)
    vertex = np.arange(len(data.vertices), dtype=np.int32)
    if normals.domain == "CORNER":
        vertex = arrays.corner_vertices(data)
    # The cofactor matrix transforms normals like the inverse transpose, up to a factor.
    x, y, z = np.moveaxis(linear, 2, 0)
    cofactors = np.stack((np.cross(y, z), np.cross(z, x), np.cross(x, y)), axis=2)
    turned = np.einsum("vij,vj->vi", cofactors[vertex], values)
    turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)
    normals.data.foreach_set("vector", arrays.flat(turned))


def _bone_of(obj: bpy.types.Object, armature: bpy.types.Object) -> str:
    """Return the bone of an armature to which an object is parented, or an empty string."""
    is_bone = obj.parent == armature and obj.parent_type == "BONE" and obj.parent_bone in armature.data.bones
    return obj.parent_bone if is_bone and not armature_modifiers(obj) else ""
