"""Small Second Life files, put together value by value from the format page, not by our writer."""

from __future__ import annotations

import functools
import math
import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .llsd_trees import Raw, Text, encode

PREFIX = b"<? LLSD/Binary ?>"
ORDER = ("skin", "physics_convex", "lowest_lod", "low_lod", "medium_lod", "high_lod", "physics_mesh")
LEVELS = ORDER[2:6]

Value = Any


@dataclass(frozen=True)
class Block:
    """A block; ``stored`` are its bytes in the file where they are not the packed value."""

    value: Value = None
    stored: bytes | None = None
    prefix: bytes = b""

    def pack(self) -> bytes:
        return self._packed

    @functools.cached_property
    def _packed(self) -> bytes:
        """Most changes leave most blocks as they are."""
        return zlib.compress(self.prefix + encode(self.value), 6) if self.stored is None else self.stored


@dataclass(frozen=True)
class AssetSeed:
    """A mesh asset."""

    blocks: dict[str, Block]
    header: dict[str, Value] = field(default_factory=dict)
    """Further keys."""
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What is added to offset and size of a block."""
    prefix: bytes = b""
    trailing: bytes = b""

    def pack(self) -> bytes:
        return self._packed

    @functools.cached_property
    def _packed(self) -> bytes:
        entries: dict[str, Value] = {}
        area = b""
        for key, block in self.blocks.items():
            content = block.pack()
            offset, size = self.places.get(key, (0, 0))
            entries[key] = {"offset": len(area) + offset, "size": len(content) + size}
            area += content
        entries |= self.header
        return self.prefix + encode({key: entries[key] for key in sorted(entries)}) + area + self.trailing


@dataclass(frozen=True)
class BundleSeed:
    """A model bundle."""

    meshes: tuple[AssetSeed, ...]
    instances: Value
    extra: dict[str, Value] = field(default_factory=dict)

    def pack(self) -> bytes:
        values = {
            "instance": self.instances,
            "mesh": [Text(mesh.pack()) for mesh in self.meshes],
            "name": "box",
            "version": 3,
            **self.extra,
        }
        return encode({key: values[key] for key in sorted(values)})


Seed = AssetSeed | BundleSeed


def shorts(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}H", *(value & 65535 for value in values))


def domain(least: Sequence[float], most: Sequence[float]) -> dict[str, list[float]]:
    return {"Max": [float(value) for value in most], "Min": [float(value) for value in least]}


def ring(count: int, *, joints: int = 0) -> dict[str, Value]:
    """Return a face: a fan around its first vertex, with the weights of so many joints."""
    angles = [2 * math.pi * number / (count - 1) for number in range(count - 1)]
    outer = [((math.cos(a) + 1) * 32767, (math.sin(a) + 1) * 32767) for a in angles]
    positions = [32768, 32768, 65535] + [round(value) for x, y in outer for value in (x, y, 0)]
    triangles = [corner for number in range(1, count - 1) for corner in (0, number, number + 1)]
    face = {
        "Normal": shorts([32767, 32767, 65535] * count),
        "NormalizedScale": [2.0, 1.0, 0.5],
        "Position": shorts(positions),
        "PositionDomain": domain((-0.5, -0.5, -0.25), (0.5, 0.5, 0.5)),
        "TexCoord0": shorts([number * 977 for number in range(2 * count)]),
        "TexCoord0Domain": domain((0, -1), (1, 3)),
        "TriangleList": shorts(triangles),
    }
    if joints:
        face["Weights"] = b"".join(influences(number % 5, joints) for number in range(count))
    return face


def influences(held: int, joints: int) -> bytes:
    data = b"".join(struct.pack("<BH", slot % joints, 65535 // held) for slot in range(held))
    return data + b"\xff" * (held < 4)


def matrix(*place: float, scale: float = 1.0) -> list[float]:
    x, y, z = place or (0.0, 0.0, 0.0)
    return [scale, 0.0, 0.0, 0.0, 0.0, scale, 0.0, 0.0, 0.0, 0.0, scale, 0.0, x, y, z, 1.0]


JOINTS = ("mPelvis", "mTorso", "mShoulderLeft", "mShoulderRight", "BELLY", "mNobody")


def skin(names: Sequence[str] = JOINTS, *, overrides: bool = False) -> dict[str, Value]:
    block = {
        "bind_shape_matrix": matrix(0, 0, 1, scale=0.5),
        "inverse_bind_matrix": [matrix(0, 0.1 * number, -1) for number in range(len(names))],
        "joint_names": list(names),
    }
    if overrides:
        block["alt_inverse_bind_matrix"] = [matrix(0, 0.1, 0.05 * number) for number in range(len(names))]
        block["lock_scale_if_joint_position"] = True
        block["pelvis_offset"] = 0.1
    return {key: block[key] for key in sorted(block)}


def hulls(counts: Sequence[int] = ()) -> dict[str, Value]:
    points = ring(8)["Position"]
    block: dict[str, Value] = {"BoundingVerts": points, **domain((-0.5,) * 3, (0.5,) * 3)}
    if counts:
        block["HullList"] = bytes(count % 256 for count in counts)
        block["Positions"] = shorts([number * 7919 for number in range(3 * sum(counts))])
    return {key: block[key] for key in sorted(block)}


def asset(
    faces: Sequence[Value], *, levels: Sequence[str] = LEVELS, more: dict[str, Value] | None = None, **keys: Any
) -> AssetSeed:
    values: dict[str, Value] = {"physics_convex": hulls(), **{level: list(faces) for level in levels}, **(more or {})}
    return AssetSeed({key: Block(values[key]) for key in ORDER if key in values}, **keys)


NO_GEOMETRY: dict[str, Value] = {"NoGeometry": True}


def assets() -> dict[str, AssetSeed]:
    """Return a seed for each kind of asset."""
    rigged = ring(9, joints=len(JOINTS))
    physics = {key: value for key, value in ring(5).items() if key in ("Position", "PositionDomain", "TriangleList")}
    server = {
        "creator": Raw(b"u" + uuid.UUID(int=7).bytes),
        "date": Raw(b"d" + struct.pack("<d", 1.5e9)),
        "physics_cost_data": {"hull": 0.5, "mesh": [1.0] * 9},
        "version": 1,
    }
    old = {level: Block([ring(6)], prefix=PREFIX + b"\n") for level in LEVELS}
    found = {
        "fan": asset([ring(6)]),
        "high only": asset([ring(4)], levels=("high_lod",)),
        "faces": asset([ring(5), NO_GEOMETRY, ring(7)], more={"physics_convex": hulls((4, 6, 256))}),
        "eleven faces": asset([ring(4)] * 11),
        "physics": asset([ring(5), ring(4)], more={"physics_mesh": [physics, NO_GEOMETRY]}),
        "rigged": asset([rigged], more={"skin": skin()}),
        "overrides": asset([rigged, rigged], more={"skin": skin(overrides=True)}, trailing=b"more"),
        "server": asset([ring(5)], header=server),
        "submodel": asset([ring(5)], more={"physics_convex": None}, header={"submodel_id": 1, "material_list": ["a"]}),
        "prefix": AssetSeed(old, prefix=PREFIX + b"\n"),
        "old physics": asset([ring(5)]),
    }
    plain = found["old physics"]
    return found | {"old physics": AssetSeed({**plain.blocks, "physics_shape": Block([physics])})}


def instance(mesh: int, label: str) -> dict[str, Value]:
    diffuse = {"color": [1.0, 0.5, 0.25, 1.0], "filename": "wood.png", "label": "wood"}
    material = [{"binding": name, "diffuse": diffuse, "fullbright": name == "b"} for name in ("a", "b")]
    return {"label": label, "material": material, "mesh_id": mesh, "transform": matrix(1, 2, 3, scale=2)}


def bundles() -> dict[str, BundleSeed]:
    """Return a seed for each kind of bundle."""
    plain = asset([ring(5), ring(4)], header={"material_list": ["a", "b"]})
    physics = asset([ring(4)], more={"physics_mesh": [ring(4)]}, header={"material_list": ["a"]})
    rigged = asset([ring(6, joints=len(JOINTS))], more={"skin": skin(overrides=True)}, header={"material_list": ["a"]})
    part = asset([ring(5)], more={"physics_convex": None}, header={"submodel_id": 1, "material_list": ["b"]})
    return {
        "one": BundleSeed((plain,), [instance(0, "one")]),
        "with physics": BundleSeed((physics, physics), [instance(1, "one"), instance(0, "two")]),
        "rigged": BundleSeed((rigged,), [instance(0, "one")]),
        "split": BundleSeed((plain, part), [instance(0, "one"), instance(1, "oneb")]),
        "many": BundleSeed((plain, rigged), [instance(number % 2, f"copy {number}") for number in range(3)]),
    }
