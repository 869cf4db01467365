"""Random archives of OpenSim with the facts that follow from their descriptions, by rotation matrices.

Nothing of the code under test is used. Facts are float64, in metres and with Z up.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from meshfuzz import opensim_archive_seeds as made

Matrix = npt.NDArray[np.float64]

_AXES = {"top": (0, 0, 1), "bottom": (0, 0, -1), "-Y": (0, -1, 0), "+X": (1, 0, 0), "+Y": (0, 1, 0), "-X": (-1, 0, 0)}
_BOX = ("top", "-Y", "+X", "+Y", "-X", "bottom")
_PLAIN = {
    "texture": made.NULL,
    "colour": [1.0, 1.0, 1.0, 1.0],
    "repeats": [1.0, 1.0],
    "offsets": [0.0, 0.0],
    "rotation": 0.0,
    "full_bright": False,
    "glow": 0.0,
}


@dataclass
class Kind:
    """A kind of parts."""

    shape: str
    faces: int
    directions: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    """Flat faces of the unit cube: their normals, which are twice their middles."""
    points: Any = None
    """Points of the mesh in the unit cube, if they are known; their order and number do not matter."""


@dataclass
class Fact:
    """What a part has to be."""

    name: str
    world: Matrix
    """(4, 4) from the unit cube to the region, with the size."""
    size: tuple[float, ...]
    kind: Kind
    faces: list[dict[str, Any]]
    """Looks of the faces, with the keys that the samples' facts have."""
    is_linked: bool
    """Whether it is in a linkset of several parts."""


def kinds_of(sculpts: Mapping[str, Any]) -> list[Kind]:
    """Return kinds of parts; ``sculpts`` has the pixels (H, W, 3) of maps of 32 x 32, the lowest row first."""
    box = {number: _AXES[name] for number, name in enumerate(_BOX)}
    ends = {0: _AXES["top"], 2: _AXES["bottom"]}
    corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    kinds = [
        Kind(_prim(1, 16), 6, box),
        Kind(_prim(1, 16, ProfileHollow=20000), 7),
        Kind(_prim(0, 16), 3, ends),
        Kind(_prim(0, 16, ProfileBegin=12500), 5),
        Kind(_prim(5, 32), 1),
        Kind(_prim(0, 32, PathScaleY=150), 1),
        Kind(made.sculpt(5, made.MESH), 2),
    ]
    kinds[0].points = corners
    samples = np.append(np.arange(0, 32, 2), 31)
    for uuid, pixels in sculpts.items():
        colours = pixels[samples][:, samples].reshape(-1, 3)
        for flags in (0, 0x40, 0x80, 0xC0):
            points = colours / 255 - 0.5
            points[:, 0] *= -1 if flags & 0x80 else 1
            kinds.append(Kind(made.sculpt(3 | flags, uuid), 1, points=points))
    return kinds


def _prim(profile: int, path: int, **more: int) -> str:
    values = {"ProfileCurve": profile, "PathCurve": path, "PathScaleX": 100, "PathScaleY": 100, **more}
    return "".join(f"<{name}>{value}</{name}>" for name, value in values.items())


def rotation(axis: Any, angle: float) -> Matrix:
    """Return the matrix (3, 3) of a rotation about a unit vector (formula of Rodrigues)."""
    x, y, z = axis
    across = np.array([(0, -z, y), (z, 0, -x), (-y, x, 0)])
    turned: Matrix = np.identity(3) + math.sin(angle) * across + (1 - math.cos(angle)) * across @ across
    return turned


class RandomRegion:
    """An archive of random linksets, drawn from a seed."""

    def __init__(self, seed: int, sculpts: Mapping[str, Any], pictures: Mapping[str, bytes]) -> None:
        self._random = random.Random(seed)
        self._kinds = kinds_of(sculpts)
        self._textures = [made.NULL, made.identity(999), *pictures]
        self.facts: list[Fact] = []
        files = {"archive.xml": made.control()}
        folders = [("", (0, 0))]
        if self._random.random() < 0.3:
            folders = [("regions/1_1_West/", (0, 0)), ("regions/3_2_East/", (512, 256))]
            files["archive.xml"] = made.control("1.0", [["1_1_West"], ["", "", "3_2_East"]])
        for folder, origin in folders:
            for number in range(self._random.randint(1, 6)):
                files[f"{folder}objects/{number}.xml"] = self._linkset(origin)
        files |= {f"assets/{uuid}_texture.jp2": content for uuid, content in pictures.items()}
        self.archive = made.packed(*files.items(), *made.assets().items())

    def _linkset(self, origin: tuple[int, int]) -> bytes:
        parts = []
        count = self._random.choice((1, 1, 2, 3, 8))
        above = np.identity(4)
        for index in range(count):
            place, turned, stored = self._transform(256.0 if index == 0 else 5.0)
            if index == 0:
                above[:3, :3], above[:3, 3] = turned, place
                above[:3, 3] += (*origin, 0)
            own = np.identity(4)
            if index:
                own[:3, :3], own[:3, 3] = turned, place
            size = tuple(round(math.exp(self._random.uniform(math.log(0.01), math.log(64))), 5) for _ in "xyz")
            kind = self._random.choice(self._kinds)
            name = f"part {len(self.facts)}"
            faces, entry = self._looks(kind.faces)
            self.facts.append(Fact(name, above @ own @ np.diag((*size, 1)), size, kind, faces, count > 1))
            parts.append(
                made.part(
                    name, position=place, rotation=stored, size=size, is_root=not index, shape=kind.shape, entry=entry
                )
            )
        return made.linkset(*parts)

    def _transform(self, reach: float) -> tuple[list[float], Matrix, list[float]]:
        """Return a position, a rotation as a matrix, and the same as stored: x, y, z, w, not of unit length."""
        place = [round(self._random.uniform(0, reach), 4) for _ in "xyz"]
        axis = np.array([self._random.gauss(0, 1) for _ in "xyz"])
        axis /= np.linalg.norm(axis)
        angle = self._random.choice((0.0, math.pi / 2, math.pi, self._random.uniform(-math.pi, math.pi)))
        length = self._random.choice((1.0, -1.0, 0.5, 3.0))
        stored = [*(axis * math.sin(angle / 2) * length).tolist(), math.cos(angle / 2) * length]
        return place, rotation(axis, angle), stored

    def _looks(self, count: int) -> tuple[list[dict[str, Any]], bytes]:
        """Return the looks of all faces, and the texture entry: random defaults, then values for random masks."""
        faces = [dict(_PLAIN) for _ in range(count)]
        parts: list[tuple[bytes, list[tuple[int, bytes]]]] = []
        for keys, draw in self._properties():
            content, values = draw()
            pairs = []
            for face in faces:
                face.update(zip(keys, values, strict=True))
            for _ in range(self._random.choice((0, 0, 1, 2))):
                mask = self._random.getrandbits(self._random.choice((count, 20)))
                changed, values = draw()
                if not mask:
                    continue
                pairs.append((mask, changed))
                for number, face in enumerate(faces):
                    if mask >> number & 1:
                        face.update(zip(keys, values, strict=True))
            parts.append((content, pairs))
        for face in faces:
            u, v = face.pop("u"), face.pop("v")
            face["repeats"], face["offsets"] = [u[0], v[0]], [u[1], v[1]]
            face["texture_missing"] = face["texture"] in self._textures[:2]
        return faces, _with_split_coordinates(parts)

    def _properties(self) -> list[tuple[tuple[str, ...], Any]]:
        draw = self._random

        def texture() -> tuple[bytes, list[Any]]:
            uuid = draw.choice(self._textures)
            return bytes.fromhex(uuid.replace("-", "")), [uuid]

        def colour() -> tuple[bytes, list[Any]]:
            values = [draw.randrange(256) for _ in "rgb"] + [draw.choice((255, 255, 0, draw.randrange(256)))]
            return bytes(255 - value for value in values), [[value / 255 for value in values]]

        def coordinates() -> tuple[bytes, list[Any]]:
            repeats = draw.choice((1.0, 2.0, -1.5, 0.25))
            step = draw.choice((0, 0, draw.randint(-32767, 32767)))
            return struct.pack("<fh", repeats, step), [(repeats, step / 32767)]

        def turn() -> tuple[bytes, list[Any]]:
            step = draw.choice((0, 0, draw.randint(-32767, 32767)))
            return struct.pack("<h", step), [step / 32768 * 2 * math.pi]

        def bright() -> tuple[bytes, list[Any]]:
            is_bright = draw.random() < 0.2
            return bytes([0x20 * is_bright]), [is_bright]

        def glow() -> tuple[bytes, list[Any]]:
            step = draw.choice((0, 0, 0, draw.randrange(256)))
            return bytes([step]), [step / 255]

        return [
            (("texture",), texture),
            (("colour",), colour),
            (("u",), coordinates),
            (("v",), coordinates),
            (("rotation",), turn),
            (("full_bright",), bright),
            (("glow",), glow),
        ]


def _with_split_coordinates(parts: list[tuple[bytes, list[tuple[int, bytes]]]]) -> bytes:
    """Return the entry of these properties, with repeats and offsets apart, and without media and material."""
    texture, colour, u, v, turn, bump, glow = parts

    def half(pair: tuple[bytes, list[tuple[int, bytes]]], part: slice) -> tuple[bytes, list[tuple[int, bytes]]]:
        return pair[0][part], [(mask, value[part]) for mask, value in pair[1]]

    repeats, offsets = slice(0, 4), slice(4, 6)
    coordinates = [half(u, repeats), half(v, repeats), half(u, offsets), half(v, offsets)]
    return made.texture_entry([texture, colour, *coordinates, turn, bump, (bytes(1), []), glow, (bytes(16), [])])
