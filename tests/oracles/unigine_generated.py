"""Scenes with something in every layer, made from random numbers, and what a file of theirs has to say.

Each surface is a patch of its own: bumpy, with seams in every layer, bent over so that edges are convex here and
concave there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from meshferry.io_formats.core import scene as sc

Array = np.ndarray[Any, Any]


def unit(values: Array) -> Array:
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def patch(rows: int, columns: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the points of a bumpy half-pipe and its triangles, counter-clockwise from outside."""
    along, around = np.meshgrid(np.linspace(0, 3, rows), np.linspace(0.2, 2.9, columns), indexing="ij")
    radius = 1 + 0.2 * rng.uniform(-1, 1, along.shape)
    points = np.stack((radius * np.cos(around), along, radius * np.sin(around)), axis=-1).reshape(-1, 3)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    low, high = corner, corner + columns
    triangles = np.concatenate(
        (np.column_stack((low, low + 1, high + 1)), np.column_stack((low, high + 1, high))), axis=1
    ).reshape(-1, 3)
    return points.astype(np.float32), triangles[:, ::-1].astype(np.int32)


def mesh(
    seed: int,
    sizes: list[tuple[int, int]],
    *,
    joints: int = 0,
    keys: tuple[str, ...] = (),
    uvs: list[tuple[bool, bool]] | None = None,
    colors: list[bool] | None = None,
) -> sc.Mesh:
    """Return a mesh of several patches; values stand at the corners, half of them shared by a point's corners."""
    rng = np.random.default_rng(seed)
    parts = [patch(rows, columns, rng) for rows, columns in sizes]
    starts = np.cumsum([0] + [len(points) for points, _ in parts])
    points = np.concatenate([points for points, _ in parts])
    corner_point = np.concatenate([triangles + start for (_, triangles), start in zip(parts, starts, strict=False)])
    slot = np.repeat(np.arange(len(sizes)), [len(triangles) for _, triangles in parts])
    shuffled = rng.permutation(len(corner_point))  # surfaces have their triangles in any order
    corner_point, slot = corner_point[shuffled].reshape(-1), slot[shuffled]
    count = len(corner_point)
    at_seam = rng.random(count) < 0.3

    def values(width: int) -> Array:
        return np.where(
            at_seam[:, None], rng.normal(size=(count, width)), rng.normal(size=(len(points), width))[corner_point]
        )

    normals = unit(values(3)).astype(np.float32)
    tangents = unit(np.cross(normals, values(3)))
    signs = np.where(at_seam, -1.0, 1.0)
    grid = rng.integers(0, 4096, (2, count, 2)) / 1024 - 1
    found = sc.Mesh(
        points=points,
        corner_point=corner_point.astype(np.int32),
        material_index=slot.astype(np.int32),
        materials=[f"Fläche {number}" for number in range(len(sizes))],
        normal=sc.Layer("normal", normals, per_corner=True),
        tangent=sc.Layer("tangent", np.column_stack((tangents, signs)).astype(np.float32), per_corner=True),
        uvs=[sc.Layer(f"UV{n}", grid[n].astype(np.float32), per_corner=True) for n in range(2)],
        colors=[sc.Layer("Color", rng.integers(0, 256, (count, 4)).astype(np.uint8), per_corner=True)],
        surfaces=[
            sc.Surface(
                f"Fläche {number}",
                uvs=uvs[number] if uvs else (True, True),
                has_colors=colors[number] if colors else True,
                lightmap_channel=number % 2,
                lightmap_resolution=number % 8,
                base_name="basis",
            )
            for number in range(len(sizes))
        ],
    )
    for number, name in enumerate(keys):
        moved = points.copy()
        rows = slice(starts[number % len(sizes)], starts[number % len(sizes) + 1])
        moved[rows] += rng.uniform(0.1, 0.2, moved[rows].shape).astype(np.float32)
        turned = sc.Layer("normal", unit(normals + 0.3 * values(3)).astype(np.float32), per_corner=True)
        found.shape_keys.append(sc.ShapeKey(name, moved, turned))
    if joints:
        weigh(found, joints, rng)
    return found


def weigh(found: sc.Mesh, joints: int, rng: np.random.Generator) -> None:
    """Give each point one to four weights, a few points none."""
    count = len(found.points)
    order = np.argsort(rng.random((count, joints)), axis=1)[:, :4]
    weights = rng.random((count, 4)) * (np.arange(4) < rng.integers(1, 5, count)[:, None])
    weights /= weights.sum(axis=1, keepdims=True)
    weights[::17] = 0
    found.joint_indices, found.joint_weights = order.astype(np.int32), weights.astype(np.float32)


def skeleton(seed: int, count: int) -> sc.Skeleton:
    """Return joints of two trees, turned and scaled, most of them before their parents."""
    rng = np.random.default_rng(seed)
    joints = []
    for number in range(count):
        parent = -1 if number >= count - 2 else int(rng.integers(number + 1, count))
        rotation = tuple(np.float32(unit(rng.normal(size=4))).tolist())
        translation, scale = (np.float32(rng.uniform(0.5, 2, 3)).tolist() for _ in range(2))
        joints.append(sc.Joint(f"Knochen {number}", parent, tuple(translation), rotation, tuple(scale)))
    return sc.Skeleton("Gestell", joints)


def clip(seed: int, name: str, bones: list[int], frames: int, *, scaled: bool = True) -> sc.Clip:
    """Return an animation in which channels stand for some frames and are at their defaults for others."""
    rng = np.random.default_rng(seed)

    def held(width: int, default: tuple[float, ...]) -> Array:
        out = np.empty((frames, width), np.float32)
        for frame in range(frames):
            kind = rng.integers(3) if frame else rng.integers(1, 3)
            if kind == 0:
                out[frame] = out[frame - 1]
            elif kind == 1:
                out[frame] = default
            else:
                out[frame] = rng.normal(size=width)
                if frame and width == 3 and rng.random() < 0.5:
                    out[frame, 1:] = out[frame - 1, 1:]  # one axis alone
        return out

    tracks = []
    for bone in bones:
        rotation = np.float32(unit(held(4, (1, 0, 0, 0)).astype(np.float64)))
        scale = np.float32(1) + held(3, (0, 0, 0)) / 4 if scaled else np.ones((frames, 3), np.float32)
        tracks.append(sc.TransformTrack(bone, held(3, (0, 0, 0)), rotation, scale.astype(np.float32), 0))
    return sc.Clip(name, 25, frames, transforms=tracks)


def scene(found: sc.Mesh | None, of: sc.Skeleton | None = None, *clips: sc.Clip) -> sc.Scene:
    """Return a scene of one object."""
    nodes = [sc.Node("Ding", mesh=found, skeleton=0 if of is not None else None)] if found is not None else []
    return sc.Scene("Ding", nodes, [of] if of is not None else [], list(clips))
