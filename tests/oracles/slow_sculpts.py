"""Sculpts, point by point: a transcription of the section Sculpts of the format page of archives.

It uses nothing of the product. Triangles without area are in the result.
"""

from __future__ import annotations

import math
from struct import pack, unpack

import slow_prims


def f32(value: float) -> float:
    return float(unpack("f", pack("f", value))[0])


def grid_of(w: int, h: int) -> tuple[list[float], int]:
    """Return the positions of the rows and the number of columns."""
    n = min(1024, w * h // 4)
    if n == 0:
        n = 1024
    s = max(4, math.floor(math.sqrt(n * h / w)))
    t = max(4, n // s)
    s = n // t
    rows = added_up(s)
    columns = t + 1
    if t == 204:
        columns += 1
    return [*rows, 1.0], columns


def added_up(s: int) -> list[float]:
    """Return 0, step, 2 * step ... below 1; a step of 1 / 0 is infinite."""
    found, position = [], 0.0
    while position < 1:
        found.append(position)
        position = f32(position + f32(1 / s)) if s else math.inf
    return found


def sculpt(pixels, kind: str, invert: bool, mirror: bool) -> slow_prims.Face:
    """``pixels[y][x]`` are sequences of bytes, rows from the bottom; ``kind`` sphere, torus, plane or cylinder."""
    h, w = len(pixels), len(pixels[0])
    rows, columns = grid_of(w, h)
    s, t = len(rows) - 1, columns - 1
    face = slow_prims.Face("sculpt")
    for j in range(s + 1):
        for i in range(t + 1):
            swap = invert != mirror
            x = math.floor(f32(f32((t - i if swap else i) / t) * w))
            y = math.floor(f32(f32(j / s) * h))
            if kind == "sphere" and y == 0:
                x = w // 2
            if y == h:
                y = 0 if kind == "torus" else h - 1
                if kind == "sphere":
                    x = w // 2
            if x == w:
                x = w - 1 if kind == "plane" else 0
            position = [int(pixels[y][x][c]) / 255 - 0.5 for c in range(3)]
            if mirror:
                position[0] = -position[0]
            face.points.append(tuple(position))
            u = i / t
            face.uvs.append((1 - u if swap else u, rows[j]))
    face.triangles = slow_prims.grid_triangles(s + 1, t + 1)
    face.normals = smoothed(face, s + 1, t + 1, kind)
    return face


def smoothed(face: slow_prims.Face, height: int, width: int, kind: str) -> list[slow_prims.Point]:
    sums = slow_prims.sums_of(face.points, face.triangles)

    def join(indices: list[int]) -> None:
        total = (0.0, 0.0, 0.0)
        for index in indices:
            total = slow_prims.add(total, sums[index])
        for index in indices:
            sums[index] = total

    if kind == "sphere":
        join(list(range(width)))
        join([(height - 1) * width + i for i in range(width)])
    if kind != "plane":
        for j in range(height):
            join([j * width, j * width + width - 1])
    if kind == "torus":
        for i in range(width):
            join([i, (height - 1) * width + i])
    return sums
