"""Sampled joints of any skeleton -> motion of the avatar's joints (animation format page, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.scene import Clip, Skeleton
from ...geometry.quaternions import continuous_components, matrices_to_quaternions, rotation_matrices
from ...geometry.transforms import matrix_of_transform
from ...passes.sample_keys import DEFAULT_RATE
from .. import skeleton_table
from ..rigging import facing, world_matrices

Floats = npt.NDArray[np.float64]


@dataclass
class AvatarMotion:
    """Samples of n joints of the avatar in F frames."""

    names: list[str]
    """Names of the table, parents first."""
    times: Floats
    """(F,) seconds, rising."""
    rotation: Floats
    """(n, F, 4) unit quaternions (w, x, y, z) relative to the parent in the table, each nearest to the one before."""
    position: Floats
    """(n, F, 3) metres relative to the parent; for the root, relative to its rest position."""
    has_position: list[bool]
    """Whether the position of each joint differs from that at rest in a frame."""


_MOVED = 1e-4
"""Distance in metres from its rest position below which a joint counts as unmoved."""


def motion_of(skeleton: Skeleton, clip: Clip) -> AvatarMotion:
    """Return the motion of the joints that a sampled clip moves and that the avatar has.

    The skeleton may have any bone directions and further bones in between, may lack bones, and may face any direction:
    rotations are those of the joints' world matrices relative to their rest.
    """
    turn = facing(skeleton)[:3, :3]
    known = [skeleton_table.canonical(joint.name) for joint in skeleton.joints]
    index: dict[str, int] = {}
    for number, name in enumerate(known):
        if name is not None:
            index.setdefault(name, number)
    tracked = {track.target for track in clip.transforms}
    wanted = [name for name in skeleton_table.table() if name in index and index[name] in tracked]
    rest = world_matrices(skeleton)
    posed = _posed_worlds(skeleton, clip)
    turned: dict[str, Floats] = {}

    def world_rotation(name: str) -> Floats:
        """Return the rotation of a joint in avatar axes relative to its rest, times its default rotation, (F, 3, 3)."""
        if name not in turned:
            number = index[name]
            moved = _rotation(posed[:, number]) @ _rotation(rest[number][None])[0].T
            turned[name] = turn @ moved @ turn.T @ _default(name)
        return turned[name]

    rotations, positions, moves = [], [], []
    for name in wanted:
        parent = _parent(name, index)
        own = world_rotation(name)
        above = np.identity(3)[None] if parent is None else world_rotation(parent)  # all parents are bones
        rotations.append(matrices_to_quaternions(above.transpose(0, 2, 1) @ own))
        head, rest_head = posed[:, index[name], :3, 3], rest[index[name], :3, 3]
        if parent is None:
            offset = (head - rest_head) @ turn.T
            still = np.zeros(3)
        else:
            between = (head - posed[:, index[parent], :3, 3]) @ turn.T
            offset = (above.transpose(0, 2, 1) @ between[..., None])[..., 0]
            still = turn @ (rest_head - rest[index[parent], :3, 3])
        positions.append(offset)
        # Below a joint that the skeleton lacks, the position relative to the parent is not known.
        is_known = parent is None or parent == skeleton_table.table()[name].parent
        moves.append(is_known and bool((np.abs(offset - still) > _MOVED).any()))
    if not wanted:
        return AvatarMotion(
            [], times_of(clip), np.empty((0, clip.frame_count, 4)), np.empty((0, clip.frame_count, 3)), []
        )
    frames = clip.frame_count
    stacked = np.array(rotations).reshape(-1, frames, 4)
    smooth = np.moveaxis(continuous_components(np.moveaxis(stacked, -1, 0)), 0, -1)
    return AvatarMotion(wanted, times_of(clip), smooth, np.array(positions).reshape(-1, frames, 3), moves)


def times_of(clip: Clip) -> Floats:
    """Return the seconds of a clip's frames, (F,)."""
    return clip.times if clip.times is not None else np.arange(clip.frame_count) / (clip.fps or DEFAULT_RATE)


def _parent(name: str, index: dict[str, int]) -> str | None:
    """Return the nearest ancestor in the table that the skeleton has."""
    return next((above for above in skeleton_table.ancestors(name)[1:] if above in index), None)


def _default(name: str) -> Floats:
    """Return the default rotation of a joint, (3, 3): the identity for bones."""
    joint = skeleton_table.table()[name]
    if joint.is_bone:
        return np.identity(3)
    rotation: Floats = _rotation(joint.local[None])[0]
    return rotation


def _rotation(matrices: Floats) -> Floats:
    """Return the rotations (n, 3, 3) of transforms (n, 4, 4), whose scale is dropped."""
    axes = matrices[:, :3, :3]
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    return np.asarray(axes / np.where(length > 0, length, 1.0))


def _posed_worlds(skeleton: Skeleton, clip: Clip) -> Floats:
    """Return the world matrices of all joints in all frames, (F, J, 4, 4)."""
    tracks = {track.target: track for track in clip.transforms}
    frames = clip.frame_count
    worlds = np.empty((frames, len(skeleton.joints), 4, 4))
    done: set[int] = set()
    for start in range(len(skeleton.joints)):
        chain = []
        number = start
        while number >= 0 and number not in done:
            chain.append(number)
            number = skeleton.joints[number].parent
        for number in reversed(chain):
            joint = skeleton.joints[number]
            if number in tracks:
                track = tracks[number]
                local = np.zeros((frames, 4, 4))
                local[:, 3, 3] = 1
                local[:, :3, :3] = rotation_matrices(track.rotation.astype(np.float64)) * track.scale[:, None, :]
                local[:, :3, 3] = track.translation
            else:
                local = matrix_of_transform(joint.translation, joint.rotation, joint.scale)[None]
            worlds[:, number] = local if joint.parent < 0 else worlds[:, joint.parent] @ local
            done.add(number)
    return worlds
