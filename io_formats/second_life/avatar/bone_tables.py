"""Tables that map the bones of other rigs to the avatar's joints: Rigify, Mixamo and tables of users.

A table is a CSV file with the columns ``bone`` and ``joint``. The bundled ones are ``bones_*.csv`` in this folder.
Names match exactly, or without the prefix of an exporter or generator (``mixamorig1:Hips``, ``DEF-spine``).
"""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from ...core.errors import FormatError, MeshferryError
from ...core.messages import Text, counted, listed
from ...geometry.hierarchy import parents_first
from . import skeleton_table

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
    folder = resources.files(__package__)
    return tuple(parse_bone_table(folder.joinpath(f"bones_{name.lower()}.csv").read_bytes(), name) for name in BUNDLED)


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
            known = skeleton_table.canonical(joint.strip())
            line = f"line {rows.line_num}"
            if not bone:
                raise FormatError("the bone is missing", item=line, file=name)
            if known is None:
                raise FormatError("'{}' is not a joint of the avatar", joint, item=line, file=name)
            if bone in joints:
                raise FormatError("bone '{}' is repeated", bone, item=line, file=name)
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
    found = {bone: skeleton_table.canonical(joint.strip()) for bone, joint in joints.items()}
    for bone, known in found.items():
        if known is None:
            raise MeshferryError("Bone '{}': '{}' is not a joint of the avatar", bone, joints[bone])
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
        found[bones[number]] = own or found.get(above, skeleton_table.ROOT)
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
    return Text("{} to the nearest parent with one: {}", number, listed(bones))
