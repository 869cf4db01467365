"""Rigs of other programs: tables that map their bones to the avatar's joints, and differences of the rest poses.

A table is a CSV file with the columns ``bone`` and ``joint``. The bundled ones are ``bones_*.csv`` in this folder.
Names match exactly, or without the prefix of an exporter or generator (``mixamorig1:Hips``, ``DEF-spine``).
"""

import csv
import functools
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...core.errors import FormatError, MeshferryError
from ...core.messages import Named, Text, counted, listed, of_kind
from ...core.scene import Skeleton
from ...geometry.hierarchy import local_matrices, parents_first
from ...geometry.transforms import Floats, similarity
from ..models import space
from . import avatar_fit
from . import joints as avatar_joints
from .joints import facing, world_matrices

BUNDLED = ("Rigify", "Mixamo")
COLUMNS = ("bone", "joint")

_PREFIX = re.compile(r"^(?:.*:|mixamorig\d*_|DEF-|ORG-)")

_LEAST_BONES = 4
"""Number of bones that a rig must share with a table for the table to be chosen automatically."""


@dataclass(frozen=True)
class BoneTable:
    """A table that maps the bone names of one kind of rig to joints of the avatar."""

    name: str
    joints: Mapping[str, str]

    @functools.cached_property
    def _plain(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for bone, joint in self.joints.items():
            found.setdefault(plain_name(bone), joint)
        return found

    def joint_of(self, bone: str) -> str | None:
        """Return the avatar's joint for a bone, or None if the table does not have the bone."""
        return self.joints.get(bone) or self._plain.get(plain_name(bone))

    def mapping(self, bones: Iterable[str]) -> dict[str, str]:
        """Return the joints of those bones that the table has."""
        found = {bone: self.joint_of(bone) for bone in bones}
        return {bone: joint for bone, joint in found.items() if joint is not None}


def plain_name(bone: str) -> str:
    """Return the name of a bone without namespace or the prefix of generated bones."""
    return _PREFIX.sub("", bone)


@functools.cache
def bundled_tables() -> tuple[BoneTable, ...]:
    """Return the tables that Meshferry bundles."""
    here = Path(__file__)
    return tuple(parse_bone_table(here.with_name(f"bones_{name.lower()}.csv").read_bytes(), name) for name in BUNDLED)


def best_table(bones: Iterable[str]) -> BoneTable | None:
    """Return the bundled table that contains the most of these bones; None if no table contains enough of them."""
    names = tuple(bones)
    best = max(bundled_tables(), key=lambda table: len(table.mapping(names)))
    return best if len(best.mapping(names)) >= _LEAST_BONES else None


def parse_bone_table(data: bytes, name: str) -> BoneTable:
    """Return the table of a CSV file in UTF-8.

    Raises
    ------
    FormatError
        The columns are missing, or a line has an unknown joint, no bone, or a bone of an earlier line.
    """
    joints: dict[str, str] = {}
    try:
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        if not {*COLUMNS} <= {*(rows.fieldnames or ())}:
            raise FormatError("the first line of a bone table must be 'bone,joint'", file=name)
        for row in rows:
            bone, joint = (row[column] or "" for column in COLUMNS)
            known = avatar_joints.canonical(joint.strip())
            line = f"line {rows.line_num}"
            if not bone:
                raise FormatError("the bone is missing", item=line, file=name)
            if known is None:
                raise FormatError("'{}' is not a joint of the avatar", joint, item=line, file=name)
            if bone in joints:
                raise FormatError("bone '{}' is repeated", Named("bone", bone), item=line, file=name)
            joints[bone] = known
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError("it is not a CSV file in UTF-8: {}", error, file=name) from error
    return BoneTable(name, joints)


def checked_bone_table(joints: Mapping[str, str], name: str) -> BoneTable:
    """Return a table of the user's own mapping of bones to joints.

    Raises
    ------
    MeshferryError
        A joint is unknown.
    """
    found = {bone: avatar_joints.canonical(joint.strip()) for bone, joint in joints.items()}
    for bone, known in found.items():
        if known is None:
            template = "Bone '{}': '{}' is not a joint of the avatar"
            raise MeshferryError(template, *of_kind("bone", (bone, joints[bone])))
    return BoneTable(name, {bone: known for bone, known in found.items() if known is not None})


def bone_table_text(joints: Mapping[str, str]) -> str:
    """Return the text of the CSV file for a table."""
    stream = io.StringIO(newline="")
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(joints.items())
    return stream.getvalue()


def joints_of(bones: Sequence[str], parents: Sequence[int], table: BoneTable) -> tuple[dict[str, str], list[str]]:
    """Return the joint of every bone of a rig: its own, else that of the nearest ancestor with one, else the root.

    ``bones`` are unique names, ``parents`` the index of each parent or -1. The second result lists the bones without a
    joint of their own.
    """
    found: dict[str, str] = {}
    unmapped = []
    for number in parents_first(parents):
        own = table.joint_of(bones[number])
        above = bones[parents[number]] if parents[number] >= 0 else ""
        found[bones[number]] = own or found.get(above, avatar_joints.ROOT)
        if own is None:
            unmapped.append(number)
    return found, [bones[number] for number in sorted(unmapped)]


def first_bones(
    bones: Sequence[str], parents: Sequence[int], deforming: Sequence[bool], table: BoneTable
) -> dict[str, int]:
    """Return the bone that positions each joint: of the bones mapped to it, the deforming one nearest to the root.

    Bones of files may share a name, even with an ancestor, so bones and their ``parents`` (-1: a root) are indices.
    """
    depth = [0] * len(bones)
    for number in parents_first(parents):
        depth[number] = depth[parents[number]] + 1 if parents[number] >= 0 else 0
    found: dict[str, int] = {}
    for number in sorted(range(len(bones)), key=lambda number: (not deforming[number], depth[number])):
        joint = table.joint_of(bones[number])
        if joint is not None:
            found.setdefault(joint, number)
    return found


def unmapped_text(bones: Sequence[str]) -> Text:
    """Return a warning about bones with weights but without a joint, or an empty text."""
    if not bones:
        return Text("")
    number = counted(len(bones), "bone has no joint; its weights go", "bones have no joint; their weights go")
    return Text("{} to the nearest parent with one: {}", number, listed(of_kind("bone", bones)))


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
        known = avatar_joints.canonical(joint.name)
        if known is not None:
            own.setdefault(known, number)
    rest = world_matrices(skeleton)
    local = [*local_matrices(skeleton.joints)]
    table = _users_table(skeleton)
    if table is None and avatar_joints.ROOT not in own:
        table = best_table(joint.name for joint in skeleton.joints)
    if table is None:
        turn, size = _turn_and_size(skeleton, own, rest)
        own = _in_order(own)
        replaced = _replaced(own, turn, rest, size)
        return RigJoints(own, turn, rest, local, size=size if fit else 1.0, replaced=replaced)
    joints = skeleton.joints
    bones = _in_order(
        first_bones(
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
    names = [avatar_joints.canonical(joint.name) for joint in skeleton.joints]
    bones = {name: number for number, name in reversed(list(enumerate(names))) if name is not None}
    turn, _ = _turn_and_size(skeleton, bones, world_matrices(skeleton))
    return float(np.arccos(np.clip(turn[2, 2], -1.0, 1.0)))


def _users_table(skeleton: Skeleton) -> BoneTable | None:
    """Return the table of the joints that the user assigned to bones.

    Return None if the user assigned none, or only those that the bones' own names already mean.
    """
    table = checked_bone_table({joint.name: joint.target_joint for joint in skeleton.joints if joint.target_joint}, "")
    is_own = all(avatar_joints.canonical(bone) == joint for bone, joint in table.joints.items())
    return None if is_own else table


def _turn_and_size(skeleton: Skeleton, bones: dict[str, int], rest: Floats) -> tuple[Floats, float]:
    """Return the rotation (3, 3) from a rig with the avatar's names to the avatar, and the avatar's relative size.

    The import rotates and scales keys by the same values.
    """
    wanted = avatar_fit.standard_heads()
    names = [name for name in bones if avatar_joints.table()[name].is_bone]
    if len(names) < 3:
        return facing(skeleton)[:3, :3], 1.0
    parents = [next((above for above in avatar_joints.ancestors(name)[1:] if above in bones), "") for name in names]
    index = {name: number for number, name in enumerate(names)}
    turn, scale = similarity(
        np.array([wanted[name] for name in names]),
        rest[[bones[name] for name in names], :3, 3],
        [index.get(parent, -1) for parent in parents],
    )
    return space.TO_AVATAR[:3, :3] @ turn.T, 1 / scale


def _replaced(bones: dict[str, int], turn: Floats, rest: Floats, size: float) -> list[str]:
    """Return the joints of a rig with the avatar's names that rest elsewhere than on the standard avatar."""
    table = avatar_joints.table()
    found = []
    for name in bones:
        parent = table[name].parent
        if table[name].is_bone and parent in bones:
            offset = turn @ (rest[bones[name], :3, 3] - rest[bones[parent], :3, 3]) * size
            if np.linalg.norm(offset - table[name].position) > _REPLACED:
                found.append(name)
    return found


def _in_order(bones: dict[str, int]) -> dict[str, int]:
    return {name: bones[name] for name in avatar_joints.table() if name in bones}


def bones_to_next(skeleton: Skeleton, bone: int, of_joints: Collection[int]) -> Iterator[int]:
    """Yield a bone and its ancestors, ending with the first ancestor that is mapped to a joint."""
    yield bone
    above = skeleton.joints[bone].parent
    while above >= 0 and above not in of_joints:
        yield above
        above = skeleton.joints[above].parent
