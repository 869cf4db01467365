"""Prims, point by point: a transcription of the format page of prims that uses nothing of the product.

Cuts and decoded numbers are fractions, so that a cut at a corner is exact. Nothing is left out: triangles without area
and points without triangles are in the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from struct import pack, unpack

Point = tuple[float, float, float]
Triangle = tuple[int, int, int]


@dataclass
class Face:
    role: str
    points: list[Point] = field(default_factory=list)
    uvs: list[tuple[float, float]] = field(default_factory=list)
    triangles: list[Triangle] = field(default_factory=list)
    normals: list[Point] = field(default_factory=list)
    """Not normalised."""


@dataclass
class Row:
    t: Fraction | float
    origin: Point
    alpha: float
    beta: float
    width: float
    height: float


def f32(value: float) -> float:
    return float(unpack("f", pack("f", value))[0])


def clamp(value, low, high):
    return low if value < low else high if value > high else value


def lerp(a, b, t):
    return a + (b - a) * t


# -- parameters ------------------------------------------------------------------------------------------------------


def limited(stored: Mapping[str, int]) -> dict[str, Fraction]:
    """Decode and clamp, line by line of the section Parameters."""
    v = {name: Fraction(value) for name, value in stored.items()}
    out = {
        "ProfileBegin": v["ProfileBegin"] / 50000,
        "PathBegin": v["PathBegin"] / 50000,
        "ProfileHollow": v["ProfileHollow"] / 50000,
        "ProfileEnd": 1 - v["ProfileEnd"] / 50000,
        "PathEnd": 1 - v["PathEnd"] / 50000,
        "PathScaleX": (200 - v["PathScaleX"]) / 100,
        "PathScaleY": (200 - v["PathScaleY"]) / 100,
        "PathRevolutions": 1 + Fraction(15, 1000) * v["PathRevolutions"],
    }
    for name in ("PathTwist", "PathTwistBegin", "PathRadiusOffset", "PathTaperX", "PathTaperY", "PathSkew"):
        out[name] = v[name] / 100
    for name in ("PathShearX", "PathShearY"):
        byte = stored[name] % 256
        out[name] = Fraction(byte - 256 if byte > 127 else byte, 100)

    curve, path = stored["ProfileCurve"] % 256, stored["PathCurve"] % 256
    if curve % 16 > 5:
        curve = 1
    if curve // 16 * 16 > 48:
        curve = curve % 16
    if path < 16 or path > 143:
        path = 16
    profile = curve % 16

    if out["ProfileBegin"] >= 1:
        out["ProfileBegin"] = Fraction(0)
    if out["ProfileEnd"] <= 0:
        out["ProfileEnd"] = Fraction(1)
    if out["ProfileHollow"] > 1:
        out["ProfileHollow"] = Fraction(0)
    for kind in ("Profile", "Path"):
        begin = clamp(out[kind + "Begin"], Fraction(0), Fraction(98, 100))
        end = clamp(out[kind + "End"], Fraction(2, 100), Fraction(1))
        if begin > end - Fraction(2, 100):
            begin = end - Fraction(2, 100)
        out[kind + "Begin"], out[kind + "End"] = begin, end
    out["ProfileHollow"] = clamp(out["ProfileHollow"], Fraction(0), Fraction(95, 100))
    if curve // 16 == 2 and profile in (0, 3, 5):
        out["ProfileHollow"] = min(out["ProfileHollow"], Fraction(7, 10))
    for name in ("PathTwist", "PathTwistBegin", "PathTaperX", "PathTaperY"):
        out[name] = clamp(out[name], Fraction(-1), Fraction(1))
    for name in ("PathShearX", "PathShearY"):
        out[name] = clamp(out[name], Fraction(-1, 2), Fraction(1, 2))
    out["PathRevolutions"] = clamp(out["PathRevolutions"], Fraction(1), Fraction(4))
    for name, high in (("PathScaleX", Fraction(1)), ("PathScaleY", Fraction(1, 2))):
        out[name] = clamp(out[name], Fraction(0), Fraction(2))
        if path == 32 and profile != 5:
            out[name] = clamp(out[name], Fraction(5, 100), high)

    if profile == 5 or path != 32:
        out["PathRadiusOffset"] = Fraction(0)
    else:
        y, offset, taper = out["PathScaleY"], out["PathRadiusOffset"], out["PathTaperY"]
        q = abs(taper)
        if (offset < 0 < taper) or (taper < 0 < offset):
            q = Fraction(0)
        most = 1 - y * (1 - q) / (1 - y)
        out["PathRadiusOffset"] = clamp(offset, -most, most)

    skew = clamp(out["PathSkew"], Fraction(-95, 100), Fraction(95, 100))
    if out["PathRevolutions"] > 1:
        least = 1 - 1 / (out["PathRevolutions"] * out["PathScaleX"] + 1)
        if abs(skew) < least:
            skew = -least if skew < 0 else least
    out["PathSkew"] = skew
    return out | {"ProfileCurve": Fraction(curve), "PathCurve": Fraction(path)}


# -- profile ---------------------------------------------------------------------------------------------------------


def corner(k: int, n: int, arc: Fraction, start: Fraction) -> tuple[float, float, Fraction]:
    count = n / arc
    radius = {3: 0.5, 4: 0.707107, 6: 0.525}.get(int(count), 0.5)
    angle = 2 * math.pi * float(k * arc / n + start)
    return radius * math.cos(angle), radius * math.sin(angle), Fraction(k, n)


def chord(u: Fraction, n: int, arc: Fraction, start: Fraction) -> tuple[float, float, Fraction]:
    k = math.floor(u * n)
    part = u * n - k
    a, b = corner(k, n, arc, start), corner(k + 1, n, arc, start)
    return lerp(a[0], b[0], float(part)), lerp(a[1], b[1], float(part)), u


def outline(n: int, arc: Fraction, start: Fraction, begin: Fraction, end: Fraction, split: int) -> list:
    found = []
    if begin * n - math.floor(begin * n) < Fraction(9999, 10000):
        found.append(chord(begin, n, arc, start))
    k = math.floor(begin * n) + 1
    while Fraction(k, n) < end:
        found.append(corner(k, n, arc, start))
        k += 1
    if end * n - (k - 1) > Fraction(1, 10000):
        found.append(chord(end, n, arc, start))
    divided = [found[0]]
    for a, b in pairwise(found):
        for step in range(1, split + 2):
            divided.append(tuple(lerp(x, y, Fraction(step, split + 1)) for x, y in zip(a, b, strict=True)))
    return divided


@dataclass
class Profile:
    points: list
    """x, y, u; u is a fraction."""
    outline: int
    open: bool
    sides: list[tuple[int, int]]
    """First and last point of each outer side."""
    flat_sides: bool
    flat_hole: bool


def profile_of(p: Mapping[str, Fraction], split: int) -> Profile:
    kind, hole, begin, end, hollow = (
        int(p["ProfileCurve"]) % 16,
        int(p["ProfileCurve"]) // 16 * 16,
        p["ProfileBegin"],
        p["ProfileEnd"],
        p["ProfileHollow"],
    )
    n, start, arc, times = {
        1: (4, Fraction(-3, 8), Fraction(1), 4),
        0: (24, Fraction(0), Fraction(1), 1),
        5: (12, Fraction(1, 2), Fraction(1, 2), 1),
    }.get(kind, (3, Fraction(0), Fraction(1), 3))
    is_round = kind in (0, 5)
    points = [(x, y, u * times) for x, y, u in outline(n, arc, start, begin, end, 0 if is_round else split)]
    count = len(points)
    is_open = (end - begin) * arc < Fraction(99, 100)
    if is_open and not hollow:
        points.append((0.0, 0.0, Fraction(0)))
    if kind == 5:
        is_open = end - begin < 1 or hollow > 0
        if not is_open:
            points.append(points[0])
    flat = False
    if hollow:
        table = {
            "square": {0: (4, "flat split"), 16: (24, "smooth"), 32: (4, "flat split"), 48: (3, "flat split")},
            "triangle": {0: (3, "flat split"), 16: (24, "smooth"), 32: (4, "flat split"), 48: (3, "flat split")},
            "circle": {0: (24, "flat"), 16: (24, "flat"), 32: (4, "flat split"), 48: (3, "flat split")},
            "half": {0: (12, "smooth"), 16: (12, "smooth"), 32: (2, "flat split"), 48: (3, "flat split")},
        }
        sides, way = table[{1: "square", 0: "circle", 5: "half"}.get(kind, "triangle")][hole]
        size = hollow / 2 if kind in (2, 3, 4) else hollow
        inner = outline(sides, arc, start, begin, end, split if "split" in way else 0)
        points += [(x * float(size), y * float(size), u * size) for x, y, u in reversed(inner)]
        flat = "flat" in way
    if is_round:
        faces = [(0, count - 1)]
    else:
        number = math.floor(end * n + Fraction(999, 1000)) - 1 - math.floor(begin * n) + 1
        faces = [(k * (split + 1), (k + 1) * (split + 1)) for k in range(number)]
    return Profile(points, count, is_open, faces, not is_round, flat)


# -- path ------------------------------------------------------------------------------------------------------------


def path_of(p: Mapping[str, Fraction], stored_revolutions: int, split: int) -> tuple[list[Row], bool]:
    """Return the rows, and whether the path is open."""
    high = int(p["PathCurve"]) // 16 * 16
    delta = abs(p["PathTwistBegin"] - p["PathTwist"])
    begin, end = p["PathBegin"], p["PathEnd"]
    sx, sy = p["PathScaleX"], p["PathScaleY"]
    twists = p["PathTwistBegin"], p["PathTwist"]
    if high == 64:
        rows = []
        for i in range(5):
            t = Fraction(i, 4)
            a = math.pi * float(p["PathTwist"] * t)
            origin = (0.0, -float(t) / 2 * math.sin(a), -0.5 + float(t) * (0.5 * math.cos(a) + 0.5))
            rows.append(Row(t, origin, a, 0.0, float(lerp(1, sx, t)), float(lerp(1, sy, t))))
        return rows, True
    if high in (32, 48):
        count = circle_rows(delta, stored_revolutions)
        if high == 48:
            count = 24
        steps = [begin, *(Fraction(k, count) for k in range(count + 1) if begin < Fraction(k, count) < end), end]
        r0 = r1 = (1 - sy) / 2
        offset = p["PathRadiusOffset"]
        if offset < 0:
            r0 *= 1 + offset
        else:
            r1 *= 1 - offset
        rows = []
        for number, t in enumerate(steps):
            r = float(lerp(r0, r1, t))
            alpha = 2 * math.pi * float(p["PathRevolutions"] * t)
            c, s = r * math.cos(alpha), r * math.sin(alpha)
            x = float(p["PathShearX"]) * s + float(p["PathSkew"] * (t - Fraction(1, 2)))
            if high == 48:
                x = -0.5 if number % 2 else 0.5
            rows.append(
                Row(
                    t,
                    (x, c + float(p["PathShearY"]) * s, s),
                    alpha,
                    2 * math.pi * float(lerp(*twists, t)) - math.pi,
                    float(sx * (1 - abs(p["PathSkew"])) * taper_factor(p["PathTaperX"], t)),
                    float(sy * taper_factor(p["PathTaperY"], t)),
                )
            )
        small = Fraction(1, 1000)
        is_open = (
            end - begin < 1
            or abs(p["PathSkew"]) > small
            or any(abs(taper_factor(p[k], 1) - taper_factor(p[k], 0)) > small for k in ("PathTaperX", "PathTaperY"))
            or abs(r1 - r0) > small
            or twists[0] != twists[1]
        )
        return rows, is_open
    number = max(math.floor(Fraction(1225, 100) * delta) + 2, split + 2)
    shear = p["PathShearX"], p["PathShearY"]
    if high == 128:
        begin, end, number, shear = Fraction(0), Fraction(1), min(number, 9), (Fraction(0), Fraction(0))
    rows = []
    for i in range(number):
        t = lerp(begin, end, Fraction(i, number - 1))
        rows.append(
            Row(
                t,
                (float(shear[0] * t), float(shear[1] * t), float(t) - 0.5),
                0.0,
                math.pi * float(lerp(*twists, t)),
                float(lerp(min(1, 2 - sx), min(1, sx), t)),
                float(lerp(min(1, 2 - sy), min(1, sy), t)),
            )
        )
    return rows, True


def circle_rows(delta: Fraction, stored_revolutions: int) -> int:
    v = clamp(stored_revolutions, 0, 200)
    revolutions = f32(1 + f32(f32(0.015) * v))
    return math.floor(f32(math.floor(24 + Fraction(1225, 100) * delta) * revolutions))


def taper_factor(taper: Fraction, t):
    return lerp(Fraction(1), 1 - taper, t) if taper >= 0 else lerp(1 + taper, Fraction(1), t)


def placed(row: Row, point) -> Point:
    x, y = row.width * point[0], row.height * point[1]
    x, y = x * math.cos(row.beta) - y * math.sin(row.beta), x * math.sin(row.beta) + y * math.cos(row.beta)
    y, z = y * math.cos(row.alpha), y * math.sin(row.alpha)
    return row.origin[0] + x, row.origin[1] + y, row.origin[2] + z


# -- faces -----------------------------------------------------------------------------------------------------------


def faces_of(stored: Mapping[str, int]) -> list[Face]:
    p = limited(stored)
    curve, path_curve = int(p["ProfileCurve"]), int(p["PathCurve"])
    is_scaled = p["PathScaleX"] != 1 or p["PathScaleY"] != 1
    split = 0 if path_curve == 16 and curve in (1, 2, 3, 4) and is_scaled else 2
    profile = profile_of(p, split)
    rows, path_open = path_of(p, stored["PathRevolutions"], split)
    hollow = p["ProfileHollow"] > 0
    total = len(profile.points)

    faces = []
    if path_open:
        faces.append(cap("top", p, profile, rows, split))
    for first, last in profile.sides:
        faces.append(side("outer", list(range(first, last + 1)), profile, rows, profile.flat_sides))
    if hollow:
        faces.append(side("inner", list(range(profile.outline, total)), profile, rows, profile.flat_hole))
    if path_open:
        faces.append(cap("bottom", p, profile, rows, split))
    if profile.open:
        faces.append(side("cut", [total - 1, total], profile, rows, True))
        faces.append(side("cut", [profile.outline - 1, profile.outline], profile, rows, True))

    for face in faces:
        if face.role in ("top", "bottom"):
            row = rows[-1 if face.role == "top" else 0]
            sign = 1 if face.role == "top" else -1
            normal = (0.0, -sign * math.sin(row.alpha), sign * math.cos(row.alpha))
            face.normals = [normal] * len(face.points)
        else:
            smooth(face, len(rows), path_open, profile.open, path_curve == 32 and curve % 16 == 5)
    return faces


def side(role: str, indices: list[int], profile: Profile, rows: list[Row], flat: bool) -> Face:
    total = len(profile.points)
    columns = []
    less = math.floor(profile.points[indices[0]][2]) if flat and role != "cut" else 0
    for place, index in enumerate(indices):
        if role == "cut":
            u = Fraction(place)
        elif index >= total:
            u = Fraction(1) - less
        else:
            u = profile.points[index][2] - less
        columns.append((index % total, u))
    if role == "inner" and flat:
        doubled = [columns[0]]
        for column in columns[1:]:
            doubled += [column, column]
        columns = [*doubled, columns[-1] if profile.open else columns[0]]
    face = Face(role)
    for row in rows:
        for index, u in columns:
            face.points.append(placed(row, profile.points[index]))
            face.uvs.append((float(u), float(row.t)))
    face.triangles = grid_triangles(len(rows), len(columns))
    return face


def grid_triangles(height: int, width: int) -> list[Triangle]:
    found = []
    for t in range(height - 1):
        for s in range(width - 1):
            at = t * width + s
            found.append((at, at + width + 1, at + width))
            found.append((at, at + 1, at + width + 1))
    return found


def cap(role: str, p: Mapping[str, Fraction], profile: Profile, rows: list[Row], split: int) -> Face:
    points = profile.points
    row = rows[-1] if role == "top" else rows[0]
    face = Face(role)
    hollow = p["ProfileHollow"] > 0
    uncut = p["PathBegin"] == 0 and p["PathEnd"] == 1
    if p["ProfileCurve"] == 1 and p["PathCurve"] == 16 and uncut and not profile.open and not hollow:
        corners = [points[k * (split + 1)] for k in range(4)]
        places = [placed(row, c) for c in corners]
        uvs = [(c[0] + 0.5, 0.5 - c[1]) for c in corners]
        chosen = [uvs[k] for k in ((3, 2, 0) if role == "top" else (0, 1, 3))]
        for b in range(split + 2):
            for a in range(split + 2):
                i, j = a / (split + 1), b / (split + 1)
                face.points.append(linear([places[0], places[1], places[3]], i, j))
                face.uvs.append(linear(chosen, i, j))
        triangles = grid_triangles(split + 2, split + 2)
    else:
        face.points = [placed(row, point) for point in points]
        face.uvs = [(x + 0.5, y + 0.5) if role == "top" else (x + 0.5, 0.5 - y) for x, y, _ in points]
        count = len(points)
        if hollow:
            triangles = zipped(points)
        elif profile.open:
            triangles = [(count - 1, i, i + 1) for i in range(count - 2)]
        else:
            triangles = [(count, i, i + 1) for i in range(count - 1)]
            face.points.append(tuple((min(v) + max(v)) / 2 for v in zip(*face.points, strict=True)))
            face.uvs.append(tuple((min(v) + max(v)) / 2 for v in zip(*face.uvs, strict=True)))
    face.triangles = triangles if role == "top" else [(a, c, b) for a, b, c in triangles]
    return face


def linear(three, i: float, j: float):
    return tuple(c0 + i * (c1 - c0) + j * (c3 - c0) for c0, c1, c3 in zip(*three, strict=True))


def zipped(points) -> list[Triangle]:
    def area(a: int, b: int, c: int) -> float:
        (x0, y0, _), (x1, y1, _), (x2, y2, _) = points[a], points[b], points[c]
        return (x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0)

    def distance(a: int, b: int) -> float:
        return sum(float(x - y) ** 2 for x, y in zip(points[a], points[b], strict=True))

    found = []
    i, k = 0, len(points) - 1
    while k - i > 1:
        a_allowed = not (area(i, i + 1, k) < 0 or area(k, i + 1, k - 1) < 0)
        b_allowed = not (area(k, i, k - 1) < 0 or area(i, k - 1, i + 1) < 0)
        if a_allowed and (not b_allowed or distance(i, i + 1) < distance(k, k - 1)):
            found.append((i, i + 1, k))
            i += 1
        else:
            found.append((i, k - 1, k))
            k -= 1
    return found


# -- normals ---------------------------------------------------------------------------------------------------------


def add(a: Point, b: Point) -> Point:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def cross(a: Point, b: Point, c: Point) -> Point:
    u, v = [b[k] - a[k] for k in range(3)], [c[k] - a[k] for k in range(3)]
    return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]


def sums_of(points: list[Point], triangles: list[Triangle]) -> list[Point]:
    """Add each triangle's normal to its corners, and once more to the corner (s + 1, t + 1) of its cell."""
    sums = [(0.0, 0.0, 0.0)] * len(points)
    for number, triangle in enumerate(triangles):
        normal = cross(*(points[k] for k in triangle))
        for k in (*triangle, triangle[2 if number % 2 else 1]):
            sums[k] = add(sums[k], normal)
    return sums


def smooth(face: Face, height: int, path_open: bool, profile_open: bool, half_on_circle: bool) -> None:
    width = len(face.points) // height
    sums = sums_of(face.points, face.triangles)

    def join(a: int, b: int) -> None:
        sums[a] = sums[b] = add(sums[a], sums[b])

    def coincide(column: int) -> bool:
        a, b = face.points[column], face.points[(height - 2) * width + column]
        return math.dist(a, b) < 0.001

    if not path_open:
        for s in range(width):
            join(s, (height - 1) * width + s)
    if not profile_open and not coincide(0):
        for t in range(height):
            join(t * width, t * width + width - 1)
    if half_on_circle:
        for column, x in ((0, 1.0), (width - 1, -1.0)):
            if coincide(column):
                for t in range(height):
                    sums[t * width + column] = (x, 0.0, 0.0)
    face.normals = sums
