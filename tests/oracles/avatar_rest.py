"""Where the avatar's joints rest, computed anew from the table: avatar space, X forward, matrices for row vectors.

After sections 4.3 and 7 of the formats page: scale, then rotate by x, y, z, then translate by ``pos``, then the parent.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

TABLE = Path(__file__).resolve().parents[2] / "io_formats" / "second_life" / "avatar" / "skeleton.csv"


@functools.cache
def rows() -> dict[str, dict[str, str]]:
    """Return the rows of bones, collision volumes and attachments to the body by name."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return {row["name"]: row for row in csv.DictReader(stream) if row["kind"] != "attachment_hud"}


def three(row: dict[str, str], key: str, default: float = 0.0) -> Array:
    return np.array([float(row[f"{key}_{axis}"] or default) for axis in "xyz"])


def about(axis: int, degrees: float) -> Array:
    """Return a rotation about an axis, (3, 3) for row vectors: counter-clockwise seen from its end."""
    one, other = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    matrix = np.identity(3)
    matrix[one, one] = matrix[other, other] = cosine
    matrix[one, other], matrix[other, one] = sine, -sine
    return matrix


@functools.cache
def _local_at_rest(name: str) -> Array:
    row = rows()[name]
    x, y, z = three(row, "rot")
    matrix = np.identity(4)
    matrix[:3, :3] = np.diag(three(row, "scale", 1.0)) @ about(0, x) @ about(1, y) @ about(2, z)
    matrix[3, :3] = three(row, "pos")
    return matrix


def local(name: str, position: npt.ArrayLike | None = None) -> Array:
    """Return a joint's matrix relative to its parent, (4, 4), at another position if one is given."""
    matrix = _local_at_rest(name).copy()
    if position is not None:
        matrix[3, :3] = position
    return matrix


def worlds(moved: dict[str, Any] | None = None) -> dict[str, Array]:
    """Return every joint's matrix, (4, 4); ``moved`` are other positions relative to the parent."""
    found: dict[str, Array] = {}
    for name, row in rows().items():
        found[name] = local(name, (moved or {}).get(name)) @ found.get(row["parent"], np.identity(4))
    return found


def posed_worlds(seed: int, moved: dict[str, Any] | None = None) -> dict[str, Array]:
    """Return every joint's matrix, (4, 4), with each joint turned a little."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, row in rows().items():
        matrix = local(name, (moved or {}).get(name))
        for axis, degrees in enumerate(rng.uniform(-25, 25, 3)):
            matrix[:3, :3] = matrix[:3, :3] @ about(axis, degrees)
        found[name] = matrix @ found.get(row["parent"], np.identity(4))
    return found


def skinned(asset: Any, worlds: dict[str, Array], level: str = "high_lod") -> Array:
    """Return where the viewer shows the vertices of a decoded asset, (V, 3), with joints at the given matrices."""
    skin, found = asset.skin, []
    moving = np.stack([inverse @ worlds[name] for name, inverse in zip(skin.joints, skin.inverse_bind, strict=True)])
    for face in asset.levels[level]:
        if face.no_geometry:
            continue
        placed = np.hstack((face.positions, np.ones((len(face.stored), 1)))) @ skin.bind_shape
        weights = asset.weights_of(face)
        weights /= weights.sum(axis=1, keepdims=True)
        found.append(np.einsum("vi,vj,jik->vk", placed, weights, moving)[:, :3])
    return np.concatenate(found)


def heads(moved: dict[str, Any] | None = None) -> dict[str, Array]:
    """Return every joint's place, (3,)."""
    return {name: matrix[3, :3] for name, matrix in worlds(moved).items()}


def in_blender(vectors: npt.ArrayLike) -> Array:
    """Return vectors (…, 3) as Blender has them, where the avatar faces -Y and its left is +X."""
    x, y, z = np.moveaxis(np.asarray(vectors, np.float64), -1, 0)
    return np.stack((y, -x, z), axis=-1)
