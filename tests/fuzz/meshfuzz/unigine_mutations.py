"""Hostile UNIGINE files: seeds with values, counts, blocks or whole parts changed, and blocks that promise too much."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from . import raw, unigine_seeds
from .tokens import Token, block, changed, cint, compact, encode, lz4, magic, offset
from .unigine_seeds import Row

_COUNTS = (0, 1, 2, 3, 4, 5, 62, 63, 64, 127, 255, 256, 8190, 8191, 65535, 65536, 10**6, 2**28, 2**31 - 1, 2**31, -1)
_LONGS = (0, 1, 15, 16, 17, 255, 4096, 2**20, 2**31, 2**40, 2**62, -1, -(2**63))
_SHORTS = (0, 1, 2, 255, 256, 1000, 32767, 32768, 65534, 65535)
_FLOATS = (0.0, -0.0, 1e-45, 1e-30, 1e9, 3e38, -3e38, float("nan"), float("inf"), float("-inf"))
_SIGNALLING = 0x7FA00000
_MAGICS = (
    *("ms02", "ms09", "ms10", "ms11", "ms12", "ms13", "ms14", "ms15", "ms16", "mr02", "sk10", "sk11"),
    *("sn10", "sn11", "an10", "an11", "an12", "an13", "an14", "\0\0\0\0"),
)


def mutate(row: Row, rng: random.Random) -> bytes:
    """Return the bytes of a file with one to a few of its values changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        row = _change(row, rng)
    return encode(row)


def _change(row: Row, rng: random.Random) -> Row:
    if not row:
        return row
    if rng.random() < 0.12:
        return rng.choice(_STRUCTURES)(row, rng)
    at = _pick(row, rng)
    token = row[at]
    if token.kind == "block":
        fresh = _change_block(token, rng)
    else:
        fresh = changed(token, _CHANGES.get(token.kind, raw.mutate)(token.data, rng))
    return [*row[:at], fresh, *row[at + 1 :]]


def _pick(row: Row, rng: random.Random) -> int:
    """Choose a value; half of the time of a kind that is chosen first, since arrays and flags are the most."""
    if rng.random() < 0.5:
        kind = rng.choice(sorted({token.kind for token in row}))
        return rng.choice([index for index, token in enumerate(row) if token.kind == kind])
    return rng.randrange(len(row))


def _cint(data: bytes, rng: random.Random) -> bytes:
    choice = rng.random()
    if choice < 0.2:
        return compact(_value(data) + rng.choice((-2, -1, 1, 2)))
    if choice < 0.3:
        return compact(_value(data), length=rng.choice((2, 3, 5, 6, 9)))  # longer than it needs to be
    return compact(rng.choice(_COUNTS), short=rng.random() < 0.2)


def _value(data: bytes) -> int:
    value, shift = (data[0] & 63 if data else 0), 6
    for byte in data[1:]:
        value |= (byte & 127) << shift
        shift += 7
    return value


def _i32(data: bytes, rng: random.Random) -> bytes:
    return struct.pack("<q", rng.choice(_COUNTS))[:4]


def _i64(data: bytes, rng: random.Random) -> bytes:
    return struct.pack("<q", rng.choice(_LONGS))


def _magic(data: bytes, rng: random.Random) -> bytes:
    return rng.choice(_MAGICS).encode("ascii") if rng.random() < 0.8 else raw.flip(data, rng)


def _text(data: bytes, rng: random.Random) -> bytes:
    content = rng.choice((b"", b"\0", b"a\0b\0", b"\xff\xfe\0", b"x" * 70 + b"\0", b"y" * 5000 + b"\0", b"no end"))
    lied = len(content) + rng.choice((0, 0, 0, 1, -1, 1000))
    return compact(max(0, lied)) + content


def _text32(data: bytes, rng: random.Random) -> bytes:
    content = _text(data, rng)[1:]
    return struct.pack("<i", rng.choice((len(content), len(content), -1, 2**31 - 1, 0))) + content


def _floats(data: bytes, rng: random.Random) -> bytes:
    if len(data) < 4 or rng.random() < 0.1:
        return raw.mutate(data, rng)
    fresh = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, len(data) // 4))):
        at = 4 * rng.randrange(len(data) // 4)
        odd = struct.pack("<I", _SIGNALLING) if rng.random() < 0.1 else struct.pack("<f", rng.choice(_FLOATS))
        fresh[at : at + 4] = odd
    return bytes(fresh)


def _shorts(data: bytes, rng: random.Random) -> bytes:
    if len(data) < 2 or rng.random() < 0.1:
        return raw.mutate(data, rng)
    fresh = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, len(data) // 2))):
        at = 2 * rng.randrange(len(data) // 2)
        fresh[at : at + 2] = struct.pack("<H", rng.choice(_SHORTS))
    return bytes(fresh)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    if not data or rng.random() < 0.2:
        return raw.mutate(data, rng)
    fresh = bytearray(data)
    fresh[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 127, 128, 255))
    return bytes(fresh)


def _offset(data: bytes, rng: random.Random) -> bytes:
    return struct.pack("<q", rng.choice(_LONGS) or 1)


_CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cint": _cint,
    "i32": _i32,
    "i64": _i64,
    "magic": _magic,
    "text": _text,
    "text32": _text32,
    "floats": _floats,
    "shorts": _shorts,
    "bytes": _bytes,
    "offset": _offset,
}


def _change_block(token: Token, rng: random.Random) -> Token:
    """Change a block's content, its sizes or how it is packed."""
    choice = rng.random()
    if choice < 0.6:
        return block(_change(list(token.parts), rng), token.pack)
    content = encode(token.parts)
    if choice < 0.75:
        header = struct.pack("<qq", len(content) + rng.choice((-1, 0, 1, 2**20, 2**40)), rng.choice(_LONGS))
        return changed(token, header)
    expanding = _expanding(len(content) + rng.choice((0, 1, 10**5)), rng)
    packed = raw.mutate(lz4(content), rng) if choice < 0.9 else expanding
    sizes = struct.pack("<qq", len(content) + rng.choice((0, 0, 0, -1, 1)), len(packed))
    return Token("bytes", sizes + packed)


def _expanding(size: int, rng: random.Random) -> bytes:
    """Return packed bytes that expand to so many, from matches that may reach before the beginning."""
    distance = rng.choice((0, 1, 1, 2, 65535))
    literals = b"\0" * rng.choice((0, 1, 4))
    rest = max(0, size - len(literals) - 4 - 15)
    run = b"\xff" * (rest // 255) + bytes([rest % 255])
    return bytes([len(literals) << 4 | 15]) + literals + struct.pack("<H", distance) + run


def bomb(rng: random.Random) -> tuple[bytes, str]:
    """Return a file whose packed block holds far more than the file: zeros, as the header says."""
    count = rng.choice((10**5, 10**6, 10**7, 2 * 10**8, 2**31 - 1))
    expanding = bytes([1 << 4 | 15]) + b"\0" + b"\1\0"
    run = min(12 * count // 255, rng.choice((1000, 10**5, 10**6)))
    packed = expanding + b"\xff" * run + b"\0"
    row: Row = [magic("ms14"), cint(4), unigine_seeds.BOUNDS, cint(0), cint(1)]
    row += [Token("text", b"\2s\0"), Token("bytes", b"\1\3"), cint(0), cint(0), unigine_seeds.BOUNDS]
    row += [cint(1), Token("text", b"\1\0"), cint(count), Token("i64", bytes(8)), magic("ms14")]
    sizes = struct.pack("<qq", rng.choice((1 + 4 + 15 + 255 * run, 12 * count + 6)), len(packed))
    row += [Token("bytes", sizes + packed), magic("ms14"), block(unigine_seeds.collision([])), magic("ms14")]
    return encode([*row, offset(0), magic("ms14")]), f"block that says {count:,} vertices"


def _drop(row: Row, rng: random.Random) -> Row:
    at = rng.randrange(len(row))
    return row[:at] + row[at + rng.choice((1, 1, 3)) :]


def _double(row: Row, rng: random.Random) -> Row:
    at = rng.randrange(len(row))
    part = row[at : at + rng.choice((1, 2, 5))]
    return row[:at] + part * rng.choice((2, 2, 30)) + row[at + len(part) :]


def _swap(row: Row, rng: random.Random) -> Row:
    one, other = sorted((rng.randrange(len(row)), rng.randrange(len(row))))
    if one == other:
        return row
    return [*row[:one], row[other], *row[one + 1 : other], row[one], *row[other + 1 :]]


def _end_early(row: Row, rng: random.Random) -> Row:
    return row[: rng.randrange(len(row))]


_STRUCTURES = (_drop, _double, _swap, _end_early)
