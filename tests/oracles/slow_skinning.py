"""Where the viewer shows the vertices of rigged meshes on a shaped and posed avatar, computed joint after joint.

After section 4 of the formats page and sections 3.4 and 3.6 of the shape format page; nothing of the product is used.
Matrices are for column vectors, in the avatar's space, float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import avatar_rest
import numpy as np
import numpy.typing as npt
import second_life_oracle
import slow_shape

Array = npt.NDArray[np.float64]


@dataclass
class Bound:
    """A mesh as its file binds it."""

    positions: Array
    """(V, 3)."""
    bind_shape: Array
    joints: list[str]
    inverse_bind: Array
    """(n, 4, 4)."""
    weights: Array
    """(V, n) dense, each row with the sum 1."""
    overrides: dict[str, Any]
    """Positions that the file gives to joints, relative to their parents."""


def of_asset(data: bytes) -> Bound:
    """Read the faces of the highest level of a mesh asset, one after the other."""
    asset = second_life_oracle.decode(data)
    skin = asset.skin
    assert skin is not None
    faces = [face for face in asset.levels["high_lod"] if not face.no_geometry]
    weights = np.concatenate([asset.weights_of(face) for face in faces]).astype(np.float64)
    stated = {} if skin.overrides is None else dict(zip(skin.joints, skin.overrides, strict=True))
    return Bound(
        np.concatenate([face.positions.astype(np.float64) for face in faces]),
        np.array(skin.bind_shape, np.float64).T,
        list(skin.joints),
        np.array(skin.inverse_bind, np.float64).transpose(0, 2, 1),
        weights / weights.sum(axis=1, keepdims=True),
        {name: tuple(float(value) for value in matrix[3, :3]) for name, matrix in stated.items()},
    )


def of_collada(data: bytes) -> list[Bound]:
    """Read the skins of a file with one list of joints each, as Avastar and Meshferry write them."""
    root = ET.fromstring(data)
    space = root.tag.partition("}")[0] + "}"
    ids = {element.get("id"): element for element in root.iter()}

    def numbers(element: Any, kind: str = "float_array") -> Array:
        return np.array((element.find(f"{space}{kind}").text or "").split(), np.float64)

    def source(owner: Any, semantic: str) -> Any:
        found = next(each for each in owner.iter(f"{space}input") if each.get("semantic") == semantic)
        return ids[found.get("source", "")[1:]], int(found.get("offset", "0"))

    bound = []
    for skin in root.iter(f"{space}skin"):
        mesh = ids[skin.get("source", "")[1:]].find(f"{space}mesh")
        points = numbers(source(mesh.find(f"{space}vertices"), "POSITION")[0]).reshape(-1, 3)
        joints = skin.find(f"{space}joints")
        names = (source(joints, "JOINT")[0].find(f"{space}Name_array").text or "").split()
        listed = skin.find(f"{space}vertex_weights")
        (values, value_at), (_names, joint_at) = source(listed, "WEIGHT"), source(listed, "JOINT")
        values = numbers(values)
        weights = np.zeros((len(points), len(names)))
        pairs = iter(numbers(listed, "v").astype(int).reshape(-1, 2).tolist())
        for vertex, count in enumerate(numbers(listed, "vcount").astype(int)):
            for _ in range(count):
                pair = next(pairs)
                weights[vertex, pair[joint_at]] += values[pair[value_at]]
        stated = skin.find(f"{space}bind_shape_matrix")
        bound.append(
            Bound(
                points,
                np.array((stated.text or "").split(), np.float64).reshape(4, 4) if stated is not None else np.eye(4),
                names,
                numbers(source(joints, "INV_BIND_MATRIX")[0]).reshape(-1, 4, 4),
                weights / weights.sum(axis=1, keepdims=True),
                {},
            )
        )
    return bound


def floor(joints: Mapping[str, list[float]]) -> float:
    """Return the height of the ground under the feet of a shape (section 3.5): 0 for the standard skeleton."""
    rest = avatar_rest.worlds()
    feet = ("mFootLeft", "mToeLeft")
    return min(joints[name][2] for name in feet) - min(float(rest[name][3, 2]) for name in feet)


def worlds(joints: Mapping[str, list[float]], turns: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Return the matrices of joints, (4, 4), of a shape, with the feet on the floor (section 3.4).

    ``joints`` is a result of :func:`slow_shape.joints`. ``turns`` are rotations, (3, 3), of joints before their own
    rotation at rest.
    """
    found: dict[str, Array] = {}
    rotations: dict[str, Array] = {}
    for name, numbers in joints.items():
        row = avatar_rest.rows()[name]
        parent = row["parent"]
        axes = [avatar_rest.about(axis, degrees).T for axis, degrees in enumerate(avatar_rest.three(row, "rot"))]
        turn = (turns or {}).get(name, np.identity(3)) @ axes[2] @ axes[1] @ axes[0]
        origin = np.array(numbers[:3])
        if parent in joints:
            step = origin - joints[parent][:3]  # already times the parent's scale, along the axes of the avatar
            origin = found[parent][:3, 3] + rotations[parent] @ step
        else:
            origin = origin - (0.0, 0.0, floor(joints))
        rotations[name] = rotations.get(parent, np.identity(3)) @ turn
        found[name] = np.identity(4)
        found[name][:3, :3] = rotations[name] * np.array(numbers[3:])
        found[name][:3, 3] = origin
    return found


def shown(mesh: Bound, joint_worlds: Mapping[str, Array]) -> Array:
    """Return the vertices as the viewer shows them, (V, 3)."""
    matrices = [
        joint_worlds[name] @ inverse @ mesh.bind_shape
        for name, inverse in zip(mesh.joints, mesh.inverse_bind, strict=True)
    ]
    points = np.column_stack((mesh.positions, np.ones(len(mesh.positions))))
    return np.einsum("vj,jab,vb->va", mesh.weights, np.array(matrices), points)[:, :3]


def values_of_file(path: Path) -> dict[int, float]:
    """Return the sliders in the first archetype of an appearance export, or in a body part (section 5)."""
    text = path.read_text("latin-1")
    if path.suffix == ".xml":
        archetype = ET.fromstring(text.encode("latin-1").replace(b"US-ASCII", b"ISO-8859-1")).find("archetype")
        pairs = (
            [(each.get("id"), each.get("value")) for each in archetype.iter("param")] if archetype is not None else []
        )
    else:
        lines = text.split("parameters", 1)[1].splitlines()[1:]
        pairs = [tuple(line.split()) for line in lines[: next(n for n, line in enumerate(lines) if "textures" in line)]]
    found = {int(number): float(value) for number, value in pairs if number is not None and value is not None}
    return {number: value for number, value in found.items() if number in slow_shape.OWN}
