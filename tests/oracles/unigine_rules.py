"""What the page says of UNIGINE files beyond how their bytes lie: of collision trees, of edges and of flags.

Works on what ``unigine_oracle`` found; raises its ``WrongFile``.
"""

from __future__ import annotations

import math

import numpy as np
from unigine_oracle import Collision, Floats, Frames, Surface, require


def check_collision(surface: Surface) -> None:
    """Hold a collision block against the triangles of its surface: section 6.4, points 1 to 5."""
    found = surface.collision
    require(found is not None, "no collision block")
    assert found is not None
    triangles = surface.c_indices.reshape(-1, 3).tolist()
    points = surface.targets[0].positions
    require(len(found.edges) == len(triangles), "edge bytes")
    require(sorted(found.order) == [3 * number for number in range(len(triangles))], "order is not a permutation")
    if triangles:
        require(check_node(found, triangles, points, 0, [0]) == len(found.nodes), "nodes outside the tree")
    check_edges(found, triangles, points)


def check_node(found: Collision, triangles: list[list[int]], points: Floats, number: int, covered: list[int]) -> int:
    """Check a node and what is below; return the number behind its last node, count triangles in ``covered``."""
    axis, left, right, begin, end = found.nodes[number]
    box = found.boxes[number]
    start = covered[0]
    require(axis in (0, 1, 2), "axis")
    if left == -1:
        require(right == -1 and axis == 0, "a leaf with a child or an axis")
        require(begin == start and end > begin, "leaves that do not follow each other")
        require(found.splits[number] == 0, "a leaf that is split")
        covered[0], behind = end, number + 1
    else:
        require(begin == end == 0, "an inner node that holds triangles")
        require(left == number + 1, "left child")
        behind = check_node(found, triangles, points, left, covered)
        require(right == behind, "right child")
        behind = check_node(found, triangles, points, right, covered)
        middle = (float(box[axis]) + float(box[3 + axis])) / 2
        extent = float(np.abs(box).max())
        require(abs(float(found.splits[number]) - middle) <= 1e-6 * extent + 1e-12, "split is not the middle")
    if number == 0:
        require(covered[0] == len(triangles), "triangles without a leaf")
    held = [points[triangles[offset // 3]] for offset in found.order[start : covered[0]]]
    corners = np.concatenate(held)
    require(bool((box[:3] == corners.min(axis=0)).all() and (box[3:] == corners.max(axis=0)).all()), "box not tight")
    return behind


def check_edges(found: Collision, triangles: list[list[int]], points: Floats) -> None:
    """Border edges count, both triangles of an edge agree; clearly convex edges count, clearly concave ones do not."""
    by_edge: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, corners in enumerate(triangles):
        require(found.edges[number] < 8, "an edge byte above 7")
        if len(set(corners)) < 3:
            continue
        for bit in range(3):
            one, other = corners[(bit + 1) % 3], corners[(bit + 2) % 3]
            by_edge.setdefault((min(one, other), max(one, other)), []).append((number, bit))
    for users in by_edge.values():
        set_bits = {found.edges[number] >> bit & 1 for number, bit in users}
        if len(users) == 1:
            require(set_bits == {1}, "a border edge that does not count")
        elif len(users) == 2:
            require(len(set_bits) == 1, "triangles that disagree about their edge")
            said, due = set_bits.pop(), bend(triangles, points, users)
            require(due is None or said == due, "a convex edge that does not count, or a concave one that does")


def bend(triangles: list[list[int]], points: Floats, users: list[tuple[int, int]]) -> int | None:
    """Return 1 if two triangles meet convexly, 0 if concavely, None if too flat, thin or rotated to decide.

    The page gives the bound as about 0.1 degree and a distance; the result is None anywhere near it.
    """
    normals, frees, sides = [], [], []
    for number, bit in users:
        a, b, c = (points[index].astype(np.float64) for index in triangles[number])
        cross = np.cross(b - a, c - a)
        length = float(np.linalg.norm(cross))
        if length <= 1e-4 * max(float(np.abs(b - a).max()), float(np.abs(c - a).max())) ** 2:
            return None
        normals.append(cross / length)
        frees.append((a, b, c)[bit])
        sides.append((triangles[number][(bit + 1) % 3], triangles[number][(bit + 2) % 3]))
    if sides[0] == sides[1]:
        return None  # one of the two is turned over
    start = points[sides[0][0]].astype(np.float64)
    above = float(normals[0] @ (frees[1] - start)), float(normals[1] @ (frees[0] - start))
    if abs(math.degrees(math.acos(max(-1.0, min(1.0, float(normals[0] @ normals[1]))))) - 90) > 89:
        return None
    if max(above) < -1e-5:
        return 1
    return 0 if min(above) > 1e-5 else None


def check_flags(found: Frames) -> None:
    """Require that a value is written exactly where the rule asks: where it changes, or where it is not default.

    The former holds where there is a mask (section 5: the first frame carries all of it), the latter where there is
    none (section 8.2).
    """
    defaults = {0: (0, 0, 0), 1: (0, 0, 0, 1), 2: (1, 1, 1)}
    held: list[dict[int, object]] = [{} for _ in found.bones]
    for number, (flags, said) in enumerate(zip(found.flags, found.stored, strict=True)):
        for bone, (flag, values) in enumerate(zip(flags, said, strict=True)):
            require(found.mask is None or number > 0 or flag == found.mask, "a first frame without its mask")
            for bit, value in values.items():
                if found.mask is None:
                    require(value != defaults[bit], "a default that is flagged")
                else:
                    require(number == 0 or held[bone][bit] != value, "a value that repeats the one before")
                held[bone][bit] = value
