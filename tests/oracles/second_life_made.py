"""A crate, a torso and a bundle of Second Life, after docs/formats/second_life.md, none of our code."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from meshfuzz import second_life_seeds as seeds
from meshfuzz.second_life_seeds import NO_GEOMETRY, asset, domain, face, influences, matrix, shorts

SIDES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
"""Axes along which a side of a box looks, and its two edges run."""


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
    dealt = itertools.islice(itertools.cycle(weights), len(positions) // 3)
    return face(positions, normals, uvs, triangles, Weights=influences(*dealt) if weights else None)


CORNERS = shorts(*(end * 65535 for corner in itertools.product((0, 1), repeat=3) for end in corner))
HULL = seeds.hulls(BoundingVerts=CORNERS, **domain((-0.5,) * 3, (0.5,) * 3))
"""A convex physics shape with nothing but its base hull."""


def levels(*faces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the blocks of four levels, coarsest first as on disk; the last that is given stands for the rest."""
    names = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
    return {name: faces[min(number, len(faces) - 1)] for number, name in reversed(list(enumerate(names)))}


def crate(**header: Any) -> bytes:
    """Return a static box of 2 faces and 2 × 1 × 0.5 m: 12 triangles, the second face gone in the two low levels."""
    high = [box(sides=4), box(sides=6)]
    high[1]["Position"] = high[1]["Position"][4 * 4 * 6 :]
    for key, width in (("Normal", 6), ("TexCoord0", 4)):
        high[1][key] = high[1][key][4 * 4 * width :]
    high[1]["TriangleList"] = shorts(0, 1, 2, 0, 2, 3, 4, 5, 6, 4, 6, 7)
    for whole in high:
        whole["NormalizedScale"] = [2.0, 1.0, 0.5]
    low = [box(sides=2), NO_GEOMETRY]
    return asset({"physics_convex": HULL, **levels(high, high, low, low)}, header=header)


def torso() -> bytes:
    """Return a box of 0.3 × 0.4 × 0.6 m around (0, 0, 1.3) on three joints, with 1 to 4 weights a vertex, and hulls."""
    dealt = (
        ((0, 65535),),
        ((0, 40000), (1, 25535)),
        ((1, 30000), (0, 20000), (2, 15535)),
        ((2, 32000), (1, 20000), (0, 10000), (1, 3535)),
    )
    inverse = [matrix((0, 0, -1.067)), matrix((0, 0, -1.151)), matrix((0.0150, 0, -1.356))]
    rig = seeds.skin(
        ("mPelvis", "mTorso", "mChest"),
        bind_shape_matrix=matrix((0, 0, 1.3), (0.3, 0.4, 0.6)),
        inverse_bind_matrix=inverse,
    )
    ball = shorts(*(number % 65536 for point in range(256) for number in (257 * point, 8191 * point, 40503 * point)))
    hulls = seeds.hulls(**HULL, HullList=bytes([8, 0]), Positions=CORNERS + ball)
    whole = box(weights=dealt)
    return asset({"skin": rig, "physics_convex": hulls, **levels([whole], [whole], [box(sides=2, weights=dealt)])})


def bundle() -> bytes:
    """Return a model bundle of one crate, at (0, 0, 1), with two materials."""
    materials = [
        {
            "binding": binding,
            "diffuse": {"color": [red, 0.5, 0.25, 1.0], "filename": "", "label": ""},
            "fullbright": binding == "wood",
        }
        for binding, red in (("iron", 0.0), ("wood", 1.0))
    ]
    placed = seeds.instance(material=materials, transform=matrix((0, 0, 1), (2, 1, 0.5)))
    # Bundles name the faces' materials in the header.
    return seeds.bundle([crate(material_list=["wood", "iron"])], [placed], name="crate")
