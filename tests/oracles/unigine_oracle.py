"""An independent reading of UNIGINE files: docs/formats/unigine.md and ``struct``, none of our code.

Everything is read one value after the other, slowly and plainly, so that it can be held against the page line by
line. numpy only holds what was read. Whatever the page calls impossible raises ``WrongFile``; every file has to be
consumed to its last byte. ``Stream.compact`` notes each compact integer with the bytes it took, ``Frames.flags`` each
flag, so that a writer can be judged by more than what it means.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

STREAMED = (b"ms10", b"ms11", b"ms12", b"ms13")
BLOCKED = (b"ms14", b"ms15", b"sk10")
ANIMATED = (b"an10", b"an11", b"an12", b"an13")


class WrongFile(Exception):
    """The bytes are not what the page says."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise WrongFile(what)


@dataclass
class Stream:
    """The bytes of a file or block, and how far they were read; section 2."""

    data: bytes
    at: int = 0
    compact: list[tuple[int, int]] = field(default_factory=list)
    """Value and length in bytes of every compact integer."""

    def take(self, count: int) -> bytes:
        require(0 <= count <= len(self.data) - self.at, f"{count} bytes wanted at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def one(self, code: str) -> int | float:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def many(self, code: str, count: int) -> tuple[int | float, ...]:
        size = struct.calcsize("<" + code)
        require(0 <= count * size <= len(self.data) - self.at, f"{count} of {code} wanted at {self.at}")
        return struct.unpack(f"<{count}{code}", self.take(count * size))

    def cint(self) -> int:
        """Section 2.1."""
        start = self.at
        byte = self.take(1)[0]
        negative = byte & 0x40
        magnitude, shift = byte & 0x3F, 6
        while byte & 0x80:
            byte = self.take(1)[0]
            magnitude |= (byte & 0x7F) << shift
            shift += 7
            require(self.at - start <= 5, f"compact integer of more than 5 bytes at {start}")
        require(magnitude <= 2**31 - 1, f"compact integer too large at {start}")
        value = -magnitude if negative else magnitude
        self.compact.append((value, self.at - start))
        return value

    def count(self) -> int:
        value = self.cint()
        require(value >= 0, f"count {value} before {self.at}")
        return value

    def characters(self, length: int) -> str:
        require(0 <= length <= 4096, f"a string of {length} bytes at {self.at}")
        if length == 0:
            return ""
        raw = self.take(length)
        require(raw[-1] == 0 and 0 not in raw[:-1], f"a string does not end where it says, before {self.at}")
        return raw[:-1].decode("utf-8")

    def string(self) -> str:
        """Section 2.2."""
        return self.characters(self.count())

    def string32(self) -> str:
        return self.characters(int(self.one("i")))

    def magic(self, expected: bytes) -> None:
        require(self.take(4) == expected, f"{expected!r} is missing before {self.at}")

    def xforms(self, count: int) -> Floats:
        """Section 2.4: (count, 10) translation, rotation x y z w, scale."""
        return np.array(self.many("f", 10 * count), np.float32).reshape(count, 10)

    def floats(self, count: int, width: int) -> Floats:
        return np.array(self.many("f", count * width), np.float32).reshape(count, width)

    def end(self) -> None:
        require(self.at == len(self.data), f"{len(self.data) - self.at} bytes follow")


@dataclass
class Target:
    name: str
    positions: Floats
    tangents: Ints
    """(nt, 4) x, y, z, w as stored; in ms10 w is the byte of the sign."""


@dataclass
class Surface:
    name: str = ""
    bounds: Floats = field(default_factory=lambda: np.zeros(10, np.float32))
    lightmap: tuple[int, int] | None = None
    targets: list[Target] = field(default_factory=list)
    weights: list[list[tuple[int, int]]] | None = None
    """For each coordinate vertex pairs of bone and weight; None where the surface holds none."""
    uv0: Floats | None = None
    uv1: Floats | None = None
    colors: Ints | None = None
    c_indices: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    t_indices: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    widths: tuple[int, int] = (0, 0)
    """Bytes that an index took, of CIndices and TIndices."""
    collision: Collision | None = None
    stored: list[bool] = field(default_factory=list)
    """Geometry and collision block: whether stored as they are (ms14 and later)."""
    corner_counts: tuple[int, int] = (0, 0)
    vertex_counts: list[int] = field(default_factory=list)

    @property
    def vertex_count(self) -> int:
        return len(self.targets[0].positions) if self.targets else 0

    @property
    def corner_vertex_count(self) -> int:
        return len(self.targets[0].tangents) if self.targets else 0


@dataclass
class Collision:
    """Section 6.4."""

    edges: list[int]
    order: list[int]
    nodes: list[tuple[int, int, int, int, int]]
    """Axis, left, right, begin, end."""
    boxes: Floats
    splits: Floats


@dataclass
class Soup:
    """A surface of mr02."""

    raw_name: bytes
    positions: Floats
    normals: Floats
    uvs: Floats

    @property
    def name(self) -> str:
        return self.raw_name.split(b"\0")[0].decode("utf-8", "replace")


@dataclass
class Frames:
    """What an animation says at each frame, in the order of ``bones``; F frames of n bones."""

    bones: list[int]
    mask: int | None
    """Of an10 and embedded animations."""
    flags: list[list[int]] = field(default_factory=list)
    translation: Floats = field(default_factory=lambda: np.zeros((0, 0, 3)))
    """(F, n, 3) float64, metres."""
    rotation: Floats = field(default_factory=lambda: np.zeros((0, 0, 4)))
    """(F, n, 4) float64 x, y, z, w as stored (divided by 32767 where they are integers), not made unit."""
    scale: Floats = field(default_factory=lambda: np.zeros((0, 0, 3)))
    stored: list[list[dict[int, int | float | tuple[int | float, ...]]]] = field(default_factory=list)
    """For each frame and bone: bit of the flags -> value as it stands in the file."""
    ranges: tuple[float, ...] = ()
    """an10: minimum and range of translations, then of scales, 3 each."""

    @property
    def count(self) -> int:
        return len(self.flags)


@dataclass
class File:
    magic: str
    bounds: Floats | None = None
    bones: list[tuple[str, int]] = field(default_factory=list)
    transforms: Floats = field(default_factory=lambda: np.zeros((0, 10), np.float32))
    surfaces: list[Surface] = field(default_factory=list)
    soup: list[Soup] = field(default_factory=list)
    animations: list[tuple[str, Frames]] = field(default_factory=list)
    rest_transforms: Floats = field(default_factory=lambda: np.zeros((0, 10), np.float32))
    guid: str = ""
    path: str = ""
    fps: int | None = None
    root_motion: bool | None = None
    leaf_size: int | None = None
    memory: int | None = None
    profiles: list[list[tuple[str, list[float]]]] = field(default_factory=list)
    retargets: list[tuple[int, float]] = field(default_factory=list)
    compact: list[tuple[int, int]] = field(default_factory=list)


def decode(data: bytes) -> File:
    """Decode a file of any version that the page describes."""
    stream = Stream(data)
    magic = data[:4]
    if magic == b"mr02":
        found = soup_file(stream)
    elif magic in STREAMED:
        found = stream_file(stream, magic)
    elif magic in BLOCKED:
        found = block_file(stream, magic)
    elif magic == b"an10":
        found = quantized_animation_file(stream)
    elif magic in ANIMATED:
        found = float_animation_file(stream, magic)
    elif magic == b"sn10":
        found = skeleton_file(stream)
    else:
        raise WrongFile(f"magic {magic!r}")
    stream.end()
    found.compact += stream.compact
    check_bones(found)
    return found


# Section 9


def soup_file(stream: Stream) -> File:
    stream.magic(b"mr02")
    found = File("mr02")
    surface_count = int(stream.one("i"))
    require(surface_count >= 0, "surface count")
    for _ in range(surface_count):
        name = stream.take(128)
        count = int(stream.one("i"))
        require(count >= 0 and count % 3 == 0, f"{count} vertices")
        rows = stream.floats(count, 8)
        found.soup.append(Soup(name, rows[:, 0:3], rows[:, 3:6], rows[:, 6:8]))
    return found


# Section 4


def stream_file(stream: Stream, magic: bytes) -> File:
    found = File(magic.decode())
    stream.magic(magic)
    found.bounds = stream.floats(1, 10)[0]
    found.bones = bones(stream, stream.count())
    names = []
    if magic != b"ms13":
        names = [stream.string() for _ in range(stream.count())]
    for _ in range(stream.count()):
        surface = Surface(stream.string())
        if magic in (b"ms12", b"ms13"):
            surface.lightmap = (stream.take(1)[0], stream.take(1)[0])
            check_lightmap(surface)
        surface.bounds = stream.floats(1, 10)[0]
        nothing = np.zeros((0, 3), np.float32), np.zeros((0, 4), np.int16)
        surface.targets = [Target(stream.string(), *nothing) for _ in range(stream.count())]
        found.surfaces.append(surface)
    stream.magic(magic)
    found.transforms = stream.xforms(len(found.bones))
    found.animations = [(name, delta_frames(stream, len(found.bones), quantized=False)) for name in names]
    for surface in found.surfaces:
        for target in surface.targets:
            target.positions = stream.floats(stream.count(), 3)
            target.tangents = tangents(stream, stream.count(), magic)
        attributes(stream, surface, len(found.bones), with_weights=True)
        surface.c_indices, c_width = indices(stream, stream.count(), surface.vertex_count)
        surface.t_indices, t_width = indices(stream, stream.count(), surface.corner_vertex_count)
        surface.widths = c_width, t_width
        check_surface(surface)
    stream.magic(magic)
    return found


def bones(stream: Stream, count: int) -> list[tuple[str, int]]:
    return [(stream.string(), int(stream.one("h"))) for _ in range(count)]


def tangents(stream: Stream, count: int, magic: bytes) -> Ints:
    layout = struct.Struct("<3hb" if magic == b"ms10" else "<4h")
    rows = list(layout.iter_unpack(stream.take(count * layout.size)))
    return np.array(rows, np.int16).reshape(count, 4)


def attributes(stream: Stream, surface: Surface, bone_count: int, *, with_weights: bool) -> None:
    if with_weights:
        count = stream.count()
        require(count in (0, surface.vertex_count), f"{count} weights of {surface.vertex_count} vertices")
        if count:
            surface.weights = [vertex_weights(stream, bone_count) for _ in range(count)]
    found = []
    for code, width, kind in (("f", 2, np.float32), ("f", 2, np.float32), ("B", 4, np.uint8)):
        count = stream.count()
        require(count in (0, surface.corner_vertex_count), f"{count} values of {surface.corner_vertex_count} vertices")
        found.append(np.array(stream.many(code, count * width), kind).reshape(count, width) if count else None)
    surface.uv0, surface.uv1, surface.colors = found


def vertex_weights(stream: Stream, bone_count: int) -> list[tuple[int, int]]:
    count = stream.take(1)[0]
    require(count <= 4, f"{count} weights of a vertex")
    pairs = []
    for _ in range(count):
        bone, weight = struct.unpack("<hH", stream.take(4))
        require(0 <= bone < bone_count, f"weight of bone {bone}")
        pairs.append((bone, weight))
    return pairs


def indices(stream: Stream, count: int, pool: int) -> tuple[Ints, int]:
    """Section 3, "Index width"."""
    code = "B" if pool < 256 else "H" if pool < 65536 else "i"
    return np.array(stream.many(code, count), np.int64), struct.calcsize("<" + code)


def last_indices(stream: Stream, count: int, pool: int, after: int) -> tuple[Ints, int]:
    """Section 6.3: i32 where the bytes left are what i32 would take, compact integers otherwise."""
    if pool >= 65536 and len(stream.data) - stream.at - after != 4 * count:
        return np.array([stream.cint() for _ in range(count)], np.int64), 0
    return indices(stream, count, pool)


def check_surface(surface: Surface) -> None:
    for target in surface.targets:
        require(len(target.positions) == surface.vertex_count, "vertices of a target")
        require(len(target.tangents) == surface.corner_vertex_count, "tangents of a target")
        require(bool(np.isfinite(target.positions).all()), "positions")
    require(len(surface.c_indices) == len(surface.t_indices), "index lists of unequal length")
    require(len(surface.c_indices) % 3 == 0, "index lists whose length is not a multiple of 3")
    for found, pool in ((surface.c_indices, surface.vertex_count), (surface.t_indices, surface.corner_vertex_count)):
        require(all(0 <= index < pool for index in found.tolist()), "an index out of range")


def check_lightmap(surface: Surface) -> None:
    assert surface.lightmap is not None
    require(surface.lightmap[0] in (0, 1) and surface.lightmap[1] <= 7, f"lightmap bytes {surface.lightmap}")


def check_bones(found: File) -> None:
    parents = [parent for _, parent in found.bones]
    for start in range(len(parents)):
        bone, steps = start, 0
        while bone != -1:
            require(0 <= bone < len(parents), f"parent {bone}")
            bone, steps = parents[bone], steps + 1
            require(steps <= len(parents), "bones in a circle")


# Section 5, and 8.1 where quantized


def delta_frames(stream: Stream, bone_count: int, *, quantized: bool) -> Frames:
    count = stream.count()
    found = Frames([int(index) for index in stream.many("h", count)], None)
    require(all(0 <= index < bone_count for index in found.bones), "an animated bone that is not there")
    if quantized:
        found.ranges = tuple(float(value) for value in stream.many("f", 12))
    found.mask = stream.take(1)[0]
    require(found.mask < 128, f"mask {found.mask}")
    frame_count = stream.count()
    current = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0] for _ in range(count)]  # t, r x y z w, s
    shown = np.zeros((frame_count, count, 10))
    for frame in range(frame_count):
        found.flags.append([])
        found.stored.append([])
        for bone in range(count):
            flags = stream.take(1)[0]
            require(flags < 128, f"flags {flags}")
            require(frame > 0 or flags == found.mask, "frame 0 does not carry the mask")
            require(flags & ~found.mask == 0, "a flag that is not in the mask")
            said: dict[int, int | float | tuple[int | float, ...]] = {}
            for bit in range(7):
                if flags >> bit & 1:
                    said[bit] = delta_value(stream, bit, current[bone], found.ranges)
            found.flags[-1].append(flags)
            found.stored[-1].append(said)
            shown[frame, bone] = current[bone]
    found.translation, found.rotation, found.scale = shown[..., 0:3], shown[..., 3:7], shown[..., 7:10]
    return found


def delta_value(
    stream: Stream, bit: int, row: list[float], ranges: tuple[float, ...]
) -> int | float | tuple[int | float, ...]:
    """Read a value into the row of ten; return it as it stands in the file."""
    if bit == 3:
        raw = stream.many("h", 4)
        row[3:7] = [value / 32767 for value in raw]
        return raw
    place = bit if bit < 3 else bit + 3
    if not ranges:
        row[place] = float(stream.one("f"))
        return row[place]
    minimum, extent = (ranges[bit], ranges[3 + bit]) if bit < 3 else (ranges[6 + bit - 4], ranges[9 + bit - 4])
    stored = stream.one("H")
    row[place] = minimum + stored * extent / 65535
    return stored


# Section 6


def block_file(stream: Stream, magic: bytes) -> File:
    found = File(magic.decode())
    stream.magic(magic)
    found.leaf_size = stream.cint()
    found.bounds = stream.floats(1, 10)[0]
    if magic == b"ms14":
        found.bones = bones(stream, stream.count())
    if magic == b"sk10":
        skinned_header(stream, found)
    found.surfaces = [block_header(stream, magic) for _ in range(stream.count())]
    found.memory = int(stream.one("q"))
    stream.magic(magic)
    if magic == b"ms14":
        found.transforms = stream.xforms(len(found.bones))
    starts = []
    for surface in found.surfaces:
        starts.append(stream.at)
        content = Stream(block(stream, surface))
        geometry(content, surface, magic, len(found.bones))
        found.compact += content.compact
    stream.magic(magic)
    if magic != b"sk10":
        for surface in found.surfaces:
            content = Stream(block(stream, surface))
            surface.collision = collision(content)
            found.compact += content.compact
        stream.magic(magic)
    offsets = stream.many("q", len(found.surfaces))
    require(list(offsets) == starts, f"offsets {offsets}, blocks at {starts}")
    stream.magic(magic)
    return found


def skinned_header(stream: Stream, found: File) -> None:
    """Section 7."""
    found.bones = bones(stream, int(stream.one("i")))
    bind = int(stream.one("i"))
    found.transforms = stream.xforms(bind)
    rest = int(stream.one("i"))
    found.rest_transforms = stream.xforms(rest)
    require(bind == rest == len(found.bones), "transforms of other counts than joints")
    found.guid, found.path = stream.string32(), stream.string32()


def block_header(stream: Stream, magic: bytes) -> Surface:
    surface = Surface(stream.string())
    if magic != b"sk10":
        surface.lightmap = (stream.take(1)[0], stream.take(1)[0])
        check_lightmap(surface)
    surface.corner_counts = stream.count(), stream.count()
    surface.bounds = stream.floats(1, 10)[0]
    nothing = np.zeros((0, 3), np.float32), np.zeros((0, 4), np.int16)
    names = [""]
    if magic == b"ms15":
        surface.vertex_counts = [stream.count()]
    else:
        names = []
        for _ in range(stream.count()):
            names.append(stream.string())
            surface.vertex_counts.append(stream.count())
    surface.targets = [Target(name, *nothing) for name in names]
    return surface


def block(stream: Stream, surface: Surface) -> bytes:
    """Section 6.2."""
    size, stored = int(stream.one("q")), int(stream.one("q"))
    require(0 <= stored <= size, f"a block of {size} bytes stored as {stored}")
    surface.stored.append(stored == size)
    raw = stream.take(stored)
    return raw if stored == size else lz4_block(raw, size)


def lz4_block(data: bytes, size: int) -> bytes:
    """Expand an LZ4 block: tokens of literals and of a copy from what is there already."""
    out = bytearray()
    at = 0
    while True:
        token = data[at]
        at += 1
        literals = token >> 4
        if literals == 15:
            while data[at] == 255:
                literals += 255
                at += 1
            literals += data[at]
            at += 1
        require(at + literals <= len(data), "literals beyond the block")
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            break
        distance = data[at] | data[at + 1] << 8
        at += 2
        require(0 < distance <= len(out), "a copy from before the block")
        length = token & 15
        if length == 15:
            while data[at] == 255:
                length += 255
                at += 1
            length += data[at]
            at += 1
        length += 4
        while length:  # a copy may reach into what it writes itself
            piece = out[len(out) - distance :][:length]
            out += piece
            length -= len(piece)
    require(len(out) == size, f"a block of {len(out)} bytes for {size}")
    return bytes(out)


def geometry(stream: Stream, surface: Surface, magic: bytes, bone_count: int) -> None:
    """Section 6.3."""
    for target, count in zip(surface.targets, surface.vertex_counts, strict=True):
        target.positions = stream.floats(count, 3)
        target.tangents = tangents(stream, stream.count(), magic)
    attributes(stream, surface, bone_count, with_weights=magic != b"ms15")
    c_count, t_count = surface.corner_counts
    t_pool = surface.corner_vertex_count
    t_bytes = t_count * (1 if t_pool < 256 else 2 if t_pool < 65536 else 4)
    surface.c_indices, c_width = last_indices(stream, c_count, surface.vertex_count, t_bytes)
    surface.t_indices, t_width = last_indices(stream, t_count, t_pool, 0)
    surface.widths = c_width, t_width
    stream.end()
    check_surface(surface)


def collision(stream: Stream) -> Collision:
    edges = list(stream.take(stream.count()))
    order = [stream.count() for _ in range(stream.count())]
    nodes = []
    for _ in range(stream.count()):
        axis = int(stream.one("b"))
        nodes.append((axis, stream.cint(), stream.cint(), stream.cint(), stream.cint()))
    boxes = stream.floats(len(nodes), 6)
    splits = stream.floats(len(nodes), 1)[:, 0]
    stream.end()
    return Collision(edges, order, nodes, boxes, splits)


# Section 7


def skeleton_file(stream: Stream) -> File:
    stream.magic(b"sn10")
    found = File("sn10")
    found.bones = bones(stream, int(stream.one("i")))
    found.transforms = stream.xforms(len(found.bones))
    stream.magic(b"sn10")
    for _ in range(3):
        kind = []
        for _ in range(int(stream.one("i"))):
            name = stream.string32()
            kind.append((name, [float(value) for value in stream.many("f", int(stream.one("i")))]))
        found.profiles.append(kind)
    for _ in range(int(stream.one("i"))):
        found.retargets.append((int(stream.one("i")), float(stream.one("f"))))
        require(found.retargets[-1][0] in (0, 1, 2), "retargeting mode")
    stream.magic(b"sn10")
    return found


# Section 8


def quantized_animation_file(stream: Stream) -> File:
    """Section 8.1."""
    stream.magic(b"an10")
    found = File("an10", stream.floats(1, 10)[0])
    found.bones = bones(stream, stream.count())
    names = [stream.string() for _ in range(stream.count())]
    require(len(names) == 1, f"{len(names)} animations")
    stream.magic(b"an10")
    found.transforms = stream.xforms(len(found.bones))
    found.animations = [(name, delta_frames(stream, len(found.bones), quantized=True)) for name in names]
    stream.magic(b"an10")
    return found


def float_animation_file(stream: Stream, magic: bytes) -> File:
    """Sections 8.2 to 8.4."""
    stream.magic(magic)
    found = File(magic.decode())
    found.bones = bones(stream, stream.count() if magic == b"an11" else int(stream.one("i")))
    if magic == b"an11":
        stream.magic(magic)
        found.transforms = stream.xforms(len(found.bones))
    else:
        found.guid, found.path = stream.string32(), stream.string32()
    frames = Frames([int(index) for index in stream.many("h", stream.count())], None)
    require(all(0 <= index < len(found.bones) for index in frames.bones), "an animated bone that is not there")
    if magic != b"an11":
        found.fps = int(stream.one("i"))
        root_motion = stream.take(1)[0]
        require(root_motion in (0, 1), "root motion")
        found.root_motion = bool(root_motion)
        if magic == b"an13":
            require(stream.take(12) == bytes(12), "sync markers")
        stream.magic(magic)
    float_frames(stream, frames)
    stream.magic(magic)
    found.animations = [("", frames)]
    return found


def float_frames(stream: Stream, found: Frames) -> None:
    count, bone_count = stream.count(), len(found.bones)
    shown = np.zeros((count, bone_count, 10))
    shown[..., 6:] = 1  # w of the identity, and scale
    for frame in range(count):
        found.flags.append([])
        found.stored.append([])
        for bone in range(bone_count):
            flags = stream.take(1)[0]
            require(flags < 8, f"flags {flags}")
            said: dict[int, int | float | tuple[int | float, ...]] = {}
            for bit, first, width in ((0, 0, 3), (1, 3, 4), (2, 7, 3)):
                if flags >> bit & 1:
                    said[bit] = stream.many("f", width)
                    shown[frame, bone, first : first + width] = said[bit]
            found.flags[-1].append(flags)
            found.stored[-1].append(said)
    found.translation, found.rotation, found.scale = shown[..., 0:3], shown[..., 3:7], shown[..., 7:10]
