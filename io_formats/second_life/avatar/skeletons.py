"""The avatar's skeleton, from the table or the binding of a file -> ``Skeleton`` (formats page, sections 4 and 7).

A pose bone scales along its own axes only. Bones that are always scaled evenly or not
at all point to their ends. Everything is in the avatar's space.

In Blender's space the avatar faces -Y with its left at +X. Bones have neither rotation nor scale; collision volumes and
attachment points have those of the table or of the file.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...core.scene import Joint, Skeleton
from ...geometry.transforms import Matrix, matrices_to_quaternions
from ..models import space
from . import joints as avatar_joints
from .joints import TableJoint

AXES = "AVATAR"
"""Identifier of these directions, stored with armatures and actions in .blend files."""

_ROLL_AXES = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
"""Preferred Z axes of bones: forwards, or upwards for bones that point forwards or backwards. Both are in the mirror
plane of left and right, so that bones of both sides have mirrored rolls."""
_ALONG = 0.9
"""Cosine of the angle between a bone and a roll axis above which the other axis is used."""
_LEAST_LENGTH = 1e-3
"""Length in metres below which an end does not give a usable length."""


@functools.cache
def aligned_joints() -> frozenset[str]:
    """Return the names of the joints whose bones lie along the axes: bones that scale unevenly, and all volumes."""
    table = avatar_joints.table()
    return frozenset(name for name, joint in table.items() if joint.is_uneven or joint.is_collision_volume)


@functools.cache
def aligned_axes(name: str) -> tuple[Matrix, Matrix]:
    """Return the direction of an aligned joint's bone and of the bone's Z axis, each (3,).

    They are axes of the joint at rest: the one nearest to the joint's end, and the one nearest to a preferred axis.
    """
    joint = avatar_joints.table()[name]
    own = joint.axes
    shares = np.array(joint.end) @ own
    nearest = int(np.abs(shares).argmax())
    along = own[:, nearest] * np.sign(shares[nearest])
    roll = next(np.array(axis) for axis in _ROLL_AXES if abs(along @ axis) < _ALONG)
    across = np.abs(roll @ own)
    across[nearest] = -1.0
    best = int(across.argmax())
    return along, own[:, best] * np.sign(roll @ own[:, best])


def drawn_axes(name: str, end: Matrix) -> tuple[Matrix, Matrix | None]:
    """Return the vector from head to tail of a joint's bone, (3,), and the direction of its Z axis if it matters, (3,).

    ``end`` is the end of the joint relative to its head. The tail of an aligned bone is the point on its axis that is
    nearest to the end. Bones of volumes are at most half as long as the volume, because the ends of some are up to 6 cm
    in front of the figure.
    """
    if name not in aligned_joints():
        return end, None
    along, up = aligned_axes(name)
    length = float(end @ along)
    length = length if length > _LEAST_LENGTH else float(np.linalg.norm(end))
    joint = avatar_joints.table()[name]
    if joint.is_collision_volume:
        half = float(np.linalg.norm(joint.local[:3, :3].T @ along)) / 2
        length *= min(1.0, half / float(np.array(joint.end) @ along))
    return along * length, up


COLLISION_GROUP = "Collision Volumes"
ATTACHMENT_GROUP = "Attachment Points"
UNKNOWN_GROUP = "Unknown"
_HIDDEN_GROUPS = frozenset({"Wing", "Tail", "Limb", COLLISION_GROUP})
"""Groups of joints that few models use."""
NAME = "Avatar"

_TOUCHING = 1e-6
"""Largest distance in metres between the end of a bone and the head of the next at which they are connected."""


def avatar_skeleton(
    *,
    with_collision_volumes: bool = True,
    with_attachments: bool = False,
    weighted: str = avatar_joints.BODY,
    used: Iterable[str] = (),
) -> Skeleton:
    """Return the standard avatar: 133 bones, 26 collision volumes, and on request 47 attachment points.

    Joints follow their parents; positions are exactly those of the table. ``weighted`` is the key of a choice of
    :mod:`.joints`. For ``used``, see :func:`skeleton_of`.
    """
    kinds = {"bone"}
    if with_collision_volumes:
        kinds.add("collision_volume")
    if with_attachments:
        kinds.add("attachment")
    names = [name for name, joint in avatar_joints.table().items() if joint.kind in kinds]
    return skeleton_of(NAME, names, {}, weighted=weighted, used=used)


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
    table = avatar_joints.table()
    listed: dict[str, int] = {}
    unknown: dict[str, int] = {}
    for number, joint in enumerate(joint_names):
        known = avatar_joints.canonical(joint)
        (unknown if known is None else listed).setdefault(known or joint, number)
    wanted = set(listed)
    for known in listed:
        wanted.update(above for above in avatar_joints.ancestors(known) if table[above].is_bone)
    if whole_avatar:
        wanted.update(known for known, joint in table.items() if joint.is_bone)
    names = [known for known in table if known in wanted]
    skeleton = skeleton_of(
        name,
        names,
        {known: rests[number] for known, number in listed.items()} if rest_of_file else {},
        {known: joint_names[number] for known, number in listed.items()},
        used=listed,
    )
    place = {known: number for number, known in enumerate(names)}
    place.update((joint, len(names) + number) for number, joint in enumerate(unknown))
    for joint, number in unknown.items():
        above = place.get((parents or {}).get(joint, avatar_joints.ROOT), place.get(avatar_joints.ROOT, -1))
        head = space.TO_BLENDER[:3, :3] @ rests[number, :3, 3]
        skeleton.joints.append(Joint(joint, above, _three(head), group=UNKNOWN_GROUP, automatic_weights=False))
    heads = _heads(skeleton)
    for added in skeleton.joints[len(names) :]:
        added.translation = _three(np.array(added.translation) - heads[added.parent])
    return skeleton, [place[avatar_joints.canonical(joint) or joint] for joint in joint_names]


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
    weighted: str = avatar_joints.BODY,
    used: Iterable[str] = (),
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
        Joints that take part in automatic weights: the key of a choice of :mod:`.joints`.
    used:
        Joints whose groups are shown; other wings, tails, hind limbs and collision volumes are hidden.
    """
    table = avatar_joints.table()
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
        tail, up = drawn_axes(known, _end(joint, worlds, place))
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
                automatic_weights=avatar_joints.is_chosen(joint, weighted),
                aliases=avatar_joints.aliases()[known],
            )
        )
    hidden = _HIDDEN_GROUPS - {_group(table[known]) for known in used}
    return Skeleton(name, joints, bone_axes=AXES, inherits_scale=False, hidden_groups=hidden)


def rest_worlds(rests: Mapping[str, Matrix], positions: Mapping[str, Matrix] | None = None) -> dict[str, Matrix]:
    """Return the rest matrix of every joint of the table in avatar space, (4, 4).

    ``rests`` has the rest matrices, (4, 4), of joints that differ from the table; for bones only the position is used.
    Other joints keep their position relative to their parent: that in ``positions``, (3,), or else that in the table.
    """
    worlds: dict[str, Matrix] = {}
    origin = np.identity(4)
    for known, joint in avatar_joints.table().items():
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
            return worlds[name][:3, 3] - worlds[joint.name][:3, 3]
    return np.array(joint.end)


@functools.cache
def connected_bones(parent: str) -> tuple[str, ...]:
    """Return the child bones, in the table, that start where this bone ends."""
    table = avatar_joints.table()
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


def _rotation_and_scale(matrix: Matrix) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
    """Return rotation (w, x, y, z) and scale of a (4, 4) matrix without shear."""
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    rotation = matrices_to_quaternions((linear / np.where(scale > 0, scale, 1))[None])[0]
    return tuple(rotation.tolist()), _three(scale)


def _three(values: npt.ArrayLike) -> tuple[float, float, float]:
    return tuple((np.asarray(values, np.float64) + 0.0).tolist())  # adding 0.0 turns -0.0 into 0.0
