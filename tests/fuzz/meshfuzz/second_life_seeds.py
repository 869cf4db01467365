"""Small Second Life files, put together value by value from the format page, not by our writer."""

from __future__ import annotations

import functools
import math
import struct
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        return zlib.compress(self.prefix + encode(self.value), 9) if self.stored is None else self.stored


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
    gap: bytes = b""
    """Precedes each block."""

    def pack(self) -> bytes:
        return self._packed

    @functools.cached_property
    def _packed(self) -> bytes:
        entries: dict[str, Value] = {}
        area = b""
        for key, block in self.blocks.items():
            area += self.gap
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
        return bundle([mesh.pack() for mesh in self.meshes], self.instances, **self.extra)


Seed = AssetSeed | BundleSeed


# -- files ----------------------------------------------------------------------------------------


def asset(
    blocks: Mapping[str, Value] | None = None,
    *,
    stored: Mapping[str, bytes] | None = None,
    order: Sequence[str] = ORDER,
    **fields: Any,
) -> bytes:
    """Return a mesh asset; ``stored`` has the bytes of blocks as they are stored in the file."""
    values = {"high_lod": [square()], "physics_convex": hulls()} if blocks is None else blocks
    packed = {key: Block(value) for key, value in values.items()}
    packed |= {key: Block(stored=content) for key, content in (stored or {}).items()}
    ordered = sorted(packed, key=lambda name: order.index(name) if name in order else len(order))
    return AssetSeed({key: packed[key] for key in ordered}, **fields).pack()


def bundle(
    assets: Sequence[bytes], instances: Value, *, marked: Callable[[bytes], Value] = Text, **more: Value
) -> bytes:
    """Return a model bundle; ``marked`` makes values of the assets in it."""
    meshes = [marked(data) for data in assets]
    return encode(_with_changes({"instance": instances, "mesh": meshes, "name": "box", "version": 3}, more))


# -- values ---------------------------------------------------------------------------------------


def _with_changes(values: Mapping[str, Value], changes: Mapping[str, Value]) -> dict[str, Value]:
    """Return a map with sorted keys."""
    return dict(sorted({**values, **changes}.items()))


def _given(values: Mapping[str, Value], changes: Mapping[str, Value]) -> dict[str, Value]:
    """Return a map with sorted keys; None as a change takes a key away."""
    return {key: value for key, value in _with_changes(values, changes).items() if value is not None}


def shorts(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}H", *(int(value) & 65535 for value in values))


def reals(*values: float) -> list[float]:
    return [float(value) for value in values]


def domain(least: Sequence[float], most: Sequence[float]) -> dict[str, list[float]]:
    return {"Max": reals(*most), "Min": reals(*least)}


def matrix(place: Sequence[float] = (0, 0, 0), scale: Sequence[float] = (1, 1, 1)) -> list[float]:
    """Return a matrix as the file has it: rows, for row vectors."""
    return reals(scale[0], 0, 0, 0, 0, scale[1], 0, 0, 0, 0, scale[2], 0, *place, 1)


IDENTITY = matrix()


def influences(*vertices: Iterable[tuple[int, int]]) -> bytes:
    """Return the weights of vertices, each as pairs of a joint and a weight."""
    data = b""
    for pairs in vertices:
        held = list(pairs)
        data += b"".join(struct.pack("<BH", joint, weight) for joint, weight in held)
        data += b"\xff" * (len(held) < 4)
    return data


def face(
    positions: Sequence[float], normals: Sequence[int], uvs: Sequence[int], triangles: Sequence[int], **changes: Value
) -> dict[str, Value]:
    """Return a face in a unit cube around the origin; None as a change takes a key away."""
    values = {
        "Normal": shorts(*normals),
        "Position": shorts(*positions),
        "PositionDomain": domain((-0.5,) * 3, (0.5,) * 3),
        "TexCoord0": shorts(*uvs),
        "TexCoord0Domain": domain((0, 0), (1, 1)),
        "TriangleList": shorts(*triangles),
    }
    return _given(values, changes)


def square(**changes: Value) -> dict[str, Value]:
    """Return a face of four vertices and two triangles in the plane z = 0."""
    positions = (0, 0, 0, 65535, 0, 0, 65535, 65535, 0, 0, 65535, 0)
    uvs = (0, 0, 65535, 0, 65535, 65535, 0, 65535)
    flat = {"PositionDomain": domain((-0.5, -0.5, 0), (0.5, 0.5, 0))}
    return face(positions, (32767, 32767, 65535) * 4, uvs, (0, 1, 2, 0, 2, 3), **{**flat, **changes})


def ring(count: int, *, joints: int = 0) -> dict[str, Value]:
    """Return a face: a fan around its first vertex, with the weights of so many joints."""
    angles = [2 * math.pi * number / (count - 1) for number in range(count - 1)]
    outer = [((math.cos(a) + 1) * 32767, (math.sin(a) + 1) * 32767) for a in angles]
    held = ([(slot % joints, 65535 // (n % 5)) for slot in range(n % 5)] for n in range(count))
    return face(
        [32768, 32768, 65535] + [round(value) for x, y in outer for value in (x, y, 0)],
        [32767, 32767, 65535] * count,
        [number * 977 for number in range(2 * count)],
        [corner for number in range(1, count - 1) for corner in (0, number, number + 1)],
        NormalizedScale=[2.0, 1.0, 0.5],
        PositionDomain=domain((-0.5, -0.5, -0.25), (0.5, 0.5, 0.5)),
        TexCoord0Domain=domain((0, -1), (1, 3)),
        Weights=influences(*held) if joints else None,
    )


def skin(names: Sequence[str] = ("mPelvis", "mTorso"), **changes: Value) -> dict[str, Value]:
    """Return a rig whose joints are all in the origin."""
    inverse = [IDENTITY for _ in names]
    values = {"bind_shape_matrix": IDENTITY, "inverse_bind_matrix": inverse, "joint_names": list(names)}
    return _given(values, changes)


JOINTS = ("mPelvis", "mTorso", "mShoulderLeft", "mShoulderRight", "BELLY", "mNobody")


def rig(*, overrides: bool = False) -> dict[str, Value]:
    """Return a rig of six joints, of which viewers do not know one."""
    count = len(JOINTS)
    changes: dict[str, Value] = {
        "bind_shape_matrix": matrix((0, 0, 1), (0.5, 0.5, 0.5)),
        "inverse_bind_matrix": [matrix((0, 0.1 * number, -1)) for number in range(count)],
    }
    if overrides:
        changes["alt_inverse_bind_matrix"] = [matrix((0, 0.1, 0.05 * number)) for number in range(count)]
        changes |= {"lock_scale_if_joint_position": True, "pelvis_offset": 0.1}
    return skin(JOINTS, **changes)


def hulls(**changes: Value) -> dict[str, Value]:
    """Return a physics shape that is only a square around everything."""
    around = {**domain((-0.5, -0.5, 0), (0.5, 0.5, 0)), "BoundingVerts": square()["Position"]}
    return _given(around, changes)


def shape(counts: Sequence[int] = ()) -> dict[str, Value]:
    """Return a physics shape with hulls of so many points."""
    found = hulls(BoundingVerts=ring(8)["Position"], **domain((-0.5,) * 3, (0.5,) * 3))
    if counts:
        found["HullList"] = bytes(count % 256 for count in counts)
        found["Positions"] = shorts(*(number * 7919 for number in range(3 * sum(counts))))
    return _given(found, {})


def seed(
    faces: Sequence[Value], *, levels: Sequence[str] = LEVELS, more: dict[str, Value] | None = None, **keys: Any
) -> AssetSeed:
    """Return an asset that has these faces in each of some levels."""
    values: dict[str, Value] = {"physics_convex": shape(), **{level: list(faces) for level in levels}, **(more or {})}
    return AssetSeed({key: Block(values[key]) for key in ORDER if key in values}, **keys)


def instance(**changes: Value) -> dict[str, Value]:
    """Return an instance of the first mesh in a size of 2 x 1 x 0.5 m at (3, 0, 1)."""
    diffuse = {"color": reals(1, 0.5, 0, 1), "filename": "wood.png", "label": "wood"}
    values = {
        "label": "crate",
        "material": [{"binding": "wood", "diffuse": diffuse, "fullbright": False}],
        "mesh_id": 0,
        "transform": matrix((3, 0, 1), (2, 1, 0.5)),
    }
    return _given(values, changes)


def _placed(mesh: int, label: str) -> dict[str, Value]:
    diffuse = {"color": [1.0, 0.5, 0.25, 1.0], "filename": "wood.png", "label": "wood"}
    material = [{"binding": name, "diffuse": diffuse, "fullbright": name == "b"} for name in ("a", "b")]
    return instance(label=label, material=material, mesh_id=mesh, transform=matrix((1, 2, 3), (2, 2, 2)))


# -- seeds ----------------------------------------------------------------------------------------


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
        "fan": seed([ring(6)]),
        "high only": seed([ring(4)], levels=("high_lod",)),
        "faces": seed([ring(5), NO_GEOMETRY, ring(7)], more={"physics_convex": shape((4, 6, 256))}),
        "eleven faces": seed([ring(4)] * 11),
        "physics": seed([ring(5), ring(4)], more={"physics_mesh": [physics, NO_GEOMETRY]}),
        "rigged": seed([rigged], more={"skin": rig()}),
        "overrides": seed([rigged, rigged], more={"skin": rig(overrides=True)}, trailing=b"more"),
        "server": seed([ring(5)], header=server),
        "submodel": seed([ring(5)], more={"physics_convex": None}, header={"submodel_id": 1, "material_list": ["a"]}),
        "prefix": AssetSeed(old, prefix=PREFIX + b"\n"),
        "old physics": seed([ring(5)]),
    }
    plain = found["old physics"]
    return found | {"old physics": AssetSeed({**plain.blocks, "physics_shape": Block([physics])})}


def bundles() -> dict[str, BundleSeed]:
    """Return a seed for each kind of bundle."""
    plain = seed([ring(5), ring(4)], header={"material_list": ["a", "b"]})
    physics = seed([ring(4)], more={"physics_mesh": [ring(4)]}, header={"material_list": ["a"]})
    rigged = seed([ring(6, joints=len(JOINTS))], more={"skin": rig(overrides=True)}, header={"material_list": ["a"]})
    part = seed([ring(5)], more={"physics_convex": None}, header={"submodel_id": 1, "material_list": ["b"]})
    return {
        "one": BundleSeed((plain,), [_placed(0, "one")]),
        "with physics": BundleSeed((physics, physics), [_placed(1, "one"), _placed(0, "two")]),
        "rigged": BundleSeed((rigged,), [_placed(0, "one")]),
        "split": BundleSeed((plain, part), [_placed(0, "one"), _placed(1, "oneb")]),
        "many": BundleSeed((plain, rigged), [_placed(number % 2, f"copy {number}") for number in range(3)]),
    }
