"""Armatures, weights and actions for the measured models, made without any exporter's or importer's help."""

from __future__ import annotations

import bmesh
import bpy
import numpy as np
from meshferry.blender_data import animated_blocks

WEIGHTS = 4
"""Bones that move each vertex."""


def build_armature(bones: int, length: float = 20.0, branches: int = 6) -> bpy.types.Object:
    """Build an armature of several chains along X, linked to the bench's collection; return its object."""
    data = bpy.data.armatures.new("Rig")
    obj = bpy.data.objects.new("Rig", data)
    _collection().objects.link(obj)
    bpy.context.view_layer.update()
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    per_branch = -(-bones // branches)
    for number in range(bones):
        branch, place = divmod(number, per_branch)
        bone = data.edit_bones.new(f"bone_{number:03d}")
        step = length / per_branch
        bone.head = (place * step, branch, 0.1 * place)
        bone.tail = ((place + 1) * step, branch, 0.1 * (place + 1))
        if place:
            bone.parent = data.edit_bones[number - 1]
    bpy.ops.object.mode_set(mode="OBJECT")
    return obj


def bind(obj: bpy.types.Object, armature: bpy.types.Object, bones: list[str] | None = None) -> None:
    """Weigh every vertex to four of these bones (default: all) and put the mesh under the armature."""
    names = bones or [bone.name for bone in armature.data.bones]
    for name in names:
        obj.vertex_groups.new(name=name)
    count = len(obj.data.vertices)
    numbers = np.arange(count)
    first = (numbers * 7919) % len(names)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    groups = ((first[:, None] + np.arange(WEIGHTS)) % len(names)).tolist()
    edited = bmesh.new()
    edited.from_mesh(obj.data)
    layer = edited.verts.layers.deform.verify()
    for vertex, own in zip(edited.verts, groups, strict=True):
        weights = vertex[layer]
        for group, share in zip(own, shares, strict=True):
            weights[group] = share
    edited.to_mesh(obj.data)
    edited.free()
    obj.parent = armature
    obj.modifiers.new("Armature", "ARMATURE").object = armature


def animate(armature: bpy.types.Object, frames: int) -> bpy.types.Action:
    """Key location and rotation of every bone on each frame."""
    time = np.arange(1, frames + 1, dtype=np.float32)
    channels = {}
    for number, bone in enumerate(armature.pose.bones):
        angle = 0.2 * np.sin(time * 0.05 + number)
        channels[bone.name] = {
            "location": [0.01 * np.sin(time * 0.1 + number), 0 * time, 0.01 * np.cos(time * 0.1 + number)],
            "rotation_quaternion": [np.cos(angle), np.sin(angle), 0 * time, 0 * time],
        }
    return key(armature, channels)


def key_rotations(armature: bpy.types.Object, bones: list[str], angles: np.ndarray) -> bpy.types.Action:
    """Key rotations of bones about their X axes on each frame; ``angles`` has a row of radians for each bone."""
    half = angles / 2
    return key(
        armature,
        {
            bone: {"rotation_quaternion": [np.cos(row), np.sin(row), 0 * row, 0 * row]}
            for bone, row in zip(bones, half, strict=True)
        },
    )


def key(armature: bpy.types.Object, bones: dict[str, dict[str, list[np.ndarray]]]) -> bpy.types.Action:
    """Make the action of an armature: values of each frame from 1 on, by bone, channel and component."""
    frames = max(len(columns[0]) for channels in bones.values() for columns in channels.values())
    curves = animated_blocks.ActionCurves("Dance", (1.0, float(frames)))
    found, action, slot = curves.curves_for(armature)
    time = np.arange(1, frames + 1, dtype=np.float32)
    for name, channels in bones.items():
        armature.pose.bones[name].rotation_mode = "QUATERNION"
        for channel, columns in channels.items():
            for index, values in enumerate(columns):
                curve = found.new(f'pose.bones["{name}"].{channel}', index=index)
                curve.keyframe_points.add(frames)
                curve.keyframe_points.foreach_set("co", np.stack([time, values], axis=1).astype(np.float32).ravel())
                curve.keyframe_points.foreach_set("interpolation", np.ones(frames, np.int32))
                curve.update()
    animated_blocks.assign_action(armature, action, slot)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, frames
    return action


def _collection() -> bpy.types.Collection:
    from . import models

    found = bpy.data.collections.get(models.COLLECTION_NAME)
    if found is None:
        found = bpy.data.collections.new(models.COLLECTION_NAME)
        bpy.context.scene.collection.children.link(found)
    return found
