"""Motion of the avatar's joints -> document, with as few keys as the tolerance allows (animation format page, 10)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..avatar import skeleton_table
from . import codes, reduction, writer
from .avatar_motion import AvatarMotion
from .document import JointKeys, SecondLifeAnimation, text
from .export_findings import largest_joints, refusal

Floats = npt.NDArray[np.float64]

MOST_BYTES = 250_000
"""Size in bytes above which the grid refuses an upload."""
TOLERANCES = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0)
"""Tolerances in degrees, tried in order until the file is small enough."""
_METRES_PER_DEGREE = 0.01
"""Tolerance of positions: 1 mm at 0.1 degrees."""
_DEPTH_SHARE = 0.33
"""The errors of a chain of joints add up, so a joint's tolerance is divided by this share of the joints below it."""


@dataclass
class Reduced:
    """A document and how it was made."""

    document: SecondLifeAnimation
    degrees: float
    """Tolerance of rotations; 0 if every sample became a key."""
    samples: int
    """Number of keys before the reduction, with those of joints that are written as they are."""
    size: int
    """Bytes of the file."""

    @property
    def millimetres(self) -> float:
        """Tolerance of positions."""
        return self.degrees * _METRES_PER_DEGREE * 1000

    @property
    def keys(self) -> int:
        """Number of keys in the document."""
        return _key_count(self.document.joints)


def reduced(
    document: SecondLifeAnimation,
    motion: AvatarMotion,
    positioned: Sequence[bool],
    kept: Sequence[JointKeys],
    priorities: Mapping[str, int],
    *,
    edited: Mapping[str, JointKeys] | None = None,
    reduce: bool = True,
) -> Reduced:
    """Add the joints of a motion to a document that has a duration.

    Parameters
    ----------
    positioned:
        Whether each joint gets position keys.
    kept:
        Joints that are written as they are, in the order of the file; joints of the motion take the place of an entry
        of their name without keys.
    priorities:
        Priority of each joint that differs from that of the animation.
    edited:
        Keys of joints, by name, that are nearer to the motion than the smallest tolerance requires. They are written
        instead of the samples if the file is small enough.
    reduce:
        Whether keys that follow from others are left out.

    Raises
    ------
    ExportError
        The file would be too large at the largest tolerance.
    """
    sampled = _Sampled.of(motion, positioned, document.duration, TOLERANCES[0] if reduce else None)
    samples = motion.rotation.shape[1] * (len(motion.names) + sum(positioned)) + _key_count(kept)
    for degrees in TOLERANCES if reduce else (0.0,):
        made = sampled.joints(motion.names, degrees, document.base_priority, priorities)
        if degrees == TOLERANCES[0]:
            made = [_edited(joint, (edited or {}).get(name)) for joint, name in zip(made, motion.names, strict=True)]
        document.joints = _merged(kept, made)
        size = len(writer.write(document))
        if size <= MOST_BYTES:
            return Reduced(document, degrees, samples, size)
    raise refusal(
        f"The animation has {size:,} bytes, more than the {MOST_BYTES:,} that an upload may "
        f"have; {'' if reduce else 'switch Reduce Keys on, '}shorten it, animate fewer joints, or lower its frame rate",
        largest_joints(document.joints),
    )


def _edited(joint: JointKeys, edited: JointKeys | None) -> JointKeys:
    """Return a joint with the keys of its edited curves, if it has such curves."""
    if edited is None:
        return joint
    rotation = edited.rotation if len(edited.rotation) else joint.rotation
    position = edited.position if len(edited.position) and len(joint.position) else joint.position
    return replace(joint, rotation=rotation, position=position)


def _key_count(joints: Sequence[JointKeys]) -> int:
    return sum(len(joint.rotation) + len(joint.position) for joint in joints)


def _merged(kept: Sequence[JointKeys], made: Sequence[JointKeys]) -> list[JointKeys]:
    """Return joints in the order of ``kept``, if there are some, and new ones after them."""
    waiting = {text(joint.name): joint for joint in made}
    found = [
        waiting.pop(skeleton_table.canonical(text(joint.name)) or "", joint)
        if not len(joint.rotation) + len(joint.position)
        else joint
        for joint in kept
    ]
    return [*found, *waiting.values()]


@dataclass
class _Sampled:
    """Samples of a motion as keys, and the tolerance in degrees from which on each can be left out."""

    rotation: npt.NDArray[np.uint16]
    """(n, F, 4) codes of time, x, y and z."""
    rotation_need: Floats
    """(n, F)."""
    position: dict[int, npt.NDArray[np.uint16]]
    """(F, 4) of each joint that has positions, by index."""
    position_need: dict[int, Floats]

    @classmethod
    def of(cls, motion: AvatarMotion, positioned: Sequence[bool], duration: float, finest: float | None) -> _Sampled:
        """Encode samples; all are needed if ``finest``, the smallest tolerance in degrees, is None."""
        time_codes = codes.time_codes_of(motion.times, duration)
        first = np.unique(time_codes, return_index=True)[1]  # a reader uses only one key of each time
        time_codes = time_codes[first]
        rotation, rows = motion.rotation[:, first], np.flatnonzero(positioned)
        position = motion.position[rows][:, first]
        rotation_codes = codes.rotation_codes_of(rotation.reshape(-1, 4)).reshape(*rotation.shape[:2], 3)
        position_codes = codes.codes_of(position, codes.FARTHEST)
        rotation_need, position_need = np.full(rotation.shape[:2], np.inf), np.full(position.shape[:2], np.inf)
        if finest is not None:
            times = codes.times_of(time_codes, duration)
            divisors = np.array([_divisor(name) for name in motion.names])
            decoded = codes.rotations_of(rotation_codes.reshape(-1, 3)).reshape(rotation.shape)
            per_degree = np.radians(1) / divisors
            found = reduction.significances(rotation, decoded, times, finest * per_degree, reduction.angles)
            rotation_need = found / per_degree[:, None]
            stored = codes.values_of(position_codes, codes.FARTHEST).astype(np.float64)
            per_degree = _METRES_PER_DEGREE / divisors[rows]
            found = reduction.significances(position, stored, times, finest * per_degree, reduction.distances)
            position_need = found / per_degree[:, None]
        return cls(
            _keys(time_codes, rotation_codes),
            rotation_need,
            dict(zip(rows.tolist(), _keys(time_codes, position_codes), strict=True)),
            dict(zip(rows.tolist(), position_need, strict=True)),
        )

    def joints(
        self, names: Sequence[str], degrees: float, priority: int, priorities: Mapping[str, int]
    ) -> list[JointKeys]:
        """Return the keys of each joint that remain with a tolerance."""
        joints = []
        for number, name in enumerate(names):
            joint = JointKeys(name.encode("utf-8"), priorities.get(name, priority))
            joint.rotation = self.rotation[number][self.rotation_need[number] > degrees]
            if number in self.position:
                joint.position = self.position[number][self.position_need[number] > degrees]
            joints.append(joint)
        return joints


def _keys(time_codes: npt.NDArray[np.uint16], values: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """Return keys (n, F, 4) of the codes of times (F,) and of values (n, F, 3)."""
    times = np.broadcast_to(time_codes[:, None], (*values.shape[:2], 1))
    return np.concatenate((times, values), axis=2, dtype=np.uint16)


@functools.cache
def _divisor(name: str) -> float:
    """Return the number by which the tolerance of a joint is divided."""
    return max(1.0, _DEPTH_SHARE * _depth_below(name))


@functools.cache
def _depth_below(name: str) -> int:
    """Return the length of the longest chain of bones below a joint."""
    children = [child.name for child in skeleton_table.table().values() if child.parent == name and child.is_bone]
    return max((1 + _depth_below(child) for child in children), default=0)
