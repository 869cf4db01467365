"""Motion of the avatar's joints -> document, with as few keys as the tolerance allows (animation format page, 10)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...geometry.quaternions import continuous_components
from .. import skeleton_table
from . import codes, reduction, writer
from .avatar_motion import AvatarMotion
from .document import JointKeys, SecondLifeAnimation, text

Floats = npt.NDArray[np.float64]

MOST_BYTES = 250_000
"""Size in bytes above which the grid refuses an upload."""
LONGEST = 60.0
"""Length in seconds above which the viewer refuses an animation."""
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
    """Number of keys before the reduction."""

    @property
    def keys(self) -> int:
        """Number of keys in the document."""
        return sum(len(joint.rotation) + len(joint.position) for joint in self.document.joints)


def reduced(
    document: SecondLifeAnimation,
    motion: AvatarMotion,
    positioned: Sequence[bool],
    kept: Sequence[JointKeys],
    priorities: Mapping[str, int],
    *,
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
    reduce:
        Whether keys that follow from others are left out.

    Raises
    ------
    ExportError
        The file would be too large at the largest tolerance.
    """
    sampled = _Sampled.of(motion, document.duration)
    samples = motion.rotation.shape[1] * (len(motion.names) + sum(positioned))
    for degrees in TOLERANCES if reduce else (0.0,):
        made = sampled.joints(motion, positioned, degrees, document.base_priority, priorities)
        document.joints = _merged(kept, made)
        if len(writer.write(document)) <= MOST_BYTES:
            return Reduced(document, degrees, samples)
    raise ExportError(
        f"The animation has {len(writer.write(document)):,} bytes, more than the {MOST_BYTES:,} that an upload may "
        "have; shorten it, animate fewer joints, or lower its frame rate"
    )


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
    """Samples of a motion as codes, and as a reader decodes them."""

    time_codes: npt.NDArray[np.uint16]
    times: Floats
    rotation_codes: npt.NDArray[np.uint16]
    rotation: Floats
    position_codes: npt.NDArray[np.uint16]
    position: Floats
    first: npt.NDArray[np.intp]
    """Samples with different time codes; a reader uses only one key of each."""

    @classmethod
    def of(cls, motion: AvatarMotion, duration: float) -> _Sampled:
        time_codes = codes.time_codes_of(motion.times, duration)
        first = np.unique(time_codes, return_index=True)[1]
        rotation_codes = codes.rotation_codes_of(motion.rotation.reshape(-1, 4)).reshape(*motion.rotation.shape[:2], 3)
        decoded = codes.rotations_of(rotation_codes.reshape(-1, 3)).reshape(motion.rotation.shape)
        smooth = np.moveaxis(continuous_components(np.moveaxis(decoded, -1, 0)), 0, -1)
        position_codes = codes.codes_of(motion.position, codes.FARTHEST)
        position = codes.values_of(position_codes, codes.FARTHEST).astype(np.float64)
        times = codes.times_of(time_codes, duration)
        return cls(time_codes, times, rotation_codes, smooth, position_codes, position, first)

    def joints(
        self,
        motion: AvatarMotion,
        positioned: Sequence[bool],
        degrees: float,
        priority: int,
        priorities: Mapping[str, int],
    ) -> list[JointKeys]:
        """Return the keys of each joint that remain with a tolerance."""
        kept_rotation = self._kept(motion, degrees)
        rows = [number for number, has in enumerate(positioned) if has]
        kept_position = self._kept_positions(motion, rows, degrees)
        joints = []
        for number, name in enumerate(motion.names):
            joint = JointKeys(name.encode("utf-8"), priorities.get(name, priority))
            joint.rotation = self._keys(kept_rotation[number], self.rotation_codes[number])
            if positioned[number]:
                joint.position = self._keys(kept_position[rows.index(number)], self.position_codes[number])
            joints.append(joint)
        return joints

    def _kept(self, motion: AvatarMotion, degrees: float) -> npt.NDArray[np.bool_]:
        tolerance = np.radians(degrees) / np.array([_divisor(name) for name in motion.names])
        return reduction.chosen_keys(
            motion.rotation[:, self.first],
            self.rotation[:, self.first],
            self.times[self.first],
            tolerance if degrees else np.full(len(motion.names), -1.0),
            reduction.angles,
        )

    def _kept_positions(self, motion: AvatarMotion, rows: list[int], degrees: float) -> npt.NDArray[np.bool_]:
        tolerance = _METRES_PER_DEGREE * degrees / np.array([_divisor(motion.names[row]) for row in rows])
        return reduction.chosen_keys(
            motion.position[rows][:, self.first],
            self.position[rows][:, self.first],
            self.times[self.first],
            tolerance if degrees else np.full(len(rows), -1.0),
            reduction.distances,
        )

    def _keys(self, kept: npt.NDArray[np.bool_], values: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
        chosen = self.first[kept]
        return np.column_stack((self.time_codes[chosen], values[chosen])).astype(np.uint16)


@functools.cache
def _divisor(name: str) -> float:
    """Return the number by which the tolerance of a joint is divided."""
    return max(1.0, _DEPTH_SHARE * _depth_below(name))


@functools.cache
def _depth_below(name: str) -> int:
    """Return the length of the longest chain of bones below a joint."""
    children = [child.name for child in skeleton_table.table().values() if child.parent == name and child.is_bone]
    return max((1 + _depth_below(child) for child in children), default=0)
