"""Blueprints read with Python's own parser and plain arithmetic, without the code under test."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

Matrix = list[list[float]]


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[^"/\s,{}\[\]]+|\S', re.DOTALL)


def read(data: bytes) -> Any:
    """Return the content of a blueprint: comments and trailing commas are removed, the rest is strict JSON."""
    tokens = [token for token in TOKEN.findall(data.decode("utf-8-sig")) if token[:2] not in ("//", "/*")]
    pairs = zip(tokens, [*tokens[1:], ""], strict=True)
    return json.loads(" ".join(token for token, following in pairs if token != "," or following not in ("}", "]")))


def flat(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each number and text with its path."""
    if isinstance(content, dict | list):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in pairs:
            yield from flat(value, f"{path}/{key}")
        if not content:
            yield path, type(content).__name__
    else:
        yield path, content


def children(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, bool]]:
    """Yield all children that the file itself describes: names, content, and whether it is inside a nested one."""
    for name, child in content.get("Children", {}).items():
        here = (*path, name)
        yield here, child, any("#nested" in above for above in path)
        yield from children(child.get("Modification", {}) if "#nested" in name else child, here)


def spec_of(child: Any, name: str) -> dict[str, Any]:
    """Return what the file says of a child's transform."""
    found: dict[str, Any] = (child.get("Modification", {}) if "#nested" in name else child).get("TransformSpec", {})
    return found


def numbers(spec: dict[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Return position, rotation in degrees and scale as X, Y, Z."""
    fields = (("Position", 0.0), ("Rotation", 0.0), ("Scale", 1.0))
    position, rotation, scale = (
        tuple(float(spec.get(name, {}).get(axis, usual)) for axis in "XYZ") for name, usual in fields
    )
    return position, rotation, scale


def product(one: Matrix, other: Matrix) -> Matrix:
    return [[sum(one[row][k] * other[k][column] for k in range(4)) for column in range(4)] for row in range(4)]


def local(spec: dict[str, Any]) -> Matrix:
    """Return the matrix of a transform in the game's space."""
    position, rotation, scale = numbers(spec)
    x, y, z = (math.radians(angle) for angle in rotation)
    about_x = [[1, 0, 0, 0], [0, math.cos(x), -math.sin(x), 0], [0, math.sin(x), math.cos(x), 0], [0, 0, 0, 1]]
    about_y = [[math.cos(y), 0, math.sin(y), 0], [0, 1, 0, 0], [-math.sin(y), 0, math.cos(y), 0], [0, 0, 0, 1]]
    about_z = [[math.cos(z), -math.sin(z), 0, 0], [math.sin(z), math.cos(z), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    stretched = [[scale[row] if row == column else 0.0 for column in range(3)] + [0.0] for row in range(3)]
    turned = product(product(about_y, about_x), about_z)
    found = product(turned, [*stretched, [0.0, 0.0, 0.0, 1.0]])
    for row in range(3):
        found[row][3] = position[row]
    return found


def to_blender(matrix: Matrix) -> Matrix:
    """Return a matrix in Blender's space: (x, y, z) = (-X, -Z, Y)."""
    axes = [[-1.0, 0, 0, 0], [0, 0, -1.0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]]
    back = [list(column) for column in zip(*axes, strict=True)]
    return product(product(axes, matrix), back)


def world(content: Any, path: tuple[str, ...]) -> Matrix:
    """Return the world matrix of a child in Blender's space, as far as the file itself says it."""
    matrix = local(content.get("TransformSpec", {}))
    for name in path:
        child = content["Children"][name]
        matrix = product(matrix, local(spec_of(child, name)))
        content = child.get("Modification", {}) if "#nested" in name else child
    return to_blender(matrix)
