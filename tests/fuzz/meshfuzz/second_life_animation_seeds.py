"""Second Life animations written byte by byte, without the code under test."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def header(
    *,
    version: tuple[int, int] = (1, 0),
    priority: int = 3,
    duration: float = 2.0,
    emote: bytes = b"",
    loop: tuple[float, float, int] = (0.0, 2.0, 1),
    ease: tuple[float, float] = (0.3, 0.3),
    hand: int = 1,
    joints: int = 1,
) -> bytes:
    start = struct.pack("<HHif", *version, priority, duration) + emote + b"\0"
    return start + struct.pack("<ffiffII", *loop, *ease, hand, joints)


def keys(*rows: tuple[float, ...], kind: str = "4H", stated: int | None = None) -> bytes:
    """Return the keys of a curve; ``stated`` is written instead of their number."""
    packed = (struct.pack("<" + kind, *row) for row in rows)
    return struct.pack("<i", len(rows) if stated is None else stated) + b"".join(packed)


def joint(name: bytes, *, rotation: bytes = keys(), position: bytes = keys(), priority: int = 3) -> bytes:
    return name + b"\0" + struct.pack("<i", priority) + rotation + position


def constraint(
    *,
    chain: int = 1,
    kind: int = 0,
    source: bytes = b"L_HAND",
    target: bytes = b"GROUND",
    values: Sequence[float] = (0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0.5, 1.5, 2),
) -> bytes:
    """Return a constraint: the offset of its source, and what follows the name of its target."""
    return struct.pack("<BB16s3f16s10f", chain, kind, source, *values[:3], target, *values[3:])


def ending(*constraints: bytes, stated: int | None = None) -> bytes:
    return struct.pack("<i", len(constraints) if stated is None else stated) + b"".join(constraints)


QUARTER = 9597
"""Code of -sin(45°)."""
ZERO = 32768

ARMS = (
    header(joints=3)
    + joint(
        b"mPelvis",
        rotation=keys((0, ZERO, ZERO, ZERO)),
        position=keys((0, ZERO, ZERO, ZERO), (65535, ZERO, ZERO, 30000)),
    )
    + joint(
        b"mShoulderLeft", rotation=keys((0, ZERO, ZERO, ZERO), (30000, ZERO, 20000, ZERO), (65535, 16384, ZERO, ZERO))
    )
    + joint(b"mElbowLeft", rotation=keys((65535, ZERO, ZERO, QUARTER)), priority=-1)
    + ending()
)
"""Three joints with curves of one, two and three keys."""
CONSTRAINED = (
    header(joints=1, emote=b"express_smile")
    + joint(b"mWristLeft", rotation=keys((0, ZERO, ZERO, ZERO)))
    + ending(constraint())
)
OLD = (
    header(version=(0, 1))
    + joint(
        b"mPelvis", rotation=keys((0, 0, 0, 0), (2, 10, 20, 30), kind="4f"), position=keys((1, 0, 0, 0.5), kind="4f")
    )
    + ending()
)
"""Version 0.1: seconds, degrees and metres."""

BVH = b"""HIERARCHY
ROOT hip
{
\tOFFSET 0.000000 0.000000 0.000000
\tCHANNELS 6 Xposition Yposition Zposition Xrotation Zrotation Yrotation
\tJOINT abdomen
\t{
\t\tOFFSET 0.000000 3.000000 0.000000
\t\tCHANNELS 3 Xrotation Zrotation Yrotation
\t\tEnd Site
\t\t{
\t\t\tOFFSET 0.000000 1.000000 0.000000
\t\t}
\t}
}
MOTION
Frames: 4
Frame Time: 0.100000
0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0
0.0 1.0 0.0 0.0 0.0 10.0 5.0 0.0 0.0
0.0 2.0 0.0 0.0 0.0 20.0 10.0 0.0 0.0
0.0 2.5 0.0 0.0 5.0 20.0 10.0 90.0 0.0
"""
"""Two joints; frame 0 is the reference."""
