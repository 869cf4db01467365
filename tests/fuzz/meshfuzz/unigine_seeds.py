"""Small UNIGINE files of every version, put together value by value from the format page, not by our writer."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .tokens import Token, block, cint, floats, i32, i64, lz4, magic, offset, plain, shorts, text, text32

Row = list[Token]
Bones = Sequence[tuple[str, int]]

ANIMATED = ("ms10", "ms11", "ms12")
STREAMS = (*ANIMATED, "ms13")
BLOCKS = ("ms14", "ms15", "sk10")

BONES: Bones = (("Root", -1), ("Arm", 0), ("Hand", 3), ("Wrist", 1), ("Кость", -1))
GUID = "0123456789abcdef" * 2 + "01234567"
BOUNDS = floats(0, 0, 0, 1, 1, 1, 0.5, 0.5, 0.5, 0.9)
"""Least and most corner of a box, middle and radius of a sphere."""


@dataclass(frozen=True)
class Rig:
    """The bones of a file; ``rest`` are the poses of sk10 that differ from those of binding."""

    bones: Bones = ()
    poses: Sequence[Token] = ()
    rest: Sequence[Token] = ()
    path: str = "guid://" + GUID

    def table(self, count: Callable[[int], Token] = cint) -> Row:
        row = [count(len(self.bones))]
        for name, parent in self.bones:
            row += [text(name), shorts(parent)]
        return row


@dataclass(frozen=True)
class Surface:
    """The values of a surface of a mesh."""

    name: str
    targets: Sequence[tuple[str, Token, Token]]
    """Name, positions and tangents of the base and of each morph target."""
    vertices: int
    """Coordinate vertices of each target."""
    tangents: int
    """Triangle vertices."""
    weights: Sequence[Sequence[tuple[int, int]]] = ()
    """Bone and weight of each influence of each coordinate vertex."""
    attributes: Sequence[Token | None] = (None, None, None)
    """UV0, UV1 and colours."""
    c_indices: Token = field(default_factory=plain)
    t_indices: Token = field(default_factory=plain)
    triangles: int = 0
    collision: Sequence[Token] = ()
    bounds: Token = BOUNDS

    def head(self, version: str) -> Row:
        return [text(self.name), *([] if version in ("ms10", "ms11", "sk10") else [plain(1, 3)])]

    def weight_row(self) -> Row:
        row = [cint(len(self.weights))]
        for held in self.weights:
            row += [plain(len(held)), *(shorts(*pair) for pair in held)]
        return row

    def attribute_row(self) -> Row:
        row: Row = []
        for values in self.attributes:
            row += [cint(0)] if values is None else [cint(self.tangents), values]
        return row


def rig(bones: Bones) -> Rig:
    poses = [floats(0.1 * index, 0, 1, 0, 0, 0.6, 0.8, 1, 1, 1 + index) for index in range(len(bones))]
    return Rig(bones, poses, poses)


def patch(number: int, version: str, shape: tuple[int, int, int, int], *, skinned: bool) -> Surface:
    """Return a surface; a shape is (vertices, triangle vertices, triangles, targets)."""
    nv, nt, triangles, targets = shape
    tangents = struct.pack("<hhhb", 100, -200, 16000, -127) * nt
    uvs = floats(*(math.sin(i) for i in range(2 * nt)))
    full = (uvs, uvs, plain(*(i % 256 for i in range(4 * nt))))
    return Surface(
        f"surface_{number}",
        [
            (
                f"shape {target}" if target else "",
                floats(*(value for i in range(nv) for value in (math.sin(i), math.cos(i) + target, i * 0.1))),
                Token("bytes", tangents) if version == "ms10" else shorts(*([100, -200, 16000, -28000] * nt)),
            )
            for target in range(targets)
        ],
        nv,
        nt,
        [[(slot, 65535 // (vertex % 5)) for slot in range(vertex % 5)] for vertex in range(nv)] if skinned else (),
        full if skinned or version in BLOCKS else (None, None, None),
        *(_indices(pool, triangles) for pool in (nv, nt)),
        triangles,
        collision([7] * triangles),
    )


def _indices(pool: int, triangles: int) -> Token:
    """Return the vertices of the corners, in the width of their pool."""
    values = [(3 * t + k) % pool for t in range(triangles) for k in range(3)]
    return plain(*values) if pool < 256 else shorts(*values)


def embedded_frames(bones: int, mask: int, frames: int) -> Row:
    row = [cint(bones), shorts(*range(bones)), plain(mask), cint(frames)]
    for frame in range(frames):
        for bone in range(bones):
            flags = mask if frame == 0 else mask & (frame + bone)
            row += [plain(flags), *[floats(0.5) for bit in (0, 1, 2) if flags >> bit & 1]]
            row += [shorts(0, 0, 19660, 26213)] if flags & 8 else []
            row += [floats(1.5) for bit in (4, 5, 6) if flags >> bit & 1]
    return row


def stream(version: str, shapes: Sequence[tuple[int, int, int, int]], bones: Bones = (), frames: int = 0) -> Row:
    """Return an ms10 to ms13 of made values."""
    surfaces = [patch(number, version, shape, skinned=bool(bones)) for number, shape in enumerate(shapes)]
    animated = frames > 0 and version in ANIMATED
    return stream_of(version, surfaces, rig(bones), embedded_frames(len(bones), 0x7F, frames) if animated else [])


def stream_of(
    version: str, surfaces: Sequence[Surface], rig: Rig, animation: Sequence[Token] = (), bounds: Token = BOUNDS
) -> Row:
    """Return an ms10 to ms13."""
    row = [magic(version), bounds, *rig.table()]
    if version in ANIMATED:
        row += [cint(1), text("wave")] if animation else [cint(0)]
    row.append(cint(len(surfaces)))
    for surface in surfaces:
        row += [*surface.head(version), surface.bounds, cint(len(surface.targets))]
        row += [text(name) for name, _, _ in surface.targets]
    row += [magic(version), *rig.poses, *animation]
    for surface in surfaces:
        for _, positions, tangents in surface.targets:
            row += [cint(surface.vertices), positions, cint(surface.tangents), tangents]
        row += [*surface.weight_row(), *surface.attribute_row()]
        corners = cint(3 * surface.triangles)
        row += [corners, surface.c_indices, corners, surface.t_indices]
    return [*row, magic(version)]


def collision(edges: Sequence[int], box: Sequence[float] = (-1, -1, -1, 1, 1, 9)) -> Row:
    """Return a tree of one leaf with all triangles; ``edges`` has a byte for each."""
    triangles = cint(len(edges))
    firsts = [cint(3 * number) for number in range(len(edges))]
    row = [triangles, plain(*edges), triangles, *firsts]
    return [*row, cint(1), plain(0), cint(-1), cint(-1), cint(0), triangles, floats(*box), floats(0)]


def blocks(version: str, shapes: Sequence[tuple[int, int, int, int]], bones: Bones = (), *, packed: bool = True) -> Row:
    """Return an ms14, ms15 or sk10 of made values."""
    surfaces = [patch(number, version, shape, skinned=bool(bones)) for number, shape in enumerate(shapes)]
    return blocks_of(version, surfaces, rig(bones), pack=lz4 if packed else None)


def blocks_of(
    version: str,
    surfaces: Sequence[Surface],
    rig: Rig,
    *,
    pack: Callable[[bytes], bytes] | None = None,
    memory: int = 4096,
    bounds: Token = BOUNDS,
) -> Row:
    """Return an ms14, ms15 or sk10; ``memory`` is the use that the file estimates."""
    row = [magic(version), cint(4), bounds]
    if version == "ms14":
        row += rig.table()
    if version == "sk10":
        row += [*rig.table(i32), i32(len(rig.poses)), *rig.poses, i32(len(rig.rest)), *rig.rest]
        row += [text32(GUID), text32(rig.path)]
    row.append(cint(len(surfaces)))
    for surface in surfaces:
        corners = cint(3 * surface.triangles)
        row += [*surface.head(version), corners, corners, surface.bounds]
        if version == "ms15":
            row.append(cint(surface.vertices))
        else:
            row.append(cint(len(surface.targets)))
            for name, _, _ in surface.targets:
                row += [text(name), cint(surface.vertices)]
    row += [i64(memory), magic(version)]
    row += rig.poses if version == "ms14" else []
    row += [block(geometry(version, surface), pack) for surface in surfaces]
    row.append(magic(version))
    if version != "sk10":
        row += [block(surface.collision, pack) for surface in surfaces]
        row.append(magic(version))
    return [*row, *[offset(number) for number in range(len(surfaces))], magic(version)]


def geometry(version: str, surface: Surface) -> Row:
    """Return the content of a block of geometry."""
    row: Row = []
    for _, positions, tangents in surface.targets:
        row += [positions, cint(surface.tangents), tangents]
    if version != "ms15":
        row += surface.weight_row()
    return [*row, *surface.attribute_row(), surface.c_indices, surface.t_indices]


_CORNERS = [(math.sin(i), math.cos(i), i * 0.1, 0, 0, 1, 0.5, 0.5) for i in range(6)]


def soup(name: bytes = b"box", corners: Sequence[Sequence[float]] = _CORNERS) -> Row:
    """Return an mr02; a corner is position, normal and UV."""
    rows = [floats(*corner) for corner in corners]
    return [magic("mr02"), i32(1), Token("bytes", name.ljust(128, b"\0")), i32(len(rows)), *rows]


def profile(name: str, values: Sequence[float]) -> Row:
    """Return a mask or profile of a skeleton, with a value for each bone."""
    return [text32(name), i32(len(values)), floats(*values)]


def skeleton(bones: Bones = BONES) -> Row:
    same = [profile("upper body", [0.5] * len(bones))]
    return skeleton_of(rig(bones), [same, same, same], [(2, -1.0)] * len(bones))


def skeleton_of(rig: Rig, profiles: Sequence[Sequence[Row]], retargeting: Sequence[tuple[int, float]]) -> Row:
    """Return a skeleton with blend masks, time profiles and weight profiles; mode and length of each bone."""
    row = [magic("sn10"), *rig.table(i32), *rig.poses, magic("sn10")]
    for group in profiles:
        row += [i32(len(group)), *(token for listed in group for token in listed)]
    row += [i32(len(retargeting)), *(Token("bytes", struct.pack("<if", *pair)) for pair in retargeting)]
    return [*row, magic("sn10")]


def quantized(bones: Bones, mask: int, frames: int) -> Row:
    """Return an an10 of made values."""
    row: Row = []
    for frame in range(frames):
        for bone in range(len(bones)):
            flags = mask if frame == 0 else mask & (frame + bone)
            row.append(plain(flags))
            row += [shorts(30000 + frame) for bit in (0, 1, 2) if flags >> bit & 1]
            row += [shorts(0, 0, 19660, 26213)] if flags & 8 else []
            row += [shorts(40000) for bit in (4, 5, 6) if flags >> bit & 1]
    ranges = [floats(-1, -1, -1), floats(3, 3, 3), floats(0, 0, 0), floats(2, 2, 2)]
    return quantized_of(rig(bones), range(len(bones)), [*ranges, plain(mask), cint(frames), *row], "Take 001")


def quantized_of(rig: Rig, animated: Sequence[int], keys: Row, name: str, bounds: Token = BOUNDS) -> Row:
    """Return an an10; ``keys`` begin with the ranges."""
    row = [magic("an10"), bounds, *rig.table(), cint(1), text(name), magic("an10"), *rig.poses]
    return [*row, cint(len(animated)), shorts(*animated), *keys, magic("an10")]


def flagged(version: str, bones: Bones, frames: int) -> Row:
    """Return an an11, an12 or an13 of made values."""
    keys = [cint(frames)]
    for frame in range(frames):
        for bone in range(len(bones)):
            flags = (frame + bone) % 8
            keys.append(plain(flags))
            keys += [floats(0.1, 0.2, 0.3)] if flags & 1 else []
            keys += [floats(0, 0, 0.6, 0.8)] if flags & 2 else []
            keys += [floats(1, 2, 1)] if flags & 4 else []
    return flagged_of(version, rig(bones), range(len(bones)), keys)


def flagged_of(version: str, rig: Rig, animated: Sequence[int], keys: Row, *, fps: int = 30, motion: int = 1) -> Row:
    """Return an an11, an12 or an13; ``motion`` is the mode of root motion."""
    row = [magic(version), *rig.table(cint if version == "an11" else i32)]
    listed = [cint(len(animated)), shorts(*animated)]
    if version == "an11":
        row += [magic(version), *rig.poses, *listed]
    else:
        row += [text32(GUID), text32(rig.path), *listed, i32(fps), plain(motion)]
        row += [i32(0), i32(0), i32(0)] if version == "an13" else []
        row.append(magic(version))
    return [*row, *keys, magic(version)]


def meshes() -> dict[str, Row]:
    """Return one or several files of each version of a mesh, by name."""
    found = {"mr02": soup()}
    for version in STREAMS:
        found[f"{version} plain"] = stream(version, [(4, 6, 2, 1)])
        found[f"{version} skinned"] = stream(version, [(9, 20, 7, 3), (5, 5, 1, 1)], BONES, frames=3)
        found[f"{version} empty"] = stream(version, [])
    found["ms13 wide"] = stream("ms13", [(300, 260, 90, 1)])
    for version in BLOCKS:
        bones = () if version == "ms15" else BONES
        targets = 1 if version == "ms15" else 2
        found[f"{version} packed"] = blocks(version, [(30, 40, 20, targets), (5, 5, 1, 1)], bones)
        found[f"{version} stored"] = blocks(version, [(9, 20, 7, targets)], bones, packed=False)
    found["ms14 wide"] = blocks("ms14", [(300, 260, 90, 1)])
    return found


def animations() -> dict[str, Row]:
    found = {f"an10 {mask:02x}": quantized(BONES, mask, 5) for mask in (0x07, 0x0F, 0x7F)}
    for version in ("an11", "an12", "an13"):
        found[version] = flagged(version, BONES, 6)
        found[f"{version} without frames"] = flagged(version, BONES, 0)
    return found


def skeletons() -> dict[str, Row]:
    return {"sn10": skeleton()}


def _chain(count: int) -> Bones:
    return [(f"b{index}", index - 1) for index in range(count)]


_TRIANGLE = (3, 3, 1, 1)
CROWDS: dict[str, Callable[[int], Row]] = {
    "chain of bones": lambda count: stream("ms13", [(4, 6, 2, 1)], _chain(count)),
    "roots": lambda count: stream("ms12", [(4, 6, 2, 1)], [(f"b{index}", -1) for index in range(count)]),
    "bones of one name": lambda count: flagged("an11", [("bone", -1)] * count, 1),
    "chain in an animation": lambda count: flagged("an11", _chain(count), 2),
    "surfaces": lambda count: stream("ms13", [_TRIANGLE] * count),
    "surfaces in blocks": lambda count: blocks("ms14", [_TRIANGLE] * (count // 16), packed=False),
    "targets": lambda count: stream("ms13", [(3, 3, 1, count)]),
    "frames": lambda count: flagged("an11", [("b", -1)], count),
    "bones of a skeleton": lambda count: skeleton(_chain(count)),
}
"""Files with very many of one thing, all of them valid but for a limit of the engine."""
