"""Bones of a rig that are mapped to the avatar's joints, and differences between the rest poses of rig and avatar."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.scene import Skeleton
from ...geometry.transforms import matrix_of_transform, similarity
from ..models import space
from . import avatar_fit, bone_tables, skeleton_table
from .bone_tables import BoneTable
from .rigging import facing, world_matrices

Floats = npt.NDArray[np.float64]


@dataclass
class RigJoints:
    """The avatar joints to which bones of a skeleton are mapped."""

    bones: dict[str, int]
    """Index of the bone of each joint, parents first."""
    turn: Floats
    """(3, 3) rotation from the axes of the skeleton to those of the avatar."""
    rest: Floats
    """(J, 4, 4) rest matrices of all bones."""
    locals: list[Floats]
    """(4, 4) rest matrix of each bone relative to its parent."""
    is_other_rig: bool = False
    """Whether its bones have the names of another kind of rig, such as Rigify or Mixamo."""
    size: float = 1.0
    """Scale from the rig to the avatar; for another kind of rig, the ratio of their leg lengths."""
    rest_turns: dict[str, Floats] = field(default_factory=dict)
    """(3, 3) rotation of each joint, in avatar axes, from the avatar's rest pose to that of another rig."""
    aims: dict[str, str] = field(default_factory=dict)
    """The joint that each joint of the body points to, for another rig."""
    replaced: list[str] = field(default_factory=list)
    """For a rig with the avatar's joint names: joints whose rest position differs from that of the standard avatar."""


_REPLACED = 0.005
"""Distance in metres from its position in the standard avatar from which a joint counts as moved at rest."""


def rig_joints(skeleton: Skeleton, *, fit: bool = True) -> RigJoints:
    """Find the joints of the avatar among the bones of a skeleton, by the user's table, their names or a bundled table.

    Parameters
    ----------
    fit:
        Whether ``RigJoints.size`` is computed.

    Raises
    ------
    MeshferryError
        The bones of another rig do not show where its front is, or the user's table has an unknown joint.
    """
    own: dict[str, int] = {}
    for number, joint in enumerate(skeleton.joints):
        known = skeleton_table.canonical(joint.name)
        if known is not None:
            own.setdefault(known, number)
    rest = world_matrices(skeleton)
    local = [matrix_of_transform(joint.translation, joint.rotation, joint.scale) for joint in skeleton.joints]
    table = _users_table(skeleton)
    if table is None and skeleton_table.ROOT not in own:
        table = bone_tables.best_table(joint.name for joint in skeleton.joints)
    if table is None:
        turn, size = _turn_and_size(skeleton, own, rest)
        own = _in_order(own)
        replaced = _replaced(own, turn, rest, size)
        return RigJoints(own, turn, rest, local, size=size if fit else 1.0, replaced=replaced)
    joints = skeleton.joints
    bones = _in_order(
        bone_tables.first_bones(
            [joint.name for joint in joints],
            [joint.parent for joint in joints],
            [joint.deforms for joint in joints],
            table,
        )
    )
    heads = {joint: rest[number, :3, 3] for joint, number in bones.items()}
    to_blender = avatar_fit.avatar_axes(heads).T  # Blender's axes, in which the avatar faces -Y
    heads = {joint: to_blender @ head for joint, head in heads.items()}
    to_avatar = space.TO_AVATAR[:3, :3]
    return RigJoints(
        bones,
        to_avatar @ to_blender,
        rest,
        local,
        True,
        avatar_fit.leg_ratio(heads) if fit else 1.0,
        {joint: to_avatar @ turn @ to_avatar.T for joint, turn in avatar_fit.rest_turns(heads).items()},
        avatar_fit.aims(heads),
    )


def armature_tilt(skeleton: Skeleton) -> float:
    """Return the angle in radians by which an armature with the avatar's names leans; about 0 within 10° of upright."""
    names = [skeleton_table.canonical(joint.name) for joint in skeleton.joints]
    bones = {name: number for number, name in reversed(list(enumerate(names))) if name is not None}
    turn, _ = _turn_and_size(skeleton, bones, world_matrices(skeleton))
    return float(np.arccos(np.clip(turn[2, 2], -1.0, 1.0)))


def _users_table(skeleton: Skeleton) -> BoneTable | None:
    """Return the table of the joints that the user assigned to bones.

    Return None if the user assigned none, or only those that the bones' own names already mean.
    """
    table = bone_tables.checked_bone_table(
        {joint.name: joint.target_joint for joint in skeleton.joints if joint.target_joint}, ""
    )
    is_own = all(skeleton_table.canonical(bone) == joint for bone, joint in table.joints.items())
    return None if is_own else table


def _turn_and_size(skeleton: Skeleton, bones: dict[str, int], rest: Floats) -> tuple[Floats, float]:
    """Return the rotation (3, 3) from a rig with the avatar's names to the avatar, and the avatar's relative size.

    The import rotates and scales keys by the same values.
    """
    wanted = avatar_fit.standard_heads()
    names = [name for name in bones if skeleton_table.table()[name].is_bone]
    if len(names) < 3:
        return facing(skeleton)[:3, :3], 1.0
    parents = [next((above for above in skeleton_table.ancestors(name)[1:] if above in bones), "") for name in names]
    index = {name: number for number, name in enumerate(names)}
    turn, scale = similarity(
        np.array([wanted[name] for name in names]),
        rest[[bones[name] for name in names], :3, 3],
        [index.get(parent, -1) for parent in parents],
    )
    return space.TO_AVATAR[:3, :3] @ turn.T, 1 / scale


def _replaced(bones: dict[str, int], turn: Floats, rest: Floats, size: float) -> list[str]:
    """Return the joints of a rig with the avatar's names that rest elsewhere than on the standard avatar."""
    table = skeleton_table.table()
    found = []
    for name in bones:
        parent = table[name].parent
        if table[name].is_bone and parent in bones:
            offset = turn @ (rest[bones[name], :3, 3] - rest[bones[parent], :3, 3]) * size
            if np.linalg.norm(offset - table[name].position) > _REPLACED:
                found.append(name)
    return found


def _in_order(bones: dict[str, int]) -> dict[str, int]:
    return {name: bones[name] for name in skeleton_table.table() if name in bones}


def bones_to_next(skeleton: Skeleton, bone: int, of_joints: Collection[int]) -> Iterator[int]:
    """Yield a bone and its ancestors, ending with the first ancestor that is mapped to a joint."""
    yield bone
    above = skeleton.joints[bone].parent
    while above >= 0 and above not in of_joints:
        yield above
        above = skeleton.joints[above].parent
