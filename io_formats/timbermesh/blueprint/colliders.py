"""Colliders of a node as wire shapes (docs/formats/timberborn_blueprints.md, section 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.placement import Channels, Wire
from .document import Members, child_of
from .json_text import pointer_of
from .numbers import Numbers
from .transforms import Triple, to_channels

_COLLIDER_AXES = {"X": "X", "Y": "Z", "Z": "Y"}
"""Blender's axis for an axis of the file."""
_SEGMENTS = 24
"""Points of a circle; a multiple of 4."""
_LISTS = (("BoxColliders", "box"), ("SphereColliders", "sphere"), ("CapsuleColliders", "capsule"))


@dataclass(frozen=True)
class Collider:
    """A collider in the space of its node."""

    kind: str
    """``box``, ``sphere`` or ``capsule``."""
    pointer: str
    """JSON pointer of the collider, relative to the node."""
    channels: Channels
    """Centre of the collider as location, and its size or radius as scale."""
    size: Triple = (0.0, 0.0, 0.0)
    """X, Y, Z of a box as the file has them."""
    radius: float = 0.0
    height: float = 0.0
    """Height of a capsule with both caps."""
    axis: str = ""
    """Axis of a capsule in Blender's space."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no volume."""
        return not all(self.channels.scale)


def colliders_of(node: Members, numbers: Numbers, location: str) -> Iterator[Collider]:
    """Yield the colliders of a node; ``location`` names it in messages."""
    spec = child_of(node, "CollidersSpec") or {}
    for name, kind in _LISTS:
        found = spec.get(name)
        for number, members in enumerate(found if isinstance(found, list) else ()):
            if isinstance(members, dict):
                pointer = pointer_of(("CollidersSpec", name, str(number)))
                yield _collider(kind, members, numbers, pointer, location + pointer)


def _collider(kind: str, members: Members, numbers: Numbers, pointer: str, location: str) -> Collider:
    center = numbers.vector(members, "Center", location)
    if kind == "box":
        size = numbers.vector(members, "Size", location)
        return Collider(kind, pointer, to_channels(center, scale=size), size)
    radius = numbers.number(members.get("Radius"), 0.0, f"{location}/Radius")
    channels = to_channels(center, scale=(radius, radius, radius))
    if kind == "sphere":
        return Collider(kind, pointer, channels, radius=radius)
    height = numbers.number(members.get("Height"), 0.0, f"{location}/Height")
    axis = members.get("Axis", members.get("Direction"))
    return Collider(
        kind, pointer, channels, (0.0, 0.0, 0.0), radius, height, _COLLIDER_AXES.get(str(axis).upper(), "Z")
    )


class Wires:
    """The wire shapes of colliders; equal shapes are shared."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str, float], Wire] = {}

    def of(self, collider: Collider) -> Wire:
        """Return the shape of a collider before its scale: a cube of size 1, or a sphere or capsule of radius 1."""
        straight = 0.0
        if collider.kind == "capsule" and collider.radius:
            straight = round(max(abs(collider.height / collider.radius) / 2 - 1, 0.0), 6)
        key = (collider.kind, collider.axis, min(straight, 1e6))
        if key not in self._made:
            self._made[key] = self._new(*key)
        return self._made[key]

    def _new(self, kind: str, axis: str, straight: float) -> Wire:
        if kind == "box":
            return Wire("Box", *box_wire(np.array([[-0.5, -0.5, -0.5]]), np.array([[0.5, 0.5, 0.5]])))
        points, edges = _capsule(straight)
        if axis == "X":
            points = points[:, [2, 0, 1]]
        elif axis == "Y":
            points = points[:, [1, 2, 0]]
        return Wire("Sphere" if kind == "sphere" else "Capsule", np.ascontiguousarray(points), edges)


def box_wire(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Return points (8 n, 3) and edges (12 n, 2) of boxes with these corners (n, 3)."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    points = low[:, None] + (high - low)[:, None] * corners
    pairs = [(a, a | bit) for a in range(8) for bit in (1, 2, 4) if not a & bit]
    edges = np.array(pairs)[None] + 8 * np.arange(len(low))[:, None, None]
    return points.reshape(-1, 3).astype(np.float32), edges.reshape(-1, 2).astype(np.int32)


def _capsule(straight: float) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Return outlines of a capsule of radius 1 along Z, whose caps are moved by ``straight``, around and along.

    Without a straight part it is a sphere.
    """
    angles = np.arange(_SEGMENTS) * (2 * np.pi / _SEGMENTS)
    cosines, sines, zeros = np.cos(angles), np.sin(angles), np.zeros(_SEGMENTS)
    around = np.stack([cosines, sines, zeros], axis=1)
    # The outlines along the axis have both ends of the straight parts: the points at 0 and 180 degrees are there twice.
    half = _SEGMENTS // 2
    turns = np.concatenate([angles[: half + 1], angles[half:], [0.0]])
    heights = np.sin(turns) + straight * np.repeat([1.0, -1.0], half + 1)
    sides, nothing = np.cos(turns), np.zeros(len(turns))
    along = [np.stack([sides, nothing, heights], axis=1), np.stack([nothing, sides, heights], axis=1)]
    middle = np.array([0.0, 0.0, straight])
    rings = [around + middle, around - middle, *along] if straight else [around, *along]
    edges = []
    start = 0
    for ring in rings:
        numbers = np.arange(len(ring))
        edges.append(start + np.stack([numbers, np.roll(numbers, -1)], axis=1))
        start += len(ring)
    return np.concatenate(rings).astype(np.float32), np.concatenate(edges).astype(np.int32)
