"""UNIGINE mesh files by hand, field by field after docs/formats/unigine.md.

No real file with a second morph target is known, none of ms10 with bones, and none of sk10: what is here stands for
them. Counts and indices are written out as the bytes they have in the file, so that our own encoder has no part in it.
"""

from __future__ import annotations

import struct


def f32(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def i16(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}h", *values)


def i32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def i64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


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
BOUNDS = f32(
    *(0, 0, 0),  # box minimum
    *(1, 1, 0),  # box maximum
    *(0.5, 0.5, 0),  # sphere centre
    0.70710677,  # sphere radius: from the centre to a corner
)
ROOT_TRANSFORM = f32(0, 0, 0, 0, 0, 0, 1, 1, 1, 1)  # translation; rotation x, y, z, w; scale
TIP_TRANSFORM = f32(0, 0, 2, 0.6, 0, 0, 0.8, 0.5, 0.5, 0.5)


def _positions(target: tuple[tuple[float, float, float], ...]) -> bytes:
    return b"".join(f32(*point) for point in target)


def _tangents(target: tuple[tuple[int, ...], ...]) -> bytes:
    return b"".join(i16(*tangent) for tangent in target)


BONE_TABLE = (
    b"\x02"  # bone count 2
    b"\x05Root\0"  # name: length with the zero
    b"\xff\xff"  # parent -1
    b"\x04Tip\0"  # name
    b"\x00\x00"  # parent 0
)
WEIGHTS = (
    b"\x04"  # weights of 4 vertices
    b"\x01" + b"\x00\x00\xff\xff"  # vertex 0: one bone: Root, 65535
    b"\x02" + b"\x00\x00\xff\x7f" + b"\x01\x00\x00\x80"  # vertex 1: Root 32767, Tip 32768
    b"\x01" + b"\x01\x00\xff\xff"  # vertex 2: Tip, 65535
    b"\x00"  # vertex 3: none
)
ATTRIBUTES = (
    b"\x05"
    + b"".join(f32(*uv) for uv in UV0)  # UV0 count 5
    + b"\x00"  # UV1 count 0
    + b"\x05"  # colour count 5
    + bytes((255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 128, 1, 2, 3, 4, 255, 255, 255, 255))
)

MS12_TWO_TARGETS = b"".join(
    (
        b"ms12",
        BOUNDS,  # of the mesh
        BONE_TABLE,
        b"\x00",  # animation count 0
        b"\x01",  # surface count 1
        b"\x05Face\0",  # name of the surface
        b"\x01\x03",  # lightmap: channel 1, code 3 (256)
        BOUNDS,  # of the surface
        b"\x02",  # target count 2
        b"\x01\0",  # name of target 0: empty
        b"\x06Smile\0",  # name of target 1
        b"ms12",
        ROOT_TRANSFORM,
        TIP_TRANSFORM,
        b"\x04" + _positions(BASE_POSITIONS),  # target 0: nv 4
        b"\x05" + _tangents(BASE_TANGENTS),  # nt 5
        b"\x04" + _positions(SMILE_POSITIONS),  # target 1: as many, absolute
        b"\x05" + _tangents(SMILE_TANGENTS),
        WEIGHTS,
        ATTRIBUTES,
        b"\x06" + bytes(C_INDICES),  # CIndex count 6, of one byte each
        b"\x06" + bytes(T_INDICES),  # TIndex count 6
        b"ms12",
    )
)

_MS14_GEOMETRY = b"".join(
    (
        _positions(BASE_POSITIONS),  # target 0: nv stands in the header
        b"\x05" + _tangents(BASE_TANGENTS),  # nt 5
        _positions(SMILE_POSITIONS),  # target 1
        b"\x05" + _tangents(SMILE_TANGENTS),
        WEIGHTS,
        ATTRIBUTES,
        bytes(C_INDICES),  # counts stand in the header
        bytes(T_INDICES),
    )
)
_MS14_COLLISION = b"".join(
    (
        b"\x02",  # edge bytes of 2 triangles
        # triangle 0 (0, 1, 2): border opposite corner 0 (1-2) and corner 2 (0-1); corner 1 (2-0) is the flat diagonal
        b"\x05",
        # triangle 1 (0, 2, 3): border opposite corner 0 (2-3) and corner 1 (3-0); corner 2 (0-2) is the diagonal
        b"\x03",
        b"\x02" + b"\x00\x03",  # first corners in the order of the tree: triangle 0, triangle 1
        b"\x01",  # node count 1
        b"\x00\x41\x41\x00\x02",  # axis 0, no children (-1, -1), triangles 0 to 2
        f32(0, 0, 0, 1, 1, 0),  # its box
        f32(0),  # its split: none
    )
)
_MS14_HEAD = b"".join(
    (
        b"ms14",
        b"\x04",  # spatial tree leaf size 4
        BOUNDS,
        BONE_TABLE,
        b"\x01",  # surface count 1
        b"\x05Face\0",
        b"\x01\x03",  # lightmap
        b"\x06",  # CIndex count 6
        b"\x06",  # TIndex count 6
        BOUNDS,
        b"\x02",  # target count 2
        b"\x01\0" + b"\x04",  # target 0: no name, nv 4
        b"\x06Smile\0" + b"\x04",  # target 1: name, nv 4
        i64(1234),  # estimated memory use
        b"ms14",
        ROOT_TRANSFORM,
        TIP_TRANSFORM,
    )
)
MS14_TWO_TARGETS = b"".join(
    (
        _MS14_HEAD,
        i64(len(_MS14_GEOMETRY)),  # uncompressed size
        i64(len(_MS14_GEOMETRY)),  # stored size: the same, so not compressed
        _MS14_GEOMETRY,
        b"ms14",
        i64(len(_MS14_COLLISION)),
        i64(len(_MS14_COLLISION)),
        _MS14_COLLISION,
        b"ms14",
        i64(len(_MS14_HEAD)),  # offset of the geometry block: of its uncompressed size
        b"ms14",
    )
)

MS10_SKINNED = b"".join(
    (
        b"ms10",
        BOUNDS,
        BONE_TABLE,
        b"\x00",  # animation count 0
        b"\x01",  # surface count 1
        b"\x05Face\0",  # no lightmap before ms12
        BOUNDS,
        b"\x01",  # target count 1
        b"\x01\0",
        b"ms10",
        ROOT_TRANSFORM,
        TIP_TRANSFORM,
        b"\x04" + _positions(BASE_POSITIONS),
        b"\x05",  # nt 5, of 7 bytes: x, y, z and the handedness, -127 or 127
        i16(0, 0, 0) + b"\x7f",
        i16(0, 0, 0) + b"\x7f",
        i16(0, 6392, 0) + b"\x81",
        i16(0, 0, 0) + b"\x7f",
        i16(0, 0, 0) + b"\x81",
        WEIGHTS,
        ATTRIBUTES,
        b"\x06" + bytes(C_INDICES),
        b"\x06" + bytes(T_INDICES),
        b"ms10",
    )
)

_SK10_HEAD = b"".join(
    (
        b"sk10",
        b"\x04",  # leaf size
        BOUNDS,
        i32(2),  # joint count, not compact here
        BONE_TABLE[1:],  # joints
        i32(2) + ROOT_TRANSFORM + TIP_TRANSFORM,  # bind transforms
        i32(2) + TIP_TRANSFORM + ROOT_TRANSFORM,  # rest transforms
        i32(41) + b"0123456789abcdef0123456789abcdef01234567\0",  # GUID of the skeleton
        i32(11) + b"guid://abc\0",  # path of the skeleton
        b"\x01",  # surface count 1
        b"\x05Face\0",  # no lightmap
        b"\x06\x06",  # CIndex and TIndex counts
        BOUNDS,
        b"\x02",  # targets
        b"\x01\0" + b"\x04",
        b"\x06Smile\0" + b"\x04",
        i64(0),  # memory use
        b"sk10",
    )
)
SK10_TWO_TARGETS = b"".join(
    (
        _SK10_HEAD,
        i64(len(_MS14_GEOMETRY)) * 2,
        _MS14_GEOMETRY,
        b"sk10",
        i64(len(_SK10_HEAD)),
        b"sk10",  # no collision section
    )
)

MR02_TRIANGLE = b"".join(
    (
        b"mr02",
        i32(1),  # surface count
        b"wall".ljust(128, b"\0"),  # name
        i32(3),  # vertex count
        f32(0, 0, 0, 0, 0, 1, 0, 0),  # position, normal, UV with v from the bottom
        f32(1, 0, 0, 0, 0, 1, 1, 0),
        f32(0, 1, 0, 0, 0, 1, 0, 1),
    )
)

ALL = {
    "ms12": MS12_TWO_TARGETS,
    "ms14": MS14_TWO_TARGETS,
    "ms10": MS10_SKINNED,
    "sk10": SK10_TWO_TARGETS,
    "mr02": MR02_TRIANGLE,
}
