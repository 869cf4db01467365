"""Dataclasses that mirror a Second Life animation one to one; sections refer to the animation format page."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...core.messages import Message
from ...core.scene import AnyArray
from ..avatar import joints

FORMAT = "second_life_animation"
"""Name of the format in the registry."""
MOST_JOINTS = 216
"""Largest number of joints that a file may list."""
MOST_CONSTRAINTS = 10
"""Number of constraints above which viewers ignore all of them."""
LONGEST_CHAIN = 3
"""Number of joints above which the chain of a constraint can crash viewers."""

CONSTRAINT = np.dtype(
    [
        ("chain_length", "u1"),
        ("type", "u1"),
        ("source", "u1", 16),
        ("source_offset", "<f4", 3),
        ("target", "u1", 16),
        ("target_offset", "<f4", 3),
        ("direction", "<f4", 3),
        ("ease", "<f4", 4),
    ]
)
"""A constraint, 86 bytes (section 6). Names end at their first zero byte; the bytes after it are kept."""


@dataclass
class JointKeys:
    """The keys of one joint.

    A row of ``rotation`` and ``position`` is a key: its time, then x, y and z. Version 1.0 has uint16 codes, version
    0.1 float32 values: seconds, degrees and metres.
    """

    name: bytes
    """Name of the joint without its final zero byte."""
    priority: int = -1
    """Priority of the joint; -1 to use the priority of the animation."""
    rotation: AnyArray = field(default_factory=lambda: np.empty((0, 4), np.uint16))
    """(n, 4) keys of the rotation: time, x, y, z."""
    position: AnyArray = field(default_factory=lambda: np.empty((0, 4), np.uint16))
    """(m, 4) keys of the position: time, x, y, z."""

    @property
    def known(self) -> str:
        """Name in the avatar table of the joint that ``name`` refers to; empty if the avatar has no such joint."""
        return joints.canonical(decode_text(self.name)) or ""

    @property
    def key_count(self) -> int:
        return len(self.rotation) + len(self.position)


@dataclass
class SecondLifeAnimation:
    """An animation file of version 1.0 or 0.1; times are in seconds."""

    version: tuple[int, int] = (1, 0)
    base_priority: int = 0
    duration: float = 0.0
    emote: bytes = b""
    """Name of a face expression that starts with the animation."""
    loop_in: float = 0.0
    loop_out: float = 0.0
    loop: int = 0
    """If not 0, the animation repeats from ``loop_in`` to ``loop_out``."""
    ease_in: float = 0.0
    ease_out: float = 0.0
    hand_pose: int = 1
    joints: list[JointKeys] = field(default_factory=list)
    constraints: AnyArray = field(default_factory=lambda: np.empty(0, CONSTRAINT))
    """(n,) constraints of dtype ``CONSTRAINT``."""
    trailing: bytes = b""
    """Bytes after the end, which viewers ignore."""
    warnings: list[Message] = field(default_factory=list)
    """Warnings of the reader (section 9); not part of the file."""

    @property
    def has_codes(self) -> bool:
        """Whether keys are 16-bit codes (version 1.0)."""
        return self.version == (1, 0)

    def known_joints(self) -> dict[str, JointKeys]:
        """Return the first entry of each joint that the avatar has, by its name in the avatar table."""
        found: dict[str, JointKeys] = {}
        for joint in self.joints:
            if joint.known:
                found.setdefault(joint.known, joint)
        return found


def decode_text(raw: bytes) -> str:
    """Decode bytes of the file as UTF-8, or as Latin-1 if they are not valid UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
