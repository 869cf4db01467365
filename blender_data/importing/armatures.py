"""Skeletons -> armatures. Blender's bones have a length and no rest scale; joints have a scale and no length.

The joints' own axes are not used for such bones; they are stored in ``bone.meshferry`` as for all bones.

An edit bone gets the location and rotation of its joint's bind world matrix. The exact bind transforms are stored in
``bone.meshferry``, so that the export can restore them.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Named
from ...io_formats.core.scene import Joint, Skeleton
from ...io_formats.geometry import hierarchy
from .. import file_records, names
from ..operator_calls import edit_mode, require_own_scene
from ..properties import store_fields
from ..rigging import joint_poses
from ..rigging.joint_poses import Array, BoneMap

_LEAST_LENGTH = 1e-4
"""Smallest length of a joint in metres from which its direction is used."""
_SHORT = 0.01
"""Length of the bones of shorter joints, in metres."""
_UNSCALED = 1e-6
_ALONG = 0.9
"""Cosine of the angle between a bone and a roll axis above which the other roll axis is used."""

_ROLL_AXES = (Vector((0.0, -1.0, 0.0)), Vector((0.0, 0.0, 1.0)))
"""Preferred Z axes of bones; the second is for bones that point along the first. Both are in the mirror plane of left
and right, so that bones of both sides have mirrored rolls and X-mirroring works."""

_VOLUME_COLOR = "THEME04"


def bone_vectors(joints: Sequence[Joint], parents: Sequence[int]) -> list[Array | None]:
    """Return the vector from head to end of each joint's bone, (3,) float64; None if the end of the joint is not known.

    A bone without length gets the direction of its parent.
    """
    found: list[Array | None] = [None] * len(joints)
    for joint in hierarchy.parents_first(parents):
        tail = joints[joint].tail
        if tail is None:
            continue
        vector = np.asarray(tail, np.float64)
        if np.linalg.norm(vector) < _LEAST_LENGTH:
            above = found[parents[joint]] if parents[joint] >= 0 else None
            along = np.array((0.0, 0.0, 1.0)) if above is None else above
            vector = along / np.linalg.norm(along) * _SHORT
        found[joint] = vector
    return found


def draw_bone(bone: bpy.types.EditBone, head: Array, vector: Array, up: Sequence[float] | None) -> None:
    """Place an edit bone and roll it; ``up`` is the direction of its Z axis, None to choose one."""
    bone.head = head.tolist()
    bone.tail = (head + vector).tolist()
    along = bone.vector.normalized()
    chosen = next((axis for axis in _ROLL_AXES if abs(along.dot(axis)) < _ALONG), _ROLL_AXES[0])
    bone.align_roll(chosen if up is None else Vector(up))


def sort_bones(data: bpy.types.Armature, skeleton: Skeleton, given: Sequence[str]) -> None:
    """Assign bones to the collections named by their joints; bones of collision volumes are thin and coloured.

    A joint with a scale is a collision volume with this size.
    """
    collections: dict[str, bpy.types.BoneCollection] = {}
    for joint, name in zip(skeleton.joints, given, strict=True):
        bone = data.bones[name]
        if joint.group:
            if joint.group not in collections:
                collections[joint.group] = data.collections.new(names.fit_all([joint.group], "Bones")[0])
                collections[joint.group].is_visible = joint.group not in skeleton.hidden_groups
            collections[joint.group].assign(bone)
        if joint.tail is not None and max(abs(part - 1.0) for part in joint.scale) > _UNSCALED:
            bone.color.palette = _VOLUME_COLOR
            bone.display_type = "STICK"


_STICKS_FROM = 100
"""Number of bones from which an armature is drawn as sticks, since so many octahedra would hide the model."""

_SHARE_OF_PARENT = 0.5
_SHARE_OF_SIZE = 0.1
_LEAST_SHARE = 1e-3
_FAR_SHARE = 1e-4
"""Minimum length of bones relative to their distance from the origin; in single precision, shorter bones lose their
direction."""


_MOST = 1e15
"""Limit of the entries of a joint's world matrix, since Blender squares lengths in single precision."""


def bind_matrices(skeleton: Skeleton) -> Array:
    """Return the local bind matrices of all joints, (J, 4, 4) float64."""
    joints = skeleton.joints
    if not joints:
        return np.zeros((0, 4, 4))
    return joint_poses.matrices(
        [joint.translation for joint in joints], [joint.rotation for joint in joints], [joint.scale for joint in joints]
    )


def parents_of(skeleton: Skeleton) -> list[int]:
    """Return the index of each joint's parent, -1 for roots."""
    return [joint.parent for joint in skeleton.joints]


@dataclass(frozen=True)
class BoneDrawing:
    """How bones are drawn whose joints have no known ends."""

    size: float = 0.0
    """Size of the meshes that the skeleton deforms, in metres; bone lengths depend on it if all joints are at one
    position."""
    to_children: bool = False
    """Let bones point to their children instead of along the Y axis of their joints."""


def build(
    context: bpy.types.Context,
    label: str,
    skeleton: Skeleton,
    drawing: BoneDrawing,
    *,
    keep: Callable[[bpy.types.ID], Any],
) -> BoneMap:
    """Create an armature object that is not linked to any collection yet.

    Parameters
    ----------
    label:
        Name of the object: that of the skeleton, unless its mesh has the same name.
    keep:
        Called with each new data block, so that it is removed if the import fails.

    Raises
    ------
    MeshferryError
        A joint's world matrix has NaN, infinite or extreme values.
    """
    data: bpy.types.Armature = keep(bpy.data.armatures.new(names.fit(label)))
    made: bpy.types.Object = keep(bpy.data.objects.new(names.fit(label), data))
    names.remember(made, skeleton.name or label)
    file_records.write_choices(made, skeleton.choices)
    made.rotation_mode = "QUATERNION"
    made.show_in_front = True
    store_fields(made.meshferry, skeleton)
    if len(skeleton.joints) >= _STICKS_FROM:
        data.display_type = "STICK"
    bind, parents = bind_matrices(skeleton), parents_of(skeleton)
    world = hierarchy.world_matrices(bind, parents)
    _require_finite(skeleton, world)
    given = names.fit_all([joint.label or joint.name for joint in skeleton.joints], "Bone")
    with edit_mode(context, made):
        given = _edit_bones(data, given, skeleton.joints, joint_poses.rest_matrix(world), drawing)
        if not skeleton.inherits_scale:
            for bone in data.edit_bones:
                bone.inherit_scale = "NONE"
    data.meshferry.bone_axes = skeleton.bone_axes
    sort_bones(data, skeleton, given)
    rest = _remember(data, skeleton.joints, given, world)
    return BoneMap(made, list(given), lambda: joint_poses.PoseSpace.of(bind, parents, rest), extent(rest))


def add_skeleton(context: bpy.types.Context, skeleton: Skeleton, *, name: str) -> bpy.types.Object:
    """Add an armature object to the active collection at the 3D cursor; select only it and make it active.

    Parameters
    ----------
    skeleton:
        In Blender's space; the armature is not scaled or rotated.
    name:
        Name of the object.

    Raises
    ------
    MeshferryError
        A joint has extreme coordinates. After any exception, no data block remains.
    """
    made: list[bpy.types.ID] = []

    def keep(block: Any) -> Any:
        made.append(block)
        return block

    layer = context.view_layer
    require_own_scene(context)
    try:
        obj = build(context, name, replace(skeleton, name=""), BoneDrawing(), keep=keep).armature
        obj.location = context.scene.cursor.location
        context.collection.objects.link(obj)
        # ``layer.objects`` has newly linked objects only after an update, and none of excluded collections.
        layer.update()
        if obj.name not in layer.objects:
            context.scene.collection.objects.link(obj)
            layer.update()
    except BaseException:
        bpy.data.batch_remove(made)
        raise
    for other in tuple(layer.objects.selected):
        other.select_set(False, view_layer=layer)
    obj.select_set(True, view_layer=layer)
    layer.objects.active = obj
    return obj


def extent(rest: Array) -> float:
    """Return the largest side of the bounding box of bone positions; 0 for fewer than two."""
    return float(np.ptp(rest[:, :3, 3], axis=0).max()) if len(rest) else 0.0


def _require_finite(skeleton: Skeleton, world: Array) -> None:
    absurd = np.flatnonzero(~(np.abs(world).reshape(-1, 16).max(axis=1, initial=0.0) < _MOST))
    if len(absurd):
        raise MeshferryError(
            "Bone '{}' of '{}' has coordinates or a scale too large to use",
            Named("bone", skeleton.joints[absurd[0]].name),
            skeleton.name,
        )


def connect(context: bpy.types.Context, obj: bpy.types.Object, bones: Collection[str], *, is_connected: bool) -> None:
    """Connect bones to their parents, or disconnect them."""
    with edit_mode(context, obj):
        for name in bones:
            obj.data.edit_bones[name].use_connect = is_connected


def _edit_bones(
    data: bpy.types.Armature, wanted: Sequence[str], joints: Sequence[Joint], rest: Array, drawing: BoneDrawing
) -> list[str]:
    """Create the edit bones; return their names."""
    parents = [joint.parent for joint in joints]
    tails = _tails(parents, rest, drawing)
    drawn = bone_vectors(joints, parents)
    bones = []
    for joint, name in enumerate(wanted):
        bone = data.edit_bones.new(name)
        bones.append(bone)
        vector = drawn[joint]
        if vector is not None:
            draw_bone(bone, rest[joint, :3, 3], vector, joints[joint].up)
            continue
        along = Vector(tails[joint] - rest[joint, :3, 3])
        bone.head, bone.tail = (0.0, 0.0, 0.0), (0.0, along.length, 0.0)
        bone.matrix = Matrix(rest[joint].tolist())
        if drawing.to_children and along.normalized().dot(Vector(rest[joint, :3, 1])) < 1 - 1e-6:
            bone.tail = bone.head + along
            _keep_roll(bone, rest[joint])
    for bone, parent in zip(bones, parents, strict=True):
        if parent >= 0:
            bone.parent = bones[parent]
    return [bone.name for bone in bones]


def _keep_roll(bone: bpy.types.EditBone, rest: Array) -> None:
    """Rotate a bone about its own axis so that its Z axis is as near as possible to that of the joint."""
    axis = Vector(rest[:3, 2])
    if abs(axis.dot(bone.vector.normalized())) > 0.99:
        axis = Vector(rest[:3, 0])
    bone.align_roll(axis)


def _tails(parents: list[int], rest: Array, drawing: BoneDrawing) -> Array:
    """Return the tail positions of bones, (J, 3)."""
    heads = rest[:, :3, 3]
    size = extent(rest) or drawing.size or 1.0
    children: list[list[int]] = [[] for _ in parents]
    for joint, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(joint)
    lengths = np.zeros(len(parents))
    tails = heads.copy()
    for joint in hierarchy.parents_first(parents):
        parent, head = parents[joint], heads[joint]
        away = np.array([float(np.linalg.norm(heads[child] - head)) for child in children[joint]])
        least = max(_LEAST_SHARE * size, _FAR_SHARE * float(np.abs(head).max()), _LEAST_LENGTH)
        reachable = away[away > least]
        if len(reachable):
            lengths[joint] = reachable.min()
        elif parent >= 0:
            lengths[joint] = lengths[parent] * (1.0 if len(away) else _SHARE_OF_PARENT)
        else:
            lengths[joint] = _SHARE_OF_SIZE * size
        lengths[joint] = max(lengths[joint], least)
        tails[joint] = head + rest[joint, :3, 1] * lengths[joint]
        if drawing.to_children:
            direction = _direction(head, heads[children[joint]], None if parent < 0 else heads[parent], least)
            if direction is not None:
                reach = float(np.linalg.norm(direction)) if len(reachable) else 0.0
                tails[joint] = head + (direction if reach else direction / np.linalg.norm(direction) * lengths[joint])
    return tails


def _direction(head: Array, children: Array, above: Array | None, least: float) -> Array | None:
    """Return a bone's direction: towards the centre of its children, or away from its parent.

    Return None to use the Y axis of the joint.
    """
    if len(children):
        middle: Array = children.mean(axis=0) - head
        return middle if np.linalg.norm(middle) > least else None
    if above is None or np.linalg.norm(head - above) <= least:
        return None
    return head - above


def _remember(data: bpy.types.Armature, joints: Sequence[Joint], given: Sequence[str], world: Array) -> Array:
    """Store the joint of each bone on that bone; return Blender's rest matrices, (J, 4, 4) float64."""
    data.meshferry.joint_names = "\n".join(names.readable(joint.name) for joint in joints)
    rest = np.zeros((len(joints), 4, 4))
    for place, (joint, name) in enumerate(zip(joints, given, strict=True)):
        bone = data.bones[name]
        kept = bone.meshferry
        names.remember(bone, joint.name)
        if joint.automatic_weights is not None:
            bone.use_deform = joint.automatic_weights
        kept.order = place
        kept.joint_name = names.readable(joint.name)
        kept.bind_location = joint.translation
        kept.bind_rotation = joint.rotation
        kept.bind_scale = joint.scale
        rest[place] = np.array(bone.matrix_local, np.float64)
        kept.rest_matrix = rest[place].reshape(-1)
        kept.bind_matrix = world[place].reshape(-1)
        kept.parent_order = joint.parent
    return rest
