"""The avatar's table of joints, read anew, and a skeleton of it in Blender's space: the avatar faces -Y."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

TABLE = Path(__file__).resolve().parents[2] / "io_formats" / "second_life" / "avatar" / "skeleton.csv"
SHAPE = TABLE.parent


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


def own_axes(row: dict[str, str]) -> Array:
    """Return a joint's axes at rest in Blender as columns, (3, 3): rotated about x, then y, then z."""
    made = np.identity(3)
    for axis, degrees in enumerate(three(row, "rot")):
        cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        one, other = (axis + 1) % 3, (axis + 2) % 3
        turn = np.identity(3)
        turn[one, one] = turn[other, other] = cosine
        turn[other, one], turn[one, other] = sine, -sine
        made = turn @ made
    return np.array([turned(column) for column in made.T]).T


def aligned() -> set[str]:
    """Return the joints whose bones lie along their axes: those that a slider scales unevenly, and volumes."""
    with (SHAPE / "parameters.csv").open(encoding="utf-8", newline="") as stream:
        acting = {row["id"] for row in csv.DictReader(stream) if row["group"] in {"0", "3"} or row["driver"]}
    with (SHAPE / "effects.csv").open(encoding="utf-8", newline="") as stream:
        bones = [row for row in csv.DictReader(stream) if row["kind"] == "bone" and row["id"] in acting]
    uneven = {row["target"] for row in bones if len(set(three(row, "scale"))) > 1}
    return uneven | {name for name, row in rows().items() if row["kind"] == "collision_volume"}


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
