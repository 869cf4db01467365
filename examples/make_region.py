"""Generate ``region.oar``: a village square as an archive of an OpenSim region, for trying Meshferry out.

    .venv/bin/python examples/make_region.py [file.oar]

By default the file is ``build/region/region.oar``. It holds one of each kind of thing that an archive places: linksets
of prims (cut, hollow, tapered, twisted), a mesh with several colours, a sculpt whose shape is a picture, faces with
repeated and rotated textures, translucent, glowing and full bright faces, lights, a flexible flag, an invisible prim,
trees, and ground with four textures that rises from the water at 20 m.

The files in it are as OpenSim 0.9 writes them; ``docs/formats/opensim_archives.md`` describes them. Pictures are JPEG
2000 without loss, for which Blender is needed. UUIDs are derived from names, so that every run in one version of
Blender makes the same file.
"""

from __future__ import annotations

import base64
import gzip
import math
import struct
import sys
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt
from make_project import bricks, colored, noise
from make_vase import PROFILES, handle, turned
from meshferry.io_formats.api import write_scene
from meshferry.io_formats.core.scene import Node, Scene
from meshferry.io_formats.passes.join_meshes import join
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH

Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

BLANK = uuid.UUID("5748decc-f629-461c-9a36-a35a221fe21f")
"""The white picture that every viewer has."""
TRANSPARENT = uuid.UUID("8dcd4a48-2d37-4909-9f78-f7a9eb4ef903")
SIDE, WATER, SQUARE = 256, 20, 24.0
"""Side of the region, height of the water and of the square, in metres."""
CENTER = SIDE / 2
CREATED = 1_750_000_000
"""The time that all files state."""


def identifier(name: str) -> uuid.UUID:
    """Return a fixed UUID for anything of the region."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"meshferry/village/{name}")


# -- pictures ---------------------------------------------------------------------------------


def stones(size: int, rows: int, columns: int, seed: int) -> Floats:
    """Return stones or tiles with dark joints, (size, size) from 0 to 1; odd rows are shifted by half a stone."""
    height, tone = bricks(size, rows, columns, 0.008, 0.5)
    return np.asarray(height * (0.45 + 0.45 * tone + 0.2 * noise(size, seed)))


def rock(size: int) -> Bytes:
    """Return the map of a sculpt stitched as a sphere: points around the centre as colours, (size, size, 3)."""
    latitude = np.linspace(0.5 * math.pi, -0.5 * math.pi, size)[:, None]  # the first row of a picture is its top
    longitude = np.linspace(0, 2 * math.pi, size, endpoint=False)
    level, height = np.cos(latitude), np.sin(latitude)
    direction = np.stack(np.broadcast_arrays(level * np.cos(longitude), level * np.sin(longitude), height), axis=2)
    waves = np.random.default_rng(3).normal(0, 2.6, (12, 3))
    radius = 0.4 + 0.025 * np.sin(direction @ waves.T + np.arange(12)).sum(axis=2)
    return np.rint(255 * np.clip(0.5 + radius[..., None] * direction, 0, 1)).astype(np.uint8)


def pictures() -> dict[str, Bytes]:
    """Return all pictures by name, (h, w, 3 or 4), the top row first."""
    grain = stones(128, 1, 4, 5) * (0.7 + 0.3 * noise(128, 5, 16)[:1])
    leaves = noise(128, 8, 12) - np.linspace(0.7, 0.3, 128)[:, None]  # they thin out towards the top
    green = colored(0.3 + 2 * leaves + 0.3 * noise(128, 9, 32), (0.06, 0.14, 0.03), (0.42, 0.6, 0.2))
    stripes = np.broadcast_to((np.arange(64) // 16 % 2).astype(float), (64, 64))
    return {
        "sand": colored(noise(128, 1, 16), (0.62, 0.52, 0.36), (0.85, 0.77, 0.58)),
        "grass": colored(noise(128, 2, 16), (0.14, 0.26, 0.07), (0.38, 0.5, 0.18)),
        "heath": colored(noise(128, 3), (0.28, 0.27, 0.13), (0.5, 0.44, 0.26)),
        "cliff": colored(noise(128, 4, 4, 5), (0.24, 0.23, 0.22), (0.6, 0.57, 0.53)),
        "paving": colored(stones(128, 6, 4, 6), (0.18, 0.16, 0.14), (0.75, 0.7, 0.62)),
        "tiles": colored(stones(128, 6, 8, 7), (0.2, 0.07, 0.04), (0.8, 0.34, 0.2)),
        "plaster": colored(noise(128, 6, 16), (0.8, 0.74, 0.62), (0.93, 0.89, 0.8)),
        "planks": colored(grain, (0.1, 0.06, 0.03), (0.66, 0.46, 0.28)),
        "cloth": colored(stripes, (0.72, 0.13, 0.1), (0.93, 0.9, 0.82)),
        "ivy": np.dstack((green, np.rint(255 * np.clip(12 * leaves, 0, 1)).astype(np.uint8))),
        "rock map": rock(64),
    }


def jpeg2000(pixels: Bytes) -> bytes:
    """Encode a picture, (h, w, 3 or 4), as a JPEG 2000 codestream without loss, as viewers upload sculpt maps."""
    import bpy

    height, width, channels = pixels.shape
    scene = bpy.data.scenes.new("jpeg2000")
    image = bpy.data.images.new("jpeg2000", width, height, alpha=channels == 4)
    try:
        settings = scene.render.image_settings
        settings.file_format, settings.jpeg2k_codec, settings.quality = "JPEG2000", "J2K", 100
        settings.color_mode, settings.color_depth = "RGB" if channels == 3 else "RGBA", "8"
        settings.color_management, settings.view_settings.view_transform = "OVERRIDE", "Raw"
        image.colorspace_settings.name, image.alpha_mode = "Non-Color", "CHANNEL_PACKED"
        values = np.ones((height, width, 4), np.float32)
        values[..., :channels] = pixels[::-1] / np.float32(255)
        image.pixels.foreach_set(values.ravel())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "picture.j2c")
            image.save_render(str(path), scene=scene)
            return path.read_bytes()
    finally:
        bpy.data.images.remove(image)
        bpy.data.scenes.remove(scene)


def vase() -> bytes:
    """Return the mesh asset of a vase with two faces, the vase and its handles."""
    ends = np.linspace(0, 1, len(PROFILES) + 1)
    faces = {
        "vase": [turned(profile, *ends[number : number + 2]) for number, profile in enumerate(PROFILES)],
        "handles": [handle(1.0), handle(-1.0)],
    }
    parts = [replace(part, materials=[face]) for face, meshes in faces.items() for part in meshes]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vase.llmesh")
        write_scene(Scene("vase", [Node("vase", mesh=join(parts))]), path, SECOND_LIFE_MESH)
        return path.read_bytes()


# -- parts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """The look of a face."""

    texture: str | uuid.UUID = BLANK
    color: Vector = (1.0, 1.0, 1.0)
    alpha: float = 1.0
    repeats: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    """Degrees."""
    shiny: int = 0
    is_bright: bool = False
    glow: float = 0.0

    def properties(self) -> list[bytes]:
        """Return the values in the order of a texture entry."""
        texture = identifier(self.texture) if isinstance(self.texture, str) else self.texture
        return [
            texture.bytes,
            bytes(255 - round(255 * value) for value in (*self.color, self.alpha)),
            *(struct.pack("<f", value) for value in self.repeats),
            *(struct.pack("<h", round(value * 32767)) for value in self.offsets),
            struct.pack("<h", round(self.rotation / 360 * 32768)),
            bytes([self.shiny << 6 | 0x20 * self.is_bright]),
            b"\0",  # neither media nor planar mapping
            bytes([round(255 * self.glow)]),
            bytes(16),  # no older material
        ]


def texture_entry(default: Look, faces: Mapping[int, Look]) -> bytes:
    """Encode the looks of all faces: for each property a default, then the faces that differ, ended by a zero byte."""
    rows = {face: look.properties() for face, look in faces.items()}
    stored = [
        value + b"".join(bytes([1 << face]) + row[n] for face, row in rows.items() if row[n] != value)
        for n, value in enumerate(default.properties())
    ]
    return b"\0".join(stored)


@dataclass
class Part:
    """A part of a linkset. The first is its root, whose place is that of the linkset."""

    name: str
    size: Vector
    position: Vector = (0.0, 0.0, 0.0)
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """X, Y, Z, W."""
    shape: Mapping[str, int] = field(default_factory=dict)
    """The numbers of the prim that are not those of a box."""
    look: Look = Look()
    faces: Mapping[int, Look] = field(default_factory=dict)
    """The faces with another look."""
    extra: Mapping[int, bytes] = field(default_factory=dict)
    """The parameters of meshes, sculpts, lights and flexible parts by type."""


CYLINDER = {"ProfileCurve": 0}
PRISM = {"ProfileCurve": 3}
SPHERE = {"ProfileCurve": 5, "PathCurve": 32}
TORUS = {"ProfileCurve": 0, "PathCurve": 32, "PathScaleY": 192}
"""The tube is 8 % as thick as the ring is wide."""
PYRAMID = {"PathScaleX": 200, "PathScaleY": 200}
NARROWER = {"PathScaleX": 130, "PathScaleY": 130}
"""The top is 70 % as wide as the bottom."""
WIDER = {"PathScaleX": 40, "PathScaleY": 40}
"""The bottom is 40 % as wide as the top."""
FLEXIBLE = {0x10: struct.pack("<4B3f", 20, 20, 100, 30, 0, 0, 0)}
MESH, SCULPT_SPHERE, MIRRORED = 5, 1, 0x80


def hollow(part: float, curve: int = 1) -> dict[str, int]:
    """Return the numbers of a box (or another profile) with a hole of a part of its size."""
    return {"ProfileCurve": curve, "ProfileHollow": round(50_000 * part)}


def asset(name: str, kind: int) -> dict[int, bytes]:
    """Return the parameter of a mesh or sculpt: the UUID of its mesh or picture, and its type."""
    return {0x30: identifier(name).bytes + bytes([kind])}


def light(color: Vector, radius: float) -> dict[int, bytes]:
    """Return the parameter of a light: linear colour and intensity as bytes, radius, cutoff, falloff."""
    return {0x20: struct.pack("<4B3f", *(round(255 * value) for value in color), 255, radius, 0, 0.75)}


def turn(axis: str, degrees: float) -> Quaternion:
    """Return the rotation about an axis."""
    sine, cosine = math.sin(math.radians(degrees) / 2), math.cos(math.radians(degrees) / 2)
    x, y, z = (sine * (letter == axis) for letter in "XYZ")
    return x, y, z, cosine


# -- the village ------------------------------------------------------------------------------

ACROSS, FACING, LYING = turn("Y", 90), turn("X", 90), (0.5, 0.5, 0.5, 0.5)
STONE = Look("cliff", (0.9, 0.86, 0.78))
WOOD = Look("planks", (0.8, 0.62, 0.45))
CLOTH = Look("cloth", repeats=(0.75, 1), offsets=(0.125, 0))
WARM = (1.0, 0.78, 0.45)


def house() -> list[Part]:
    """Return a house whose walls are hollow boxes, so that their holes are the windows."""
    plaster = Look("plaster", repeats=(3, 2))
    frame = {5: WOOD}
    slope = Look("tiles", repeats=(5, 4), rotation=90)
    panes = [(-2.7, -3.4, turn("Z", 0)), (2.7, -3.4, turn("Z", 0)), (-4.4, 0, turn("Z", 90)), (4.4, 0, turn("Z", 90))]
    parts = [
        Part("House", (9.4, 7.4, 0.4), look=STONE),
        Part("Back Wall", (9, 0.25, 3.2), (0, 3.4, 1.8), look=plaster),
        Part("Left Wall", (3.2, 6.55, 0.25), (-4.4, 0, 1.8), ACROSS, hollow(0.42), plaster, frame),
        Part("Right Wall", (3.2, 6.55, 0.25), (4.4, 0, 1.8), ACROSS, hollow(0.42), plaster, frame),
        Part("Front Wall, Left", (3.8, 3.2, 0.25), (-2.6, -3.4, 1.8), FACING, hollow(0.45), plaster, frame),
        Part("Front Wall, Right", (3.8, 3.2, 0.25), (2.6, -3.4, 1.8), FACING, hollow(0.45), plaster, frame),
        Part("Lintel", (1.4, 0.25, 0.9), (0, -3.4, 2.95), look=plaster),
        Part("Door", (1.4, 0.1, 2.3), (0, -3.38, 1.35), look=WOOD, faces={1: Look("planks", (0.5, 0.65, 0.5))}),
        Part("Knob", (0.12, 0.12, 0.12), (0.5, -3.5, 1.2), shape=SPHERE, look=Look(color=(0.9, 0.7, 0.3), shiny=3)),
        Part("Step", (2, 0.8, 0.2), (0, -4, 0.1), look=STONE),
        Part("Roof", (4, 9.2, 10), (0, 0, 4.4), turn("Y", -90), PRISM, plaster, {1: slope, 3: slope}),
        Part("Chimney", (0.9, 0.9, 2.4), (2.6, 1.4, 5.6), shape=hollow(0.6) | NARROWER, look=STONE),
        Part("Ivy", (0.02, 3.4, 3), (-4.56, 1.4, 1.7), look=Look("ivy")),
    ]
    for number, (x, y, rotation) in enumerate(panes):
        lit = Look(color=WARM, is_bright=True) if number < 2 else Look(color=(0.7, 0.85, 1), alpha=0.35, shiny=2)
        parts.append(Part("Window", (2.9, 0.04, 1.6), (x, y, 1.8), rotation, look=lit))
    return parts


def fountain() -> list[Part]:
    """Return a fountain of hollow cylinders, a torus and a translucent sphere."""
    water = Look(color=(0.35, 0.62, 0.75), alpha=0.55, shiny=2)
    stone = Look("cliff", (0.95, 0.9, 0.82), repeats=(6, 1))
    return [
        Part("Fountain", (6, 6, 0.8), shape=hollow(0.9, 0), look=stone),
        Part("Rim", (0.3, 6.2, 6.2), (0, 0, 0.4), ACROSS, TORUS, Look("cliff", (0.8, 0.76, 0.7), repeats=(16, 1))),
        Part("Water", (5.4, 5.4, 0.1), (0, 0, 0.15), shape=CYLINDER, look=water),
        Part("Pillar", (0.8, 0.8, 2.2), (0, 0, 0.8), shape=CYLINDER | NARROWER, look=STONE),
        Part("Bowl", (2.4, 2.4, 0.6), (0, 0, 2.1), shape=hollow(0.88, 0) | WIDER, look=stone),
        Part("Water of the Bowl", (2, 2, 0.06), (0, 0, 2.25), shape=CYLINDER, look=water),
        Part("Drop", (0.9, 0.9, 0.9), (0, 0, 2.75), shape=SPHERE, look=Look(color=(0.6, 0.85, 1), alpha=0.5, glow=0.1)),
        Part("Barrier", (6.6, 6.6, 2), (0, 0, 0.8), look=Look(TRANSPARENT)),
    ]


def column() -> list[Part]:
    """Return a twisted column."""
    shaft = {"PathTwist": 90, "PathTwistBegin": -90} | NARROWER
    return [
        Part("Column", (1.1, 1.1, 0.5), look=STONE),
        Part("Shaft", (0.8, 0.8, 3.2), (0, 0, 1.85), shape=shaft, look=Look("plaster", (0.95, 0.9, 0.85))),
        Part("Capital", (1.2, 1.2, 0.4), (0, 0, 3.65), shape={"PathScaleX": 70, "PathScaleY": 70}, look=STONE),
    ]


def gate() -> list[Part]:
    """Return an arch, half of a hollow cylinder, on two posts, with a flag that moves in the wind."""
    arch = hollow(0.72, 0) | {"ProfileEnd": 25_000}
    return [
        Part("Gate", (5.2, 1, 0.2), look=STONE),
        Part("Post", (0.8, 0.9, 3), (-2.15, 0, 1.5), look=STONE),
        Part("Post", (0.8, 0.9, 3), (2.15, 0, 1.5), look=STONE),
        Part("Arch", (5.1, 5.1, 0.9), (0, 0, 3), FACING, arch, Look("cliff", (0.95, 0.9, 0.82), repeats=(8, 1))),
        Part("Flag", (1.6, 0.04, 1.6), (0, 0, 4), turn("X", 180), {"PathCurve": 128}, CLOTH, extra=FLEXIBLE),
    ]


def lamp() -> list[Part]:
    """Return a street lamp, whose glass shines."""
    glass = Look(color=WARM, alpha=0.6, is_bright=True, glow=0.35)
    iron = Look(color=(0.12, 0.12, 0.13))
    return [
        Part("Lamp", (0.5, 0.5, 0.3), look=iron, shape=CYLINDER | NARROWER),
        Part("Pole", (0.16, 0.16, 3.4), (0, 0, 1.8), shape=CYLINDER | NARROWER, look=iron),
        Part("Glass", (0.45, 0.45, 0.55), (0, 0, 3.75), shape=WIDER, look=glass, extra=light(WARM, 10)),
        Part("Roof", (0.6, 0.6, 0.35), (0, 0, 4.2), shape=PYRAMID, look=iron),
    ]


def stall() -> list[Part]:
    """Return a market stall; its awning is half of a hollow cylinder, on its table are vases."""
    legs = [(x, y) for x in (-1.4, 1.4) for y in (-0.6, 0.6)]
    awning = hollow(0.95, 0) | {"ProfileEnd": 25_000}
    cloth = Look("cloth", repeats=(1, 6), rotation=90)
    goods = [(-1, Look(color=(0.75, 0.3, 0.2))), (-0.3, Look(color=(0.25, 0.45, 0.6))), (0.5, Look(color=WARM))]
    return [
        Part("Stall", (3.2, 1.5, 0.1), (0, 0, 0), look=Look("planks", (0.8, 0.62, 0.45), repeats=(2, 1), rotation=90)),
        *(Part("Leg", (0.12, 0.12, 2.8), (x, y, 0.5), shape=CYLINDER, look=WOOD) for x, y in legs),
        Part("Awning", (2.4, 1.6, 3.8), (0, 0, 1.9), LYING, awning, cloth),
        *(Part("Vase", (0.38, 0.32, 0.5), (x, 0, 0.3), look=look, extra=asset("vase", MESH)) for x, look in goods),
    ]


def ground(x: Floats | float, y: Floats | float) -> Floats:
    """Return the height of the ground: an island with a flat middle, a hill to the north-west, and a beach."""
    away = np.hypot(x - CENTER, y - CENTER)
    fall = np.clip((away - 26) / 90, 0, 1)
    hill = 20 * np.exp(-(((x - 80) / 22.0) ** 2) - ((y - 176) / 26.0) ** 2)
    waves = 0.8 * np.clip(away / 26 - 1, 0, 1) * (np.sin(x / 9) + np.sin(y / 7 + 1))
    return np.asarray(SQUARE - 13 * fall * fall * (3 - 2 * fall) + hill + waves)


@dataclass
class Placed:
    """An object of the region: a linkset, or a tree."""

    parts: list[Part]
    position: Vector
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    pcode: int = 9
    state: int = 0

    def identifier(self, number: int) -> uuid.UUID:
        """Return the UUID of a part."""
        return identifier(f"{self.parts[0].name} {self.position} {number}")


def objects() -> list[Placed]:
    """Return all objects of the region."""

    def on_ground(x: float, y: float, z: float = 0.0) -> Vector:
        return CENTER + x, CENTER + y, float(ground(CENTER + x, CENTER + y)) + z

    paving = {0: Look("paving", repeats=(8, 8), rotation=30)}
    found = [
        Placed([Part("Square", (34, 34, 0.6), shape=CYLINDER, look=STONE, faces=paving)], on_ground(0, 0, -0.2)),
        Placed(house(), on_ground(-5, 18, 0.2), turn("Z", 8)),
        Placed(fountain(), on_ground(0, 0, 0.4)),
        Placed(gate(), on_ground(0, -15, 0.1)),
        Placed(stall(), on_ground(10.5, 5, 1), turn("Z", -60)),
    ]
    for angle in (30, 150, 210, 330):
        x, y = 14 * math.cos(math.radians(angle)), 14 * math.sin(math.radians(angle))
        found.append(Placed(column(), on_ground(x, y, 0.3), turn("Z", angle)))
    for x, y in ((-6, -6), (6, -6), (-8, 9)):
        found.append(Placed(lamp(), on_ground(x, y, 0.2)))
    clay, glaze = (0.72, 0.36, 0.2), (0.3, 0.42, 0.55)
    for x, y, color in ((-4, -14.5, clay), (4, -14.5, glaze), (-7.2, 12.6, glaze), (-1.2, 13.4, clay)):
        look, handles = Look(color=color), {1: Look(color=(0.9, 0.8, 0.6))}
        part = Part("Vase", (0.95, 0.8, 1.25), look=look, faces=handles, extra=asset("vase", MESH))
        found.append(Placed([part], on_ground(x, y, 0.72)))
    rocks = ((26, -30, 5, 0), (31, -26, 3, 80), (22, -37, 2.2, 200), (-48, 30, 7, 20), (-20, -38, 4, 140))
    for number, (x, y, size, angle) in enumerate(rocks):
        kind = SCULPT_SPHERE | MIRRORED * (number % 2)
        part = Part("Rock", (size, size, 0.7 * size), look=Look("cliff", repeats=(3, 2)), extra=asset("rock map", kind))
        found.append(Placed([part], on_ground(x, y, 0.1), turn("Z", angle)))
    for species, x, y in ((1, -22, 4), (1, 20, -12), (7, -14, 22), (7, 5, 24), (3, 40, -22), (9, -34, 40)):
        found.append(Placed([Part("Tree", (6, 6, 6))], on_ground(x, y), pcode=255, state=species))
    return found


# -- the archive ------------------------------------------------------------------------------

BOX = {
    "ProfileCurve": 1, "PathBegin": 0, "PathCurve": 16, "PathEnd": 0, "PathRadiusOffset": 0, "PathRevolutions": 0,
    "PathScaleX": 100, "PathScaleY": 100, "PathShearX": 0, "PathShearY": 0, "PathSkew": 0, "PathTaperX": 0,
    "PathTaperY": 0, "PathTwist": 0, "PathTwistBegin": 0, "PCode": 9, "ProfileBegin": 0, "ProfileEnd": 0,
    "ProfileHollow": 0, "State": 0,
}  # fmt: skip


def xml(tag: str, value: object) -> str:
    """Return an element: of text, a truth value, bytes, a UUID, a vector or quaternion, or of elements by tag."""
    if isinstance(value, Mapping):
        content = "".join(xml(name, inner) for name, inner in value.items())
    elif isinstance(value, uuid.UUID):
        content = f"<UUID>{value}</UUID>"
    elif isinstance(value, tuple):
        content = "".join(f"<{axis}>{number:.7g}</{axis}>" for axis, number in zip("XYZW", value, strict=False))
    elif isinstance(value, bytes):
        content = base64.b64encode(value).decode()
    else:
        content = escape(str(value).lower() if isinstance(value, bool) else str(value))
    return f"<{tag}>{content}</{tag}>"


def part_xml(placed: Placed, number: int) -> str:
    """Return a part as OpenSim writes it, without the fields that have their default."""
    part, is_root = placed.parts[number], number == 0
    extra = b"".join(struct.pack("<HI", kind, len(data)) + data for kind, data in part.extra.items())
    sculpt = part.extra.get(0x30, bytes(17))
    shape = BOX | dict(part.shape) | {"PCode": placed.pcode, "State": placed.state}
    shape = {"ProfileCurve": shape.pop("ProfileCurve"), "TextureEntry": texture_entry(part.look, part.faces),
             "ExtraParams": bytes([len(part.extra)]) + extra, **shape}  # fmt: skip
    shape |= {"SculptTexture": uuid.UUID(bytes=sculpt[:16]), "SculptType": sculpt[16], "FlexiEntry": 0x10 in part.extra,
              "LightEntry": 0x20 in part.extra, "SculptEntry": 0x30 in part.extra}  # fmt: skip
    own, owner = placed.identifier(number), identifier("owner")
    fields = {
        "AllowedDrop": False, "CreatorID": owner, "FolderID": own, "InventorySerial": 0, "UUID": own,
        "LocalId": 1000 + number, "Name": part.name, "Material": 3,
        "RegionHandle": SIDE * 1000 << 32 | SIDE * 1000, "GroupPosition": placed.position,
        "OffsetPosition": (0.0, 0.0, 0.0) if is_root else part.position,
        "RotationOffset": placed.rotation if is_root else part.rotation, "Description": "",
        "LinkNum": number + (len(placed.parts) > 1), "Shape": shape, "Scale": part.size,
        "ParentID": 0 if is_root else 1000, "CreationDate": CREATED, "OwnerID": owner, "LastOwnerID": owner,
        "BaseMask": 647_168, "OwnerMask": 647_168, "GroupMask": 0, "EveryoneMask": 0, "NextOwnerMask": 647_168,
        "Flags": "None", "PhysicsShapeType": 0,
    }  # fmt: skip
    spaces = "http://www.w3.org/2001/XMLSchema"
    return xml("SceneObjectPart", fields).replace(">", f' xmlns:xsi="{spaces}-instance" xmlns:xsd="{spaces}">', 1)


def members() -> Iterable[tuple[str, bytes]]:
    """Yield the names of all files of the archive with their contents."""
    declaration = '<?xml version="1.0" encoding="utf-16"?>\n'  # as OpenSim writes it, although the text is UTF-8
    info = {"creation_info": {"datetime": CREATED, "id": str(identifier("region"))}, "assets_included": "True",
            "region_info": {"size_in_meters": f"{SIDE},{SIDE}"}}  # fmt: skip
    control = xml("archive", info).replace("<archive>", '<archive major_version="0" minor_version="8">')
    yield "archive.xml", (declaration + control).encode()
    heights = [("Low", 19), ("High", 24)]  # "High" is a range above "Low", not a height
    textures = {f"Texture{n}": str(identifier(name)) for n, name in enumerate(("sand", "grass", "heath", "cliff"), 1)}
    elevations = {f"Elevation{name}{corner}": n for name, n in heights for corner in ("SW", "NW", "SE", "NE")}
    settings = {"General": {"AllowDamage": "False"}, "GroundTextures": textures | elevations,
                "Terrain": {"WaterHeight": WATER}}  # fmt: skip
    yield "settings/Village.xml", (declaration + xml("RegionSettings", settings)).encode()
    parcel, owner = str(identifier("parcel")), str(identifier("owner"))
    land = {"Area": SIDE * SIDE, "GlobalID": parcel, "Bitmap": b"\xff" * 512, "LocalID": 1, "Name": "Village",
            "OwnerID": owner}  # fmt: skip
    yield f"landdata/{parcel}.xml", (declaration + xml("LandData", land)).encode()
    places = np.arange(SIDE, dtype=float)
    yield "terrains/Village.r32", ground(places, places[:, None]).astype("<f4").tobytes()  # rows from south to north
    for placed in objects():
        name, (x, y, z) = placed.parts[0].name, (round(value) for value in placed.position)
        root, *others = (part_xml(placed, number) for number in range(len(placed.parts)))
        text = f"<SceneObjectGroup>{root}<OtherParts>{''.join(others)}</OtherParts></SceneObjectGroup>"
        yield f"objects/{name}_{x:03}-{y:03}-{z:03}__{placed.identifier(0)}.xml", text.encode()
    yield f"assets/{identifier('vase')}_mesh.llmesh", vase()
    for name, pixels in pictures().items():
        yield f"assets/{identifier(name)}_texture.jp2", jpeg2000(pixels)


def tar_header(name: str, size: int) -> bytes:
    """Return the header of a file in the oldest layout of tar, 512 bytes."""
    fields = (name.encode(), b"0000777\0", b"0000000\0", b"0000000\0", b"%011o\0" % size, b"%011o\0" % CREATED)
    whole = struct.pack("<100s8s8s8s12s12s8sc355x", *fields, b" " * 8, b"0")
    return whole[:148] + b"%06o\0 " % sum(whole) + whole[156:]


def main(path: Path) -> None:
    """Write the archive."""
    pieces = []
    for name, content in members():
        pieces += [tar_header(name, len(content)), content, bytes(-len(content) % 512)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b"".join([*pieces, bytes(1024)]), mtime=0))


if __name__ == "__main__":
    default = Path(__file__).parent.parent / "build" / "region" / "region.oar"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
