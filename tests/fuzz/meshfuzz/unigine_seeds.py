"""Small UNIGINE files of every version, put together value by value from the format page, not by our writer."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from .tokens import Token, block, cint, floats, i32, i64, lz4, magic, offset, plain, shorts, text, text32

Row = list[Token]
Bones = Sequence[tuple[str, int]]

ANIMATED = ("ms10", "ms11", "ms12")
STREAMS = (*ANIMATED, "ms13")
BLOCKS = ("ms14", "ms15", "sk10")

BONES: Bones = (("Root", -1), ("Arm", 0), ("Hand", 3), ("Wrist", 1), ("Кость", -1))
_GUID = "0123456789abcdef" * 2 + "01234567"


def bounds() -> Token:
    return floats(0, 0, 0, 1, 1, 1, 0.5, 0.5, 0.5, 0.9)


def transform(index: int = 0) -> Token:
    return floats(0.1 * index, 0, 1, 0, 0, 0.6, 0.8, 1, 1, 1 + index)


def bone_table(bones: Bones, count: Callable[[int], Token] = cint) -> Row:
    row = [count(len(bones))]
    for name, parent in bones:
        row += [text(name), shorts(parent)]
    return row


def transforms(bones: Bones) -> Row:
    return [transform(index) for index in range(len(bones))]


def positions(count: int, moved: float = 0.0) -> Token:
    return floats(*(value for i in range(count) for value in (math.sin(i), math.cos(i) + moved, i * 0.1)))


def tangents(count: int, version: str) -> Token:
    if version == "ms10":
        return Token("bytes", struct.pack("<hhhb", 100, -200, 16000, -127) * count)
    return shorts(*([100, -200, 16000, -28000] * count))


def weights(count: int) -> Row:
    row = [cint(count)]
    for vertex in range(count):
        held = vertex % 5
        row += [plain(held)] + [shorts(slot, 65535 // held) for slot in range(held)]
    return row


def attributes(nt: int, *, full: bool) -> Row:
    """Return UV0, UV1 and colours with their counts."""
    if not full:
        return [cint(0), cint(0), cint(0)]
    uvs = floats(*(math.sin(i) for i in range(2 * nt)))
    return [cint(nt), uvs, cint(nt), uvs, cint(nt), plain(*(i % 256 for i in range(4 * nt)))]


def indices(nv: int, nt: int, triangles: int) -> tuple[Token, Token]:
    """Return coordinate and triangle vertices of the corners, in the widths of their pools."""
    found = []
    for pool in (nv, nt):
        values = [(3 * t + k) % pool for t in range(triangles) for k in range(3)]
        found.append(plain(*values) if pool < 256 else shorts(*values))
    return found[0], found[1]


def stream_surface_body(version: str, nv: int, nt: int, triangles: int, targets: int, *, skinned: bool) -> Row:
    row: Row = []
    for number in range(targets):
        row += [cint(nv), positions(nv, number), cint(nt), tangents(nt, version)]
    row += weights(nv) if skinned else [cint(0)]
    row += attributes(nt, full=skinned)
    c_indices, t_indices = indices(nv, nt, triangles)
    return [*row, cint(3 * triangles), c_indices, cint(3 * triangles), t_indices]


def embedded_frames(bones: int, mask: int, frames: int) -> Row:
    row = [cint(bones), shorts(*range(bones)), plain(mask), cint(frames)]
    for frame in range(frames):
        for bone in range(bones):
            flags = mask if frame == 0 else mask & (frame + bone)
            row += [plain(flags), *_flagged(flags)]
    return row


def _flagged(flags: int) -> Row:
    row = [floats(0.5) for bit in (0, 1, 2) if flags >> bit & 1]
    row += [shorts(0, 0, 19660, 26213)] if flags & 8 else []
    return row + [floats(1.5) for bit in (4, 5, 6) if flags >> bit & 1]


def stream(version: str, shapes: Sequence[tuple[int, int, int, int]], bones: Bones = (), frames: int = 0) -> Row:
    """Return an ms10 to ms13; a shape is (vertices, triangle vertices, triangles, targets)."""
    lightmap = [plain(1, 3)] if version in ("ms12", "ms13") else []
    animated = frames > 0 and version in ANIMATED
    row = [magic(version), bounds(), *bone_table(bones)]
    if version in ANIMATED:
        row += [cint(1), text("wave")] if animated else [cint(0)]
    row.append(cint(len(shapes)))
    for number, (_, _, _, targets) in enumerate(shapes):
        row += [text(f"surface_{number}"), *lightmap, bounds(), cint(targets)]
        row += [text("" if target == 0 else f"shape {target}") for target in range(targets)]
    row += [magic(version), *transforms(bones)]
    if animated:
        row += embedded_frames(len(bones), 0x7F, frames)
    for nv, nt, triangles, targets in shapes:
        row += stream_surface_body(version, nv, nt, triangles, targets, skinned=bool(bones))
    return [*row, magic(version)]


def collision(triangles: int) -> Row:
    """Return a tree of one leaf with all triangles."""
    return [
        cint(triangles),
        plain(*[7] * triangles),
        cint(triangles),
        *[cint(3 * number) for number in range(triangles)],
        cint(1),
        plain(0),
        cint(-1),
        cint(-1),
        cint(0),
        cint(triangles),
        floats(-1, -1, -1, 1, 1, 9),
        floats(0),
    ]


def blocks(version: str, shapes: Sequence[tuple[int, int, int, int]], bones: Bones = (), *, packed: bool = True) -> Row:
    """Return an ms14, ms15 or sk10."""
    pack = lz4 if packed else None
    row = [magic(version), cint(4), bounds()]
    if version == "ms14":
        row += bone_table(bones)
    if version == "sk10":
        row += [*bone_table(bones, i32), i32(len(bones)), *transforms(bones), i32(len(bones)), *transforms(bones)]
        row += [text32(_GUID), text32("guid://" + _GUID)]
    row.append(cint(len(shapes)))
    for number, (nv, _, triangles, targets) in enumerate(shapes):
        row.append(text(f"surface_{number}"))
        row += [plain(1, 3)] if version != "sk10" else []
        row += [cint(3 * triangles), cint(3 * triangles), bounds()]
        if version == "ms15":
            row.append(cint(nv))
        else:
            row.append(cint(targets))
            for target in range(targets):
                row += [text("" if target == 0 else f"shape {target}"), cint(nv)]
    row += [i64(4096), magic(version)]
    row += transforms(bones) if version == "ms14" else []
    row += [block(_geometry(version, shape, skinned=bool(bones)), pack) for shape in shapes]
    row.append(magic(version))
    if version != "sk10":
        row += [block(collision(triangles), pack) for _, _, triangles, _ in shapes]
        row.append(magic(version))
    return [*row, *[offset(number) for number in range(len(shapes))], magic(version)]


def _geometry(version: str, shape: tuple[int, int, int, int], *, skinned: bool) -> Row:
    nv, nt, triangles, targets = shape
    row: Row = []
    for number in range(targets):
        row += [positions(nv, number), cint(nt), tangents(nt, version)]
    if version != "ms15":
        row += weights(nv) if skinned else [cint(0)]
    return [*row, *attributes(nt, full=True), *indices(nv, nt, triangles)]


def soup() -> Row:
    name = b"box" + bytes(125)
    corners = [floats(math.sin(i), math.cos(i), i * 0.1, 0, 0, 1, 0.5, 0.5) for i in range(6)]
    return [magic("mr02"), i32(1), Token("bytes", name), i32(6), *corners]


def skeleton(bones: Bones = BONES) -> Row:
    profile = [i32(1), text32("upper body"), i32(len(bones)), floats(*[0.5] * len(bones))]
    retargeting = [Token("bytes", struct.pack("<if", 2, -1.0)) for _ in bones]
    row = [magic("sn10"), i32(len(bones)), *bone_table(bones)[1:], *transforms(bones), magic("sn10")]
    return [*row, *profile, *profile, *profile, i32(len(bones)), *retargeting, magic("sn10")]


def quantized(bones: Bones, mask: int, frames: int) -> Row:
    row = [magic("an10"), bounds(), *bone_table(bones), cint(1), text("Take 001"), magic("an10"), *transforms(bones)]
    row += [cint(len(bones)), shorts(*range(len(bones)))]
    row += [floats(-1, -1, -1), floats(3, 3, 3), floats(0, 0, 0), floats(2, 2, 2), plain(mask), cint(frames)]
    for frame in range(frames):
        for bone in range(len(bones)):
            flags = mask if frame == 0 else mask & (frame + bone)
            row.append(plain(flags))
            row += [shorts(30000 + frame) for bit in (0, 1, 2) if flags >> bit & 1]
            row += [shorts(0, 0, 19660, 26213)] if flags & 8 else []
            row += [shorts(40000) for bit in (4, 5, 6) if flags >> bit & 1]
    return [*row, magic("an10")]


def flagged(version: str, bones: Bones, frames: int) -> Row:
    """Return an an11, an12 or an13."""
    count = cint if version == "an11" else i32
    row = [magic(version), *bone_table(bones, count)]
    listed = [cint(len(bones)), shorts(*range(len(bones)))]
    if version == "an11":
        row += [magic(version), *transforms(bones), *listed, cint(frames)]
    else:
        row += [text32(_GUID), text32("guid://" + _GUID), *listed, i32(30), plain(1)]
        row += [i32(0), i32(0), i32(0)] if version == "an13" else []
        row += [magic(version), cint(frames)]
    for frame in range(frames):
        for bone in range(len(bones)):
            flags = (frame + bone) % 8
            row.append(plain(flags))
            row += [floats(0.1, 0.2, 0.3)] if flags & 1 else []
            row += [floats(0, 0, 0.6, 0.8)] if flags & 2 else []
            row += [floats(1, 2, 1)] if flags & 4 else []
    return [*row, magic(version)]


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
