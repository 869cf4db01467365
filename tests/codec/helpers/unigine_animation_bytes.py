"""Animations and a skeleton as bytes made by hand, field by field, from docs/formats/unigine.md.

No file of an12 or sn10 is known, and none whose frames leave out single channels of a vector.
"""

from __future__ import annotations

import struct


def compact(value: int) -> bytes:
    """Return a small compact integer."""
    assert 0 <= value < 63
    return bytes((value,))


def string(text: str) -> bytes:
    return compact(len(text) + 1) + text.encode() + b"\0"


def string32(text: str) -> bytes:
    return struct.pack("<i", len(text) + 1) + text.encode() + b"\0"


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def shorts(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}h", *values)


def integer(value: int) -> bytes:
    return struct.pack("<i", value)


NO_TURN = (0.0, 0.0, 0.0, 1.0)

# The child stands before its parent.
TABLE = (
    string("tip") + shorts(1),  # bone 0, child of bone 1
    string("base") + shorts(-1),  # bone 1, a root
)
TRANSFORMS = (
    floats(0, 0, 2, *NO_TURN, 1, 1, 1),  # tip: two metres above its parent
    floats(1, 0, 0, 0, 0, 0.6, 0.8, 1, 2, 1),  # base: turned about Z, scaled along Y
)

EMBEDDED = b"".join(
    (
        compact(2),  # animated bones
        shorts(0, 1),  # tip, base
        b"\x0f",  # mask: translation x, y, z (bits 0 to 2) and rotation (bit 3)
        compact(3),  # frames
        # frame 0: the mask for every bone
        b"\x0f" + floats(0, 0, 2) + shorts(0, 0, 0, 32767),  # tip
        b"\x0f" + floats(1, -0.5, 0.25) + shorts(0, 0, 23169, 23169),  # base: a quarter about Z, truncated
        # frame 1
        b"\x00",  # tip: as before
        b"\x02" + floats(0.5),  # base: translation y alone
        # frame 2
        b"\x05" + floats(3, 4),  # tip: translation x and z
        b"\x08" + shorts(0, 0, 32767, 0),  # base: rotation alone, half a turn
    )
)
EMBEDDED_TRANSLATION = (
    ((0, 0, 2), (1, -0.5, 0.25)),
    ((0, 0, 2), (1, 0.5, 0.25)),
    ((3, 0, 4), (1, 0.5, 0.25)),
)
EMBEDDED_ROTATION = (
    ((0, 0, 0, 32767), (0, 0, 23169, 23169)),
    ((0, 0, 0, 32767), (0, 0, 23169, 23169)),
    ((0, 0, 0, 32767), (0, 0, 32767, 0)),
)

QUANTIZED = b"".join(
    (
        b"an10",
        floats(1e9, 1e9, 1e9, -1e9, -1e9, -1e9, 0, 0, 0, -1),  # empty bounds
        compact(2),  # bones
        *TABLE,
        compact(1),  # animations
        string("wave"),
        b"an10",
        *TRANSFORMS,
        compact(1),  # animated bones
        shorts(1),  # base
        floats(-1, 0, 0) + floats(3, 1, 65535),  # translation: minimum, range
        floats(1e9, 1e9, 1e9) + floats(-2e9, -2e9, -2e9),  # scale: not animated
        b"\x07",  # mask: translation
        compact(2),  # frames
        b"\x07" + struct.pack("<3H", 0, 0, 65534),  # frame 0: (-1, 0, 65534)
        b"\x01" + struct.pack("<H", 43690),  # frame 1: x = -1 + 43690 * 3 / 65535 = 1
        b"an10",
    )
)

FLAGGED_FRAMES = b"".join(
    (
        compact(2),  # frames
        b"\x07" + floats(1, 2, 3) + floats(0, 0, 0.6, 0.8) + floats(1, 2, 1),  # frame 0
        b"\x02" + floats(0, 1, 0, 0),  # frame 1: no translation, half a turn about Y, scale 1
    )
)

FLAGGED = b"".join(
    (
        b"an11",
        compact(2),  # bones
        *TABLE,
        b"an11",
        *TRANSFORMS,
        compact(1),  # animated bones
        shorts(1),  # base
        FLAGGED_FRAMES,
        b"an11",
    )
)

GUID = "0123456789abcdef0123456789abcdef01234567"


def referring(magic: bytes, sync_markers: bytes, fps: int = 24, root_motion: int = 1) -> bytes:
    """Return an12 or an13."""
    return b"".join(
        (
            magic,
            integer(2),  # bones
            *TABLE,
            string32(GUID),
            string32("guid://" + GUID),
            compact(1),  # animated bones
            shorts(1),  # base
            integer(fps),
            bytes((root_motion,)),
            sync_markers,
            magic,
            FLAGGED_FRAMES,
            magic,
        )
    )


AN12 = referring(b"an12", b"")
AN13 = referring(b"an13", bytes(12))

SKELETON = b"".join(
    (
        b"sn10",
        integer(2),  # joints
        *TABLE,
        *TRANSFORMS,
        b"sn10",
        integer(1),  # blend masks
        string32("upper") + integer(2) + floats(1, 0.25),
        integer(0),  # time profiles
        integer(2),  # weight profiles
        string32("hard") + integer(2) + floats(1, 0),
        string32("") + integer(0),
        integer(2),  # retargeting: mode, length
        integer(0) + floats(-1),  # tip: pose, default length
        integer(2) + floats(0.75),  # base: proportion
        b"sn10",
    )
)
