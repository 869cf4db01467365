"""Collision blocks of ms14 and ms15: edge flags, and a tree of boxes over the triangles (section 6.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.scene import AnyArray, FloatArray, IntArray
from .. import values as unigine_values

LEAF_SIZE = 4
"""Number of triangles from which a node of the tree is split."""

_EPSILON = 1e-6
"""Tolerance of the test for convex edges.

An edge between two triangles is convex if the corner of the second that is not on the edge is farther than this behind
the plane of the first, and the cosine of the angle between the triangles is smaller than 1 by more than this. With this
rule, 60,556 of 60,564 edges of real files get the engine's flag; the others are at the limit.
"""
_LEAF = -1
_NODE_FIELDS = 5

_Indices = npt.NDArray[np.intp]


def build(positions: FloatArray, c_indices: AnyArray, leaf_size: int = LEAF_SIZE) -> bytes:
    """Encode the collision block of a surface.

    Parameters
    ----------
    positions:
        (nv, 3) float32, finite.
    c_indices:
        (3 T,) below nv.
    leaf_size:
        Nodes with at least this many triangles are split at the middle of their box.
    """
    triangles = np.asarray(c_indices).astype(np.intp).reshape(-1, 3)
    points = np.ascontiguousarray(positions, np.float32)
    order, nodes, boxes, splits = _Tree(points, triangles, leaf_size).build()
    return b"".join(
        (
            unigine_values.encode_integer(len(triangles)),
            edge_flags(points, triangles).tobytes(),
            unigine_values.encode_integer(len(triangles)),
            # The first corner of each triangle, in the order of the tree.
            unigine_values.encode_integers(3 * order),
            unigine_values.encode_integer(len(nodes)),
            # Split axes are stored in one byte; a compact integer of 0, 1 or 2 is this byte.
            unigine_values.encode_integers(nodes),
            boxes.astype("<f4").tobytes(),
            splits.astype("<f4").tobytes(),
        )
    )


def largest(triangle_count: int) -> int:
    """Return the maximum size of a block in bytes: with compact integers of 5 bytes, and 2 nodes for each triangle."""
    node = 1 + 4 * 5 + 28
    return 3 * 5 + triangle_count * (1 + 5 + 2 * node)


def edge_flags(positions: FloatArray, triangles: _Indices) -> npt.NDArray[np.uint8]:
    """Return which edges of each triangle are borders or convex, (T,) uint8.

    Bit i is the edge opposite to corner i. An edge of three or more triangles counts as a border.

    Parameters
    ----------
    positions:
        (nv, 3) float32.
    triangles:
        (T, 3) intp, counter-clockwise.
    """
    count = len(triangles)
    if not count:
        return np.empty(0, np.uint8)
    # Edge 3 t + i runs from corner i + 1 to corner i + 2 of triangle t.
    first, second = triangles[:, (1, 2, 0)].reshape(-1), triangles[:, (2, 0, 1)].reshape(-1)
    keys = np.minimum(first, second) * np.int64(len(positions)) + np.maximum(first, second)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    new = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    sizes = np.diff(np.append(new, len(keys)))
    counts = np.ones(3 * count, bool)
    pairs = new[sizes == 2]
    one, other = order[pairs], order[pairs + 1]
    counts[one] = counts[other] = _convex(positions, triangles, one, other)
    bits: npt.NDArray[np.uint8] = np.packbits(counts.reshape(-1, 3), axis=1, bitorder="little").reshape(-1)
    return bits


def _convex(positions: FloatArray, triangles: _Indices, one: _Indices, other: _Indices) -> npt.NDArray[np.bool_]:
    """Return whether the surface is convex at edges.

    Each edge is given by two triangles, the earlier one in ``one`` and the later one in ``other``.
    """
    corners = positions[triangles].astype(np.float64)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals /= np.where(lengths > 0, lengths, 1)
    earlier = normals[one // 3]
    free_corner = corners.reshape(-1, 3)[other]  # edge 3 t + i is opposite to corner i
    behind = np.einsum("ij,ij->i", earlier, corners[one // 3, (one + 1) % 3] - free_corner)
    cosine = np.einsum("ij,ij->i", earlier, normals[other // 3])
    convex: npt.NDArray[np.bool_] = (behind > _EPSILON) & (cosine < 1 - _EPSILON)
    return convex


class _Tree:
    """Split triangles at the middle of their box, all nodes of one depth at once.

    The engine uses the same rule: triangles are divided by the position of their centre, along the axis that gives the
    most even division (the first such axis). Nodes are created depth by depth and renumbered at the end, so that a left
    child follows its parent.
    """

    def __init__(self, positions: FloatArray, triangles: _Indices, leaf_size: int) -> None:
        self.leaf_size = max(2, leaf_size)
        self.order = np.arange(len(triangles))
        # One array for each axis, since reductions and gathers are fast on single columns.
        self.lows, self.highs, self.centres = [], [], []
        for axis in range(3):
            column = np.ascontiguousarray(positions[:, axis])
            one, two, three = (column[triangles[:, corner]] for corner in range(3))
            self.lows.append(np.minimum(np.minimum(one, two), three))
            self.highs.append(np.maximum(np.maximum(one, two), three))
            third = np.float32(1 / 3)  # Multiply before the sum, since the sum of three corners could overflow.
            self.centres.append(one * third + two * third + three * third)
        self.levels: list[_Level] = []

    def build(self) -> tuple[_Indices, IntArray, FloatArray, FloatArray]:
        """Return the order of the triangles, and the nodes in preorder.

        Nodes are given as (N, 5) int32: split axis, left child, right child, begin and end in the order of the
        triangles; their boxes (N, 6) as minimum and maximum, and their splits (N,) as positions on the axis.
        """
        begin, end = np.array([0]), np.array([len(self.order)])
        if not len(self.order):
            begin = end = np.empty(0, np.intp)
        while len(begin):
            level = _Level(begin, end)
            self._find_boxes(level)
            self._divide(level)
            self.levels.append(level)
            inner = level.middle > 0
            begin = np.column_stack((level.begin[inner], level.middle[inner])).reshape(-1)
            end = np.column_stack((level.middle[inner], level.end[inner])).reshape(-1)
        return self.order, *self._preorder()

    def _find_boxes(self, level: _Level) -> None:
        places, starts, _ = _ranges(level.begin, level.end)
        for axis in range(3):
            level.boxes[:, axis] = np.minimum.reduceat(self.lows[axis][places], starts)
            level.boxes[:, 3 + axis] = np.maximum.reduceat(self.highs[axis][places], starts)

    def _divide(self, level: _Level) -> None:
        """Split large nodes and sort the triangles of each: first those of its left child, then those of its right."""
        large = np.flatnonzero(level.end - level.begin >= self.leaf_size)
        if not len(large):
            return
        begin, lengths = level.begin[large], (level.end - level.begin)[large]
        places, starts, owner = _ranges(begin, level.end[large])
        middles = level.boxes[large, :3] * np.float32(0.5) + level.boxes[large, 3:] * np.float32(0.5)
        on_left = np.stack([self.centres[axis][places] < middles[owner, axis] for axis in range(3)])
        left_counts = np.add.reduceat(on_left, starts, axis=1, dtype=np.intp)
        axes = np.argmin(np.abs(2 * left_counts - lengths), axis=0)
        left_count = left_counts[axes, np.arange(len(large))]
        divided = (left_count > 0) & (left_count < lengths)
        nodes = large[divided]
        level.axis[nodes] = axes[divided]
        level.split[nodes] = middles[divided, axes[divided]]
        level.middle[nodes] = (begin + left_count)[divided]
        if not len(nodes):
            return
        moved = np.flatnonzero(divided[owner])
        left = on_left[axes[owner[moved]], moved]
        places, starts, owner = _ranges(begin[divided], level.end[nodes])
        # The order of triangles within each child is preserved, as in the engine.
        before = np.cumsum(left) - left
        rank = before - before[starts][owner]
        targets = np.where(left, begin[divided][owner] + rank, left_count[divided][owner] + places - rank)
        for values in (self.order, *self.lows, *self.highs, *self.centres):
            values[targets] = values[places]

    def _preorder(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Number the nodes in preorder: a node, its left subtree, its right subtree."""
        sizes: list[_Indices] = []
        below = np.empty(0, np.intp)
        for level in reversed(self.levels):
            size = np.ones(len(level.begin), np.intp)
            size[level.middle > 0] += below.reshape(-1, 2).sum(1)
            sizes.insert(0, size)
            below = size
        count = int(sizes[0][0]) if sizes else 0
        nodes = np.zeros((count, _NODE_FIELDS), np.int32)
        boxes, splits = np.empty((count, 6), np.float32), np.zeros(count, np.float32)
        own = np.zeros(min(1, count), np.intp)
        for depth, level in enumerate(self.levels):
            inner = level.middle > 0
            boxes[own], splits[own] = level.boxes, level.split
            nodes[own, 0] = level.axis
            nodes[own, 3], nodes[own, 4] = np.where(inner, 0, level.begin), np.where(inner, 0, level.end)
            nodes[own, 1:3] = _LEAF
            parents = own[inner]
            if len(parents):
                left = parents + 1
                right = left + sizes[depth + 1][0::2]
                nodes[parents, 1], nodes[parents, 2] = left, right
                own = np.column_stack((left, right)).reshape(-1)
        return nodes, boxes, splits


class _Level:
    """The nodes of one depth: M ranges of triangles, and how each is split."""

    def __init__(self, begin: _Indices, end: _Indices) -> None:
        self.begin, self.end = begin, end
        self.boxes = np.empty((len(begin), 6), np.float32)
        self.axis = np.zeros(len(begin), np.intp)
        self.split = np.zeros(len(begin), np.float32)
        self.middle = np.zeros(len(begin), np.intp)
        """(M,) index of the first triangle of the right child; 0 if the node is not split."""


def _ranges(begin: _Indices, end: _Indices) -> tuple[_Indices, _Indices, _Indices]:
    """Concatenate the integers of ranges.

    Return the integers, the start of each range among them, and the range of each integer.
    """
    lengths = end - begin
    starts = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(begin)), lengths)
    return np.arange(len(owner)) + (begin - starts)[owner], starts, owner
