"""Generate a small UNIGINE project: a courtyard with tiles, brick walls, lamp posts, barrels, a bench and plants.

    .venv/bin/python examples/make_project.py [--move-bench] [folder]

The folder (by default ``build/courtyard``) gets a ``data`` folder as UNIGINE's editor keeps it: assets with their
``.meta`` files, runtime files named by their GUID, materials with parents, ``.node`` and ``.world`` files. It holds one
of each kind of reference: by GUID to a runtime with and without its source image, to a source whose runtime is missing,
to an asset in the tree, and to a material by the meta file of an FBX.

Open ``data/courtyard.world``, ``data/nodes/lamp_post.node`` or a ``.mesh``. Everything is drawn and modelled here, and
every run makes the same project. ``--move-bench`` then moves the bench by 0.5 m in the world file, and prints the line
that this changes.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import math
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.api import read_scene, write_scene
from meshferry.io_formats.core.placement import NodeEdit
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene, Surface
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

SDK = "2.19.0.3"
SIDE = 256
"""Width and height of the larger textures, in pixels."""
MESH_BASE = hashlib.sha1(b"Unigine::mesh_base", usedforsecurity=False).hexdigest()


def guid(name: str) -> str:
    """Return a fixed GUID for anything of the project."""
    return hashlib.sha1(f"courtyard/{name}".encode(), usedforsecurity=False).hexdigest()


# -- files of the project ---------------------------------------------------------------------


@dataclass
class Project:
    """The project's folder while it is written."""

    root: Path
    assets: dict[str, str] = field(default_factory=dict)
    """GUID of each asset with its path, for guids.db."""

    def write(self, path: str, content: bytes | str) -> Path:
        """Write a file; text gets Unix line ends on every system."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    def meta(self, path: str, kind: str, parts: Sequence[tuple[str, str, int]] = (), **parameters: str | int) -> None:
        """Write the ``.meta`` of an asset; ``parts`` are name, GUID and ``link`` of its runtimes."""
        own = guid(path)
        numbers = {"mesh": 1, "animation": 2, "node": 3, "material": 5, "texture": 6}
        rows = [(Path(path).name, own, 0), *parts]
        lines = [
            f'\t\t<runtime id="{number}" name="{name}" link="{link}" type="{numbers.get(_kind(name), 0)}"/>'
            for name, number, link in rows
        ]
        settings = "".join(
            f'\t\t<parameter type="{"bool" if value in (0, 1) else "string"}" name="{name}">{value}</parameter>\n'
            for name, value in parameters.items()
        )
        self.write(
            f"{path}.meta",
            f'<?xml version="1.0" encoding="utf-8"?>\n<asset version="{SDK}">\n\t<guid>{own}</guid>\n'
            f"\t<type>{kind}</type>\n\t<runtimes>\n" + "\n".join(lines) + "\n\t</runtimes>\n"
            f"\t<parameters>\n{settings}\t</parameters>\n</asset>\n",
        )
        self.assets[own] = path

    def runtime(self, asset: str, alias: str, content: bytes, *, is_primary: bool) -> str:
        """Write a runtime of an asset and its JSON; return its GUID."""
        own = guid(f"{asset}/{alias}")
        path = f".runtimes/{own[:2]}/{own}{Path(alias).suffix}"
        self.write(path, content)
        about = {"asset": guid(asset), "alias": alias, "primary": int(is_primary), "version": SDK}
        self.write(f"{path}.meta", json.dumps(about, indent="\t"))
        return own


def _kind(name: str) -> str:
    suffix = Path(name).suffix.lower()
    return {".mesh": "mesh", ".node": "node", ".mat": "material", ".fbx": "fbx"}.get(suffix, "texture")


# -- pictures ---------------------------------------------------------------------------------


def noise(size: int, seed: int, cells: int = 8, octaves: int = 4) -> Floats:
    """Return smooth noise that repeats at the borders, (size, size) from 0 to 1."""
    random = np.random.default_rng(seed)
    total = np.zeros((size, size))
    weight = 1.0
    for _octave in range(octaves):
        grid = random.random((cells, cells))
        place = np.arange(size) * cells / size
        low = place.astype(int)
        t = place - low
        t = t * t * (3 - 2 * t)
        high = (low + 1) % cells
        across = grid[:, low] * (1 - t) + grid[:, high] * t
        total += weight * (across[low] * (1 - t)[:, None] + across[high] * t[:, None])
        cells, weight = cells * 2, weight / 2
    return (total - total.min()) / np.ptp(total)


def bricks(size: int, rows: int, columns: int, gap: float, shift: float) -> tuple[Floats, Floats]:
    """Return height (0 in the joints, 1 on the stones) and a random number of each stone, both (size, size)."""
    y, x = np.meshgrid(np.arange(size) / size * rows, np.arange(size) / size * columns, indexing="ij")
    row = np.floor(y).astype(int)
    x = (x + shift * (row % 2)) % columns
    column = np.floor(x).astype(int)
    away = np.minimum(np.minimum(x % 1, 1 - x % 1) / columns, np.minimum(y % 1, 1 - y % 1) / rows)
    height = np.clip((away - gap) / (1.5 * gap), 0, 1)
    shade = np.random.default_rng(rows).random((rows, columns))[row, column]
    return height * height * (3 - 2 * height), shade


def colored(shade: Floats, dark: Sequence[float], light: Sequence[float]) -> Bytes:
    """Return the colours between two, (h, w, 3)."""
    values = np.asarray(dark) + shade[..., None] * (np.asarray(light) - np.asarray(dark))
    return (np.clip(values, 0, 1) * 255 + 0.5).astype(np.uint8)


def normals(height: Floats, depth: float) -> Bytes:
    """Return the normal map of a height that repeats, (h, w, 3), with green down as UNIGINE has it."""
    right = (np.roll(height, -1, 1) - np.roll(height, 1, 1)) * depth
    down = (np.roll(height, -1, 0) - np.roll(height, 1, 0)) * depth
    vectors = np.stack((-right, -down, np.ones_like(height)), axis=2)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return (vectors * 127.5 + 128).astype(np.uint8)


def png(pixels: Bytes) -> bytes:
    """Encode (h, w, 3 or 4) as a PNG file."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


# -- textures of the engine -------------------------------------------------------------------

CODES = {"R8": 0, "RGB8": 2, "RGBA8": 3, "BC1": 21, "BC3": 23, "BC4": 24, "BC5": 25}
"""Pixel formats of .texture files."""


def _blocks(values: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Cut (h, w, c) into blocks of 4 x 4, (n, 16, c); pictures below 4 x 4 repeat their pixels."""
    rows, columns = -(-values.shape[0] // 4) * 4, -(-values.shape[1] // 4) * 4
    values = np.resize(values, (rows, columns, values.shape[2])) if values.shape[:2] != (rows, columns) else values
    cut = values.reshape(rows // 4, 4, columns // 4, 4, -1).swapaxes(1, 2)
    return cut.reshape(-1, 16, values.shape[2]).astype(np.int64)


def _packed_indices(indices: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.uint8]:
    """Pack 16 indices a block into bytes, the first in the lowest bits."""
    places = np.arange(16, dtype=np.uint64) * np.uint64(bits)
    total = (indices.astype(np.uint64) << places).sum(axis=1, dtype=np.uint64)
    return total.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : 2 * bits]


def bc1(pixels: Bytes) -> Bytes:
    """Compress colours, (h, w, 3 or 4), to blocks of 8 bytes: two ends of 16 bits, and four steps between them."""
    blocks = _blocks(pixels[..., :3])
    axis = np.ptp(blocks, axis=1).astype(float)
    along = blocks @ np.where(axis == 0, 1e-9, axis)[..., None]
    ends = [np.take_along_axis(blocks, pick(along, 1)[..., None], 1)[:, 0] for pick in (_argmax, _argmin)]
    codes = [(end[:, 0] >> 3 << 11) | (end[:, 1] >> 2 << 5) | end[:, 2] >> 3 for end in ends]
    first, second = np.maximum(*codes), np.minimum(*codes)
    flat = first == second
    first, second = np.where(flat & (second == 0), 1, first), np.where(flat & (second > 0), second - 1, second)
    a, b = _colors(first), _colors(second)
    steps = np.stack((a, b, (2 * a + b) / 3, (a + 2 * b) / 3), axis=1)
    distance = ((blocks[:, :, None] - steps[:, None]) ** 2).sum(axis=3)
    ends16 = np.stack((first, second), axis=1).astype("<u2").view(np.uint8)
    return np.concatenate((ends16, _packed_indices(distance.argmin(axis=2), 2)), axis=1)


def _argmax(values: Floats, axis: int) -> npt.NDArray[np.int64]:
    return values.argmax(axis=axis)


def _argmin(values: Floats, axis: int) -> npt.NDArray[np.int64]:
    return values.argmin(axis=axis)


def _colors(codes: npt.NDArray[np.int64]) -> Floats:
    red, green, blue = codes >> 11, codes >> 5 & 63, codes & 31
    return np.stack((red * 255 / 31, green * 255 / 63, blue * 255 / 31), axis=1)


def bc4(channel: Bytes) -> Bytes:
    """Compress one channel, (h, w), to blocks of 8 bytes: two ends, and eight steps between them."""
    blocks = _blocks(channel[..., None])[..., 0]
    high, low = blocks.max(axis=1), blocks.min(axis=1)
    high, low = np.where((high == low) & (low == 0), 1, high), np.where((high == low) & (low > 0), low - 1, low)
    steps = np.round((high[:, None] - blocks) * 7 / (high - low)[:, None]).clip(0, 7).astype(np.int64)
    indices = np.array([0, 2, 3, 4, 5, 6, 7, 1])[steps]
    ends = np.stack((high, low), axis=1).astype(np.uint8)
    return np.concatenate((ends, _packed_indices(indices, 3)), axis=1)


def encoded(pixels: Bytes, layout: str) -> bytes:
    """Return pixels, (h, w, channels), in one of the layouts of ``CODES``."""
    if layout == "BC1":
        return bc1(pixels).tobytes()
    if layout == "BC3":
        return np.concatenate((bc4(pixels[..., 3]), bc1(pixels)), axis=1).tobytes()
    if layout == "BC4":
        return bc4(pixels[..., 0]).tobytes()
    if layout == "BC5":
        return np.concatenate((bc4(pixels[..., 0]), bc4(pixels[..., 1])), axis=1).tobytes()
    return np.ascontiguousarray(pixels[..., : len(layout) - 1]).tobytes()


def mipmaps(pixels: Bytes) -> Iterable[Bytes]:
    """Yield a square picture and its halves down to one pixel."""
    while True:
        yield pixels
        side = len(pixels) // 2
        if not side:
            return
        pixels = pixels.reshape(side, 2, side, 2, -1).mean(axis=(1, 3)).astype(np.uint8)


def texture(pixels: Bytes, layout: str, version: str = "tx11") -> bytes:
    """Encode (size, size, channels) as a .texture file with all mipmaps."""
    levels = list(mipmaps(pixels))
    size, code = len(pixels), CODES[layout]
    if version == "tx11":
        result = [struct.pack("<4s4B4H", b"tx11", 0, code, 4, len(levels), 1, size, size, 1)]
    else:
        result = [struct.pack("<4s11i", b"tx10", 0, code, size, size, 1, len(levels), 1, 1, -1, 0, 4)]
    for level in levels:
        plain = encoded(level, layout)
        packed = lz4(plain)
        content = packed if len(packed) < len(plain) else plain
        result += [struct.pack("<q", len(content)), content]
    return b"".join(result)


def lz4(data: bytes) -> bytes:
    """Compress to an LZ4 block: at each position the last match of 4 bytes is taken."""
    result, start, place = bytearray(), 0, 0
    seen: dict[bytes, int] = {}
    while place < len(data) - 12:
        key = data[place : place + 4]
        other = seen.get(key, -1)
        seen[key] = place
        if other < 0 or place - other > 0xFFFF:
            place += 1
            continue
        length = 4
        while place + length < len(data) - 5 and data[other + length] == data[place + length]:
            length += 1
        result += _sequence(data[start:place], place - other, length)
        place += length
        start = place
    return bytes(result + _sequence(data[start:], 0, 4))


def _sequence(literals: bytes, distance: int, length: int) -> bytes:
    """Return literals and a copy; the last sequence of a block has distance 0, which is not written."""
    more, copied = len(literals) - 15, length - 4 - 15
    token = min(len(literals), 15) << 4 | min(length - 4, 15)
    result = bytes([token]) + (b"\xff" * (more // 255) + bytes([more % 255]) if more >= 0 else b"") + literals
    if distance:
        result += struct.pack("<H", distance) + (
            b"\xff" * (copied // 255) + bytes([copied % 255]) if copied >= 0 else b""
        )
    return result


def plain_dds(pixels: Bytes) -> bytes:
    """Encode colours as a DDS file in BC1 without mipmaps."""
    height, width = pixels.shape[:2]
    head = struct.pack("<4s7I44x", b"DDS ", 124, 0x1007, height, width, 0, 0, 1)
    head += struct.pack("<2I4s5I5I", 32, 4, b"DXT1", 0, 0, 0, 0, 0, 0x1000, 0, 0, 0, 0)
    return head + encoded(pixels, "BC1")


def write_textures(project: Project) -> None:
    """Write all textures, each as its kind of asset."""
    height, shade = bricks(SIDE, 4, 4, 0.006, 0.0)
    grain = noise(SIDE, 1, 16)
    height = height * (0.9 + 0.1 * shade) + 0.12 * grain
    tiles = colored(0.35 * shade + 0.4 * grain + 0.25, (0.36, 0.31, 0.25), (0.78, 0.71, 0.6))
    tiles = (tiles * (0.45 + 0.55 * np.clip(height, 0, 1))[..., None]).astype(np.uint8)
    rough = colored(0.55 + 0.35 * grain, (0, 0, 0), (0, 1, 0))
    rough[..., 2] = 128
    _imported(project, "textures/tiles_alb.png", tiles, "BC1")
    _imported(project, "textures/tiles_n.png", normals(height, 4.0), "BC5")
    _imported(project, "textures/tiles_sh.png", rough, "BC1")

    height, shade = bricks(SIDE, 12, 4, 0.008, 0.5)
    grain = noise(SIDE, 2, 24)
    color = colored(0.5 * shade + 0.5 * grain, (0.3, 0.12, 0.08), (0.62, 0.31, 0.22))
    mortar = colored(grain, (0.45, 0.43, 0.4), (0.62, 0.6, 0.56))
    mixed = (color * height[..., None] + mortar * (1 - height[..., None])).astype(np.uint8)
    _imported(project, "textures/brick_alb.png", mixed, "BC1", source=False)
    bump = normals(height + 0.15 * grain, 3.0)
    _imported(project, "textures/brick_n.png", bump, "BC5", is_green_up=True)

    planks, shade = bricks(SIDE, 1, 8, 0.004, 0.0)
    streaks = np.repeat(noise(SIDE, 3, 64, 2)[:1], SIDE, 0) * 0.6 + noise(SIDE, 4, 8) * 0.4
    wood = colored(0.7 * streaks + 0.3 * shade, (0.26, 0.15, 0.07), (0.6, 0.4, 0.22))
    wood = (wood * (0.35 + 0.65 * planks)[..., None]).astype(np.uint8)
    _imported(project, "textures/barrel_alb.png", wood, "BC1", source=False)
    _imported(project, "textures/barrel_n.png", normals(planks + 0.2 * streaks, 2.0), "BC5", source=False)
    along = np.minimum(np.linspace(0, 1, 64), np.linspace(1, 0, 64))[:, None] * np.ones((1, 64))
    occlusion = np.clip(0.45 + 4 * along, 0, 1)
    _imported(project, "textures/barrel_ao.png", colored(occlusion, (0, 0, 0), (1, 1, 1)), "BC4", source=False)
    _imported(project, "textures/wood_alb.png", np.rot90(wood).copy(), "BC1", runtime=False)
    _imported(project, "textures/leaves_alb.png", leaves(128), "BC3", source=False, version="tx10")

    glow = np.clip(1.2 - np.abs(np.linspace(-1, 1, 32))[:, None] * np.ones((1, 32)), 0, 1)
    project.write("textures/glow.png", png(colored(glow, (1.0, 0.45, 0.1), (1.0, 0.9, 0.7))))
    project.meta("textures/glow.png", "texture", unchanged=1)
    soil = colored(noise(64, 5, 16), (0.08, 0.05, 0.03), (0.2, 0.13, 0.08))
    project.write("textures/soil_alb.dds", plain_dds(soil))
    project.meta("textures/soil_alb.dds", "texture", unchanged=1)


def _imported(
    project: Project, path: str, pixels: Bytes, layout: str, *, source: bool = True, runtime: bool = True,
    is_green_up: bool = False, version: str = "tx11",
) -> None:  # fmt: skip
    """Write an image and what the editor made of it, or one of them; ``is_green_up`` for normals of the source."""
    alias = f"{Path(path).stem}.texture"
    own = guid(f"{path}/{alias}")
    if runtime:
        project.runtime(path, alias, texture(pixels, layout, version), is_primary=True)
    if source:
        image = pixels.copy()
        if is_green_up:
            image[..., 1] = 255 - image[..., 1]
        project.write(path, png(image))
    if source or not runtime:
        project.meta(path, "texture", [(alias, own, 1)], invert_g=int(is_green_up), unchanged=0)


def leaves(size: int) -> Bytes:
    """Return a picture of leaves, (size, size, 4), with transparent pixels between them."""
    random = np.random.default_rng(6)
    y, x = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    result = np.zeros((size, size, 4), np.uint8)
    result[..., :3] = (40, 74, 22)
    for _leaf in range(70):
        across, down = random.uniform(0.1, 0.9, 2) * size
        turn, length = random.uniform(0, math.pi), random.uniform(0.07, 0.13) * size
        along = (x - across) * math.cos(turn) + (y - down) * math.sin(turn)
        side = (y - down) * math.cos(turn) - (x - across) * math.sin(turn)
        inside = np.abs(side) < 0.42 * length * np.clip(1 - (along / length) ** 2, 0, 1)
        shade = random.uniform(0.7, 1.3) * np.where(np.abs(side) < 1.0, 1.2, 1.0)
        for channel, value in enumerate((58, 104, 30)):
            result[..., channel][inside] = np.clip(value * shade, 0, 255).astype(np.uint8)[inside]
        result[..., 3][inside] = 255
    return result


# -- materials --------------------------------------------------------------------------------


def write_materials(project: Project) -> None:
    """Write the materials; tiles, bricks and soil have a common parent."""
    _material(project, "stone", parameters={"roughness": "0.9", "specular": "0.4"})
    _material(
        project, "tiles", "stone",
        textures={"albedo": "tiles_alb", "normal": "tiles_n", "shading": "tiles_sh"},
        parameters={"uv_transform": "3 3 0 0", "roughness": "1"},
    )  # fmt: skip
    _material(project, "brick", "stone", textures={"albedo": "brick_alb", "normal": "brick_n"})
    _material(project, "soil", "stone", textures={"albedo": "soil_alb"})
    _material(project, "wood", textures={"albedo": "wood_alb"}, parameters={"roughness": "0.7"})
    _material(
        project, "barrel",
        textures={"albedo": "barrel_alb", "normal": "barrel_n", "ambient_occlusion": "barrel_ao"},
        parameters={"roughness": "0.65"}, states={"ao_map": "1"},
    )  # fmt: skip
    iron = {"albedo_color": "0.22 0.22 0.24 1", "metalness": "1", "roughness": "0.45"}
    _material(project, "iron", parameters=iron)
    _material(
        project, "glow", textures={"emission": "glow"},
        parameters={"emission_color": "1 0.9 0.75 1", "emission_scale": "6"}, states={"emission": "1"},
    )  # fmt: skip
    _material(
        project, "leaves", textures={"albedo": "leaves_alb"}, parameters={"roughness": "0.6"},
        options={"transparent": "1", "two_sided": "1"},
    )  # fmt: skip


def _material(
    project: Project, name: str, parent: str = "", *, textures: dict[str, str] | None = None,
    parameters: dict[str, str] | None = None, states: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
) -> None:  # fmt: skip
    path = f"materials/{name}.mat"
    inherited = f' parent="{guid(f"materials/{parent}.mat")}"' if parent else ""
    lines = [f'<material version="{SDK}" guid="{guid(path)}"{inherited} base_material="{MESH_BASE}">']
    if options:
        lines.append("\t<options " + " ".join(f'{key}="{value}"' for key, value in options.items()) + "/>")
    lines += [f'\t<state name="{key}">{value}</state>' for key, value in (states or {}).items()]
    for slot, image in (textures or {}).items():
        unchanged = {"glow": "glow.png", "soil_alb": "soil_alb.dds"}.get(image)
        target = guid(f"textures/{unchanged}") if unchanged else guid(f"textures/{image}.png/{image}.texture")
        lines.append(f'\t<texture name="{slot}">guid://{target}</texture>')
    lines += [
        f'\t<parameter name="{key}" expression="0">{value}</parameter>' for key, value in (parameters or {}).items()
    ]
    project.write(path, "\n".join([*lines, "</material>", ""]))
    project.meta(path, "material", unchanged=1)


# -- meshes -----------------------------------------------------------------------------------


@dataclass
class Part:
    """Vertices of one surface: positions, normals (n, 3), UVs (n, 2) with v up, and triangles (m, 3)."""

    points: Floats
    normals: Floats
    uvs: Floats
    triangles: npt.NDArray[np.int64]


def joined(parts: Sequence[Part]) -> Part:
    """Return several parts as one."""
    starts = np.cumsum([0, *(len(part.points) for part in parts)])
    return Part(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.uvs for part in parts]),
        np.concatenate([part.triangles + start for part, start in zip(parts, starts, strict=False)]),
    )


def quad(corner: Sequence[float], across: Sequence[float], up: Sequence[float], scale: float = 1.0) -> Part:
    """Return a rectangle; ``scale`` is the number of texture repeats per metre, 0 for the whole texture."""
    a, u, v = (np.asarray(value, float) for value in (corner, across, up))
    points = np.array([a, a + u, a + u + v, a + v])
    size = (np.linalg.norm(u) * scale, np.linalg.norm(v) * scale) if scale else (1.0, 1.0)
    normal = np.cross(u, v) / np.linalg.norm(np.cross(u, v))
    uvs = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * size
    return Part(points, np.tile(normal, (4, 1)), uvs, np.array([(0, 1, 2), (0, 2, 3)]))


def box(low: Sequence[float], high: Sequence[float], scale: float = 1.0, *, top: bool = True) -> Part:
    """Return a box without a bottom, with or without a top."""
    (x, y, z), (a, b, c) = low, high
    w, d, h = a - x, b - y, c - z
    sides = [
        quad((x, y, z), (w, 0, 0), (0, 0, h), scale), quad((a, b, z), (-w, 0, 0), (0, 0, h), scale),
        quad((a, y, z), (0, d, 0), (0, 0, h), scale), quad((x, b, z), (0, -d, 0), (0, 0, h), scale),
    ]  # fmt: skip
    return joined([*sides, quad((x, y, c), (w, 0, 0), (0, d, 0), scale)] if top else sides)


def revolved(profile: Sequence[tuple[float, float]], sides: int, repeats: float = 1.0) -> Part:
    """Return a surface of revolution about Z of radii and heights; bends of the outline over 40 degrees are hard."""
    outline = np.asarray(profile, float)
    steps = np.diff(outline, axis=0)
    angle = np.arctan2(steps[:, 1], steps[:, 0])
    turn = np.abs((np.diff(angle) + math.pi) % (2 * math.pi) - math.pi)
    hard = [0, *(np.flatnonzero(turn > math.radians(40)) + 1).tolist(), len(outline) - 1]
    length = np.concatenate(([0], np.cumsum(np.linalg.norm(steps, axis=1))))
    bands = [slice(low, high + 1) for low, high in itertools.pairwise(hard)]
    return joined([_band(outline[band], length[band] / length[-1], sides, repeats) for band in bands])


def _band(outline: Floats, v: Floats, sides: int, repeats: float) -> Part:
    """Return a smooth part of a surface of revolution with a V coordinate for each row."""
    slope = np.gradient(outline, axis=0)
    across = np.column_stack((slope[:, 1], -slope[:, 0]))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    angle = np.linspace(0, 2 * math.pi, sides + 1)
    around = np.column_stack((np.cos(angle), np.sin(angle)))

    def spun(rows: Floats) -> Floats:
        whole = np.empty((len(rows), sides + 1, 3))
        whole[..., :2], whole[..., 2] = rows[:, None, :1] * around, rows[:, 1:]
        return whole.reshape(-1, 3)

    uvs = np.stack(np.broadcast_arrays(repeats * angle / (2 * math.pi), v[:, None]), axis=2)
    a = (np.arange(sides) + (sides + 1) * np.arange(len(outline) - 1)[:, None]).ravel()
    b, c, d = a + 1, a + sides + 2, a + sides + 1
    triangles = np.concatenate((np.stack((a, b, c), axis=1), np.stack((a, c, d), axis=1)))
    points = spun(outline)
    corners = points[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Part(points, spun(across), uvs.reshape(-1, 2), triangles[area > 1e-6])


def barrel(sides: int) -> dict[str, Part]:
    """Return a barrel of 0.9 m: its staves with lids, and its hoops."""

    def radius(z: float) -> float:
        return 0.27 + 0.06 * math.sin(math.pi * z / 0.9)

    heights = np.linspace(0, 0.9, 9 if sides > 12 else 4)
    body = revolved([(radius(z), z) for z in heights], sides, 2)
    lid = revolved([(0.27, 0.87), (0.0, 0.87)], sides)
    hoops = [
        revolved([(radius(z) + 0.002, z), (radius(z + 0.02) + 0.012, z + 0.01), (radius(z + 0.04) + 0.012, z + 0.03),
                  (radius(z + 0.04) + 0.002, z + 0.04)], sides)
        for z in (0.05, 0.26, 0.6, 0.81)
    ]  # fmt: skip
    return {"staves": joined([body, lid]), "hoops": joined(hoops)}


def models() -> dict[str, dict[str, Part]]:
    """Return the surfaces of each mesh."""
    fine, coarse = barrel(24), barrel(8)
    post = [
        box((-0.14, -0.14, 0), (0.14, 0.14, 0.12)),
        revolved([(0.1, 0.12), (0.06, 0.2), (0.045, 0.4), (0.04, 2.2), (0.09, 2.26), (0.09, 2.3)], 12),
        revolved([(0.2, 2.62), (0.14, 2.7), (0.03, 2.78), (0.03, 2.84), (0.0, 2.88)], 12),
    ]
    seat = [box((-0.8, y, 0.42), (0.8, y + 0.12, 0.46)) for y in (-0.22, -0.07, 0.08)]
    legs = [box((x, -0.2, 0), (x + 0.08, 0.18, 0.42)) for x in (-0.65, 0.57)]
    cards = [
        quad((-0.55 * math.cos(turn), -0.55 * math.sin(turn), 0.4),
             (1.1 * math.cos(turn), 1.1 * math.sin(turn), 0), (0, 0, 0.9), 0)
        for turn in (0.2, 0.2 + math.pi / 3, 0.2 + 2 * math.pi / 3)
    ]  # fmt: skip
    wall = box((0, 0, 0), (8, 0.3, 2.2), 0.8)
    return {
        "ground": {"tiles": quad((-5, -5, 0), (10, 0, 0), (0, 10, 0), 0.2)},
        "wall": {"brick": wall, "cap": box((-0.03, -0.04, 2.2), (8.03, 0.34, 2.3), 0.5)},
        "barrel": {"staves_lod_0": fine["staves"], "hoops_lod_0": fine["hoops"], "staves_lod_1": coarse["staves"]},
        "bucket": {"staves": revolved([(0.12, 0), (0.16, 0.3), (0.145, 0.3), (0.11, 0.02), (0.0, 0.02)], 16)},
        "lamp_post": {
            "iron": joined(post),
            "glass": revolved([(0.09, 2.3), (0.15, 2.36), (0.19, 2.58), (0.19, 2.62), (0.0, 2.62)], 12),
        },
        "bench": {"planks": joined(seat), "legs": joined(legs)},
        "planter": {
            "brick": box((-0.55, -0.55, 0), (0.55, 0.55, 0.45), 1.2, top=False),
            "soil": quad((-0.55, -0.55, 0.4), (1.1, 0, 0), (0, 1.1, 0), 0.9),
            "leaves": joined(cards),
        },
    }


def mesh_file(name: str, surfaces: dict[str, Part], folder: Path) -> bytes:
    """Return the ``.mesh`` file of a model."""
    whole = joined(list(surfaces.values()))
    counts = [len(part.triangles) for part in surfaces.values()]
    mesh = Mesh(
        _rounded(whole.points),
        whole.triangles.ravel().astype(np.int32),
        np.repeat(np.arange(len(counts)), counts).astype(np.int32),
        list(surfaces),
        Layer("normal", _rounded(whole.normals)),
        uvs=[Layer("UV0", _rounded(whole.uvs))],
        surfaces=[Surface(surface) for surface in surfaces],
    )
    path = folder / f"{name}.mesh"
    write_scene(Scene(name, [Node(name, mesh=mesh)]), path, UNIGINE_MESH)
    content = path.read_bytes()
    path.unlink()
    return content


def _rounded(values: Floats) -> npt.NDArray[np.float32]:
    return (np.rint(values * 65536) / 65536).astype(np.float32)


MATERIALS_OF = {
    "tiles": "tiles", "brick": "brick", "cap": "stone", "staves": "barrel", "hoops": "iron", "iron": "iron",
    "glass": "glow", "planks": "wood", "legs": "iron", "soil": "soil", "leaves": "leaves",
}  # fmt: skip
"""Material of each surface, by its name without ``_lod_N``."""


def write_meshes(project: Project) -> dict[str, str]:
    """Write the meshes; return how nodes refer to each.

    The lamp post is an asset of its own, all others are runtimes of an FBX file that is not in the project.
    """
    references = {}
    for name, surfaces in models().items():
        content = mesh_file(name, surfaces, project.root)
        if name == "lamp_post":
            path = "models/lamp_post.mesh"
            project.write(path, content)
            project.meta(path, "mesh", unchanged=1)
            references[name] = guid(path)
            continue
        fbx = f"models/{name}.fbx"
        references[name] = project.runtime(fbx, f"{name}.mesh", content, is_primary=False)
        named = {surface.partition("_lod_")[0] for surface in surfaces}
        pairs = ",".join(f"{surface},{_material_of(surface)}" for surface in sorted(named))
        project.meta(fbx, "fbx", [(f"{name}.mesh", references[name], 2)], material_guids=pairs)
    return references


def _material_of(surface: str) -> str:
    return guid(f"materials/{MATERIALS_OF[surface.partition('_lod_')[0]]}.mat")


# -- scenes -----------------------------------------------------------------------------------


def placed(x: float, y: float, z: float = 0.0, turn: float = 0.0) -> Floats:
    """Return the matrix of a position and a rotation about Z in degrees."""
    matrix = np.eye(4)
    sine, cosine = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    matrix[:2, :2] = (cosine, -sine), (sine, cosine)
    matrix[:3, 3] = (x, y, z)
    return matrix


def lying(x: float, y: float, turn: float) -> Floats:
    """Return the matrix of a barrel on its side."""
    tilt = np.eye(4)
    tilt[:3, :3] = ((0, 0, 1), (0, 1, 0), (-1, 0, 0))
    return placed(x, y, 0.33, turn) @ tilt


def looking(place: Sequence[float], target: Sequence[float]) -> Floats:
    """Return the matrix of a camera or light, which looks along its -Z."""
    back = np.subtract(place, target).astype(float)
    back /= np.linalg.norm(back)
    right = np.cross((0, 0, 1), back)
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, 0], matrix[:3, 1], matrix[:3, 2], matrix[:3, 3] = right, np.cross(back, right), back, place
    return matrix


def numbers(matrix: Floats) -> str:
    """Return a matrix as scenes have it, column after column."""
    return " ".join(f"{value:.7g}" for value in (np.round(matrix, 6) + 0.0).T.ravel())


class Nodes:
    """Nodes of a scene as XML, with ids that count up."""

    def __init__(self, references: dict[str, str]) -> None:
        self.references = references
        self.count = 0

    def node(
        self, kind: str, name: str, matrix: Floats, *fields: str, children: Sequence[str] = (), enabled: bool = True
    ) -> str:
        """Return a node with its fields and its children."""
        self.count += 1
        hidden = "" if enabled else ' enabled="0"'
        inner = "\n".join([*fields, f"<transform>{numbers(matrix)}</transform>", *children])
        shifted = "\n".join(f"\t{line}" for line in inner.splitlines())
        return f'<node type="{kind}" id="{1000 + self.count}" name="{name}"{hidden}>\n{shifted}\n</node>'

    def mesh(
        self, name: str, model: str, matrix: Floats, *fields: str, kind: str = "ObjectMeshStatic", enabled: bool = True
    ) -> str:
        """Return a node of a mesh with the materials of its surfaces."""
        rows = [f"<mesh_name>guid://{self.references[model]}</mesh_name>"]
        for surface in models()[model]:
            distances = {"0": ' max_visible_distance="15"', "1": ' min_visible_distance="15"'}
            rows.append(
                f'<surface name="{surface}" material="{_material_of(surface)}"'
                f"{distances.get(surface.partition('_lod_')[2], '')}/>"
            )
        return self.node(kind, name, matrix, *rows, *fields, enabled=enabled)

    def reference(self, name: str, scene: str, matrix: Floats) -> str:
        """Return a node that refers to a .node file."""
        return self.node("NodeReference", name, matrix, f"<reference>guid://{guid(scene)}</reference>")


def write_scenes(project: Project, references: dict[str, str]) -> None:
    """Write the nodes and the world."""
    nodes = Nodes(references)
    light = nodes.node(
        "LightOmni", "light", placed(0, 0, 2.45),
        "<color>1 0.8 0.5 1</color>", "<intensity>4</intensity>", "<attenuation_distance>8</attenuation_distance>",
        "<shape_type>1</shape_type>", "<shape>0.1 0 0</shape>",
    )  # fmt: skip
    post = nodes.mesh("lamp_post", "lamp_post", np.eye(4)).replace("\n</node>", "\n" + _indented(light) + "\n</node>")
    _scene(project, "nodes/lamp_post.node", [post])
    _scene(project, "nodes/planter.node", [nodes.mesh("planter", "planter", np.eye(4))])

    walls = [nodes.mesh("wall_left", "wall", placed(-4, -4.3, 0, 90)), nodes.mesh("wall_back", "wall", placed(-4.3, 4))]
    spots = [(2.9, 3.1, 10), (3.45, 2.75, 40), (2.3, 3.4, 75), (3.5, 3.5, 120), (2.85, 3.75, 200)]
    places = [f"<position>{numbers(placed(x, y, 0, turn))}</position>" for x, y, turn in spots]
    corners = [(-3.2, 3.2), (1.0, 3.3), (-3.3, -1.8)]
    top = [
        nodes.mesh("ground", "ground", np.eye(4)),
        nodes.node("NodeDummy", "walls", placed(0.2, 0.1), children=walls),
        *(nodes.reference(f"lamp_{n}", "nodes/lamp_post.node", placed(x, y)) for n, (x, y) in enumerate(corners, 1)),
        nodes.reference("planter_1", "nodes/planter.node", placed(-3.0, 1.3)),
        nodes.reference("planter_2", "nodes/planter.node", placed(-3.0, -0.3, 0, 12)),
        nodes.mesh("barrels", "barrel", np.eye(4), *places, kind="ObjectMeshCluster"),
        nodes.mesh("barrel_lying", "barrel", lying(1.6, 2.0, 25)),
        nodes.mesh("barrel_spare", "barrel", placed(4.2, -3), enabled=False),
        nodes.mesh("bench", "bench", placed(-1.0, 3.3, 0, 180)),
        nodes.node("LightWorld", "sun", looking((5, -4, 8), (0, 0, 0)), "<intensity>100</intensity>"),
        nodes.node(
            "PlayerSpectator", "camera", looking((5.4, -5.2, 3.2), (-0.6, 1.2, 0.9)),
            "<fov>50</fov>", "<znear>0.05</znear>", "<zfar>500</zfar>", "<is_main>1</is_main>",
        ),
    ]  # fmt: skip
    _scene(project, "courtyard.world", top)


def _indented(text: str, depth: int = 1) -> str:
    return "\n".join("\t" * depth + line for line in text.splitlines())


def _scene(project: Project, path: str, nodes: Sequence[str]) -> None:
    """Write a .node or .world file and its meta."""
    kind = "world" if path.endswith(".world") else "node"
    body = "\n".join(nodes)
    if kind == "world":
        text = f'<world version="{SDK}">\n\t<editor>\n{_indented(body, 2)}\n\t</editor>\n</world>\n'
    else:
        text = f'<nodes version="{SDK}">\n{_indented(body)}\n</nodes>\n'
    project.write(path, '<?xml version="1.0" encoding="utf-8"?>\n' + text)
    project.meta(path, kind)


def move(world: Path, name: str, by: Sequence[float]) -> list[str]:
    """Move a node of a world file by a vector in metres, as a re-export does; return the changed lines of the file."""
    placement = read_scene(world).placement
    if placement is None or UNIGINE_SCENE.patch is None:
        raise ValueError(f"{world} is not a file that places nodes")
    node = next(node for node in placement.parts[0].nodes if node.name == name)
    matrix = node.matrix.copy()
    matrix[:3, 3] += by
    before = world.read_bytes()
    after = UNIGINE_SCENE.patch(before, [NodeEdit(node.key, node.name, matrix=matrix)]).data
    world.write_bytes(after)
    lines = difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), lineterm="", n=0)
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


def main(folder: Path) -> None:
    """Write the project into the folder's ``data`` folder."""
    project = Project(folder / "data")
    project.root.mkdir(parents=True, exist_ok=True)
    write_textures(project)
    write_materials(project)
    write_scenes(project, write_meshes(project))
    project.write("guids.db", json.dumps(dict(sorted(project.assets.items())), indent="\t"))


if __name__ == "__main__":
    chosen = [argument for argument in sys.argv[1:] if argument != "--move-bench"]
    target = Path(chosen[0]) if chosen else Path(__file__).parent.parent / "build" / "courtyard"
    main(target)
    if "--move-bench" in sys.argv:
        print("\n".join(move(target / "data" / "courtyard.world", "bench", (0.5, 0.0, 0.0))))
