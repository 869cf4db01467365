"""The polygons of a primitive element: how many corners each has, and the indices of the corners."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from ...core.scene import IntArray
from . import numbers
from .findings import Findings
from .tree import taken_text

Polygons = tuple[IntArray, IntArray]
"""(G,) number of corners of each polygon, and (C, stride) indices of all corners."""

KINDS = ("triangles", "polylist", "polygons", "tristrips", "trifans")
LINES = ("lines", "linestrips")


def polygons_of(element: Element, stride: int, findings: Findings, owner: str) -> Polygons:
    """Return the polygons of a primitive element; strips and fans become triangles.

    Parameters
    ----------
    element:
        The element. Its text is released after parsing, to save memory.
    stride:
        Number of indices of each corner.
    findings:
        Counts data that is left out.
    owner:
        Name of the geometry.
    """
    if element.tag == "polylist":
        return _polylist(element, stride, findings, owner)
    lists = element.findall("p")
    if element.tag == "polygons":
        lists += [part for with_holes in element.findall("ph") for part in with_holes.findall("p")]
        findings.add("holes-left-out", owner, len(element.findall("ph/h")))
    sizes, rows = _lists(lists, stride)
    if element.tag == "triangles":
        stated = numbers.integer(element.get("count"))
        findings.add("lists-cut-off", owner, len(rows) % 3 != 0 or len(rows) // 3 < stated)
        return np.full(len(rows) // 3, 3, np.int32), rows[: len(rows) // 3 * 3]
    if element.tag == "polygons":
        return sizes, rows
    corners = _strip_corners(sizes) if element.tag == "tristrips" else _fan_corners(sizes)
    return np.full(len(corners) // 3, 3, np.int32), rows[corners]


def _polylist(element: Element, stride: int, findings: Findings, owner: str) -> Polygons:
    """Divide corners into polygons by ``vcount``, since ``count`` is wrong in some real files."""
    sizes = np.maximum(numbers.integers(taken_text(element.find("vcount"))), 0)
    _, rows = _lists(element.findall("p"), stride)
    whole = np.cumsum(sizes, dtype=np.int64) <= len(rows)
    findings.add("lists-cut-off", owner, not whole.all() or len(sizes) == 0 < len(rows))
    sizes = sizes[whole]
    return sizes, rows[: int(sizes.sum(dtype=np.int64))]


def _lists(elements: list[Element], stride: int) -> Polygons:
    """Return the number of complete corners in each list, and the corners of all lists."""
    texts = [taken_text(element) for element in elements]
    if len(texts) == 1:
        values = numbers.integers(texts.pop())
        count = len(values) // stride
        return np.array([count], np.int32), values[: count * stride].reshape(-1, stride)
    # As bytes, since str.split also splits at blanks that are not XML's, which are parts of numbers here.
    sizes = np.array([len(text.encode().split()) for text in texts], np.int64)
    values = numbers.integers(" ".join(texts))
    whole = sizes // stride
    if (whole * stride != sizes).any():
        within = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        values = values[within < np.repeat(whole * stride, sizes)]
    return whole.astype(np.int32), values.reshape(-1, stride)


def _strip_corners(sizes: IntArray) -> IntArray:
    """Return the corners of the triangles of strips; the winding of every second triangle of a strip is reversed."""
    first, step = _triangles(sizes)
    odd = step % 2
    return np.stack([first + step + odd, first + step + 1 - odd, first + step + 2], axis=1).ravel()


def _fan_corners(sizes: IntArray) -> IntArray:
    """Return the corners of the triangles of fans."""
    first, step = _triangles(sizes)
    return np.stack([first, first + step + 1, first + step + 2], axis=1).ravel()


def _triangles(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each triangle the first corner of its strip or fan, and the triangle's index in that strip or fan."""
    counts = np.maximum(sizes - 2, 0).astype(np.int64)
    firsts = np.cumsum(sizes, dtype=np.int64) - sizes
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(firsts, counts), steps


def valid_polygons(sizes: IntArray, points: IntArray, count: int) -> np.ndarray:
    """Return which polygons are valid: all corners are below ``count``, and at least 3 are different."""
    result = sizes > 0
    if not len(points):
        return result
    starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[result]
    with_corners = sizes[result]
    lowest, highest = np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)
    between = (points > np.repeat(lowest, with_corners)) & (points < np.repeat(highest, with_corners))
    result[result] = (lowest >= 0) & (highest < count) & np.logical_or.reduceat(between, starts)
    return result
