"""Make ``io_formats/second_life/avatar/mannequin.npz``, an abstract figure, as shops use it to show clothes.

    .venv/bin/python scripts/make_mannequin.py

A cage of quads is lofted from sections that the joints place, and subdivided once. Only the left half is written; the
right half mirrors it. Weights are shared between bones along the limbs, and parts of them go to collision volumes, so
that the figure follows the sliders. Numbers are in the avatar's space: metres, X forward, Y to the left, Z up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.second_life.avatar import joints

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Names = npt.NDArray[np.str_]

PATH = Path(__file__).resolve().parents[1] / "io_formats" / "second_life" / "avatar" / "mannequin.npz"

UPRIGHT = ("cells", "x", "y", "z", "front", "front_rise", "back", "back_rise", "side", "power")
"""Columns of sections of trunk and leg after the joint: rings up to the next section; centre relative to the joint;
distance to the front and the height of the front above the centre; the same for the back; half width; exponent of the
superellipse (2: ellipse)."""
TRUNK = (
    ("mPelvis", 2, 0, 0, -0.162, 0.088, 0, 0.116, 0, 0.1765, 2.6),
    ("mPelvis", 2, -0.004, 0, -0.107, 0.095, 0, 0.1165, 0, 0.176, 2.4),
    ("mPelvis", 2, -0.004, 0, -0.047, 0.097, 0, 0.1095, 0, 0.168, 2.25),
    ("mPelvis", 2, -0.002, 0, 0.018, 0.094, 0, 0.0915, 0, 0.151, 2.15),
    ("mTorso", 2, 0, 0, -0.001, 0.09, 0, 0.079, 0, 0.134, 2.15),
    ("mTorso", 2, -0.001, 0, 0.064, 0.088, 0, 0.075, 0, 0.125, 2.15),
    ("mTorso", 2, -0.004, 0, 0.129, 0.093, 0, 0.082, 0, 0.13, 2.15),
    ("mChest", 2, 0.005, 0, -0.006, 0.105, 0, 0.093, 0, 0.144, 2.2),
    ("mChest", 2, -0.007, 0, 0.074, 0.116, 0, 0.097, 0, 0.158, 2.3),
    ("mChest", 2, -0.017, 0, 0.144, 0.104, -0.005, 0.089, 0.005, 0.166, 2.3),
    ("mChest", 1, -0.021, 0, 0.21, 0.082, -0.033, 0.07, -0.008, 0.163, 2.3),
    ("mChest", 1, -0.019, 0, 0.23, 0.068, -0.03, 0.06, 0.004, 0.112, 2.2),
    ("mNeck", 1, -0.004, 0, -0.003, 0.057, -0.026, 0.057, 0.011, 0.072, 2.1),
    ("mNeck", 1, -0.001, 0, 0.023, 0.054, -0.026, 0.057, 0.015, 0.055, 2),
    ("mNeck", 1, 0.001, 0, 0.047, 0.064, -0.034, 0.065, 0.018, 0.053, 2),
    ("mHead", 1, 0.007, 0, -0.011, 0.094, -0.041, 0.084, 0.026, 0.057, 2),
    ("mHead", 1, 0.012, 0, 0.015, 0.105, -0.04, 0.1, 0.027, 0.066, 2.05),
    ("mHead", 2, 0.015, 0, 0.055, 0.107, -0.026, 0.11, 0.022, 0.075, 2.1),
    ("mHead", 1, 0.015, 0, 0.097, 0.106, -0.01, 0.109, 0.012, 0.079, 2.1),
    ("mHead", 1, 0.015, 0, 0.139, 0.093, -0.002, 0.093, 0.004, 0.072, 2.1),
    ("mHead", 0, 0.015, 0, 0.167, 0.065, 0, 0.063, 0.002, 0.052, 2.1),
)
LEG = (
    ("mHipLeft", 2, -0.032, -0.037, -0.191, 0.079, 0, 0.1095, 0, 0.084, 2),
    ("mHipLeft", 2, -0.027, -0.038, -0.256, 0.077, 0, 0.0965, 0, 0.079, 2),
    ("mHipLeft", 2, -0.019, -0.041, -0.336, 0.071, 0, 0.08, 0, 0.072, 2),
    ("mHipLeft", 2, -0.012, -0.045, -0.426, 0.061, 0, 0.063, 0, 0.059, 2),
    ("mKneeLeft", 2, -0.009, 0, -0.005, 0.055, 0, 0.054, 0, 0.0535, 2),
    ("mKneeLeft", 2, -0.017, 0, -0.075, 0.051, 0, 0.059, 0, 0.053, 2),
    ("mKneeLeft", 2, -0.029, 0, -0.165, 0.051, 0, 0.068, 0, 0.0565, 2),
    ("mKneeLeft", 2, -0.033, 0, -0.265, 0.045, 0, 0.058, 0, 0.048, 2),
    ("mKneeLeft", 2, -0.035, 0, -0.365, 0.038, 0, 0.042, 0, 0.036, 2),
    ("mAnkleLeft", 1, -0.004, 0, 0.043, 0.038, 0.002, 0.04, -0.005, 0.033, 2),
    ("mAnkleLeft", 1, 0, 0, 0.005, 0.05, 0.016, 0.056, -0.012, 0.0345, 2),
    ("mAnkleLeft", 1, 0.008, 0, -0.021, 0.058, 0.032, 0.064, -0.024, 0.0365, 2),
    ("mAnkleLeft", 1, 0.03, 0.001, -0.033, 0.052, 0.035, 0.06, -0.034, 0.0385, 2.1),
    ("mAnkleLeft", 1, 0.071, 0.002, -0.039, 0.033, 0.029, 0.039, -0.032, 0.042, 2.4),
    ("mAnkleLeft", 1, 0.116, 0.004, -0.043, 0.017, 0.025, 0.02, -0.029, 0.046, 2.5),
    ("mAnkleLeft", 1, 0.164, 0.005, -0.047, 0.004, 0.02, 0.008, -0.025, 0.047, 2.5),
    ("mAnkleLeft", 1, 0.201, 0.005, -0.05, 0, 0.019, 0.002, -0.022, 0.041, 2.5),
    ("mAnkleLeft", 0, 0.217, 0.005, -0.053, 0, 0.014, 0.001, -0.016, 0.031, 2.5),
)
"""The foot belongs to the leg: its sections turn until front is the top and back is the sole."""
SIDEWAYS = ("cells", "x", "y", "z", "front", "back", "top", "bottom")
"""Columns of sections of the arm."""
ARM = (
    ("mShoulderLeft", 1, 0, 0.036, -0.005, 0.056, 0.062, 0.057, 0.06),
    ("mShoulderLeft", 2, 0, 0.076, -0.005, 0.052, 0.055, 0.052, 0.056),
    ("mShoulderLeft", 2, 0, 0.136, -0.003, 0.045, 0.047, 0.044, 0.05),
    ("mShoulderLeft", 1, 0, 0.196, -0.002, 0.04, 0.042, 0.04, 0.044),
    ("mElbowLeft", 1, 0, 0, 0, 0.038, 0.04, 0.038, 0.039),
    ("mElbowLeft", 2, 0, 0.048, 0, 0.039, 0.04, 0.038, 0.039),
    ("mElbowLeft", 2, 0.001, 0.118, 0, 0.034, 0.034, 0.033, 0.033),
    ("mElbowLeft", 1, 0.002, 0.178, 0, 0.028, 0.028, 0.024, 0.024),
    ("mWristLeft", 2, 0.004, 0.005, 0, 0.027, 0.028, 0.02, 0.02),
    ("mWristLeft", 2, 0.008, 0.043, 0.002, 0.036, 0.039, 0.019, 0.02),
    ("mWristLeft", 2, 0.008, 0.088, 0.005, 0.042, 0.046, 0.018, 0.019),
    ("mWristLeft", 2, 0.006, 0.133, 0.005, 0.041, 0.044, 0.016, 0.016),
    ("mWristLeft", 1, 0.003, 0.178, 0.001, 0.034, 0.036, 0.012, 0.013),
    ("mWristLeft", 0, 0.001, 0.201, -0.003, 0.023, 0.024, 0.008, 0.008),
)
THUMB = ((0.011, 0.003, 0.8, 20), (0.027, 0.02, 0.6, 40), (0.039, 0.043, 0.52, 55))
"""Sections of the thumb: offset forward and outwards from its root, width relative to the root, turn in degrees."""
CROTCH = ((-0.062, 0.876), (-0.010, 0.862), (0.045, 0.872))
"""X and Z of the points between the legs, from back to front."""
SWELLINGS = ((0.022, 0.074, 0.054, 1.385, 0.056), (-0.012, 0.08, 0.06, 0.92, 0.09), (0.010, 0.0, 0.03, 1.25, 0.12))
"""Chest, buttocks and the groove of the spine: distance forward, then centre and spread in Y and in Z. Those with a
positive distance and Y act in front, the others in the back."""

_HALF = 14
"""Cells around half of the trunk."""
_ARMHOLE = (16, 20, 5, 9)
"""Rings and columns of the trunk between which the arm begins."""
_CROWN, _FINGERTIPS, _TOES, _THUMB_TIP = (0, 0, 0.0043), (0, 0.012, 0), (0.006, 0, 0), (0.002, 0.003, 0)
"""How far the ends bulge."""
_JOINS = (((-0.036, 0.175, 1.51), (0.12, 0.05, 0.09)), ((0.0, 0.0, 0.875), (0.11, 0.085, 0.04)))
"""Centres and sizes of the joins of arm and leg, which are relaxed."""

BONES = {
    "trunk": (("mPelvis", 0.9, 1.0), ("mTorso", 1.24, 1.28), ("mChest", 1.41, 1.575), ("mNeck", 1.625, 1.645),
              ("mHead", 1.7, 1.9)),
    "arm": (("mCollarLeft", 0.12, 0.14), ("mShoulderLeft", 0.21, 0.37), ("mElbowLeft", 0.455, 0.585),
            ("mWristLeft", 0.645, 0.9)),
    "leg": (("mFootLeft", -0.2, -0.08), ("mAnkleLeft", -0.02, 0.06), ("mKneeLeft", 0.13, 0.465),
            ("mHipLeft", 0.6, 0.72), ("mPelvis", 0.99, 1.0)),
}  # fmt: skip
"""Bones of each part, and where they have their full weight, from and to: heights for the trunk, distances from the
middle for the arm, and for the leg heights, which go on below 0 along the foot. Between them the bones are blended."""
VOLUMES = {
    "PELVIS": ("mPelvis", 0.68), "BELLY": ("mTorso", 0.66), "LOWER_BACK": ("mTorso", 0.5), "CHEST": ("mChest", 0.7),
    "UPPER_BACK": ("mChest", 0.3), "LEFT_PEC": ("mChest", 0.5), "NECK": ("mNeck", 0.6), "HEAD": ("mHead", 0.6),
    "L_CLAVICLE": ("mCollarLeft", 0.6), "L_UPPER_ARM": ("mShoulderLeft", 0.7), "L_LOWER_ARM": ("mElbowLeft", 0.7),
    "L_HAND": ("mWristLeft", 0.6), "L_UPPER_LEG": ("mHipLeft", 0.9), "L_LOWER_LEG": ("mKneeLeft", 0.8),
    "L_FOOT": ("mAnkleLeft", 0.6),
}  # fmt: skip
"""Parents of the collision volumes and the largest shares of their weights that the volumes get."""
_FRONT, _BACK, _BREAST = {"BELLY", "CHEST"}, {"LOWER_BACK", "UPPER_BACK"}, "LEFT_PEC"
_LEAST_WEIGHT = 0.005
_MIDDLE = 1e-6
"""Largest distance from the middle that counts as rounding, in metres."""


@dataclass(frozen=True)
class Figure:
    """The figure at rest: P points, Q quads, J joints."""

    points: Floats
    """(P, 3) in the avatar's space."""
    quads: Indices
    """(Q, 4) counter-clockwise as seen from outside."""
    joints: tuple[str, ...]
    """(J,) bones and collision volumes."""
    weights: Floats
    """(P, J); the sum of each row is 1."""


def main(path: Path = PATH) -> None:
    """Write the file: points, quads, and for each point its joints and weights, the largest weight first."""
    made = figure()
    most = int((made.weights > 0).sum(axis=1).max())
    order = np.argsort(-made.weights, axis=1, kind="stable")[:, :most]
    np.savez_compressed(
        path,
        points=made.points.astype(np.float32),
        quads=made.quads.astype(np.uint16),
        joints=np.array(made.joints),
        joint_indices=order.astype(np.uint8),
        joint_weights=np.take_along_axis(made.weights, order, axis=1).astype(np.float32),
    )


def figure() -> Figure:
    """Return the figure: the cage with its weights, subdivided once."""
    cage = _left_half()
    points, quads, parts, along = cage.mirrored()
    edges = edges_of(quads)[0]
    folded = np.abs(points) * (0, 1, 0) + points * (1, 0, 1)
    share = np.max([np.exp(-(((folded - centre) / size) ** 2).sum(axis=1)) for centre, size in _JOINS], axis=0)
    points = _relaxed(points, edges, 0.5 * share[:, None], 8)
    joints, weights = _weights(points, edges, parts, along)
    values, quads = subdivided(np.column_stack((points, weights)), quads)
    weights = np.where(values[:, 3:] < _LEAST_WEIGHT, 0.0, values[:, 3:])
    return Figure(values[:, :3], quads, joints, weights / weights.sum(axis=1, keepdims=True))


def edges_of(quads: Indices) -> tuple[Indices, Indices]:
    """Return the edges of quads, (E, 2), and the four edges of each quad, (Q, 4)."""
    pairs = np.sort(np.stack([quads, np.roll(quads, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    edges, place = np.unique(pairs, axis=0, return_inverse=True)
    return edges, place.reshape(-1, 4)


def subdivided(values: Floats, quads: Indices) -> tuple[Floats, Indices]:
    """Return values of points, (P, k), and quads of a closed mesh after one step of Catmull and Clark."""
    edges, sides = edges_of(quads)
    faces = values[quads].mean(axis=1)
    ends = values[edges].sum(axis=1)
    middles = (ends + _summed(sides, faces, len(edges))) / 4
    count = np.bincount(quads.ravel())[:, None]
    around = _summed(quads, faces, len(values)) / count
    spokes = _summed(edges, ends, len(values)) / count
    points = (around + spokes + (count - 3) * values) / count
    after = len(values) + sides
    centre = np.broadcast_to((len(values) + len(edges) + np.arange(len(quads)))[:, None], quads.shape)
    corners = np.stack([quads, after, centre, np.roll(after, 1, axis=1)], axis=-1).reshape(-1, 4)
    return np.concatenate([points, middles, faces]), corners


def _summed(rows: Indices, values: Floats, count: int) -> Floats:
    """Return for each of ``count`` elements the sum of the values (n, k) of the rows (n, m) that contain it."""
    found = np.zeros((count, values.shape[1]))
    np.add.at(found, rows, values[:, None])
    return found


def _relaxed(values: Floats, edges: Indices, share: Floats | float, rounds: int) -> Floats:
    """Move values of points, (P, k), towards the mean of their neighbours several times, each time by a share."""
    ends, others = np.concatenate([edges, edges[:, ::-1]]).T
    others = others[np.argsort(ends, kind="stable")]
    count = np.bincount(ends)
    starts = np.cumsum(count) - count
    for _ in range(rounds):
        around = np.add.reduceat(values[others], starts)
        values = values + share * (around / count[:, None] - values)
    return values


@dataclass
class _Cage:
    """A cage that grows by rings of points; points of the middle have Y = 0."""

    points: Floats = field(default_factory=lambda: np.empty((0, 3)))
    parts: list[str] = field(default_factory=list)
    """Key of :data:`BONES` for each point."""
    along: list[float] = field(default_factory=list)
    """Place of each point along its part, as :data:`BONES` counts it."""
    quads: list[Indices] = field(default_factory=list)

    def add(self, points: Floats, part: str, along: Floats | float) -> Indices:
        """Add points, (..., 3), and return their numbers; ``along`` has one value for each first index."""
        found = len(self.points) + np.arange(points[..., 0].size).reshape(points.shape[:-1])
        self.points = np.concatenate([self.points, points.reshape(-1, 3)])
        self.parts += [part] * found.size
        self.along += np.broadcast_to(np.asarray(along).T, found.T.shape).T.ravel().tolist()
        return found

    def bridge(self, rings: Indices, *, closes: bool = True, without: tuple[slice, slice] | None = None) -> None:
        """Add quads between rings of points, (R, n)."""
        if closes:
            rings = np.concatenate([rings, rings[:, :1]], axis=1)
        quads = np.stack([rings[:-1, :-1], rings[:-1, 1:], rings[1:, 1:], rings[1:, :-1]], axis=-1)
        kept = np.ones(quads.shape[:2], bool)
        if without is not None:
            kept[without] = False
        self.quads.append(quads[kept])

    def close(self, ring: Indices, rows: int, bulge: tuple[float, float, float], part: str) -> None:
        """Fill a ring of points, which begins at a corner, by a grid with a number of rows of cells."""
        columns = len(ring) // 2 - rows
        a, b, c, d = np.split(np.append(ring, ring[0]), np.cumsum([columns, rows, columns]))
        grid = np.zeros((rows + 1, columns + 1), np.intp)
        grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[::-1, 0] = a, b, c, d
        self.fill(grid, bulge, part)

    def fill(self, grid: Indices, bulge: tuple[float, float, float], part: str) -> None:
        """Add the inner points of a grid whose outer ones exist, and its quads."""
        sides = self.points[grid]
        u, v = (np.linspace(0, 1, count) for count in grid.shape)
        u, v = u[:, None, None], v[None, :, None]
        inner = (1 - u) * sides[:1] + u * sides[-1:] + (1 - v) * sides[:, :1] + v * sides[:, -1:]
        inner -= (1 - u) * ((1 - v) * sides[0, 0] + v * sides[0, -1]) + u * ((1 - v) * sides[-1, 0] + v * sides[-1, -1])
        inner += 16 * u * (1 - u) * v * (1 - v) * np.array(bulge)
        grid[1:-1, 1:-1] = self.add(inner[1:-1, 1:-1], part, self.along[grid[0, 0]])
        self.bridge(grid, closes=False)

    def mirrored(self) -> tuple[Floats, Indices, Names, Floats]:
        """Return points, quads, parts and places of both halves, without unused points."""
        used, quads = np.unique(np.concatenate([part.reshape(-1, 4) for part in self.quads]), return_inverse=True)
        quads, points = quads.reshape(-1, 4), self.points[used]
        sided = np.flatnonzero(points[:, 1] != 0)
        other = np.arange(len(points))
        other[sided] = len(points) + np.arange(len(sided))
        both = np.append(np.arange(len(points)), sided)
        signs = np.where(np.arange(len(both)) < len(points), 1, -1)[:, None]
        points = points[both] * np.where([False, True, False], signs, 1)
        places = used[both]
        quads = np.concatenate([quads, other[quads][:, ::-1]])
        return points, quads, np.array(self.parts)[places], np.array(self.along)[places]


def _rings(sections: Iterable[tuple[str | float, ...]], columns: tuple[str, ...]) -> dict[str, Floats]:
    """Return the columns of sections with further ones between them, on cubic curves, and their absolute centres."""
    rows = np.array([numbers for _, *numbers in sections], np.float64)
    rows[:, 1:4] += [joints.rest_matrices()[str(joint)][:3, 3] for joint, *_ in sections]
    place = np.append(0, np.cumsum(np.linalg.norm(np.diff(rows[:, 1:], axis=0), axis=1)))
    slope = np.gradient(rows, place, axis=0)
    found = []
    for number, cells in enumerate(rows[:-1, 0].astype(int)):
        t, step = (np.arange(cells) / cells)[:, None], place[number + 1] - place[number]
        ends = (1 + 2 * t) * (1 - t) ** 2 * rows[number] + t * t * (3 - 2 * t) * rows[number + 1]
        found.append(ends + step * t * (1 - t) * ((1 - t) * slope[number] - t * slope[number + 1]))
    rows = np.concatenate([*found, rows[-1:]])
    return dict(zip(columns, rows.T, strict=True), centre=rows[:, 1:4])


def _ovals(centre: Floats, half_axes: tuple[Floats, ...], angle: Floats, power: Floats | float = 2.0) -> Floats:
    """Return points of superellipses, (R, n, 3), at n angles.

    ``half_axes`` lead from the centres, (R, 3), to the points at 0, 90, 180 and 270 degrees, (R, 3) each.
    """
    directions = np.stack([np.cos(angle), np.sin(angle), -np.cos(angle), -np.sin(angle)])
    reach = np.maximum(directions, 0.0)[:, None] ** (2 / np.reshape(power, (-1, 1)))
    found: Floats = centre[:, None] + np.einsum("hrn,hrc->rnc", reach, np.stack(half_axes))
    return found


def _upright(of: dict[str, Floats], angle: Floats) -> Floats:
    """Return the rings of trunk or leg, (R, n, 3): from the front (0) to the left (90 degrees)."""
    zero = np.zeros_like(of["x"])
    front = np.stack([of["front"], zero, of["front_rise"]], -1)
    back = np.stack([-of["back"], zero, of["back_rise"]], -1)
    left = np.stack([zero, of["side"], zero], -1)
    return _ovals(of["centre"], (front, left, back, -left), angle, of["power"])


def _left_half() -> _Cage:
    cage = _Cage()
    trunk = _rings(TRUNK, UPRIGHT)
    points = _upright(trunk, np.linspace(0, np.pi, _HALF + 1))
    points[:, [0, -1], 1] = 0.0
    x, y, z = np.moveaxis(points.copy(), -1, 0)
    for forward, across, width, height, spread in SWELLINGS:
        facing = x / 0.05 if forward * across > 0 else (-x - 0.02) / 0.05
        swelling = np.exp(-(((y - across) / width) ** 2) - ((z - height) / spread) ** 2)
        points[..., 0] += forward * np.clip(facing, 0, 1) * swelling
    rings = cage.add(points, "trunk", trunk["z"])
    low, high, front, back = _ARMHOLE
    cage.bridge(rings, closes=False, without=(slice(low, high), slice(front, back)))
    _close_head(cage, rings[-1])
    sides = (rings[low, front:back], rings[low:high, back], rings[high, back:front:-1], rings[high:low:-1, front])
    _add_arm(cage, np.concatenate(sides), back - front)
    _add_leg(cage, rings[0])
    return cage


def _close_head(cage: _Cage, ring: Indices) -> None:
    """Close the left half of the crown by a grid from front to back."""
    columns, rows = 3, _HALF - 6
    grid = np.zeros((rows + 1, columns + 1), np.intp)
    grid[0], grid[-1], grid[:, -1] = ring[: columns + 1], ring[: -columns - 2 : -1], ring[columns : _HALF + 1 - columns]
    u = np.linspace(0, 1, rows + 1)[1:-1, None]
    front, back = cage.points[ring[0]], cage.points[ring[-1]]
    middle = front + u * (back - front) + 16 * u * (1 - u) * np.array(_CROWN)
    grid[1:-1, 0] = cage.add(middle, "trunk", cage.along[ring[0]])
    cage.fill(grid, _CROWN, "trunk")


def _add_arm(cage: _Cage, hole: Indices, width: int) -> None:
    """Add arm, hand and thumb to the left side's hole, which begins at its lower front corner."""
    count = len(hole)
    arm = _rings(ARM, SIDEWAYS)
    angle: Floats = np.radians(360 / count * (width / 2 - np.arange(count)) - 90)
    x, z = np.eye(3)[0], np.eye(3)[2]
    ways = {"front": x, "top": z, "back": -x, "bottom": -z}
    half_axes = tuple(arm[name][:, None] * way for name, way in ways.items())
    rings = np.concatenate([hole[None], cage.add(_ovals(arm["centre"], half_axes, angle), "arm", arm["y"])])
    first, column = 1 + int(np.searchsorted(arm["y"], 0.648)), int(np.argmax(np.cos(angle)))
    root = np.take(rings[first : first + 3], np.arange(column - 1, column + 2), axis=1, mode="wrap")
    cage.bridge(rings, without=(slice(first, first + 2), slice(column - 1, column + 1)))
    cage.close(rings[-1], 4, _FINGERTIPS, "arm")
    outline = np.concatenate([root[0, :2], root[:2, 2], root[2, :0:-1], root[:0:-1, 0]])
    base = cage.points[outline]
    forward, outward, width, turn = np.array(THUMB).T[..., None]
    x, y, z = (base - base.mean(axis=0)).T
    turned = forward + 1j * outward + width * (x + 1j * y) * np.exp(1j * np.radians(turn))
    thumb = base.mean(axis=0) + np.stack([turned.real, turned.imag, np.broadcast_to(z, turned.shape)], -1)
    thumb = cage.add(thumb, "arm", np.full(3, 0.69))
    cage.bridge(np.concatenate([outline[None], thumb]))
    cage.close(thumb[-1], 2, _THUMB_TIP, "arm")


def _add_leg(cage: _Cage, lowest: Indices) -> None:
    """Add leg and foot to half of the trunk's lowest ring and the points between the legs."""
    between = np.array([(x, 0.0, z) for x, z in CROTCH])
    ring = np.concatenate([lowest, cage.add(between, "leg", 0.88)])
    leg = _rings(LEG, UPRIGHT)
    angle = np.radians(360 / len(ring)) * (np.arange(len(ring)) - len(lowest) / 2 + 0.5) + np.pi / 2
    path = np.linalg.norm(np.diff(leg["centre"], axis=0), axis=1)
    along = leg["z"][0] - np.append(0, np.cumsum(path))
    rings = np.concatenate([ring[None], cage.add(_upright(leg, angle), "leg", along)])[:, ::-1]
    cage.bridge(rings)
    cage.close(np.roll(rings[-1], -5), 4, _TOES, "leg")


def _weights(points: Floats, edges: Indices, parts: Names, along: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return joints and the weights of points for them, (P, J)."""
    bones = list(dict.fromkeys(name for knots in BONES.values() for name, *_ in knots))
    names = [*bones, *VOLUMES]
    weights = np.zeros((len(points), len(names)))
    for part, knots in BONES.items():
        rows = parts == part
        places = [place for _name, *ends in knots for place in ends]
        for number, (name, *_) in enumerate(knots):
            weights[rows, names.index(name)] = np.interp(along[rows], places, np.repeat(np.eye(len(knots))[number], 2))
    x, y, z = points.T
    away, is_trunk = np.abs(y), parts == "trunk"
    # Shoulders and hips move the sides of the trunk, too.
    collar = is_trunk * np.clip((away - 0.05) / 0.1, 0, 1) * np.clip((z - 1.43) / 0.09, 0, 1)
    hip = is_trunk * np.clip((away - 0.02) / 0.08, 0, 1) * np.clip((1.07 - z) / 0.17, 0, 1) * 0.35
    for name, share in (("mCollarLeft", collar), ("mHipLeft", hip)):
        weights *= (1 - share)[:, None]
        weights[:, names.index(name)] += share
    names, weights = _on_both_sides(names, weights, y)
    weights = _relaxed(weights, edges, 0.5, 12)
    forward = np.clip((x + 0.06) / 0.12, 0, 1)
    forward = forward * forward * (3 - 2 * forward)
    breast = np.exp(-(((x - 0.092) / 0.06) ** 2) - ((away - 0.082) / 0.055) ** 2 - ((z - 1.398) / 0.055) ** 2)
    whole = weights.copy()
    for name, (bone, share) in VOLUMES.items():
        local = forward if name in _FRONT else 1 - forward if name in _BACK else np.ones_like(x)
        if name == _BREAST:
            local = breast
        elif bone == "mChest":
            local = local * (1 - VOLUMES[_BREAST][1] * breast)
        for side in {name, joints.other_side(name) or name}:
            parent = bone if side == name else joints.other_side(bone) or bone
            on_side = (_leftness(y) if side == name else 1 - _leftness(y)) if name == _BREAST else 1.0
            moved = whole[:, names.index(parent)] * share * local * on_side
            weights[:, names.index(side)] += moved
            weights[:, names.index(parent)] -= moved
    weights = _relaxed(weights, edges, 0.5, 4)
    # Thighs and pelvis grow in different directions, so that their blend has to be wide.
    weights = _relaxed(weights, edges, 0.5 * np.exp(-(((z[:, None] - 0.95) / 0.25) ** 4)), 80)
    return tuple(names), weights


def _leftness(y: Floats) -> Floats:
    """Return 1 for points on the left, 0 for those on the right, and 0.5 in the middle."""
    return (np.clip(y / _MIDDLE, -1, 1) + 1) / 2


def _on_both_sides(names: list[str], weights: Floats, y: Floats) -> tuple[list[str], Floats]:
    """Add the right joints, which get the weights of left joints on their side."""
    found = dict(zip(names, weights.T, strict=True))
    for name in names:
        other = joints.other_side(name)
        if other is not None:
            left = found[name] * _leftness(y)
            found[name], found[other] = left, found[name] - left
    return list(found), np.stack(list(found.values()), axis=1)


if __name__ == "__main__":
    main()
