"""Generate ``windmill.timbermesh``: a small animated model for trying Meshferry out.

    .venv/bin/python examples/make_windmill.py [file]

A smock mill on 2 by 2 tiles, about 4 tiles high (its sails reach over the edge of the tiles), that holds one of
everything a Timbermesh can hold: a hierarchy, two materials, UVs, baked vertex colours, hard edges, a node animation
(``#Sails``), a vertex animation (``#Flag``) and two empty attachment points.

The functions build in Blender's space (right-handed, Z up) in units of one tile. Numbers are computed with operations
that give the same result everywhere, and coordinates are rounded to 1/4096 tile, so that every run on every machine
makes the same model.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.api import write_scene
from meshferry.io_formats.core.scene import Clip, Layer, Mesh, Node, Scene, TransformTrack, VertexTrack
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

Floats = npt.NDArray[np.float64]
Vector = tuple[float, float, float]
Color = tuple[float, float, float]

BROWN = "BaseWood_Brown.Folktails"
WHITE = "BaseWood_White.Folktails"

FRAMES = 48
FPS = 24.0
CLIP = "Default"
"""Name that the game's own exporter gives to a single animation."""

CENTRE = (-1.0, -1.0)
"""Centre of the building: the game expects 2 by 2 tiles at x and y from -2 to 0, with the entrance at y = 0."""
HUB: Vector = (-1.0, -0.27, 2.98)
TILT = 8.0
"""Upward tilt of the sails' axle in degrees, which keeps the sails away from the tower."""

BARE: Color = (1.0, 1.0, 1.0)
ROOF_RED: Color = (0.66, 0.27, 0.20)
FLAG_RED: Color = (0.86, 0.20, 0.16)
PANE: Color = (0.20, 0.26, 0.33)
TRIM: Color = (0.86, 0.80, 0.72)


def sin(degrees: float) -> float:
    """Return a sine that is the same on every machine."""
    return round(math.sin(math.radians(degrees)), 9)


def cos(degrees: float) -> float:
    """Return a cosine that is the same on every machine."""
    return sin(degrees + 90.0)


def dot(a: Floats, b: Floats) -> Floats:
    """Return dot products of rows. einsum and matmul may sum in a different order on other machines."""
    product = a * b
    return product[..., 0] + product[..., 1] + product[..., 2]


def unit(vectors: Floats) -> Floats:
    """Return vectors of length 1."""
    return vectors / np.sqrt(dot(vectors, vectors))[..., None]


def noise(seed: int) -> float:
    """Return a number in -1..1 that looks random and depends on ``seed`` alone."""
    mixed = (seed * 2654435761 + 0x9E3779B9) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    return ((mixed >> 8) & 0xFFFF) / 32767.5 - 1.0


# -- polygons ------------------------------------------------------------------------------------------------------


@dataclass
class Polygon:
    """A flat, convex polygon, counter-clockwise as seen from outside."""

    points: Floats
    """(n, 3) corners."""
    material: str
    tint: Color
    grain: Floats
    """(3,) direction of the wood grain, which is the U axis."""
    shade: Floats
    """(n,) brightness of the corners, 0..1, reduced by overlapping neighbours."""

    @property
    def normal(self) -> Floats:
        """Return the unit normal, by Newell's sum over the edges."""
        following = np.roll(self.points, -1, axis=0)
        return unit(np.cross(self.points, following).sum(axis=0))

    def uv(self) -> Floats:
        """Return UVs, (n, 2): the points projected along and across the grain, one texture repeat for each tile."""
        across = np.cross(self.normal, self.grain)
        return np.rint(np.column_stack((dot(self.points, self.grain), dot(self.points, unit(across)))) * 1024) / 1024


@dataclass
class Builder:
    """Gathers the polygons of one object."""

    polygons: list[Polygon] = field(default_factory=list)

    def add(
        self,
        points: list[Vector] | Floats,
        material: str,
        tint: Color = BARE,
        grain: Vector | None = None,
        shade: tuple[float, ...] | None = None,
    ) -> None:
        """Add a polygon; by default its grain is parallel to its first edge."""
        corners = np.rint(np.asarray(points, np.float64) * 4096) / 4096
        direction = np.asarray(grain, np.float64) if grain else corners[1] - corners[0]
        light = np.asarray(shade or [1.0] * len(corners))
        self.polygons.append(Polygon(corners, material, _varied(tint, len(self.polygons)), unit(direction), light))

    def beam(
        self,
        start: Vector,
        end: Vector,
        width: float,
        depth: float,
        up: Vector = (0.0, 0.0, 1.0),
        material: str = BROWN,
        tint: Color = BARE,
        ends: tuple[bool, bool] = (True, True),
    ) -> None:
        """Add a plank from ``start`` to ``end``; ``depth`` is its size towards ``up``, ``ends`` adds its end faces."""
        a, b = np.asarray(start, np.float64), np.asarray(end, np.float64)
        along = unit(b - a)
        side = unit(np.cross(along, np.asarray(up, np.float64)))
        top = np.cross(side, along)
        w, d = side * (width / 2), top * (depth / 2)
        ring = (-w - d, w - d, w + d, -w + d)
        grain = (float(along[0]), float(along[1]), float(along[2]))
        for k in range(4):
            one, other = ring[k], ring[(k + 1) % 4]
            self.add(np.array([a + one, a + other, b + other, b + one]), material, tint, grain)
        if ends[0]:
            self.add(np.array([a + corner for corner in reversed(ring)]), material, tint)
        if ends[1]:
            self.add(np.array([b + corner for corner in ring]), material, tint)

    def merged_with(self, other: Builder) -> Builder:
        """Return a builder with the polygons of both."""
        return Builder(self.polygons + other.polygons)


def _varied(tint: Color, seed: int) -> Color:
    """Vary the brightness of a colour slightly, so that neighbouring planks differ."""
    factor = 0.97 + 0.06 * noise(seed)
    return (tint[0] * factor, tint[1] * factor, tint[2] * factor)


def octagon(apothem: float, z: float, centre: tuple[float, float] = CENTRE) -> list[Vector]:
    """Return the corners of a horizontal octagon whose sides face the axes, counter-clockwise from above."""
    radius = apothem / cos(22.5)
    return [(centre[0] + radius * cos(22.5 + 45 * k), centre[1] + radius * sin(22.5 + 45 * k), z) for k in range(8)]


def side_of(low: list[Vector], high: list[Vector], k: int) -> list[Vector]:
    """Return the quad between edge ``k`` of two octagons, facing outward if ``high`` is above."""
    following = (k + 1) % 8
    return [low[k], low[following], high[following], high[k]]


def ring(
    model: Builder,
    low: list[Vector],
    high: list[Vector],
    material: str,
    tint: Color = BARE,
    shade: tuple[float, float] = (1.0, 1.0),
) -> None:
    """Add the eight quads between two octagons; ``shade`` is the brightness at the lower and the upper one."""
    for k in range(8):
        model.add(side_of(low, high, k), material, tint, shade=(shade[0], shade[0], shade[1], shade[1]))


UNDER_EAVES = (1.0, 0.80)
"""Brightness of the lower and upper edge of a board or shingle whose upper edge is under the next one."""
LIP = (0.55, 0.55)


# -- the mill ------------------------------------------------------------------------------------------------------


def tower() -> Builder:
    """Build all static parts."""
    model = Builder()
    plinth(model)
    boards(model)
    gallery(model)
    cap(model)
    entrance(model)
    for degrees, z in ((90, 1.78), (0, 1.62), (180, 1.62), (0, 0.62), (180, 0.62)):
        window(model, degrees, z)
    return model


def wall(z: float) -> float:
    """Return the tower's apothem at a height."""
    return 0.80 - 0.125 * z


def plinth(model: Builder) -> None:
    """Add the wide base of the tower."""
    low, high, inner = octagon(0.94, 0.0), octagon(0.90, 0.13), octagon(wall(0.2), 0.20)
    ring(model, low, high, BROWN)
    ring(model, high, inner, BROWN)


def boards(model: Builder) -> None:
    """Add the overlapping weatherboards of the tower, and posts at its corners."""
    bottom, top, courses, lip = 0.17, 2.62, 12, 0.022
    height = (top - bottom) / courses
    for row in range(courses):
        low, high = bottom + row * height, bottom + (row + 1) * height
        outer, inner = octagon(wall(low) + lip, low), octagon(wall(high), high)
        under = octagon(wall(low), low)
        ring(model, outer, inner, WHITE, shade=UNDER_EAVES)
        if row:  # the lower edge of the lowest touches the plinth
            ring(model, under, outer, WHITE, shade=LIP)
    low_posts, high_posts = octagon(wall(bottom) + 0.012, bottom), octagon(wall(top) + 0.012, top)
    for a, b in zip(low_posts, high_posts, strict=True):
        model.beam(a, b, 0.075, 0.075, (a[0] - CENTRE[0], a[1] - CENTRE[1], 0.0), ends=(False, False))


def gallery(model: Builder) -> None:
    """Add the platform around the tower, with its railing and supporting struts."""
    z, outer, thick = 1.16, 0.96, 0.05
    inner = wall(z) - 0.03
    floor_out, floor_in = octagon(outer, z), octagon(inner, z)
    low_out, low_in = octagon(outer, z - thick), octagon(inner, z - thick)
    for k in range(8):
        model.add([floor_out[k], floor_out[(k + 1) % 8], floor_in[(k + 1) % 8], floor_in[k]], BROWN)
        model.add(side_of(low_out, floor_out, k), BROWN)
        model.add([low_in[k], low_in[(k + 1) % 8], low_out[(k + 1) % 8], low_out[k]], BROWN)
    feet, tops = octagon(outer - 0.05, z), octagon(outer - 0.05, z + 0.27)
    middles = octagon(outer - 0.05, z + 0.14)
    knees, heels = octagon(outer - 0.10, z - thick), octagon(wall(0.8) + 0.02, 0.78)
    for k in range(8):
        following = (k + 1) % 8
        outwards = (feet[k][0] - CENTRE[0], feet[k][1] - CENTRE[1], 0.0)
        model.beam(feet[k], tops[k], 0.05, 0.05, outwards, WHITE, TRIM, ends=(False, True))
        model.beam(tops[k], tops[following], 0.055, 0.035, material=WHITE, tint=TRIM, ends=(False, False))
        model.beam(middles[k], middles[following], 0.025, 0.03, material=WHITE, tint=TRIM, ends=(False, False))
        model.beam(heels[k], knees[k], 0.055, 0.055, ends=(False, False))


def cap(model: Builder) -> None:
    """Add the bell-shaped roof with its rim and rows of shingles, the axle's housing and the flagpole."""
    low, high = octagon(0.53, 2.58), octagon(0.55, 2.74)
    ring(model, low, high, BROWN)
    model.add(low[::-1], BROWN)
    profile = [(0.68, 2.66), (0.565, 2.83), (0.485, 3.0), (0.41, 3.17), (0.315, 3.34), (0.195, 3.50), (0.05, 3.62)]
    lip = 0.02
    for row, ((r0, z0), (r1, z1)) in enumerate(itertools.pairwise(profile)):
        outer, inner = octagon(r0 + lip, z0), octagon(r1, z1)
        tint = ROOF_RED if row % 2 else (ROOF_RED[0] * 0.93, ROOF_RED[1] * 0.90, ROOF_RED[2] * 0.90)
        ring(model, outer, inner, WHITE, tint, UNDER_EAVES)
        ring(model, octagon(r0 - (0.12 if row == 0 else 0.005), z0), outer, WHITE, tint, LIP)
    x, y, z = HUB
    back = (x, y - 0.5 * cos(TILT), z - 0.5 * sin(TILT))
    front = (x, y - 0.10 * cos(TILT), z - 0.10 * sin(TILT))
    model.beam(back, front, 0.26, 0.26)
    # small gable over the axle's housing
    for side in (-1.0, 1.0):
        model.beam(
            (x + side * 0.085, back[1], back[2] + 0.175),
            (x + side * 0.085, front[1] + 0.05, front[2] + 0.185),
            0.23,
            0.03,
            (side * 0.5, 0.0, 0.87),
            WHITE,
            ROOF_RED,
        )
    model.beam((*CENTRE, 3.55), (*CENTRE, 4.28), 0.035, 0.035, (0.0, 1.0, 0.0), ends=(False, False))
    knob(model, (*CENTRE, 4.30), 0.045)


def knob(model: Builder, centre: Vector, radius: float) -> None:
    """Add an octahedron."""
    x, y, z = centre
    around = [(x + radius * cos(90 * k), y + radius * sin(90 * k), z) for k in range(4)]
    for k in range(4):
        following = (k + 1) % 4
        model.add([around[k], around[following], (x, y, z + radius)], BROWN)
        model.add([around[following], around[k], (x, y, z - radius)], BROWN)


def entrance(model: Builder) -> None:
    """Add the door with its frame, a small roof above it and a step in front of it."""
    x, wide, high, floor = CENTRE[0], 0.19, 0.74, 0.2
    foot, head = CENTRE[1] + wall(0.2), CENTRE[1] + wall(high)
    out = 0.045
    y = (foot + out, head + out)
    for plank in range(4):
        left, right = x - wide + plank * wide / 2, x - wide + (plank + 1) * wide / 2
        model.add(
            [(right, y[0], floor), (left, y[0], floor), (left, y[1], high), (right, y[1], high)],
            WHITE,
            ROOF_RED,
            (0.0, 0.0, 1.0),
        )
    for side in (-1.0, 1.0):
        edge = x + side * (wide + 0.03)
        model.beam((edge, y[0], 0.16), (edge, y[1], high + 0.03), 0.07, 0.11, (0.0, 1.0, 0.0))
    model.beam((x - wide - 0.1, y[1], high + 0.05), (x + wide + 0.1, y[1], high + 0.05), 0.12, 0.07)
    for side in (-1.0, 1.0):  # the hinges of the door
        bar = floor + 0.27 + side * 0.16
        model.beam((x - wide + 0.02, y[0] - 0.01, bar), (x + wide * 0.5, y[0] - 0.01, bar), 0.03, 0.03)
    slope = (0.0, 0.35, 0.94)
    model.beam((x - 0.36, -0.155, high + 0.15), (x + 0.36, -0.155, high + 0.15), 0.30, 0.03, slope, WHITE, ROOF_RED)
    model.beam((x - 0.3, -0.13, 0.05), (x + 0.3, -0.13, 0.05), 0.24, 0.10)


def window(model: Builder, degrees: float, z: float) -> None:
    """Add a window with frame and glazing bars to the side of the tower that faces ``degrees``."""
    half, high = 0.09, 0.125
    outwards = (cos(degrees), sin(degrees))
    along = (-outwards[1], outwards[0])

    def at(sideways: float, height: float, proud: float) -> Vector:
        reach = wall(height) + proud
        return (
            CENTRE[0] + outwards[0] * reach + along[0] * sideways,
            CENTRE[1] + outwards[1] * reach + along[1] * sideways,
            height,
        )

    up = (outwards[0], outwards[1], 0.0)
    model.add(
        [at(-half, z - high, 0.03), at(half, z - high, 0.03), at(half, z + high, 0.03), at(-half, z + high, 0.03)],
        WHITE,
        PANE,
    )
    for side in (-1.0, 1.0):
        model.beam(
            at(side * half, z - high, 0.03), at(side * half, z + high, 0.03), 0.04, 0.07, up, ends=(False, False)
        )
        model.beam(at(-half - 0.04, z + side * high, 0.035), at(half + 0.04, z + side * high, 0.035), 0.04, 0.08, up)
    for start, end in ((at(0, z - high, 0.032), at(0, z + high, 0.032)), (at(-half, z, 0.031), at(half, z, 0.031))):
        model.beam(start, end, 0.018, 0.03, up, WHITE, TRIM, ends=(False, False))


def sails() -> Builder:
    """Build the four sails around the origin; they rotate about the Y axis and face +Y."""
    one = Builder()
    one.beam((0.0, 0.0, 0.02), (0.0, 0.0, 1.30), 0.055, 0.065, (0.0, 1.0, 0.0), ends=(False, True))
    twist = (sin(14.0), cos(14.0))

    def at(sideways: float, z: float, proud: float = 0.0) -> Vector:
        """Return a point of the lattice of a sail, which is twisted out of the plane of rotation."""
        return (sideways * twist[1] - proud * twist[0], sideways * twist[0] + proud * twist[1], z)

    face = (-twist[0], twist[1], 0.0)
    bars = 6
    for k in range(bars):
        z = 0.34 + k * (1.26 - 0.34) / (bars - 1)
        one.beam(at(-0.035, z), at(0.30, z), 0.026, 0.022, face)
    for sideways in (0.165, 0.285):
        one.beam(at(sideways, 0.31, 0.018), at(sideways, 1.29, 0.018), 0.024, 0.018, face)
    one.beam(at(-0.085, 0.32, 0.012), at(-0.085, 1.28, 0.012), 0.10, 0.018, face, WHITE, TRIM)

    model = Builder()
    for quarter in range(4):
        c, s = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter]
        for polygon in one.polygons:
            model.polygons.append(
                replace(polygon, points=_turned(polygon.points, c, s), grain=_turned(polygon.grain, c, s))
            )
    around = [[(0.12 * cos(45 * k + 22.5), y, 0.12 * sin(45 * k + 22.5)) for k in range(8)] for y in (-0.09, 0.065)]
    nose = [(0.055 * cos(45 * k + 22.5), 0.12, 0.055 * sin(45 * k + 22.5)) for k in range(8)]
    for k in range(8):
        following = (k + 1) % 8
        model.add([around[0][following], around[0][k], around[1][k], around[1][following]], BROWN)
        model.add([around[1][following], around[1][k], nose[k], nose[following]], WHITE, ROOF_RED)
    model.add(nose[::-1], WHITE, ROOF_RED)
    model.add(around[0], BROWN)
    return model


def _turned(points: Floats, c: int, s: int) -> Floats:
    """Rotate points about the Y axis by a multiple of 90 degrees, given its cosine and sine, exactly."""
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    return np.stack((x * c + z * s, y, z * c - x * s), axis=-1) + 0.0


# -- light ---------------------------------------------------------------------------------------------------------


def sky(rays: int = 32) -> Floats:
    """Return directions over the hemisphere around +Z, (n, 3), with cosine-weighted density."""
    golden = 137.50776405
    directions = []
    for k in range(rays):
        height = math.sqrt(1 - (k + 0.5) / rays)
        flat = math.sqrt((k + 0.5) / rays)
        directions.append((flat * cos(golden * k), flat * sin(golden * k), height))
    return np.asarray(directions)


def openness(polygons: list[Polygon], blockers: list[Polygon]) -> list[Floats]:
    """Return the ambient occlusion at each corner of each polygon: the unobstructed share of the hemisphere, 0..1."""
    origins = np.concatenate(
        [p.points + 0.12 * (p.points.mean(axis=0) - p.points) + 0.012 * p.normal for p in polygons]
    )
    normals = np.concatenate([np.tile(p.normal, (len(p.points), 1)) for p in polygons])
    helper = np.where(np.abs(normals[:, :1]) < 0.6, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    tangents = unit(np.cross(helper, normals))
    bitangents = np.cross(normals, tangents)
    triangles = np.concatenate([_fan(p.points) for p in blockers])
    seen = np.zeros(len(origins))
    directions = sky()
    for x, y, z in directions:
        direction = tangents * x + bitangents * y + normals * z
        reach = _first_hit(origins, direction, triangles, 0.9)
        # The ground also obstructs, but less, since it reflects light.
        down = -direction[:, 2]
        with np.errstate(divide="ignore", invalid="ignore"):
            to_ground = np.where(down > 1e-9, origins[:, 2] / down, np.inf)
        reach = np.minimum(reach, np.where(to_ground < 0.9, 0.35 + 0.65 * to_ground / 0.9, 1.0))
        seen += reach
    shares = seen / len(directions)
    return np.split(shares, np.cumsum([len(p.points) for p in polygons])[:-1])


def _first_hit(origins: Floats, directions: Floats, triangles: Floats, reach: float) -> Floats:
    """Return the distance to the first triangle along each ray, 0..1 of ``reach`` (Möller-Trumbore intersection)."""
    nearest = np.ones(len(origins))
    for a, b, c in triangles:
        one, other = b - a, c - a
        p = np.cross(directions, other)
        determinant = dot(p, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            offset = origins - a
            u = dot(offset, p) / determinant
            q = np.cross(offset, one)
            v = dot(directions, q) / determinant
            distance = dot(np.broadcast_to(other, q.shape), q) / determinant
            hit = (np.abs(determinant) > 1e-9) & (u >= 0) & (v >= 0) & (u + v <= 1) & (distance > 1e-4)
            share = np.where(hit & (distance < reach), distance / reach, 1.0)
        nearest = np.minimum(nearest, share)
    return nearest


def _fan(points: Floats) -> Floats:
    """Return the corners of a convex polygon's triangles, (n - 2, 3, 3)."""
    return np.stack([points[[0, k, k + 1]] for k in range(1, len(points) - 1)])


def blockers() -> list[Polygon]:
    """Return a simplified tower for computing the ambient occlusion faster."""
    model = Builder()
    ring(model, octagon(wall(0.1), 0.1), octagon(wall(2.6), 2.6), WHITE)
    ring(model, octagon(0.92, 0.0), octagon(0.90, 0.13), WHITE)
    ring(model, octagon(0.90, 0.13), octagon(wall(0.2), 0.2), WHITE)
    floor_out, floor_in = octagon(0.96, 1.135), octagon(wall(1.135), 1.135)
    eaves, brim, top = octagon(0.52, 2.66), octagon(0.67, 2.67), octagon(0.30, 3.34)
    for k in range(8):
        following = (k + 1) % 8
        model.add([floor_out[k], floor_out[following], floor_in[following], floor_in[k]], WHITE)
        model.add([eaves[k], eaves[following], brim[following], brim[k]], WHITE)
        model.add(side_of(octagon(0.66, 2.67), top, k), WHITE)
    x, y, z = HUB
    model.beam((x, y - 0.5, z - 0.06), (x, y - 0.1, z - 0.01), 0.26, 0.26, material=WHITE)
    model.beam((x - 0.36, -0.15, 0.89), (x + 0.36, -0.15, 0.89), 0.28, 0.02, (0.0, 0.35, 0.94), WHITE)
    return model.polygons


def shaded(polygons: list[Polygon], light: list[Floats]) -> list[Floats]:
    """Return the colours of all corners, each (n, 3) in 0..1: the tint times the colour of light or shade."""
    colors = []
    for polygon, share in zip(polygons, light, strict=True):
        dark = np.clip(share * polygon.shade, 0.0, 1.0)[:, None]
        color = np.asarray((0.40, 0.37, 0.41)) * (1 - dark) + np.asarray((1.0, 0.99, 0.96)) * dark
        colors.append(np.clip(color * polygon.tint, 0.0, 1.0))
    return colors


# -- meshes --------------------------------------------------------------------------------------------------------


def flat_mesh(polygons: list[Polygon], colors: list[Floats]) -> Mesh:
    """Join polygons into a mesh with hard edges; corners at equal positions share a point."""
    sizes = [len(p.points) for p in polygons]
    everywhere = np.concatenate([p.points for p in polygons])
    places: dict[tuple[float, float, float], int] = {}
    point_of = np.asarray([places.setdefault((x, y, z), len(places)) for x, y, z in everywhere.tolist()], np.int32)
    first = np.cumsum([0, *sizes[:-1]])
    corner = np.asarray(
        [start + k for start, size in zip(first, sizes, strict=True) for j in range(1, size - 1) for k in (0, j, j + 1)]
    )
    normals = np.concatenate([np.tile(p.normal, (len(p.points), 1)) for p in polygons])
    uv = np.concatenate([p.uv() for p in polygons])
    rgb = np.rint(np.concatenate(colors) * 255).astype(np.uint8)
    rgba = np.column_stack((rgb, np.full(len(rgb), 255, np.uint8)))
    materials = [name for name in (WHITE, BROWN) if any(p.material == name for p in polygons)]
    return Mesh(
        points=np.asarray(list(places), np.float32),
        corner_point=np.ascontiguousarray(point_of[corner]),
        material_index=np.repeat(
            np.asarray([materials.index(p.material) for p in polygons], np.int32), [size - 2 for size in sizes]
        ),
        materials=materials,
        normal=_on_corners("normal", normals[corner].astype(np.float32)),
        uvs=[_on_corners("uv0", uv[corner].astype(np.float32))],
        colors=[_on_corners("color", rgba[corner])],
    )


def _on_corners(name: str, values: npt.NDArray[np.float32] | npt.NDArray[np.uint8]) -> Layer:
    return Layer(name, np.ascontiguousarray(values), per_corner=True)


COLUMNS, ROWS = 8, 4
LENGTH, HEIGHT = 0.62, 0.34


def flag() -> tuple[Mesh, VertexTrack]:
    """Build the flag in its own space: two sheets back to back that extend along X from the pole at x = 0."""
    u = np.repeat(np.linspace(0, 1, COLUMNS + 1), ROWS + 1)
    v = np.tile(np.linspace(0, 1, ROWS + 1), COLUMNS + 1)
    column = np.repeat(np.arange(COLUMNS + 1), ROWS + 1)
    rest = np.column_stack((u * LENGTH, np.zeros_like(u), (v - 0.5) * HEIGHT * (1 - 0.25 * u)))
    count = len(rest)
    quads = [
        (c * (ROWS + 1) + r, (c + 1) * (ROWS + 1) + r, (c + 1) * (ROWS + 1) + r + 1, c * (ROWS + 1) + r + 1)
        for c in range(COLUMNS)
        for r in range(ROWS)
    ]
    front = [corner for a, b, c, d in quads for corner in (a, b, c, a, c, d)]
    back = [count + corner for a, b, c, d in quads for corner in (a, c, b, a, d, c)]
    points, normals, tangents = [], [], []
    for frame in range(FRAMES):
        wave, slope = _wave(frame)
        moved = rest.copy()
        moved[:, 1] += wave[column]
        moved[:, 2] -= 0.10 * u * u
        moved = np.rint(moved * 4096) / 4096
        normal = unit(np.column_stack((slope[column], np.full(count, -1.0), np.zeros(count))))
        tangent = np.column_stack((-normal[:, 1], normal[:, 0], np.zeros(count)))
        thick = np.asarray((0.0, -1 / 256, 0.0))
        points.append(np.concatenate((moved + thick, moved - thick)))
        normals.append(np.concatenate((normal, -normal)))
        tangents.append(np.concatenate((tangent, tangent)))
    track = VertexTrack(
        target=-1,
        points=np.asarray(points, np.float32),
        normals=np.asarray(normals, np.float32),
        tangents=np.asarray(tangents, np.float32),
    )
    stripe = np.asarray([c // 2 % 2 for c in range(COLUMNS) for _ in range(6 * ROWS)], bool)
    paint = np.where(np.tile(stripe, 2)[:, None], FLAG_RED, (1.0, 0.93, 0.80))
    rgba = np.column_stack((np.rint(paint * 255), np.full(len(paint), 255))).astype(np.uint8)
    uv = np.rint(np.column_stack((u * LENGTH, v * HEIGHT)) * 1024) / 1024
    mesh = Mesh(
        points=track.points[0],
        corner_point=np.asarray(front + back, np.int32),
        material_index=np.zeros(4 * len(quads), np.int32),
        materials=[WHITE],
        normal=Layer("normal", track.normals[0] if track.normals is not None else np.empty((0, 3), np.float32)),
        uvs=[Layer("uv0", np.concatenate((uv, uv)).astype(np.float32))],
        colors=[_on_corners("color", rgba)],
    )
    return mesh, track


def _wave(frame: int) -> tuple[Floats, Floats]:
    """Return the displacement of each column of the flag from the plane, and its slope there."""
    away, steep = [], []
    for column in range(COLUMNS + 1):
        u = column / COLUMNS
        out, rise = 0.0, 0.0
        # A fast and a slow wave; both complete whole cycles, so that the animation loops.
        for size, waves, cycles in ((0.075, 1.15, 2), (0.055, 0.45, 1)):
            swing, growth = size * u * (1.6 - 0.6 * u), size * (1.6 - 1.2 * u)
            phase = 360.0 * (waves * u - cycles * frame / FRAMES)
            out += swing * sin(phase)
            rise += growth * sin(phase) + swing * 6.283185307 * waves * cos(phase)
        away.append(out)
        steep.append(rise / LENGTH)
    return np.asarray(away), np.asarray(steep)


# -- the scene -----------------------------------------------------------------------------------------------------


def quaternion(axis: Vector, degrees: float) -> tuple[float, float, float, float]:
    """Return a rotation as (w, x, y, z)."""
    s = sin(degrees / 2)
    return (cos(degrees / 2), axis[0] * s, axis[1] * s, axis[2] * s)


def combined(
    a: tuple[float, float, float, float], b: tuple[float, float, float, float]
) -> tuple[float, float, float, float]:
    """Return the rotation that applies ``b`` first, then ``a``."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def windmill() -> Scene:
    """Build the whole model."""
    standing = tower().polygons
    turning = sails().polygons
    tower_mesh = flat_mesh(standing, shaded(standing, openness(standing, blockers())))
    # Moving parts get no baked ambient occlusion; only their back is darker.
    light = [np.full(len(p.points), 0.86 + 0.14 * float(p.normal[1])) for p in turning]
    sails_mesh = flat_mesh(turning, shaded(turning, light))
    flag_mesh, wave = flag()
    lean = quaternion((1.0, 0.0, 0.0), TILT)
    scene = Scene(
        "Windmill.Folktails",
        nodes=[
            Node("Windmill.Folktails", mesh=tower_mesh),
            Node("#Sails", 0, HUB, lean, mesh=sails_mesh),
            Node("#Flag", 0, (*CENTRE, 4.08), quaternion((0.0, 0.0, 1.0), 205.0), mesh=flag_mesh),
            Node("#Slot#Entrance", 0, (CENTRE[0], -0.03, 0.0), quaternion((0.0, 0.0, 1.0), 180.0)),
            Node("#MiscStart", 0, (CENTRE[0], CENTRE[1], 1.16)),
        ],
    )
    turns = np.asarray(
        [combined(lean, quaternion((0.0, 1.0, 0.0), -360.0 * frame / FRAMES)) for frame in range(FRAMES)], np.float32
    )
    spin = TransformTrack(1, np.tile(np.asarray(HUB, np.float32), (FRAMES, 1)), turns, np.ones((FRAMES, 3), np.float32))
    wave.target = 2
    scene.clips.append(Clip(CLIP, FPS, FRAMES, transforms=[spin], vertices=[wave]))
    return scene


def main(arguments: list[str]) -> int:
    """Write the model to the given path, or beside this script."""
    path = Path(arguments[0]) if arguments else Path(__file__).with_name("windmill.timbermesh")
    for said in write_scene(windmill(), path, TIMBERMESH, {"compression": "SMALL"}):
        print(said)
    print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
