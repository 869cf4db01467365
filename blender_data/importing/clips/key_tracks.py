"""Keys of joints -> keys of bones, on an armature of any size, facing and bone directions.

Rotations are relative to the parent, in the axes of the skeleton at rest. A bone whose rest axes are C in the axes of
the skeleton therefore rotates by C^-1 q D^-1 C, where q is the key and D the joint's own rotation at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....io_formats.core.scene import Keys, KeyTrack, Skeleton
from ....io_formats.geometry import hierarchy
from ....io_formats.geometry.transforms import rotation_product, similarity
from ...rigging.joint_poses import Array, BoneMap
from ..rigs.armatures import bind_matrices, parents_of


@dataclass(frozen=True)
class BoneKeys:
    """Keys of one bone: times in seconds, and values of its channel by component."""

    bone: str
    channel: str
    times: Array
    """(n,) times in seconds."""
    values: Array
    """(k, n) values of the k components."""


class KeyMapping:
    """Converts keys of a skeleton's joints to keys of an armature's bones."""

    def __init__(self, bones: BoneMap, skeleton: Skeleton) -> None:
        self.bones = bones
        self.skeleton = skeleton
        self.bind = bind_matrices(skeleton)
        self.parents = parents_of(skeleton)
        data = bones.armature.data.bones
        found = [name for name in bones.bones if name is not None]
        self.rest = {name: np.array(data[name].matrix_local, np.float64) for name in found}
        self.turn, self.scale = self._placement()

    def _placement(self) -> tuple[Array, float]:
        """Return the rotation (3, 3) and scale from the skeleton to the armature that align the heads of joints."""
        pairs = [(number, name) for number, name in enumerate(self.bones.bones) if name is not None]
        if len(pairs) < 3:
            return np.identity(3), 1.0
        worlds = hierarchy.world_matrices(self.bind, self.parents)
        ours = np.array([worlds[number, :3, 3] for number, _ in pairs])
        theirs = np.array([self.rest[name][:3, 3] for _, name in pairs])
        index = {name: at for at, (_, name) in enumerate(pairs)}
        return similarity(ours, theirs, [index.get(self._parent_bone(number) or "", -1) for number, _ in pairs])

    def keys_of(self, track: KeyTrack) -> list[BoneKeys]:
        """Return the keys of the bone that corresponds to a joint; empty if the armature has no such bone."""
        name = self.bones.bones[track.target]
        if name is None:
            return []
        axes = self.turn.T @ self.rest[name][:3, :3]
        found = []
        if track.translation is not None:
            found.append(BoneKeys(name, "location", track.translation.times, self._locations(track, name, axes).T))
        if track.rotation is not None:
            found.append(
                BoneKeys(
                    name, "rotation_quaternion", track.rotation.times, self._rotations(track, track.rotation, axes).T
                )
            )
        return found

    def _locations(self, track: KeyTrack, name: str, axes: Array) -> Array:
        values = track.translation.values * self.scale if track.translation is not None else np.empty((0, 3))
        if not track.is_offset:
            above = self._parent_bone(track.target)
            between = self.rest[name][:3, 3] - (self.rest[above][:3, 3] if above is not None else 0)
            values = values - self.turn.T @ between
        return np.asarray(values @ axes)

    def _parent_bone(self, joint: int) -> str | None:
        """Return the bone of the nearest ancestor of a joint that the armature has."""
        above = self.parents[joint]
        while above >= 0 and self.bones.bones[above] is None:
            above = self.parents[above]
        return self.bones.bones[above] if above >= 0 else None

    def _rotations(self, track: KeyTrack, keys: Keys, axes: Array) -> Array:
        w, x, y, z = self.skeleton.joints[track.target].rotation
        values = keys.values
        if (x, y, z) != (0.0, 0.0, 0.0):
            values = rotation_product(values, np.array([[w, -x, -y, -z]]))
        return np.concatenate((values[:, :1], values[:, 1:] @ axes), axis=1)
