"""Second Life files made by hand, after docs/formats/second_life.md with ``struct`` and ``zlib``, none of our code."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Sequence
from typing import Any

SIDES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
"""Axes along which a side of a box looks, and its two edges run."""


class Raw(bytes):
    """An LLSD string of undecodable bytes."""


def llsd(value: Any) -> bytes:
    """Section 1; keys in the order given."""
    if value is None:
        return b"!"
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, int):
        return b"i" + struct.pack(">i", value)
    if isinstance(value, float):
        return b"r" + struct.pack(">d", value)
    if isinstance(value, Raw):
        return b"s" + struct.pack(">i", len(value)) + value
    if isinstance(value, str):
        return b"s" + struct.pack(">i", len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return b"b" + struct.pack(">i", len(value)) + value
    if isinstance(value, dict):
        pairs = b"".join(b"k" + struct.pack(">i", len(key)) + key.encode() + llsd(one) for key, one in value.items())
        return b"{" + struct.pack(">i", len(value)) + pairs + b"}"
    return b"[" + struct.pack(">i", len(value)) + b"".join(map(llsd, value)) + b"]"


def halves(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def box(
    *, least: int = 0, most: int = 65535, sides: int = 6, weights: Sequence[Sequence[tuple[int, int]]] = ()
) -> dict[str, Any]:
    """Return a face: ``sides`` sides of a box between two steps of the unit cube, four vertices and two triangles each.

    ``weights`` are dealt out to the vertices in turn.
    """
    positions: list[int] = []
    normals: list[int] = []
    uvs: list[int] = []
    triangles: list[int] = []
    for side in range(sides):
        (axis, u, v), far = SIDES[side // 2], side % 2
        first = len(positions) // 3
        for along, across in ((0, 0), (1, 0), (1, 1), (0, 1)) if far else ((0, 0), (0, 1), (1, 1), (1, 0)):
            corner = [0, 0, 0]
            corner[axis], corner[u], corner[v] = far, along, across
            positions += [most if end else least for end in corner]
            look = [32767, 32767, 32767]
            look[axis] = 65535 * far
            normals += look
            uvs += [65535 * along, 65535 * across]
        triangles += [first, first + 1, first + 2, first, first + 2, first + 3]
    face: dict[str, Any] = {
        "Normal": halves(*normals),
        "Position": halves(*positions),
        "PositionDomain": {"Max": [0.5] * 3, "Min": [-0.5] * 3},
        "TexCoord0": halves(*uvs),
        "TexCoord0Domain": {"Max": [1.0, 1.0], "Min": [0.0, 0.0]},
        "TriangleList": halves(*triangles),
    }
    if weights:
        dealt = itertools.islice(itertools.cycle(weights), len(positions) // 3)
        face["Weights"] = b"".join(
            b"".join(struct.pack("<BH", *pair) for pair in pairs) + (b"" if len(pairs) == 4 else b"\xff")
            for pairs in dealt
        )
    return face


NO_GEOMETRY = {"NoGeometry": True}
CORNERS = halves(*(end * 65535 for corner in itertools.product((0, 1), repeat=3) for end in corner))
HULL: dict[str, Any] = {"BoundingVerts": CORNERS, "Max": [0.5] * 3, "Min": [-0.5] * 3}
"""A convex physics shape with nothing but its base hull."""


def asset(blocks: dict[str, Any], header: dict[str, Any] | None = None, trailing: bytes = b"") -> bytes:
    """Return a mesh asset of these blocks, in this order; the header's keys are sorted."""
    area = b""
    keys: dict[str, Any] = dict(header or {})
    for name, value in blocks.items():
        compressed = zlib.compress(llsd(value), 9)
        keys[name] = {"offset": len(area), "size": len(compressed)}
        area += compressed
    return llsd(dict(sorted(keys.items()))) + area + trailing


def levels(*faces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the blocks of four levels, coarsest first as on disk; the last that is given stands for the rest."""
    names = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
    return {name: faces[min(number, len(faces) - 1)] for number, name in reversed(list(enumerate(names)))}


def crate() -> bytes:
    """Return a static box of 2 faces and 2 × 1 × 0.5 m: 12 triangles, the second face gone in the two low levels."""
    high = [box(sides=4), box(sides=6)]
    high[1]["Position"] = high[1]["Position"][4 * 4 * 6 :]
    for key, width in (("Normal", 6), ("TexCoord0", 4)):
        high[1][key] = high[1][key][4 * 4 * width :]
    high[1]["TriangleList"] = halves(0, 1, 2, 0, 2, 3, 4, 5, 6, 4, 6, 7)
    for face in high:
        face["NormalizedScale"] = [2.0, 1.0, 0.5]
    low = [box(sides=2), NO_GEOMETRY]
    return asset({"physics_convex": HULL, **levels(high, high, low, low)})


def translation(x: float, y: float, z: float, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> list[float]:
    """Return a matrix as the file has it: rows, for row vectors."""
    return [scale[0], 0.0, 0.0, 0.0, 0.0, scale[1], 0.0, 0.0, 0.0, 0.0, scale[2], 0.0, x, y, z, 1.0]


def torso() -> bytes:
    """Return a box of 0.3 × 0.4 × 0.6 m around (0, 0, 1.3) on three joints, with 1 to 4 weights a vertex, and hulls."""
    dealt = (
        ((0, 65535),),
        ((0, 40000), (1, 25535)),
        ((1, 30000), (0, 20000), (2, 15535)),
        ((2, 32000), (1, 20000), (0, 10000), (1, 3535)),
    )
    skin = {
        "bind_shape_matrix": translation(0.0, 0.0, 1.3, (0.3, 0.4, 0.6)),
        "inverse_bind_matrix": [
            translation(0.0, 0.0, -1.067),
            translation(0.0, 0.0, -1.151),
            translation(0.0150, 0.0, -1.356),
        ],
        "joint_names": ["mPelvis", "mTorso", "mChest"],
    }
    ball = halves(*(number % 65536 for point in range(256) for number in (257 * point, 8191 * point, 40503 * point)))
    hulls = {"BoundingVerts": CORNERS, "HullList": bytes([8, 0]), "Max": [0.5] * 3, "Min": [-0.5] * 3}
    hulls["Positions"] = CORNERS + ball
    face = box(weights=dealt)
    return asset({"skin": skin, "physics_convex": hulls, **levels([face], [face], [box(sides=2, weights=dealt)])})


def bundle() -> bytes:
    """Return a model bundle of one crate, at (0, 0, 1), with two materials."""
    data = crate()
    # Bundles name the faces' materials in the header.
    start = len(b"{") + 4
    named = b"k" + struct.pack(">i", 13) + b"material_list" + llsd(["wood", "iron"])
    count = struct.unpack(">i", data[1:5])[0]
    at = data.index(b"k" + struct.pack(">i", 10) + b"medium_lod")
    mesh = b"{" + struct.pack(">i", count + 1) + data[start:at] + named + data[at:]
    materials = [
        {
            "binding": binding,
            "diffuse": {"color": [red, 0.5, 0.25, 1.0], "filename": "", "label": ""},
            "fullbright": binding == "wood",
        }
        for binding, red in (("iron", 0.0), ("wood", 1.0))
    ]
    instance = {
        "label": "crate",
        "material": materials,
        "mesh_id": 0,
        "transform": translation(0.0, 0.0, 1.0, (2.0, 1.0, 0.5)),
    }
    return llsd({"instance": [instance], "mesh": [Raw(mesh)], "name": "crate", "version": 3})
