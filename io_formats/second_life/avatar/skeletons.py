"""The avatar's skeleton, from the table or the binding of a file -> ``Skeleton`` (formats page, sections 4 and 7).

In Blender's space the avatar faces -Y with its left at +X. Bones have neither rotation nor scale; collision volumes and
attachment points have those of the table or of the file.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...core.scene import Joint, Skeleton
from ...geometry.transforms import matrices_to_quaternions
from ..models import space
from . import automatic_weights, bone_axes, skeleton_table
from .skeleton_table import Matrix, TableJoint

COLLISION_GROUP = "Collision Volumes"
ATTACHMENT_GROUP = "Attachment Points"
UNKNOWN_GROUP = "Unknown"
NAME = "Avatar"

_TOUCHING = 1e-6
"""Largest distance in metres between the end of a bone and the head of the next at which they are connected."""


def avatar_skeleton(
    *,
    with_collision_volumes: bool = True,
    with_attachments: bool = False,
    weighted: str = automatic_weights.BODY,
) -> Skeleton:
    """Return the standard avatar: 133 bones, 26 collision volumes, and on request 47 attachment points.

    Joints follow their parents; positions are exactly those of the table. ``weighted`` is the key of a choice of
    :mod:`.automatic_weights`.
    """
    kinds = {"bone"}
    if with_collision_volumes:
        kinds.add("collision_volume")
    if with_attachments:
        kinds.add("attachment")
    names = [name for name, joint in skeleton_table.table().items() if joint.kind in kinds]
    return skeleton_of(NAME, names, {}, weighted=weighted)


def bound_skeleton(
    name: str,
    joint_names: Sequence[str],
    rests: Matrix,
    *,
    whole_avatar: bool,
    rest_of_file: bool,
    parents: Mapping[str, str] | None = None,
) -> tuple[Skeleton, list[int]]:
    """Return the skeleton of a rigged mesh, and the index in it of each of the file's joints.

    Parameters
    ----------
    joint_names:
        The joints listed by the file, in its order.
    rests:
        (n, 4, 4) their rest transforms in avatar space, computed from the bind matrices of the file.
    whole_avatar:
        Include all bones; otherwise those listed by the file and their ancestors. Collision volumes and attachment
        points are only included if they are listed.
    rest_of_file:
        Joints rest where the file binds them, and others follow their parents; otherwise known joints rest where the
        standard avatar has them.
    parents:
        Names of the parents of unknown joints; without one, a joint becomes a child of the root, as in the viewer.
    """
    table = skeleton_table.table()
    listed: dict[str, int] = {}
    unknown: dict[str, int] = {}
    for number, joint in enumerate(joint_names):
        known = skeleton_table.canonical(joint)
        (unknown if known is None else listed).setdefault(known or joint, number)
    wanted = set(listed)
    for known in listed:
        wanted.update(above for above in skeleton_table.ancestors(known) if table[above].is_bone)
    if whole_avatar:
        wanted.update(known for known, joint in table.items() if joint.is_bone)
    names = [known for known in table if known in wanted]
    skeleton = skeleton_of(
        name,
        names,
        {known: rests[number] for known, number in listed.items()} if rest_of_file else {},
        {known: joint_names[number] for known, number in listed.items()},
    )
    place = {known: number for number, known in enumerate(names)}
    place.update((joint, len(names) + number) for number, joint in enumerate(unknown))
    for joint, number in unknown.items():
        above = place.get((parents or {}).get(joint, skeleton_table.ROOT), place.get(skeleton_table.ROOT, -1))
        head = space.TO_BLENDER[:3, :3] @ rests[number, :3, 3]
        skeleton.joints.append(Joint(joint, above, _three(head), group=UNKNOWN_GROUP, automatic_weights=False))
    heads = _heads(skeleton)
    for added in skeleton.joints[len(names) :]:
        added.translation = _three(np.array(added.translation) - heads[added.parent])
    return skeleton, [place[skeleton_table.canonical(joint) or joint] for joint in joint_names]


def _heads(skeleton: Skeleton) -> Matrix:
    """Return the positions of joints, (J + 1, 3).

    The last row is zero and serves as the parent of roots, whose index is -1. Unknown joints store their absolute
    position as translation.
    """
    heads = np.zeros((len(skeleton.joints) + 1, 3))
    for number, joint in enumerate(skeleton.joints):
        is_absolute = joint.group == UNKNOWN_GROUP
        heads[number] = np.array(joint.translation) + (0.0 if is_absolute else heads[joint.parent])
    return heads


def skeleton_of(
    name: str,
    names: Sequence[str],
    rests: Mapping[str, Matrix],
    given_names: Mapping[str, str] | None = None,
    *,
    weighted: str = automatic_weights.BODY,
) -> Skeleton:
    """Return a skeleton of joints of the table, parents first.

    Parameters
    ----------
    names:
        Names in the table, in its order; a joint whose parent is not included is a root.
    rests:
        (4, 4) rest matrices in avatar space of joints that differ from the table; others keep their position relative
        to their parent.
    given_names:
        Names of joints that differ from the table.
    weighted:
        Joints that take part in automatic weights: the key of a choice of :mod:`.automatic_weights`.
    """
    table = skeleton_table.table()
    worlds = rest_worlds(rests)
    place = {known: number for number, known in enumerate(names)}
    joints = []
    for known in names:
        joint = table[known]
        parent = place.get(joint.parent, -1)
        above = worlds[joint.parent] if parent >= 0 else np.identity(4)
        local = worlds[known].copy()
        local[:3, 3] -= above[:3, 3]  # subtraction suffices: ancestors have neither rotation nor scale
        if known not in rests and parent >= 0:
            local[:3, 3] = joint.position
        rotation, scale = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        if not joint.is_bone:
            rotation, scale = _rotation_and_scale(space.to_blender(local))
        tail, up = bone_axes.drawn_axes(known, _end(joint, worlds, place))
        joints.append(
            Joint(
                (given_names or {}).get(known, known),
                parent,
                _three(space.TO_BLENDER[:3, :3] @ local[:3, 3]),
                rotation,
                scale,
                tail=_three(space.TO_BLENDER[:3, :3] @ tail),
                up=None if up is None else _three(space.TO_BLENDER[:3, :3] @ up),
                group=_group(joint),
                automatic_weights=automatic_weights.is_chosen(joint, weighted),
                aliases=skeleton_table.aliases()[known],
            )
        )
    return Skeleton(name, joints, bone_axes=bone_axes.AXES, inherits_scale=False)


def rest_worlds(rests: Mapping[str, Matrix], positions: Mapping[str, Matrix] | None = None) -> dict[str, Matrix]:
    """Return the rest matrix of every joint of the table in avatar space, (4, 4).

    ``rests`` has the rest matrices, (4, 4), of joints that differ from the table; for bones only the position is used.
    Other joints keep their position relative to their parent: that in ``positions``, (3,), or else that in the table.
    """
    worlds: dict[str, Matrix] = {}
    origin = np.identity(4)
    for known, joint in skeleton_table.table().items():
        given = rests.get(known)
        if given is None:
            local = joint.local
            if positions and known in positions:
                local = local.copy()
                local[:3, 3] = positions[known]
            world = worlds.get(joint.parent, origin) @ local
        elif joint.is_bone:
            world = np.identity(4)
            world[:3, 3] = given[:3, 3]
        else:
            world = given
        worlds[known] = world
    return worlds


def _end(joint: TableJoint, worlds: Mapping[str, Matrix], place: Mapping[str, int]) -> Matrix:
    """Return the end of a joint relative to its head: the head of the connected joint, or else the end in the table."""
    for name in connected_bones(joint.name) if joint.is_bone else ():
        if name in place:
            between: Matrix = worlds[name][:3, 3] - worlds[joint.name][:3, 3]
            return between
    return np.array(joint.end)


@functools.cache
def connected_bones(parent: str) -> tuple[str, ...]:
    """Return the child bones, in the table, that start where this bone ends."""
    table = skeleton_table.table()
    return tuple(
        name
        for name, child in table.items()
        if child.parent == parent
        and child.is_bone
        and child.is_connected
        and max(abs(a - b) for a, b in zip(child.position, table[parent].end, strict=True)) <= _TOUCHING
    )


def _group(joint: TableJoint) -> str:
    if joint.is_bone:
        return joint.group
    return COLLISION_GROUP if joint.is_collision_volume else ATTACHMENT_GROUP


def _rotation_and_scale(
    matrix: Matrix,
) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
    """Return rotation (w, x, y, z) and scale of a (4, 4) matrix without shear."""
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    rotation = matrices_to_quaternions((linear / np.where(scale > 0, scale, 1))[None])[0]
    return tuple(rotation.tolist()), _three(scale)


def _three(values: npt.ArrayLike) -> tuple[float, float, float]:
    return tuple((np.asarray(values, np.float64) + 0.0).tolist())  # adding 0.0 turns -0.0 into 0.0
