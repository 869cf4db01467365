"""Motion of the avatar's joints -> document, with as few keys as the tolerance allows (animation format page, 10)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Text, counted, error
from ..avatar import joints
from ..avatar.avatar_motion import AvatarMotion
from . import writer
from .document import JointKeys, SecondLifeAnimation, decode_text
from .export_findings import largest_joints
from .keys import codes, reduction
from .keys.codes import Floats

MOST_BYTES = 250_000
"""Size in bytes above which the grid refuses an upload."""
TOLERANCES = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0)
"""Tolerances in degrees, tried in order until the file is small enough."""
_METRES_PER_DEGREE = 0.01
"""Tolerance of positions in metres for each degree of the tolerance of rotations: 1 mm at 0.1 degrees."""
_DEPTH_SHARE = 0.33
"""Factor by which the length of the longest chain of bones below a joint is multiplied. The joint's tolerance is
divided by the result, if that is above 1, since errors add up along a chain."""


@dataclass
class KeySettings:
    """Settings for turning a motion into keys."""

    positioned: Sequence[bool]
    """Whether each joint gets position keys."""
    kept: Sequence[JointKeys] = ()
    """Imported joints in the order of the file. A joint with keys is written unchanged; one without keys is replaced by
    the joint of the motion with the same name."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """Priority of each joint that differs from that of the animation."""
    edited: Mapping[str, JointKeys] = field(default_factory=dict)
    """Keys of edited joints, by joint name, which match the motion at least as well as the smallest tolerance requires.
    They are written instead of sampled keys if the file is small enough."""
    reduce: bool = True
    """Whether keys are left out that interpolation between the others restores within the tolerance."""


def add_reduced_joints(document: SecondLifeAnimation, motion: AvatarMotion, settings: KeySettings) -> Text:
    """Add the joints of a motion to a document that has a duration; return a text about the number of keys.

    Raises
    ------
    ExportError
        The file would be too large at the largest tolerance.
    """
    sampled = _SampledMotion(document, motion, settings)
    size = 0
    for degrees in TOLERANCES if settings.reduce else (0.0,):
        document.joints = _merged(settings.kept, sampled.joints(degrees))
        size = len(writer.write(document))
        if size <= MOST_BYTES:
            samples = motion.rotation.shape[1] * (len(motion.names) + sum(settings.positioned))
            samples += sum(joint.key_count for joint in settings.kept)
            keys = sum(joint.key_count for joint in document.joints)
            within = Text(" within {:g}° and {:g} mm", degrees, degrees * _METRES_PER_DEGREE * 1000) if degrees else ""
            return Text("{} reduced to {:,}{}, {:,} bytes", counted(samples, "key"), keys, within, size)
    raise ExportError.of(
        error(
            "animation-too-large",
            "The animation has {:,} bytes, more than the {:,} that an upload may have; {}shorten it, animate "
            "fewer joints, or lower its frame rate",
            size,
            MOST_BYTES,
            "" if settings.reduce else Text("switch Reduce Keys on, "),
            elements=largest_joints(document.joints),
        )
    )


class _SampledMotion:
    """The samples of a motion, encoded as keys of joints."""

    def __init__(self, document: SecondLifeAnimation, motion: AvatarMotion, settings: KeySettings) -> None:
        self._names = motion.names
        self._base_priority = document.base_priority
        self._settings = settings
        # Several samples can have the same time code, and a reader uses only one of them.
        time_codes, first = np.unique(codes.time_codes_of(motion.times, document.duration), return_index=True)

        def sampled(values: Floats, finest: Floats) -> _Sampled:
            return _Sampled.of(values[:, first], time_codes, document.duration, finest if settings.reduce else None)

        rows = np.flatnonzero(settings.positioned)
        degrees = TOLERANCES[0] / np.array([_divisor(name) for name in motion.names])
        self._rotation = sampled(motion.rotation, np.radians(degrees))
        self._position = sampled(motion.position[rows], _METRES_PER_DEGREE * degrees[rows])
        self._position_rows = {number: row for row, number in enumerate(rows.tolist())}

    def joints(self, degrees: float) -> list[JointKeys]:
        """Return the joints with the keys that a tolerance in degrees requires.

        Edited keys are used at the smallest.
        """
        made = []
        for number, name in enumerate(self._names):
            joint = JointKeys(name.encode("utf-8"), self._settings.priorities.get(name, self._base_priority))
            joint.rotation = self._rotation.joint_keys(number, degrees)
            if number in self._position_rows:
                joint.position = self._position.joint_keys(self._position_rows[number], degrees)
            edited = self._settings.edited.get(name) if degrees == TOLERANCES[0] else None
            made.append(_edited(joint, edited))
        return made


def _edited(joint: JointKeys, edited: JointKeys | None) -> JointKeys:
    """Replace the keys of a joint by those of its edited curves, if there are any."""
    if edited is None:
        return joint
    rotation = edited.rotation if len(edited.rotation) else joint.rotation
    position = edited.position if len(edited.position) and len(joint.position) else joint.position
    return replace(joint, rotation=rotation, position=position)


def _merged(kept: Sequence[JointKeys], made: Sequence[JointKeys]) -> list[JointKeys]:
    """Return the joints in the order of ``kept``, followed by the others in ``made``.

    A joint of ``kept`` without keys is replaced by the joint in ``made`` with the same name.
    """
    waiting = {decode_text(joint.name): joint for joint in made}
    found = [joint if joint.key_count else waiting.pop(joint.known, joint) for joint in kept]
    return [*found, *waiting.values()]


@dataclass
class _Sampled:
    """Samples of n curves, encoded as keys, and the tolerance above which each sample can be left out."""

    keys: npt.NDArray[np.uint16]
    """(n, F, 4) codes of time and value of each sample."""
    need: Floats
    """(n, F) tolerance in degrees from which on each sample can be left out."""

    @classmethod
    def of(cls, values: Floats, time_codes: npt.NDArray[np.uint16], duration: float, finest: Floats | None) -> _Sampled:
        """Encode samples, (n, F, 4) or (n, F, 3).

        Parameters
        ----------
        finest:
            (n,) smallest tolerance of each curve; None to keep all samples.
        """
        encoded = codes.encode_values(values)
        need = np.full(values.shape[:2], np.inf)
        if finest is not None:
            stored = codes.decode_values(encoded, is_rotation=values.shape[2] == 4)
            found = reduction.significances(values, stored, codes.times_of(time_codes, duration), finest)
            need = found * (TOLERANCES[0] / finest[:, None])
        times = np.broadcast_to(time_codes[:, None], (*encoded.shape[:2], 1))
        return cls(np.concatenate((times, encoded), axis=2, dtype=np.uint16), need)

    def joint_keys(self, number: int, degrees: float) -> npt.NDArray[np.uint16]:
        """Return the keys of one curve that a tolerance in degrees requires, (k, 4)."""
        return np.asarray(self.keys[number][self.need[number] > degrees])


@functools.cache
def _divisor(name: str) -> float:
    """Return the number by which the tolerance of a joint is divided."""
    return max(1.0, _DEPTH_SHARE * _depth_below(name))


@functools.cache
def _depth_below(name: str) -> int:
    """Return the length of the longest chain of bones below a joint."""
    children = [child.name for child in joints.table().values() if child.parent == name and child.is_bone]
    return max((1 + _depth_below(child) for child in children), default=0)
