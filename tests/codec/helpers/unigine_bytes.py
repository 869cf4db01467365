"""UNIGINE files of small values, field by field after docs/formats/unigine.md.

No real file with a second morph target is known, none of ms10 with bones, none of sk10, an12 and sn10, and none whose
frames leave out single channels of a vector: those here stand for them. Our own encoder has no part in them.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from meshfuzz import unigine_seeds as seeds
from meshfuzz.tokens import Token, cint, encode, floats, plain, shorts
from meshfuzz.unigine_seeds import Rig, Surface

GUID = seeds.GUID
# A square of 1 by 1 in the plane z = 0, seen from above, in two triangles; its second shape lifts vertex 2 by a half.
BASE_POSITIONS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0))
SMILE_POSITIONS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.5), (0.0, 1.0, 0.0))
# Triangle vertices 0 to 3 belong to the vertices of that number, number 4 is vertex 2 again with other UVs.
UP = (0, 0, 0, 32767)  # no rotation: normal +z, tangent +x, binormal +y
UP_MIRRORED = (0, 0, 0, -32767)
LEANING = (0, 6392, 0, 32137)  # about y by 22.5 degrees: sin 11.25 = 0.19509, cos 11.25 = 0.980785, cut to 1/32767
BASE_TANGENTS = (UP, UP, UP, UP, UP_MIRRORED)
SMILE_TANGENTS = (UP, UP, LEANING, UP, UP_MIRRORED)
UV0 = ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.5, 0.25))
C_INDICES = (0, 1, 2, 0, 2, 3)
T_INDICES = (0, 1, 2, 0, 4, 3)
_BOUNDS = floats(
    *(0, 0, 0),  # box minimum
    *(1, 1, 0),  # box maximum
    *(0.5, 0.5, 0),  # sphere centre
    0.70710677,  # sphere radius: from the centre to a corner
)
_ROOT = floats(0, 0, 0, 0, 0, 0, 1, 1, 1, 1)  # translation; rotation x, y, z, w; scale
_TIP = floats(0, 0, 2, 0.6, 0, 0, 0.8, 0.5, 0.5, 0.5)
BOUNDS, ROOT_TRANSFORM, TIP_TRANSFORM = _BOUNDS.data, _ROOT.data, _TIP.data


def _joined(rows: tuple[tuple[float, ...], ...]) -> list[float]:
    return [value for row in rows for value in row]


_RIG = Rig((("Root", -1), ("Tip", 0)), (_ROOT, _TIP), (_TIP, _ROOT), path="guid://abc")
_FACE = Surface(
    "Face",
    [
        (name, floats(*_joined(positions)), shorts(*_joined(tangents)))
        for name, positions, tangents in (
            ("", BASE_POSITIONS, BASE_TANGENTS),
            ("Smile", SMILE_POSITIONS, SMILE_TANGENTS),
        )
    ],
    vertices=4,
    tangents=5,
    weights=[
        [(0, 65535)],  # vertex 0: Root alone
        [(0, 32767), (1, 32768)],
        [(1, 65535)],
        [],
    ],
    attributes=(
        floats(*_joined(UV0)),
        None,
        plain(255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 128, 1, 2, 3, 4, 255, 255, 255, 255),
    ),
    c_indices=plain(*C_INDICES),
    t_indices=plain(*T_INDICES),
    triangles=2,
    # Triangle 0 (0, 1, 2): border opposite corner 0 (1-2) and corner 2 (0-1); corner 1 (2-0) is the flat diagonal.
    # Triangle 1 (0, 2, 3): border opposite corner 0 (2-3) and corner 1 (3-0); corner 2 (0-2) is the diagonal.
    collision=seeds.collision((5, 3), box=(0, 0, 0, 1, 1, 0)),
    bounds=_BOUNDS,
)
# ms10: x, y, z and the handedness, -127 or 127
_TURNS = ((0, 0, 0, 127), (0, 0, 0, 127), (0, 6392, 0, -127), (0, 0, 0, 127), (0, 0, 0, -127))
_MS10_FACE = replace(
    _FACE, targets=[(*_FACE.targets[0][:2], Token("bytes", b"".join(struct.pack("<hhhb", *turn) for turn in _TURNS)))]
)

MS12_TWO_TARGETS = encode(seeds.stream_of("ms12", [_FACE], _RIG, bounds=_BOUNDS))
MS14_TWO_TARGETS = encode(seeds.blocks_of("ms14", [_FACE], _RIG, memory=1234, bounds=_BOUNDS))
MS14_GEOMETRY = encode(seeds.geometry("ms14", _FACE))
MS14_COLLISION = encode(_FACE.collision)
MS14_HEAD = MS14_TWO_TARGETS[: MS14_TWO_TARGETS.index(MS14_GEOMETRY) - 16]
MS10_SKINNED = encode(seeds.stream_of("ms10", [_MS10_FACE], _RIG, bounds=_BOUNDS))
SK10_TWO_TARGETS = encode(seeds.blocks_of("sk10", [_FACE], _RIG, memory=0, bounds=_BOUNDS))
MR02_TRIANGLE = encode(
    seeds.soup(
        b"wall",
        [
            (0, 0, 0, 0, 0, 1, 0, 0),  # position, normal, UV with v from the bottom
            (1, 0, 0, 0, 0, 1, 1, 0),
            (0, 1, 0, 0, 0, 1, 0, 1),
        ],
    )
)

ALL = {
    "ms12": MS12_TWO_TARGETS,
    "ms14": MS14_TWO_TARGETS,
    "ms10": MS10_SKINNED,
    "sk10": SK10_TWO_TARGETS,
    "mr02": MR02_TRIANGLE,
}


# -- animations and skeletons ---------------------------------------------------------------------

# The child stands before its parent: tip two metres above base, which is turned about Z and scaled along Y.
_ARM = Rig((("tip", 1), ("base", -1)), (floats(0, 0, 2, 0, 0, 0, 1, 1, 1, 1), floats(1, 0, 0, 0, 0, 0.6, 0.8, 1, 2, 1)))

EMBEDDED = encode(
    [
        cint(2),  # animated bones
        shorts(0, 1),  # tip, base
        plain(0x0F),  # mask: translation x, y, z (bits 0 to 2) and rotation (bit 3)
        cint(3),  # frames
        # frame 0: the mask for every bone
        *(plain(0x0F), floats(0, 0, 2), shorts(0, 0, 0, 32767)),  # tip
        *(plain(0x0F), floats(1, -0.5, 0.25), shorts(0, 0, 23169, 23169)),  # base: a quarter about Z, truncated
        # frame 1
        plain(0x00),  # tip: as before
        *(plain(0x02), floats(0.5)),  # base: translation y alone
        # frame 2
        *(plain(0x05), floats(3, 4)),  # tip: translation x and z
        *(plain(0x08), shorts(0, 0, 32767, 0)),  # base: rotation alone, half a turn
    ]
)
EMBEDDED_TRANSLATION = (((0, 0, 2), (1, -0.5, 0.25)), ((0, 0, 2), (1, 0.5, 0.25)), ((3, 0, 4), (1, 0.5, 0.25)))
EMBEDDED_ROTATION = (
    ((0, 0, 0, 32767), (0, 0, 23169, 23169)),
    ((0, 0, 0, 32767), (0, 0, 23169, 23169)),
    ((0, 0, 0, 32767), (0, 0, 32767, 0)),
)

QUANTIZED = encode(
    seeds.quantized_of(
        _ARM,
        [1],  # base
        [
            *(floats(-1, 0, 0), floats(3, 1, 65535)),  # translation: minimum, range
            *(floats(1e9, 1e9, 1e9), floats(-2e9, -2e9, -2e9)),  # scale: not animated
            plain(0x07),  # mask: translation
            cint(2),  # frames
            *(plain(0x07), shorts(0, 0, 65534)),  # frame 0: (-1, 0, 65534)
            *(plain(0x01), shorts(43690)),  # frame 1: x = -1 + 43690 * 3 / 65535 = 1
        ],
        "wave",
        floats(1e9, 1e9, 1e9, -1e9, -1e9, -1e9, 0, 0, 0, -1),  # empty bounds
    )
)

_FRAMES = [
    cint(2),  # frames
    *(plain(0x07), floats(1, 2, 3), floats(0, 0, 0.6, 0.8), floats(1, 2, 1)),  # frame 0
    *(plain(0x02), floats(0, 1, 0, 0)),  # frame 1: no translation, half a turn about Y, scale 1
]
FLAGGED_FRAMES = encode(_FRAMES)


def flagged(version: str, markers: bytes | None = None, motion: int = 1) -> bytes:
    """Return an an11, an12 or an13 that animates the bone base; ``markers`` replace the sync markers."""
    data = encode(seeds.flagged_of(version, _ARM, [1], _FRAMES, fps=24, motion=motion))
    if markers is None:
        return data
    tail = version.encode() + FLAGGED_FRAMES
    before, after = data.split(tail)
    return before.removesuffix(bytes(12) if version == "an13" else b"") + markers + tail + after


FLAGGED, AN12, AN13 = (flagged(version) for version in ("an11", "an12", "an13"))

SKELETON = encode(
    seeds.skeleton_of(
        _ARM,
        [
            [seeds.profile("upper", [1, 0.25])],  # blend masks
            [],  # time profiles
            [seeds.profile("hard", [1, 0]), seeds.profile("", [])],  # weight profiles
        ],
        [
            (0, -1.0),  # tip: pose, default length
            (2, 0.75),  # base: proportion
        ],
    )
)
