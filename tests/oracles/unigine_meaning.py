"""What the values in UNIGINE files mean: tangent frames, matrices of bones, vertices moved by them.

Works on what ``unigine_oracle`` found, after docs/formats/unigine.md, sections 2.4, 3.1 and 3.3.
"""

from __future__ import annotations

import math

import numpy as np
from unigine_oracle import File, Floats, Frames, Ints, Surface


def unit_quaternions(stored: Ints, magic: str) -> Floats:
    """Section 3.1: (nt, 4) float64 unit x, y, z, w. In ms10 the byte is only the handedness, and w is the rest."""
    rows = []
    for row in stored.tolist():
        x, y, z, w = (value / 32767 for value in row)
        if magic == "ms10":
            w = math.sqrt(max(0.0, 1 - x * x - y * y - z * z))
        length = math.sqrt(x * x + y * y + z * z + w * w) or 1.0
        rows.append((x / length, y / length, z / length, w / length))
    return np.array(rows, np.float64).reshape(-1, 4)


def tangent_frames(stored: Ints, magic: str) -> tuple[Floats, Floats, Floats]:
    """Section 3.1: normals and tangents (nt, 3), and handedness (nt,) of 1 and -1."""
    x, y, z, w = unit_quaternions(stored, magic).T
    normals = np.stack((2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)), axis=1)
    along_u = np.stack((1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)), axis=1)
    return normals, along_u, np.where(stored[:, 3] < 0, -1.0, 1.0)


def matrix(translation: Floats, rotation: Floats, scale: Floats) -> Floats:
    """Section 2.4: T * R * S as (4, 4) float64 for column vectors."""
    x, y, z, w = (float(value) for value in rotation)
    length = math.sqrt(x * x + y * y + z * z + w * w) or 1.0
    x, y, z, w = x / length, y / length, z / length, w / length
    turned = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    found = np.eye(4)
    found[:3, :3] = turned * np.asarray(scale, np.float64)
    found[:3, 3] = translation
    return found


def world(found: File, local: list[Floats]) -> list[Floats]:
    """Multiply matrices of all bones down the chain, whatever the order of the table (section 3.3)."""
    done: dict[int, Floats] = {}

    def of(bone: int) -> Floats:
        if bone not in done:
            parent = found.bones[bone][1]
            done[bone] = local[bone] if parent == -1 else of(parent) @ local[bone]
        return done[bone]

    return [of(bone) for bone in range(len(found.bones))]


def rest_matrices(found: File) -> list[Floats]:
    """World matrices of the bind pose."""
    rows = found.transforms.astype(np.float64)
    return world(found, [matrix(row[:3], row[3:7], row[7:]) for row in rows])


def posed_matrices(found: File, animation: File, frames: Frames, frame: int) -> list[Floats]:
    """World matrices of a mesh's bones at a frame; bones are matched by name, others keep their bind transforms."""
    rows = found.transforms.astype(np.float64)
    local = [matrix(row[:3], row[3:7], row[7:]) for row in rows]
    names = [name for name, _ in found.bones]
    for place, bone in enumerate(frames.bones):
        name = animation.bones[bone][0]
        if name in names:
            channels = (frames.translation, frames.rotation, frames.scale)
            local[names.index(name)] = matrix(*(values[frame, place] for values in channels))
    return world(found, local)


def skinned(surface: Surface, rest: list[Floats], posed: list[Floats]) -> Floats:
    """Move the coordinate vertices of a surface by its bones: (nv, 3) float64; weights are made to sum to 1."""
    still = surface.targets[0].positions.astype(np.float64)
    if surface.weights is None:
        return still
    moves = [after @ np.linalg.inv(before) for before, after in zip(rest, posed, strict=True)]
    out = np.empty_like(still)
    for number, pairs in enumerate(surface.weights):
        total = sum(weight for _, weight in pairs)
        point = np.append(still[number], 1.0)
        if total:
            out[number] = sum(weight / total * (moves[bone] @ point)[:3] for bone, weight in pairs)
        else:
            out[number] = still[number]
    return out
