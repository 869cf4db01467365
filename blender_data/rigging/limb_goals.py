"""Goals of limbs: inverse kinematics that moves the last joint of a limb to a bone, its goal.

Blender's solver moves the tail of a bone, and bones of figures with shapes do not end at the next joint. So a helper
bone, almost without length, starts where the last joint does: at the same point for every shape, since both have the
same parent. The middle joint is a hinge that bends one way only. It starts each solution bent, because the solver does
not find a way out of a straight limb.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
from mathutils import Vector

from ..operator_calls import edit_mode
from .helper_bones import COLLECTION as HELPERS
from .helper_bones import put_away

COLLECTION = "Goals"

_NAME = "Limb Goal"
"""Name of the constraints, and of the cube that goals are drawn as."""
_LEFT, _RIGHT = "THEME09", "THEME02"
_SIZE = 0.12
"""Length of goals and of the sides of their cubes, in metres."""
_LENGTH = 2e-5
"""Length of helper bones in metres, by which a limb misses its goal. Blender removes bones without length."""
_START, _BENT = math.radians(25), math.radians(160)
"""Smallest angle of the middle joint from which a solution starts, and its largest angle; 0 is a straight limb. The
solver fails for 5 % of random goals if it starts from 10°, and for none of 2,400 from 15°."""
_AXES = "xyz"
_CORNERS = [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
_EDGES = [(a, b) for a in range(8) for b in range(a) if (a ^ b).bit_count() == 1]


@dataclass(frozen=True)
class Limb:
    """An arm or a leg."""

    bones: tuple[str, str, str]
    """Names of the bones whose heads are its joints: shoulder, elbow and wrist, or hip, knee and ankle."""
    goal: str
    """Name for the goal. If it ends in ``Left``, the goal has the colour of the left side."""
    hinge: tuple[float, float, float]
    """Axis in the space of the armature about which the middle joint bends by positive angles."""


def has_goals(armature: bpy.types.Object) -> bool:
    """Return whether an armature object has goals."""
    return any(bone.meshferry.is_control for bone in armature.data.bones)


def add(context: bpy.types.Context, armature: bpy.types.Object, limbs: Sequence[Limb]) -> None:
    """Add goals where the limbs of an armature object are in its pose, and let the limbs follow them."""
    data = armature.data
    with edit_mode(context, armature):
        made = [_add_bones(data.edit_bones, limb) for limb in limbs]
    collection = data.collections_all.get(COLLECTION) or data.collections.new(COLLECTION)
    for goal, helper in made:
        for name in (goal, helper):
            data.bones[name].use_deform, data.bones[name].meshferry.is_control = False, True
        data.bones[goal].color.palette = _LEFT if goal.endswith("Left") else _RIGHT
        collection.assign(data.bones[goal])
    put_away(data, [data.bones[helper] for _goal, helper in made])
    context.view_layer.update()
    bones = armature.pose.bones
    for limb, (goal, helper) in zip(limbs, made, strict=True):
        _place(bones[goal], bones[limb.bones[2]])
        _bend_one_way([bones[name] for name in limb.bones], Vector(limb.hinge))
        for axis in _AXES:
            setattr(bones[helper], f"lock_ik_{axis}", True)
        reach, turn = _constraint(bones[helper], "IK"), _constraint(bones[limb.bones[2]], "COPY_ROTATION")
        reach.chain_count, reach.use_stretch = 3, False
        for constraint in (reach, turn):
            constraint.target, constraint.subtarget = armature, goal


def remove(context: bpy.types.Context, armature: bpy.types.Object) -> None:
    """Remove the goals of an armature; channels of its limbs that are not animated keep their pose."""
    data = armature.data
    context.view_layer.update()
    for obj in bpy.data.objects:
        if obj.type == "ARMATURE" and obj.data == data:
            _release(obj)
    controls = [bone.name for bone in data.bones if bone.meshferry.is_control]
    with edit_mode(context, armature):
        for name in controls:
            data.edit_bones.remove(data.edit_bones[name])
    for name in (COLLECTION, HELPERS):
        collection = data.collections_all.get(name)
        if collection is not None and not len(collection.bones):
            data.collections.remove(collection)


def _add_bones(bones: bpy.types.ArmatureEditBones, limb: Limb) -> tuple[str, str]:
    """Add the goal, which has the direction of the last bone, and the helper; return their names."""
    _first, middle, last = (bones[name] for name in limb.bones)
    goal = bones.new(limb.goal)
    goal.head, goal.tail = (0.0, 0.0, 0.0), (0.0, _SIZE, 0.0)
    goal.matrix = last.matrix
    helper = bones.new(f"{goal.name} Helper")
    helper.head, helper.tail = last.head, last.head + (last.head - middle.head).normalized() * _LENGTH
    helper.parent, helper.inherit_scale = middle, last.inherit_scale
    return goal.name, helper.name


def _place(goal: bpy.types.PoseBone, last: bpy.types.PoseBone) -> None:
    """Put a goal where the last bone of its limb is, and draw it as a cube along the axes of the armature."""
    # Not by the matrix, whose scale would be 1 with rounding errors.
    goal.location, goal.rotation_quaternion, _scale = (goal.bone.matrix_local.inverted() @ last.matrix).decompose()
    goal.lock_scale = (True, True, True)
    goal.custom_shape, goal.use_custom_shape_bone_size = _cube(), False
    goal.custom_shape_scale_xyz, goal.custom_shape_wire_width = (_SIZE, _SIZE, _SIZE), 2.5
    goal.custom_shape_rotation_euler = goal.bone.matrix_local.to_3x3().inverted().to_euler()


def _cube() -> bpy.types.Object:
    """Return the object that goals are drawn as; it is in no scene."""
    known = bpy.data.objects.get(_NAME)
    if known is not None and known.library is None and known.type == "MESH":
        return known
    mesh = bpy.data.meshes.new(_NAME)
    mesh.from_pydata(_CORNERS, _EDGES, [])
    return bpy.data.objects.new(_NAME, mesh)


def _bend_one_way(bones: Sequence[bpy.types.PoseBone], hinge: Vector) -> None:
    """Let the middle one of three pose bones bend about its axis nearest to ``hinge``, from straight to fully bent."""
    first, middle, last = (bone.bone.head_local for bone in bones)
    bone = bones[1]
    axes = bone.bone.matrix_local.to_3x3().transposed()
    number = max(range(3), key=lambda axis: abs(axes[axis].dot(hinge)))
    sign = math.copysign(1.0, axes[number].dot(hinge))
    upper, lower = ((part - part.project(axes[number])) for part in (middle - first, last - middle))
    rest = math.atan2(sign * axes[number].dot(upper.cross(lower)), upper.dot(lower))
    for axis in _AXES:
        setattr(bone, f"lock_ik_{axis}", axis != _AXES[number])
    start = _constraint(bone, "LIMIT_ROTATION")
    start.owner_space = "LOCAL"
    axis = _AXES[number]
    setattr(bone, f"use_ik_limit_{axis}", True)
    setattr(start, f"use_limit_{axis}", True)
    for owner, prefix, least in ((bone, "ik_", 0.0), (start, "", _START)):
        low, high = sorted(sign * (angle - rest) for angle in (least, _BENT))
        setattr(owner, f"{prefix}min_{axis}", low)
        setattr(owner, f"{prefix}max_{axis}", high)


def _constraint(bone: bpy.types.PoseBone, kind: str) -> Any:
    made = bone.constraints.new(kind)
    made.name = _NAME
    return made


def _release(armature: bpy.types.Object) -> None:
    """Remove the constraints from an armature object; the channels of its limbs get the rotations that are shown."""
    ours = {bone: bone.constraints[_NAME] for bone in armature.pose.bones if _NAME in bone.constraints}
    hinges = [bone for bone, constraint in ours.items() if constraint.type == "LIMIT_ROTATION"]
    turned = [bone for bone in [*ours, *(hinge.parent for hinge in hinges)] if not bone.bone.meshferry.is_control]
    poses = [
        armature.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        for bone in turned
    ]
    for bone, pose in zip(turned, poses, strict=True):
        location, scale = bone.location.copy(), bone.scale.copy()
        bone.matrix_basis = pose
        bone.location, bone.scale = location, scale
    for bone, constraint in ours.items():
        bone.constraints.remove(constraint)
    for bone in hinges:
        for axis in _AXES:
            for channel in (f"lock_ik_{axis}", f"use_ik_limit_{axis}"):
                setattr(bone, channel, False)
