"""The avatar's table of joints, read anew, and a skeleton of it in Blender's space: the avatar faces -Y."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

TABLE = Path(__file__).resolve().parents[2] / "io_formats" / "second_life" / "avatar" / "skeleton.csv"


def rows(*, attachments: bool = False) -> dict[str, dict[str, str]]:
    """Return the rows of bones and collision volumes by name, and of attachments to the body when asked."""
    kinds = {"bone", "collision_volume"} | ({"attachment"} if attachments else set())
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return {row["name"]: row for row in csv.DictReader(stream) if row["kind"] in kinds}


def three(row: dict[str, str], key: str) -> Array:
    return np.array([float(row[f"{key}_{axis}"] or 0) for axis in "xyz"])


def turned(vector: Array) -> Array:
    """From X forward to -Y forward."""
    x, y, z = vector
    return np.array((y, -x, z))


def heads(**which: bool) -> dict[str, Array]:
    """Return each joint's position in Blender: the sum of the positions up the chain."""
    table = rows(**which)

    def place(name: str) -> Array:
        row = table.get(name)
        return np.zeros(3) if row is None else place(row["parent"]) + three(row, "pos")

    return {name: turned(place(name)) for name in table}


def skeleton(**which: bool) -> Any:
    """Return the skeleton of the table; volumes have the scale, but none of the rotation, that it gives them."""
    from meshferry.io_formats.core.scene import Joint, Skeleton

    table = rows(**which)
    number = {name: place for place, name in enumerate(table)}
    joints = []
    for name, row in table.items():
        x, y, z = three(row, "scale")
        is_volume = row["kind"] == "collision_volume"
        joints.append(
            Joint(
                name,
                number.get(row["parent"], -1),
                tuple(turned(three(row, "pos")).tolist()),
                scale=(y, x, z) if is_volume else (1.0, 1.0, 1.0),
                tail=tuple(turned(three(row, "end")).tolist()),
                group="Collision Volumes" if is_volume else row["group"],
            )
        )
    return Skeleton("Avatar", joints)
