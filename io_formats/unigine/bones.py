"""Bone tables with their bind transforms, the same in all files, <-> a scene's skeleton (sections 2.4 and 3.3).

Files and scenes use the same space; only the order of rotation components differs. Values are copied exactly.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.errors import ExportError
from ..core.messages import Named, Report, Text, counted, of_kind
from ..core.scene import FloatArray, Joint, Mesh, Scene, Skeleton
from ..encodings.byte_reader import ByteStream
from ..geometry.hierarchy import own_ancestor, parents_first
from . import values

MOST_BONES = 32768
"""Maximum number of bones in a file, since parents and weights store bone indices in 16 bits."""
_UNIT_TOLERANCE = 1e-2


@dataclass
class Bone:
    """A bone of a file's table."""

    name: str
    parent: int = -1
    """Index of the parent, -1 for a root; a parent may come after its child."""


def read_table(stream: ByteStream, count: int) -> list[Bone]:
    """Read ``count`` bones, each a name and a parent, and check that the parents form trees.

    Raises
    ------
    FormatError
        The count exceeds the remaining bytes or 32,768, a parent does not exist, or the parents form a cycle.
    """
    start = stream.position
    if not 0 <= count <= MOST_BONES or 3 * count > stream.remaining:
        raise stream.error("The file is cut off or damaged: it claims {:,} bones", count)
    bones = []
    for number in range(count):
        name = values.read_string(stream, Text("the name of bone {}", number))
        bones.append(Bone(name, stream.i16(Text("the parent of bone '{}'", Named("bone", name)))))
    problem = _broken_parent(bones)
    if problem:
        raise stream.error(problem, offset=start)
    return bones


def _broken_parent(bones: Sequence[Bone]) -> str:
    """Return an error message for the first invalid or cyclic parent, or an empty string."""
    for bone in bones:
        if not -1 <= bone.parent < len(bones):
            template = "The parent of bone '{}' is bone {}, but only bones 0 to {} exist"
            return Text(template, Named("bone", bone.name), bone.parent, len(bones) - 1)
    index = own_ancestor([bone.parent for bone in bones])
    return Text("Bone '{}' is its own ancestor", Named("bone", bones[index].name)) if index >= 0 else ""


def encode_table(bones: Sequence[Bone]) -> bytes:
    """Encode the names and parents of bones, without their count.

    Raises
    ------
    ExportError
        Too many bones, or parents that do not form trees.
    """
    if len(bones) > MOST_BONES:
        raise ExportError("{:,} bones; a file holds at most {:,}", len(bones), MOST_BONES)
    problem = _broken_parent(bones)
    if problem:
        raise ExportError(problem)
    return b"".join(values.encode_string(bone.name) + bone.parent.to_bytes(2, "little", signed=True) for bone in bones)


def read_transforms(stream: ByteStream, bones: Sequence[Bone], kind: str = "bind") -> FloatArray:
    """Read the local transforms of all bones, (nb, 10) float32: translation, rotation (x, y, z, w), scale.

    ``kind`` names the transforms in messages.

    Raises
    ------
    FormatError
        The data is cut off, or a value is NaN or infinite.
    """
    start = stream.position
    transforms: FloatArray = stream.array(
        np.float32, (len(bones), 10), Text("the {} transforms of the bones", Text(kind))
    )
    broken = np.flatnonzero(~np.isfinite(transforms).all(1))
    if len(broken):
        place = int(broken[0])
        template = "The {} transform of bone '{}' holds a number that is not finite"
        raise stream.error(template, Text(kind), Named("bone", bones[place].name), offset=start + 40 * place)
    return transforms


def encode_transforms(transforms: FloatArray, bones: Sequence[Bone]) -> bytes:
    """Encode (nb, 10) float32 local bind transforms."""
    if transforms.shape != (len(bones), 10):
        raise ExportError("{:,} bind transforms for {:,} bones", len(transforms), len(bones))
    if not np.isfinite(transforms).all():
        raise ExportError("A bind transform of a bone holds a number that is not finite")
    return transforms.astype("<f4").tobytes()


def report_oddities(bones: Sequence[Bone], transforms: FloatArray, report: Report) -> None:
    """Report duplicate bone names and rotations that are not of unit length (section 11).

    ``transforms`` is empty if the file has none.
    """
    double = of_kind("bone", (name for name, times in Counter(bone.name for bone in bones).items() if times > 1))
    report.change_of("repeated-bone-name", "{} used twice: {}", double, "bone name is", "bone names are")
    lengths = np.linalg.norm(transforms[:, 3:7].astype(np.float64), axis=1)
    bent = [bones[place].name for place in np.flatnonzero(np.abs(lengths - 1) > _UNIT_TOLERANCE).tolist()]
    text = "{} not of unit length: {}"
    found = of_kind("bone", bent)
    report.change_of("not-unit-rotation", text, found, "bone has a bind rotation", "bones have bind rotations")


def check_bones(bones: list[Bone], report: Report) -> None:
    """Warn about bone names that are duplicate, differ in case only, or are empty: UNIGINE finds bones by name."""
    names = Counter(bone.name for bone in bones)
    keys = Counter(name.casefold() for name in names)
    twice = of_kind("bone", (name for name, times in names.items() if times > 1))
    text = "{} used twice, and UNIGINE finds bones by name: {}"
    report.warning_of("repeated-bone-name", text, twice, "bone name is", "bone names are")
    alike = of_kind("bone", (name for name in names if keys[name.casefold()] > 1))
    text = "{} in upper and lower case only, which UNIGINE may not tell apart: {}"
    report.warning_of("bone-names-differ-in-case", text, alike, "bone name differs", "bone names differ")
    if "" in names:
        report.warning("no-name", "{} no name", counted(names[""], "bone has", "bones have"))


IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
"""The identity transform in the order of files: translation, rotation (x, y, z, w), scale."""


def to_skeleton(name: str, bones: list[Bone], transforms: FloatArray) -> Skeleton:
    """Map a bone table and its local transforms (nb, 10) to a skeleton with joints in the order of the file."""
    joints = []
    for bone, (tx, ty, tz, x, y, z, w, sx, sy, sz) in zip(bones, transforms.tolist(), strict=True):
        joints.append(Joint(bone.name, bone.parent, (tx, ty, tz), (w, x, y, z), (sx, sy, sz)))
    return Skeleton(name, joints)


def from_skeleton(skeleton: Skeleton) -> tuple[list[Bone], FloatArray]:
    """Map a skeleton to a bone table and its local transforms, (nb, 10) float32.

    Raises
    ------
    ExportError
        More bones than a file can hold, or a NaN or infinite bind transform.
    """
    if len(skeleton.joints) > MOST_BONES:
        raise ExportError(
            "'{}' has {:,} bones; UNIGINE files hold {:,} at most. Export deform bones only, or split the armature",
            skeleton.name,
            len(skeleton.joints),
            MOST_BONES,
        )
    transforms = np.empty((len(skeleton.joints), 10), np.float32)
    for row, joint in zip(transforms, skeleton.joints, strict=True):
        w, x, y, z = joint.rotation
        row[:] = (*joint.translation, x, y, z, w, *joint.scale)
    broken = ~np.isfinite(transforms).all(axis=1)
    if broken.any():
        name = skeleton.joints[int(np.flatnonzero(broken)[0])].name
        raise ExportError(
            "Bone '{}' of '{}': its rest transform holds NaN or infinite values", Named("bone", name), skeleton.name
        )
    return [Bone(joint.name, joint.parent) for joint in skeleton.joints], transforms


def with_parents_first(scene: Scene) -> Scene:
    """Return a scene of one skeleton with parents before their children, the order of SDK 2.21 and later.

    The given scene is not modified; it is returned if it has that order.
    """
    joints = scene.skeletons[0].joints if scene.skeletons else []
    order = parents_first([joint.parent for joint in joints])
    if order == sorted(order):
        return scene
    place = np.argsort(order)
    ordered = [joints[old] for old in order]
    moved = [replace(one, parent=int(place[one.parent]) if one.parent >= 0 else -1) for one in ordered]

    def with_weights(mesh: Mesh | None) -> Mesh | None:
        if mesh is None or mesh.joint_indices is None:
            return mesh
        old = mesh.joint_indices
        known = (old >= 0) & (old < len(joints))  # others are reported later
        return replace(mesh, joint_indices=np.where(known, place[np.where(known, old, 0)], old))

    clips = [
        replace(clip, transforms=[replace(one, target=int(place[one.target])) for one in clip.transforms])
        for clip in scene.clips
    ]
    for clip in clips:
        clip.transforms.sort(key=lambda track: track.target)
    nodes = [replace(node, mesh=with_weights(node.mesh)) for node in scene.nodes]
    return replace(scene, nodes=nodes, skeletons=[replace(scene.skeletons[0], joints=moved)], clips=clips)
