"""Second Life files made without the package: values by the ``llsd`` library, arrays by ``struct``."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import llsd

PREFIX = b"<? LLSD/Binary ?>"
ORDER = ("skin", "physics_convex", "lowest_lod", "low_lod", "medium_lod", "high_lod", "physics_mesh")

IDENTITY = [1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0]


def binary(value: Any) -> bytes:
    """Return a value as the library writes it, without the text that it puts in front."""
    text: bytes = llsd.format_binary(value)
    return text[text.index(b"\n") + 1 :]


def plain(data: bytes) -> Any:
    """Return the value that the library reads."""
    return llsd.parse_binary(data)


def shorts(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def reals(*values: float) -> list[float]:
    return [float(value) for value in values]


def domain(least: Sequence[float], most: Sequence[float]) -> dict[str, list[float]]:
    return {"Max": reals(*most), "Min": reals(*least)}


def square(**changes: Any) -> dict[str, Any]:
    """Return a face of four vertices and two triangles in the plane z = 0; None as a change takes a key away."""
    face = {
        "Normal": shorts(32767, 32767, 65535) * 4,
        "Position": shorts(0, 0, 0, 65535, 0, 0, 65535, 65535, 0, 0, 65535, 0),
        "PositionDomain": domain((-0.5, -0.5, 0), (0.5, 0.5, 0)),
        "TexCoord0": shorts(0, 0, 65535, 0, 65535, 65535, 0, 65535),
        "TexCoord0Domain": domain((0, 0), (1, 1)),
        "TriangleList": shorts(0, 1, 2, 0, 2, 3),
        **changes,
    }
    return {key: face[key] for key in sorted(face) if face[key] is not None}


def influences(*vertices: Iterable[tuple[int, int]]) -> bytes:
    """Return the weights of vertices, each as pairs of a joint and a weight."""
    data = b""
    for pairs in vertices:
        held = list(pairs)
        data += b"".join(struct.pack("<BH", joint, weight) for joint, weight in held)
        data += b"\xff" * (len(held) < 4)
    return data


def skin(names: Sequence[str] = ("mPelvis", "mTorso"), **changes: Any) -> dict[str, Any]:
    """Return a rig whose joints all lie in the origin."""
    block = {
        "bind_shape_matrix": reals(*IDENTITY),
        "inverse_bind_matrix": [reals(*IDENTITY) for _ in names],
        "joint_names": list(names),
        **changes,
    }
    return {key: block[key] for key in sorted(block) if block[key] is not None}


def hulls(**changes: Any) -> dict[str, Any]:
    """Return a physics shape that is only a square around everything."""
    block = {**domain((-0.5, -0.5, 0), (0.5, 0.5, 0)), "BoundingVerts": square()["Position"], **changes}
    return {key: block[key] for key in sorted(block) if block[key] is not None}


def asset(
    blocks: Mapping[str, Any] | None = None,
    *,
    header: Mapping[str, Any] | None = None,
    stored: Mapping[str, bytes] | None = None,
    order: Sequence[str] = ORDER,
    gap: bytes = b"",
    prefix: bytes = b"",
    trailing: bytes = b"",
) -> bytes:
    """Return a mesh asset.

    ``header`` has further keys, or replaces those of blocks; ``stored`` has the bytes of blocks as they are stored in
    the file; ``gap`` precedes each block.
    """
    values = {"high_lod": [square()], "physics_convex": hulls()} if blocks is None else blocks
    packed = {key: zlib.compress(binary(value), 9) for key, value in values.items()} | dict(stored or {})
    entries: dict[str, Any] = {}
    area = b""
    for key in sorted(packed, key=lambda name: order.index(name) if name in order else len(order)):
        area += gap
        entries[key] = {"offset": len(area), "size": len(packed[key])}
        area += packed[key]
    entries |= header or {}
    return prefix + binary({key: entries[key] for key in sorted(entries)}) + area + trailing


def bundle(
    assets: Sequence[bytes], instances: Sequence[Mapping[str, Any]], *, version: Any = 3, marker: bytes = b"s"
) -> bytes:
    """Return a model bundle; ``marker`` is that of the assets in it."""
    meshes = b"".join(marker + struct.pack(">I", len(data)) + data for data in assets)
    pairs = {
        "instance": binary([dict(instance) for instance in instances]),
        "mesh": b"[" + struct.pack(">I", len(assets)) + meshes + b"]",
        "name": binary("box"),
        "version": binary(version),
    }
    content = b"".join(b"k" + struct.pack(">I", len(key)) + key.encode() + value for key, value in pairs.items())
    return b"{" + struct.pack(">I", len(pairs)) + content + b"}"


def instance(**changes: Any) -> dict[str, Any]:
    """Return an instance of the first mesh in a size of 2 x 1 x 0.5 m at (3, 0, 1)."""
    values = {
        "label": "crate",
        "material": [
            {
                "binding": "wood",
                "diffuse": {"color": reals(1, 0.5, 0, 1), "filename": "wood.png", "label": "wood"},
                "fullbright": False,
            }
        ],
        "mesh_id": 0,
        "transform": reals(2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0.5, 0, 3, 0, 1, 1),
        **changes,
    }
    return {key: values[key] for key in sorted(values) if values[key] is not None}
