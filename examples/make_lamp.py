"""Generate ``lamp.mesh`` and ``lamp_nod.anim``: a small rigged model for trying Meshferry out.

    .venv/bin/python examples/make_lamp.py [folder]

A desk lamp of 0.6 m with a flexible neck, that holds one of everything a UNIGINE mesh can hold: four surfaces, hard and
smooth edges, two UV sets and colours where a surface has them, seven bones with smooth weights, and a shape (morph
target) of the shade. Its animation looks around and comes back to where it began.

Everything is built in Blender's space; the lamp faces +Y, which is forward in UNIGINE. Coordinates are rounded, so that
every run on every machine makes the same model.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.api import write_scene
from meshferry.io_formats.core.scene import (
    Clip,
    Joint,
    Layer,
    Mesh,
    Node,
    Scene,
    ShapeKey,
    Skeleton,
    Surface,
    TransformTrack,
)
from meshferry.io_formats.passes.join_meshes import join
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

Floats = npt.NDArray[np.float64]

SIDES = 20
BENDS = (0.0, 4.0, 14.0, 24.0, 30.0, 26.0, 22.0)
"""Angle between each joint and the one below it, in degrees forward."""
LENGTHS = (0.05, 0.09, 0.085, 0.075, 0.07, 0.065, 0.10)
"""Distance from each joint to the next, in metres; the last is the length of the shade."""
NAMES = ("base", "neck_1", "neck_2", "neck_3", "neck_4", "neck_5", "head")
FRAMES = 60
FPS = 30.0


@dataclass(frozen=True)
class Ring:
    """A circle of a surface of revolution: centre (y, z), tilt, radius, and V coordinate along the part."""

    y: float
    z: float
    lean: float
    """Tilt of the axis from +Z towards +Y, in degrees."""
    radius: float
    along: float


def spine() -> list[tuple[float, float, float]]:
    """Return y, z and tilt of each joint, and of the end of the last one."""
    y, z, lean = 0.0, 0.0, 0.0
    places = []
    for bend, length in zip(BENDS, LENGTHS, strict=True):
        lean += bend
        places.append((y, z, lean))
        y, z = y + length * math.sin(math.radians(lean)), z + length * math.cos(math.radians(lean))
    return [*places, (y, z, lean)]


def upright(profile: list[tuple[float, float]]) -> list[Ring]:
    """Return the rings of a part on the ground from pairs of radius and height."""
    return [Ring(0.0, height, 0.0, radius, height) for radius, height in profile]


def on_head(profile: list[tuple[float, float]]) -> list[Ring]:
    """Return the rings of a part at the end of the neck from pairs of radius and distance from the last joint."""
    y, z, lean = spine()[-2]
    sine, cosine = math.sin(math.radians(lean)), math.cos(math.radians(lean))
    return [Ring(y + s * sine, z + s * cosine, lean, radius, s) for radius, s in profile]


def neck(steps: int = 8) -> list[Ring]:
    """Return the rings of the ribbed neck, interpolated between the joints."""
    places = spine()
    rings = []
    along = 0.0
    for number in range(1, len(NAMES) - 1):
        (y, z, lean), (next_y, next_z, next_lean) = places[number], places[number + 1]
        for step in range(steps + (number == len(NAMES) - 2)):
            t = step / steps
            rib = 0.013 + (0.0012 if step % 2 else 0.0)
            rings.append(
                Ring(y + t * (next_y - y), z + t * (next_z - z), lean + t * (next_lean - lean), rib, along + t)
            )
        along += 1.0
    return rings


def turned(name: str, rings: list[Ring], *, crease: float = 40.0) -> Mesh:
    """Make a surface of revolution from rings.

    Points belong to rings, normals and UVs to the bands between them, so that hard edges need no additional points.

    Rings of radius 0 are a single point. The edge between bands that meet at less than ``crease`` degrees is smooth.
    """
    angle = np.arange(SIDES + 1) * (2 * math.pi / SIDES)
    points: list[Floats] = []
    rows: list[npt.NDArray[np.int32]] = []
    count = 0
    for ring in rings:
        here = _circle(ring, angle[:-1]) if ring.radius else _circle(ring, angle[:1])
        numbers = np.arange(count, count + len(here), dtype=np.int32)
        rows.append(np.append(numbers, numbers[0]) if ring.radius else np.repeat(numbers, SIDES + 1))
        points.append(here)
        count += len(here)
    normals, uvs, corners, shared = [], [], [], []
    slopes = [_slope(one, other) for one, other in itertools.pairwise(rings)]
    for band, (low, high) in enumerate(itertools.pairwise(rings)):
        below = _soft(slopes, band, band - 1, crease)
        above = _soft(slopes, band, band + 1, crease)
        first = 2 * band * (SIDES + 1)
        normals += [_directions(low, below, angle), _directions(high, above, angle)]
        for ring in (low, high):
            uvs.append(np.column_stack((angle / (2 * math.pi), np.full(SIDES + 1, ring.along))))
        side = np.arange(SIDES)
        a, b = first + side, first + side + 1
        c, d = b + SIDES + 1, a + SIDES + 1
        at = np.concatenate((rows[band], rows[band + 1]))
        for triangle in ((a, b, c), (a, c, d)):
            index = np.column_stack(triangle)
            corner = at[index - first]
            flat = (corner[:, 0] != corner[:, 1]) & (corner[:, 1] != corner[:, 2]) & (corner[:, 2] != corner[:, 0])
            corners.append(corner[flat].ravel())
            shared.append(index[flat].ravel())
    index = np.concatenate(shared).astype(np.int32)
    corner_point = np.concatenate(corners).astype(np.int32)
    uv = _rounded(np.concatenate(uvs))
    return Mesh(
        _rounded(np.concatenate(points)),
        corner_point,
        np.zeros(len(corner_point) // 3, np.int32),
        [name],
        Layer("normal", _rounded(np.concatenate(normals)), index),
        uvs=[Layer("UV0", uv, index), Layer("UV1", _rounded(uv * 0.5), index)],
        colors=[Layer("Color", np.full((len(uv), 4), 255, np.uint8), index)],
        surfaces=[Surface(name, uvs=(True, False), has_colors=False)],
    )


def _circle(ring: Ring, angle: Floats) -> Floats:
    sine, cosine = math.sin(math.radians(ring.lean)), math.cos(math.radians(ring.lean))
    across, aside = ring.radius * np.cos(angle), ring.radius * np.sin(angle)
    return np.column_stack((across, ring.y + aside * cosine, ring.z - aside * sine))


def _directions(ring: Ring, slope: float, angle: Floats) -> Floats:
    """Return the normals around a ring of a surface that widens by ``slope`` degrees along its axis."""
    sine, cosine = math.sin(math.radians(ring.lean)), math.cos(math.radians(ring.lean))
    out, along = math.cos(math.radians(slope)), -math.sin(math.radians(slope))
    across, aside = out * np.cos(angle), out * np.sin(angle)
    return np.column_stack((across, aside * cosine + along * sine, along * cosine - aside * sine))


def _slope(low: Ring, high: Ring) -> float:
    """Return the angle in degrees at which the surface widens between two rings; 0 for a tube."""
    step = math.copysign(math.hypot(high.y - low.y, high.z - low.z), high.along - low.along)
    return math.degrees(math.atan2(high.radius - low.radius, step))


def _soft(slopes: list[float], band: int, other: int, crease: float) -> float:
    if 0 <= other < len(slopes):
        turn = (slopes[other] - slopes[band] + 180.0) % 360.0 - 180.0
        if abs(turn) < crease:
            return slopes[band] + turn / 2
    return slopes[band]


def _rounded(values: Floats) -> npt.NDArray[np.float32]:
    return (np.rint(values * 65536) / 65536).astype(np.float32)


def weighted(mesh: Mesh, rings: list[Ring] | None, joint: int) -> Mesh:
    """Set the weights of a part: 1 for one joint, or, for the neck, shares of the two joints nearest to each ring."""
    count = len(mesh.points)
    indices = np.zeros((count, 4), np.int32)
    weights = np.zeros((count, 4), np.float32)
    indices[:, 0], weights[:, 0] = joint, 1.0
    if rings is not None:
        place = np.repeat([ring.along for ring in rings], SIDES)
        whole = np.clip(np.floor(place), 0, len(NAMES) - 3).astype(np.int32)
        part = np.clip(place - whole, 0, 1)
        share = np.where(part < 0.5, 0.5 - part, part - 0.5).astype(np.float32)
        indices[:, 0], weights[:, 0] = 1 + whole, 1.0 - share
        indices[:, 1] = np.where(part < 0.5, whole, whole + 2)
        weights[:, 1] = share
    return replace(mesh, joint_indices=indices, joint_weights=weights)


def lamp() -> Scene:
    """Return the model without its animation."""
    rings = neck()
    base = turned("base", upright([(0, 0), (0.1, 0), (0.1, 0.012), (0.092, 0.02), (0.03, 0.034), (0.013, 0.05)]))
    # The profile goes along the outside to the rim, then back inside, so the surface is closed.
    shade_rings = on_head(
        [(0, -0.03), (0.02, -0.03), (0.028, 0), (0.04, 0.03), (0.085, 0.11), (0.08, 0.11), (0.036, 0.035), (0, 0.03)]
    )
    shade = turned("shade", shade_rings)
    shade.surfaces[0] = Surface("shade", uvs=(True, True), has_colors=True, lightmap_resolution=4)
    shade.colors[0].values[:, :3] = np.repeat(
        [(200, 40, 30) if band < 4 else (250, 244, 225) for band in range(len(shade_rings) - 1)], 2 * (SIDES + 1), 0
    )
    bulb = turned("bulb", on_head([(0.028 * math.sin(k * math.pi / 8), 0.068 - 0.03 * math.cos(k * math.pi / 8))
                                   if 0 < k < 8 else (0.0, 0.068 - 0.03 * math.cos(k * math.pi / 8))
                                   for k in range(9)]), crease=60.0)  # fmt: skip
    head = len(NAMES) - 1
    parts = [weighted(base, None, 0), weighted(turned("neck", rings), rings, 1)]
    parts += [weighted(shade, None, head), weighted(bulb, None, head)]
    mesh = join(parts)
    mesh.shape_keys = [ShapeKey("wide", _wide(mesh, parts))]
    for surface in mesh.surfaces:
        surface.shape_keys = {"wide": "wide"} if surface.name == "shade" else {}
        surface.has_weights = True
    return Scene("lamp", [Node("lamp", mesh=mesh, skeleton=0)], [skeleton()])


def _wide(mesh: Mesh, parts: list[Mesh]) -> npt.NDArray[np.float32]:
    """Return the points of the shape key: those of the shade are moved away from its axis, most at the rim."""
    start = len(parts[0].points) + len(parts[1].points)
    moved = mesh.points.astype(np.float64)
    shade = slice(start, start + len(parts[2].points))
    y, z, lean = spine()[-2]
    axis = np.array([0.0, math.sin(math.radians(lean)), math.cos(math.radians(lean))])
    offset = moved[shade] - (0.0, y, z)
    along = offset[:, 1] * axis[1] + offset[:, 2] * axis[2]
    centre = along[:, None] * axis
    moved[shade] = (0.0, y, z) + centre + (offset - centre) * (1.0 + 4.0 * np.clip(along - 0.03, 0, None))[:, None]
    return _rounded(moved)


def skeleton() -> Skeleton:
    """Return the skeleton; Y of each joint is along the neck, X to the side."""
    joints = []
    for number, (name, bend) in enumerate(zip(NAMES, BENDS, strict=True)):
        # The root's Y points up; each further joint is rotated forward about its X.
        turn = 90.0 if number == 0 else -bend
        place = (0.0, 0.0, 0.0) if number == 0 else (0.0, LENGTHS[number - 1], 0.0)
        joints.append(Joint(name, number - 1, place, _about_x(turn)))
    return Skeleton("lamp", joints)


def _about_x(degrees: float) -> tuple[float, float, float, float]:
    half = math.radians(degrees) / 2
    return (round(math.cos(half), 7), round(math.sin(half), 7), 0.0, 0.0)


def nod() -> Clip:
    """Return the animation: the lamp looks to both sides and nods."""
    time = np.arange(FRAMES) * (2 * math.pi / (FRAMES - 1))
    clip = Clip("nod", FPS, FRAMES)
    for number, joint in enumerate(skeleton().joints):
        lean = math.degrees(2 * math.atan2(joint.rotation[1], joint.rotation[0]))
        sway = 0.0 if number == 0 else 5.0
        x = np.radians(lean + (12.0 if joint.name == "head" else sway) * np.sin(2 * time)) / 2
        z = np.radians(sway * np.sin(time)) / 2
        y = np.radians(24.0 * np.sin(time) if joint.name in ("neck_1", "head") else 0.0 * time) / 2
        about_x = np.column_stack((np.cos(x), np.sin(x), 0 * x, 0 * x))
        turned_y = _multiplied(about_x, np.column_stack((np.cos(y), 0 * y, np.sin(y), 0 * y)))
        rotation = _multiplied(turned_y, np.column_stack((np.cos(z), 0 * z, 0 * z, np.sin(z))))
        still = np.tile(np.float32(joint.translation), (FRAMES, 1))
        clip.transforms.append(
            TransformTrack(number, still, _rounded(rotation), np.ones((FRAMES, 3), np.float32), skeleton=0)
        )
    return clip


def _multiplied(one: Floats, other: Floats) -> Floats:
    """Multiply quaternions row by row, (n, 4) each."""
    w, x, y, z = one.T
    a, b, c, d = other.T
    return np.column_stack(
        (
            w * a - x * b - y * c - z * d,
            w * b + x * a + y * d - z * c,
            w * c - x * d + y * a + z * b,
            w * d + x * c - y * b + z * a,
        )
    )


def main(folder: Path) -> None:
    """Write both files."""
    scene = lamp()
    for text in write_scene(scene, folder / "lamp.mesh", UNIGINE_MESH):
        print(text)
    animated = Scene("nod", skeletons=scene.skeletons, clips=[nod()])
    for text in write_scene(animated, folder / "lamp_nod.anim", UNIGINE_ANIMATION):
        print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
