"""Hostile Second Life files: seeds with values, keys, counts, blocks or places changed, and blocks that never end."""

from __future__ import annotations

import math
import random
import struct
import zlib
from dataclasses import replace
from typing import Any

from . import raw
from .llsd_trees import Lied, Pairs, Path, Raw, Text, at, encode, paths, replaced
from .second_life_seeds import ORDER, PREFIX, AssetSeed, Block, BundleSeed, Seed, ring, seed

_INTEGERS = (0, 1, 2, 3, -1, 4, 8, 255, 256, 999, 1000, 65535, 65536, 2**24, 2**31 - 1, -(2**31))
_REALS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-45, 1e-30, 1e9, 8e27, 3e38, 1e39, 1e308, float("nan"), float("inf"))
_COUNTS = (0, 1, 2, 3, 16, 255, 65536, 2**24, 2**28, 2**31 - 1, 2**31, 2**32 - 1)
_SHORTS = (0, 1, 2, 3, 4, 255, 32767, 32768, 65534, 65535)
_KEYS = (
    *ORDER,
    *("physics_shape", "physics_havok", "404", "version", "submodel_id", "material_list", "offset", "size", "hash"),
    *("NoGeometry", "Position", "PositionDomain", "Normal", "TexCoord0", "TexCoord0Domain", "TriangleList", "Weights"),
    *("NormalizedScale", "Min", "Max", "HullList", "Positions", "BoundingVerts", "joint_names", "pelvis_offset"),
    *("inverse_bind_matrix", "bind_shape_matrix", "alt_inverse_bind_matrix", "instance", "mesh", "mesh_id", "label"),
    *("transform", "material", "binding", "diffuse", "color", "filename", "fullbright", ""),
)
_VALUES: tuple[Any, ...] = (None, True, False, 0, -1, 1.5, "text", b"", b"\0\0", [], {}, [[]], Text(b"\xff\xda"))


def mutate(seed: Seed, rng: random.Random) -> bytes:
    """Return the bytes of a file with one to a few things changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        seed = _changed_asset(seed, rng) if isinstance(seed, AssetSeed) else _changed_bundle(seed, rng)
    return seed.pack()


def _changed_bundle(seed: BundleSeed, rng: random.Random) -> BundleSeed:
    choice = rng.random()
    meshes = seed.meshes
    if choice < 0.45 and meshes:
        number = rng.randrange(len(meshes))
        changed = _changed_asset(meshes[number], rng)
        return replace(seed, meshes=(*meshes[:number], changed, *meshes[number + 1 :]))
    if choice < 0.85:
        instances = changed_value(seed.instances, rng)
        # Each is an object to be made; thousands take their time, and are not what breaks.
        return replace(seed, instances=instances[:20] if isinstance(instances, list) else instances)
    if choice < 0.92:
        return replace(seed, meshes=rng.choice((meshes * 2, meshes[1:], meshes[::-1], meshes + meshes[:1] * 40)))
    key = rng.choice(("mesh", "instance", "version", "name", "more"))
    return replace(seed, extra={**seed.extra, key: rng.choice((*_VALUES, *_INTEGERS))})


def _changed_asset(seed: AssetSeed, rng: random.Random) -> AssetSeed:
    choice = rng.random()
    key = rng.choice(list(seed.blocks)) if seed.blocks else ""
    if key and choice < 0.7:
        return replace(seed, blocks={**seed.blocks, key: _changed_block(seed.blocks[key], rng)})
    if key and choice < 0.8:
        offset, size = seed.places.get(key, (0, 0))
        shifted = (offset + _shift(rng), size) if rng.random() < 0.5 else (offset, size + _shift(rng))
        return replace(seed, places={**seed.places, key: shifted})
    if choice < 0.9:
        name = rng.choice(_KEYS)
        entry = {"offset": rng.choice(_INTEGERS), "size": rng.choice(_INTEGERS)}
        value = rng.choice((entry, *_VALUES, rng.choice(_INTEGERS), ["m" * 63] * 70, "x" * rng.choice((100, 5000))))
        return replace(seed, header={**seed.header, name: value})
    if choice < 0.96:
        names = list(seed.blocks)
        rng.shuffle(names)
        kept = names[: rng.randrange(len(names) + 1)] if rng.random() < 0.5 else names
        return replace(seed, blocks={name: seed.blocks[name] for name in kept})
    return replace(
        seed,
        prefix=rng.choice((b"", PREFIX, PREFIX + b" \n\t ", PREFIX[:9])),
        trailing=rng.randbytes(rng.choice((0, 9))),
    )


def _shift(rng: random.Random) -> int:
    return rng.choice((-1000, -20, -2, -1, 1, 2, 20, 1000, 2**24, 2**31))


def _changed_block(block: Block, rng: random.Random) -> Block:
    """Change a block's value, or how it is packed."""
    choice = rng.random()
    if choice < 0.85 or block.stored is not None:
        return replace(block, value=changed_value(block.value, rng), stored=None)
    content = encode(block.value)
    packed = zlib.compress(content)
    stored = rng.choice(
        (
            content,
            packed[:-3],
            packed[: len(packed) // 2],
            packed + b"more",
            raw.mutate(packed, rng),
            b"",
            zlib.compress(raw.mutate(content, rng)),
            zlib.compress(content + rng.randbytes(9)),
            b"\x1f\x8b\x08\0" + packed,
        )
    )
    return replace(block, stored=stored)


def changed_value(value: Any, rng: random.Random) -> Any:
    """Return a tree with one value changed, and half of the time one of a kind that is chosen first."""
    ways = list(paths(value))
    if rng.random() < 0.5:
        kinds: dict[str, list[Path]] = {}
        for way in ways:
            kinds.setdefault(type(at(value, way)).__name__, []).append(way)
        ways = kinds[rng.choice(sorted(kinds))]
    way = rng.choice(ways)
    return replaced(value, way, _fresh(at(value, way), rng))


def _fresh(value: Any, rng: random.Random) -> Any:
    choice = rng.random()
    if choice < 0.08:
        return rng.choice(_VALUES)
    if choice < 0.11:
        return Raw(raw.mutate(encode(value), rng))
    if choice < 0.16 and isinstance(value, str | bytes | list | dict):
        return Lied(value, rng.choice(_COUNTS))
    if choice < 0.18:
        depth = rng.choice((5, 90, 200, 5000))
        return Raw(b"[\0\0\0\1" * depth + encode(value) + b"]" * depth)
    if choice < 0.2:
        return Text(rng.choice((b"a\\'b", b"\\x41", b"\\", b"no end")), quote=rng.choice((b"'", b'"')))
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, float(value), rng.choice(_INTEGERS)))
    if isinstance(value, float):
        return rng.choice((rng.choice(_REALS), -value, int(value) if math.isfinite(value) else 0, value * 10))
    if isinstance(value, str):
        return rng.choice((value.upper(), "", value * 300, "mPelvis", "\0", Text(b"\xff\xfe"), "Ж"))
    if isinstance(value, bytes):
        return _fresh_bytes(value, rng)
    if isinstance(value, list):
        return _fresh_list(value, rng)
    return _fresh_map(value, rng) if isinstance(value, dict) else None


def _fresh_bytes(data: bytes, rng: random.Random) -> bytes:
    choice = rng.random()
    if choice < 0.3:
        return raw.mutate(data, rng)
    if choice < 0.4:
        return data * rng.choice((2, 3, 50, 300))
    if choice < 0.5:
        return data[: rng.randrange(len(data) + 1)]
    if choice < 0.55:
        return rng.choice((b"\0", b"\xff", b"\1\2\3\4\5\6")) * rng.choice((6, 1000, 65536, 200_000))
    fresh = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if len(fresh) >= 2:
            place = 2 * rng.randrange(len(fresh) // 2)
            fresh[place : place + 2] = struct.pack("<H", rng.choice(_SHORTS))
    return bytes(fresh)


def _fresh_list(values: list[Any], rng: random.Random) -> list[Any]:
    if not values:
        return [rng.choice(_VALUES)]
    place = rng.randrange(len(values))
    choice = rng.random()
    if choice < 0.35:
        return values[:place] + values[place + 1 :]
    if choice < 0.7:
        return values[:place] + [values[place]] * rng.choice((2, 3, 20)) + values[place + 1 :]
    if choice < 0.75:
        return [values[place]] * rng.choice((300, 3000))
    return values[place:] + values[:place]


def _fresh_map(values: dict[str, Any], rng: random.Random) -> Any:
    choice = rng.random()
    key = rng.choice(list(values)) if values else ""
    if values and choice < 0.4:
        return {name: inner for name, inner in values.items() if name != key}
    if values and choice < 0.55:
        return {(rng.choice(_KEYS) if name == key else name): inner for name, inner in values.items()}
    if values and choice < 0.65:
        return dict(reversed(values.items()))
    if choice < 0.75:
        odd: Any = rng.choice((Text(b"\xff"), Text(b"a\\'", b"'"), key))
        return Pairs((*values.items(), (odd, rng.choice(_VALUES))))
    return {**values, rng.choice(_KEYS): rng.choice(_VALUES)}


def bomb(rng: random.Random) -> tuple[bytes, str]:
    """Return an asset with a block that inflates to far more than the file, or holds far more values."""
    count = rng.choice((10**6, 10**7, 3 * 10**7, 10**8))
    kind = rng.choice(("zeros", "values", "nested", "long strings", "positions", "faces", "hulls"))
    head = struct.pack(">I", count)
    content = {
        "zeros": bytes(count),
        "values": b"[" + head + b"!" * count + b"]",
        "nested": b"[\0\0\0\1" * (count // 5),
        "long strings": b"[" + struct.pack(">I", count // 4) + rb"'\a'" * (count // 4) + b"]",
        "positions": encode([{**ring(4), "Position": bytes(count), "Normal": bytes(count), "Weights": bytes(count)}]),
        "faces": b"[" + struct.pack(">I", 6000) + encode(ring(4)) * 6000 + b"]",
        "hulls": encode({"HullList": b"\1" * (count // 10), "Positions": bytes(6 * (count // 10))}),
    }[kind]
    packed = zlib.compress(content, 1)
    key = "physics_convex" if kind == "hulls" else "high_lod"
    whole = seed([ring(5)])
    return replace(whole, blocks={**whole.blocks, key: Block(stored=packed)}).pack(), f"bomb of {count:,} {kind}"
