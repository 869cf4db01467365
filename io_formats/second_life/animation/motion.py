"""Sampled joints of any skeleton -> motion of the avatar's joints (animation format page, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.errors import ExportError
from ...core.scene import Clip, Skeleton, TransformTrack
from ...geometry import hierarchy, transforms
from ...geometry.transforms import Floats
from ...passes.clips import DEFAULT_RATE
from ..avatar import avatar_fit, joints
from ..avatar.other_rigs import RigJoints, bones_to_next, rig_joints


@dataclass
class AvatarMotion:
    """Samples of n joints of the avatar in F frames."""

    names: list[str]
    """Joint names in the avatar table, parents first."""
    times: Floats
    """(F,) times of the frames in seconds, rising."""
    rotation: Floats
    """(n, F, 4) unit quaternions (w, x, y, z) relative to the parent in the table, each nearest to the one before."""
    position: Floats
    """(n, F, 3) metres relative to the parent; for the root, relative to its rest position."""
    has_position: list[bool]
    """For each joint, whether its position differs from its rest position in any frame."""
    is_other_rig: bool = False
    """Whether the bones have the names of another kind of rig. Then joints keep the proportions of the avatar."""
    bones: dict[str, str] = field(default_factory=dict)
    """Name of the bone of each joint that the skeleton has."""
    mapped: list[int] = field(default_factory=list)
    """Indices of the bones that are mapped to a joint, and of the bones between two such bones."""
    replaced: list[str] = field(default_factory=list)
    """Names of the joints that rest elsewhere than those of the standard avatar, for a rig with the avatar's names."""

    def part(self, numbers: Sequence[int]) -> AvatarMotion:
        """Return the motion of the joints with these indices."""
        return replace(
            self,
            names=[self.names[number] for number in numbers],
            rotation=self.rotation[numbers],
            position=self.position[numbers],
            has_position=[self.has_position[number] for number in numbers],
        )


_MOVED = 1e-4
"""Distance in metres from its rest position below which a joint counts as unmoved."""


def motion_of(skeleton: Skeleton, clip: Clip, *, fit: bool = True) -> AvatarMotion:
    """Return the motion of the joints that a sampled clip moves and that the avatar has.

    The skeleton may have any bone directions and further bones in between, may lack bones, and may face any direction:
    rotations are those of the joints' world matrices relative to their rest. Bones of other rigs point in the same
    directions as the avatar's limbs, even if their rest poses differ.

    Parameters
    ----------
    fit:
        Whether positions are scaled to the size of the avatar, those of another rig by the length of the legs.

    Raises
    ------
    ExportError
        A joint has NaN or infinite values.
    """
    rig = rig_joints(skeleton, fit=fit)
    of_joints = set(rig.bones.values())
    between = {name: [*bones_to_next(skeleton, number, of_joints)] for name, number in rig.bones.items()}
    tracked = {track.target for track in clip.transforms}
    wanted = [name for name in rig.bones if not tracked.isdisjoint(between[name])]
    if clip.is_pose:
        wanted = _posed_names(wanted, clip, rig)
    frames = clip.frame_count
    motion = AvatarMotion(wanted, times_of(clip), np.empty((0, frames, 4)), np.empty((0, frames, 3)), [])
    motion.is_other_rig, motion.replaced = rig.is_other_rig, rig.replaced
    motion.bones = {name: skeleton.joints[number].name for name, number in rig.bones.items()}
    motion.mapped = sorted({bone for bones in between.values() for bone in bones})
    if wanted:
        worlds = _Worlds(rig, _posed_worlds(skeleton, clip) if clip.worlds is None else clip.worlds)
        rotations = np.array([worlds.local_rotation(name) for name in wanted])
        motion.rotation = np.moveaxis(transforms.continuous_components(np.moveaxis(rotations, -1, 0)), 0, -1)
        found = [worlds.local_position(name) for name in wanted]
        motion.position = np.array([position for position, _moves in found])
        motion.has_position = [moves for _position, moves in found]
        _require_finite(motion, clip)
    return motion


def _require_finite(motion: AvatarMotion, clip: Clip) -> None:
    is_finite = np.isfinite(motion.rotation).all(axis=2) & np.isfinite(motion.position).all(axis=2)
    if not is_finite.all():
        joint, frame = np.argwhere(~is_finite)[0]
        raise ExportError(
            "'{}': '{}' has NaN or infinite values at {:.2f} s; check its keys, constraints and drivers",
            clip.name,
            motion.bones[motion.names[joint]],
            motion.times[frame],
        )


def _posed_names(names: Sequence[str], clip: Clip, rig: RigJoints) -> list[str]:
    """Return the joints that a pose contains.

    These are all joints of the body, and all joints of a group (such as the hands) if at least one of the group is
    moved.
    """
    table = joints.table()
    tracks = {track.target: track for track in clip.transforms}
    moved = set()
    for name in names:
        track = tracks.get(rig.bones[name])
        if track is not None and not _is_at_rest(track, rig.locals[track.target]):
            moved.add(table[name].group)
    return [name for name in names if (table[name].is_bone and table[name].is_base) or table[name].group in moved]


def _is_at_rest(track: TransformTrack, rest: Floats) -> bool:
    posed = transforms.matrix_of_transform(track.translation[0], track.rotation[0], track.scale[0])
    return bool(np.abs(posed - rest).max() <= _MOVED * max(1.0, float(np.abs(rest).max())))


class _Worlds:
    """World matrices of a rig's bones in all frames, and those of the avatar's joints that follow from them."""

    def __init__(self, rig: RigJoints, posed: Floats) -> None:
        self.rig = rig
        self.posed = posed
        """(F, J, 4, 4) world matrices of the bones in each frame."""
        self.rotations: dict[str, Floats] = {}

    def rotation(self, name: str) -> Floats:
        """Return the world rotation of a joint in avatar axes, (F, 3, 3), relative to the avatar's rest."""
        if name not in self.rotations:
            number, turn = self.rig.bones[name], self.rig.turn
            moved = _rotation(self.posed[:, number]) @ _rotation(self.rig.rest[number][None])[0].T
            found = turn @ moved @ turn.T
            if self.rig.is_other_rig:
                found = self._aimed(name, found) @ self.rig.rest_turns[name]
            self.rotations[name] = found @ joints.table()[name].axes
        return self.rotations[name]

    def _aimed(self, name: str, rotation: Floats) -> Floats:
        """Return the rotation of a joint, corrected so that the joint points to the next one.

        Bones between the two joints that twist or stretch can bend a limb of the rig.
        """
        aim = self.rig.aims.get(name)
        if aim is None:
            return rotation
        numbers = self.rig.bones[name], self.rig.bones[aim]
        start, end = (self.posed[:, number, :3, 3] for number in numbers)
        rest_start, rest_end = (self.rig.rest[number, :3, 3] for number in numbers)
        before = rotation @ (self.rig.turn @ (rest_end - rest_start))
        return avatar_fit.swings(before, (end - start) @ self.rig.turn.T) @ rotation

    def local_rotation(self, name: str) -> Floats:
        """Return the rotations of a joint relative to its parent, (F, 4; w, x, y, z)."""
        parent = self._parent(name)
        own = self.rotation(name)
        # every parent is a bone, whose default rotation is the identity
        above = np.identity(3)[None] if parent is None else self.rotation(parent)
        return transforms.matrices_to_quaternions(above.transpose(0, 2, 1) @ own)

    def local_position(self, name: str) -> tuple[Floats, bool]:
        """Return the positions of a joint relative to its parent, (F, 3), and whether they differ from the rest."""
        rig, parent = self.rig, self._parent(name)
        head, rest_head = self.posed[:, rig.bones[name], :3, 3], rig.rest[rig.bones[name], :3, 3]
        if parent is None:
            offset = (head - rest_head) @ rig.turn.T * rig.size
            return offset, name == joints.ROOT and bool((np.abs(offset) > _MOVED).any())
        between = (head - self.posed[:, rig.bones[parent], :3, 3]) @ rig.turn.T * rig.size
        offset = (self.rotation(parent).transpose(0, 2, 1) @ between[..., None])[..., 0]
        table = joints.table()
        # If the skeleton lacks the joint's parent, the position relative to the parent is not known.
        is_known = parent == table[name].parent
        if rig.is_other_rig:
            chain = joints.ancestors(name)
            lacking = chain[1 : chain.index(parent)]  # the avatar's joints that the rig lacks stay at rest
            offset = offset - np.sum([table[joint].position for joint in lacking], axis=0)
            still, is_known = np.array(table[name].position), True
        else:
            still = rig.turn @ (rest_head - rig.rest[rig.bones[parent], :3, 3]) * rig.size
        return offset, is_known and bool((np.abs(offset - still) > _MOVED).any())

    def _parent(self, name: str) -> str | None:
        """Return the nearest ancestor of a joint in the avatar table that the skeleton has, or None."""
        return next((above for above in joints.ancestors(name)[1:] if above in self.rig.bones), None)


def times_of(clip: Clip) -> Floats:
    """Return the seconds of a clip's frames, (F,)."""
    return clip.times if clip.times is not None else np.arange(clip.frame_count) / (clip.fps or DEFAULT_RATE)


def _rotation(matrices: Floats) -> Floats:
    """Return the rotations (n, 3, 3) of transforms (n, 4, 4), whose scale is dropped."""
    axes = matrices[:, :3, :3]
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    return np.asarray(axes / np.where(length > 0, length, 1.0))


def _posed_worlds(skeleton: Skeleton, clip: Clip) -> Floats:
    """Return the world matrices of all joints in all frames, (F, J, 4, 4)."""
    local = np.empty((len(skeleton.joints), clip.frame_count, 4, 4))
    for number, joint in enumerate(skeleton.joints):
        local[number] = transforms.matrix_of_transform(joint.translation, joint.rotation, joint.scale)
    for track in clip.transforms:
        moved = local[track.target]
        moved[:, :3, :3] = transforms.rotation_matrices(track.rotation.astype(np.float64)) * track.scale[:, None, :]
        moved[:, :3, 3] = track.translation
    return np.moveaxis(hierarchy.world_matrices(local, [joint.parent for joint in skeleton.joints]), 0, 1)
