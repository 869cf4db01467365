"""The game's components of a node: transforms, colliders, cells and points (format page, sections 2, 6 and 7)."""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.messages import Unresolved
from ...core.placement import Channels, Marker, MarkerShape, Wire
from .codec import Members, child_of
from .json_text import pointer_of
from .tree import Problem

ORDER = "YXZ"
_TRANSFORM_AXES: Mapping[str, tuple[tuple[str, int, float], ...]] = {
    "Position": (("X", 0, -1.0), ("Y", 2, 1.0), ("Z", 1, -1.0)),
    "Rotation": (("X", 0, 1.0), ("Y", 2, -1.0), ("Z", 1, 1.0)),
    "Scale": (("X", 0, 1.0), ("Y", 2, 1.0), ("Z", 1, 1.0)),
}
"""For each number of a transform: its name, the index of its channel in Blender, and the sign."""
_CLEAN = 1e-4
"""Tolerance in degrees for multiples of 90."""

Triple = tuple[float, float, float]


@lru_cache(4096)
def to_channels(
    position: Triple = (0.0, 0.0, 0.0), rotation: Triple = (0.0, 0.0, 0.0), scale: Triple = (1.0, 1.0, 1.0)
) -> Channels:
    """Return the channels of finite numbers X, Y, Z as the file has them; rotations in degrees."""
    radians = [math.radians(angle) for angle in rotation]
    triples = (_mapped("Position", position), _mapped("Rotation", radians), _mapped("Scale", scale))
    return Channels(*triples, ORDER)


def changed_numbers(now: Channels, before: Channels | None = None) -> dict[str, dict[str, float]]:
    """Return the numbers of the file that differ between two transforms, all for None, by field and axis.

    Each is the shortest decimal that is read as the same channel again. Rotations near multiples of 90 degrees become
    these.
    """
    found: dict[str, dict[str, float]] = {}
    for part, axes in _TRANSFORM_AXES.items():
        channel = _channel(now, part)
        given = _channel(before, part) if before is not None else (math.nan,) * 3
        spell = _degrees if part == "Rotation" else shortest_decimal
        for name, index, sign in axes:
            if channel[index] != given[index]:
                found.setdefault(part, {})[name] = 0.0 + spell(sign * channel[index])
    return found


def shortest_decimal(value: float) -> float:
    """Return the shortest decimal with the same single precision."""
    return float(str(np.float32(value)))


def _mapped(field: str, values: Sequence[float]) -> Triple:
    """Return a channel of single precision."""
    channel = array("f", (0.0, 0.0, 0.0))  # ten times as fast as numbers of NumPy
    for (_name, index, sign), value in zip(_TRANSFORM_AXES[field], values, strict=True):
        channel[index] = sign * value
    return 0.0 + channel[0], 0.0 + channel[1], 0.0 + channel[2]


def _channel(channels: Channels, field: str) -> Triple:
    return {"Position": channels.location, "Rotation": channels.rotation, "Scale": channels.scale}[field]


def _degrees(angle: float) -> float:
    """Return an angle in degrees that is read as the same radians in single precision."""
    degrees = math.degrees(angle)
    clean = 90.0 * round(degrees / 90.0)
    if abs(degrees - clean) <= _CLEAN:
        return clean
    wanted = np.float32(angle)
    for digits in range(1, 17):
        short = float(f"{degrees:.{digits}g}")
        if np.float32(math.radians(short)) == wanted:
            return short
    return degrees


_LARGEST = 3.4028234e38
"""Largest number of single precision."""


class Numbers:
    """Reads numbers, and records those that cannot be used."""

    def __init__(self, unresolved: Unresolved) -> None:
        self._unresolved = unresolved

    def number(self, value: Any, default: float, location: str) -> float:
        """Return a number, or the default for other values; ``location`` names it in messages."""
        if value is None:
            return default
        if isinstance(value, float) and abs(value) <= _LARGEST:
            return value
        self._unresolved.add(Problem.NUMBER, location)
        return default

    def vector(self, members: Members, name: str, location: str, default: float = 0.0) -> Triple:
        """Return X, Y and Z of a member."""
        found = child_of(members, name)
        if found is None:
            if members.get(name) is not None:
                self._unresolved.add(Problem.NUMBER, f"{location}/{name}")
            return default, default, default
        x, y, z = (self.number(found.get(axis), default, f"{location}/{name}/{axis}") for axis in "XYZ")
        return x, y, z

    def transform(self, members: Members | None, location: str) -> Channels:
        """Return the channels of an object whose ``Position``, ``Rotation`` and ``Scale`` may be absent."""
        if members is None:
            return to_channels()
        return to_channels(
            self.vector(members, "Position", location),
            self.vector(members, "Rotation", location),
            self.vector(members, "Scale", location, 1.0),
        )

    def cell(self, members: Members, name: str, location: str) -> tuple[int, int, int]:
        """Return X, Y and Z of a member as whole numbers of a grid, at most a million."""
        x, y, z = map(whole_number, self.vector(members, name, location))
        return x, y, z


def whole_number(value: float) -> int:
    """Return a finite number as a whole number of a grid, at most a million."""
    return math.floor(max(-1e6, min(value, 1e6)))


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
    """Return a collider of a kind; ``pointer`` leads to it in the file, and ``location`` names it in messages."""
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


SPEC = "BlockObjectSpec"
_MOST_CELLS = 100_000
_FREE = {"", "none", "0"}
"""Occupations of cells that are free."""

Cell = tuple[int, int, int]
"""Grid coordinates: X to Blender's -X, Y to -Y, Z up."""


@dataclass(frozen=True, eq=False)
class Footprint:
    """The cells of a building."""

    size: Cell
    base_z: int
    """Number of layers below the ground."""
    cells: npt.NDArray[np.int64]
    """(n, 3) coordinates of the occupied cells. All cells are occupied if the number of cells in the file is wrong."""
    fits: bool
    """Whether the file has as many cells as the size needs."""
    entrance: Cell | None
    """The cell outside of the door."""

    def boxes(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the lowest and highest corners (n, 3) of the occupied cells in Blender's space."""
        return _corners(self.cells, self.base_z)

    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the lowest and the highest corner (3,) of all cells in Blender's space."""
        low, high = _corners(np.array([[0, 0, 0], [side - 1 for side in self.size]]), self.base_z)
        return low.min(axis=0), high.max(axis=0)

    def location(self, cell: Cell, height: float = 0.5) -> tuple[float, float, float]:
        """Return a point above the middle of a cell's floor in Blender's space."""
        return -cell[0] - 0.5, -cell[1] - 0.5, cell[2] - self.base_z + height


def _corners(cells: npt.NDArray[np.int64], base_z: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    low = np.stack([-cells[:, 0] - 1, -cells[:, 1] - 1, cells[:, 2] - base_z], axis=1).astype(np.float64)
    return low, low + 1


def footprint_of(root: Members, numbers: Numbers) -> Footprint | None:
    """Return the footprint of a blueprint in either form, or None if it has none."""
    spec = child_of(root, SPEC)
    if spec is None:
        return None
    form = child_of(spec, "BlocksSpec") or spec
    blocks = form.get("Blocks", form.get("BlockSpecs"))
    if not isinstance(blocks, list) or child_of(form, "Size") is None:
        return None
    size = numbers.cell(form, "Size", f"/{SPEC}")
    count = size[0] * size[1] * size[2]
    if min(size) < 1 or count > _MOST_CELLS:
        return None
    fits = len(blocks) == count
    occupied = np.flatnonzero([is_occupied(block) for block in blocks] if fits else np.ones(count))
    if not len(occupied):
        occupied = np.arange(count)
    layer, rest = np.divmod(occupied, size[0] * size[1])
    row, column = np.divmod(rest, size[0])
    base_z = whole_number(numbers.number(spec.get("BaseZ"), 0.0, f"/{SPEC}/BaseZ"))
    return Footprint(size, base_z, np.stack([column, row, layer], axis=1), fits, _entrance(spec, numbers))


def is_occupied(block: Any) -> bool:
    """Return whether a cell of the file is occupied."""
    if not isinstance(block, dict):
        return False
    value = block.get("Occupations", block.get("LegacyOccupation", ""))
    return str(int(value) if isinstance(value, float) and value == value // 1 else value).strip().lower() not in _FREE


def _entrance(spec: Members, numbers: Numbers) -> Cell | None:
    entrance = child_of(spec, "Entrance") or {}
    if entrance.get("HasEntrance") is not True:
        return None
    return numbers.cell(entrance, "Coordinates", f"/{SPEC}/Entrance")


_CELLS = (
    ("WaterInputSpec", "WaterInputCoordinates", "Water Input"),
    ("WaterOutputSpec", "WaterCoordinates", "Water Output"),
)
"""Specs with the coordinates of a cell."""
_INTO_BUILDING = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
"""Turns +Z, the direction of an arrow, to -Y."""


@dataclass(frozen=True, eq=False)
class Point:
    """A position in the grid of the building."""

    name: str
    key: str
    location: tuple[float, float, float]
    """In Blender's space, relative to the building and not to the transform of its root."""
    marker: Marker

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """Its matrix (4, 4) in that space."""
        matrix = np.identity(4)
        matrix[:3, 3] = self.location
        if self.marker.shape is MarkerShape.ARROW:
            matrix[:3, :3] = _INTO_BUILDING
        return matrix


@dataclass(frozen=True, eq=False)
class Attachment:
    """A particle system or light that the game adds below a node."""

    name: str
    key: str
    parent: str
    """Name of a node of the blueprint or of a model; empty for the root."""
    channels: Channels
    properties: dict[str, str] = field(default_factory=dict)


def points_of(root: Members, footprint: Footprint | None, numbers: Numbers) -> Iterator[Point]:
    """Yield entrance, access, power connections and water of a blueprint."""
    if footprint is not None and footprint.entrance is not None:
        place = footprint.location(footprint.entrance, 0.0)
        yield Point("Entrance", f"/{SPEC}/Entrance", place, Marker(MarkerShape.ARROW, 0.5))
    access = child_of(root, "BuildingAccessibleSpec")
    if access is not None and child_of(access, "LocalAccess") is not None:
        point = numbers.vector(access, "LocalAccess", "/BuildingAccessibleSpec")
        yield Point("Access", "/BuildingAccessibleSpec", to_channels(point).location, Marker(MarkerShape.CROSS))
    if footprint is None:
        return
    transputs = (child_of(root, "TransputProviderSpec") or {}).get("TransputSpecs")
    for number, members in enumerate(transputs if isinstance(transputs, list) else ()):
        if isinstance(members, dict):
            key = pointer_of(("TransputProviderSpec", "TransputSpecs", str(number)))
            cell = numbers.cell(members, "Coordinates", key)
            yield Point("Power", key, footprint.location(cell), Marker(MarkerShape.CROSS))
    for spec, name, title in _CELLS:
        members = child_of(root, spec)
        if members is not None and child_of(members, name) is not None:
            cell = numbers.cell(members, name, f"/{spec}")
            yield Point(title, f"/{spec}", footprint.location(cell), Marker(MarkerShape.CROSS))


def attachments_of(root: Members, numbers: Numbers) -> Iterator[Attachment]:
    """Yield the attachments of a blueprint."""
    found = (child_of(root, "TemplateAttachmentsSpec") or {}).get("Attachments")
    for number, members in enumerate(found if isinstance(found, list) else ()):
        if not isinstance(members, dict):
            continue
        key = pointer_of(("TemplateAttachmentsSpec", "Attachments", str(number)))
        texts = {name: str(value) for name in ("Prefab", "Parent") if isinstance(value := members.get(name), str)}
        name = members.get("AttachmentId")
        yield Attachment(
            name if isinstance(name, str) and name else "Attachment",
            key,
            texts.get("Parent", ""),
            numbers.transform(members, key),
            texts,
        )
