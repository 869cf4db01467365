"""What a Timbermesh message may be wrapped in, rightly and wrongly, and streams that inflate to monsters."""

from __future__ import annotations

import contextlib
import functools
import gzip
import random
import zlib
from collections.abc import Callable

from . import raw, timbermesh_crowds, timbermesh_seeds
from .wire import encode, number, text, varint

_BLOCK = 1 << 20


def wrap(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Wrap a message; most of the time as the game wants it, so that the mutated message gets read."""
    if rng.random() < 0.6:
        return zlib.compress(content, 1), "zlib"
    how = rng.choice(_WRAPPINGS)
    return how(content, rng), how.__name__.strip("_")


def unwrap(data: bytes) -> bytes | None:
    """Return the message in a whole file, or None if the file is damaged or has another wrapping."""
    if data[:1] != b"\x78":
        return None
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(-15).decompress(data[2:])
    return None


def _levels(content: bytes, rng: random.Random) -> bytes:
    return zlib.compress(content, rng.choice((0, 1, 6, 9)))


def _no_checksum(content: bytes, rng: random.Random) -> bytes:
    return zlib.compress(content)[: -rng.choice((1, 2, 3, 4))]


def _wrong_checksum(content: bytes, rng: random.Random) -> bytes:
    return zlib.compress(content)[:-4] + rng.randbytes(4)


def _trailing(content: bytes, rng: random.Random) -> bytes:
    return zlib.compress(content) + rng.randbytes(rng.choice((1, 4, 100)))


def _damaged(content: bytes, rng: random.Random) -> bytes:
    return raw.mutate(zlib.compress(content), rng)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return raw.truncate(zlib.compress(content), rng)


def _header(content: bytes, rng: random.Random) -> bytes:
    header = rng.choice(
        (b"\x78\x01", b"\x78\x5e", b"\x78\xda", b"\x78\xbb", b"\x08\x1d", b"\x78\x00", b"\x88\x1c", rng.randbytes(2))
    )
    return header + zlib.compress(content)[2:]


def _bare(content: bytes, rng: random.Random) -> bytes:
    return content


def _bare_damaged(content: bytes, rng: random.Random) -> bytes:
    return raw.mutate(content, rng)


def _gzip(content: bytes, rng: random.Random) -> bytes:
    packed = gzip.compress(content, 1, mtime=0)
    pick = rng.randrange(4)
    if pick == 0:
        return raw.mutate(packed, rng)
    if pick == 1:
        return packed + packed
    if pick == 2:  # with a file name, extra field and comment
        return packed[:3] + b"\x1c" + packed[4:10] + b"\x04\x00abcd" + b"name\x00" + b"comment\x00" + packed[10:]
    return packed


def _twice(content: bytes, rng: random.Random) -> bytes:
    return zlib.compress(zlib.compress(content))


def _prefab(content: bytes, rng: random.Random) -> bytes:
    digits = zlib.compress(content).hex().encode()
    digits = rng.choice(
        (digits, digits.upper(), digits[:-1], digits[: rng.randrange(len(digits) + 1)], b"", b"zz" + digits)
    )
    before = rng.choice(
        (b"%YAML 1.1\n%TAG !u! tag:unity3d.com,2011:\n--- !u!114 &1\n", b"", b"\xef\xbb\xbf%YAML 1.1\r\n", b" " * 5000)
    )
    key = rng.choice((b"  _bytes: ", b"_bytes:", b"  - _bytes: '", b"  _bytes: !!binary ", b"_bytes : ", b"x_bytes: "))
    return before + key + digits + rng.choice((b"\n", b"'\n  other: 1\n", b"", b"\n" + key + digits))


def _prefab_damaged(content: bytes, rng: random.Random) -> bytes:
    return raw.mutate(_prefab(content, rng), rng)


Wrapping = Callable[[bytes, random.Random], bytes]
_WRAPPINGS: tuple[Wrapping, ...] = (
    _levels, _no_checksum, _wrong_checksum, _trailing, _damaged, _damaged, _cut, _header, _bare, _bare_damaged,
    _gzip, _twice, _prefab, _prefab_damaged,
)  # fmt: skip


def bomb(rng: random.Random) -> tuple[bytes, str]:
    """Return a small file that becomes very much, in one of several shapes."""
    if rng.random() < 0.5:
        return timbermesh_crowds.crowd(rng)
    mebibytes = rng.choice((1, 8, 30, 60, 63, 65, 200, 1000))
    shape = rng.choice(sorted(BOMBS))
    data = BOMBS[shape](mebibytes)
    if rng.random() < 0.1:
        return zlib.compress(data), f"bomb in a bomb: {shape} {mebibytes} MiB"
    return data, f"bomb: {shape} {mebibytes} MiB"


def repeated(before: bytes, block: bytes, times: int, after: bytes = b"") -> bytes:
    """Return a zlib stream of ``before``, ``times`` times the block, and ``after``, without ever holding all of it.

    A fully flushed piece of deflate can stand anywhere, so one compressed block is repeated; the checksum is left out.
    """
    end = zlib.compressobj(1, zlib.DEFLATED, -15)
    return b"".join(
        (b"\x78\x9c", _flushed(before), _flushed(block) * times, end.compress(after), end.flush(zlib.Z_FINISH))
    )


@functools.lru_cache(maxsize=64)
def _flushed(piece: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(piece) + stream.flush(zlib.Z_FULL_FLUSH)


def _filled(unit: bytes) -> bytes:
    return unit * (_BLOCK // len(unit))


def _inside(path: tuple[int, ...], size: int) -> bytes:
    """Return the tags and lengths that open messages inside each other, the innermost of ``size`` bytes."""
    opening = b""
    for depth in reversed(range(len(path))):
        if depth == 0 and len(path) > 1:
            opening = number(1, -1).encode() + opening  # a root: without a parent, node 0 would be its own
        opening = varint(path[depth] << 3 | 2) + varint(size + len(opening)) + opening
    return opening


def _within(path: tuple[int, ...], unit: bytes, mebibytes: int) -> bytes:
    block = _filled(unit)
    return repeated(_inside(path, len(block) * mebibytes), block, mebibytes)


def _data_bomb(mebibytes: int) -> bytes:
    """Return a node with one property of zeros and the vertex count that fits it: nothing about it is wrong."""
    size = mebibytes * _BLOCK
    count = size // 12
    head = encode([text(1, "position"), number(2, 4), number(3, 3)]) + b"\x22" + varint(count * 12)
    before = (
        encode([number(1, -1), text(2, "Large"), number(6, count)])
        + varint(7 << 3 | 2)
        + varint(len(head) + count * 12)
        + head
    )
    node = varint(3 << 3 | 2) + varint(len(before) + count * 12) + before
    return repeated(node, bytes(_BLOCK), mebibytes - 1, bytes(count * 12 - (mebibytes - 1) * _BLOCK))


def _index_bomb(mebibytes: int) -> bytes:
    """Return a three-vertex node and as many zero indices as fit."""
    count = mebibytes * _BLOCK // 3 * 3
    before = encode([number(1, -1), text(2, "Large"), number(6, 3), timbermesh_seeds.vertex_property("position", 3, 3)])
    head = varint(1 << 3 | 2) + varint(count)
    before += varint(8 << 3 | 2) + varint(len(head) + count) + head
    node = varint(3 << 3 | 2) + varint(len(before) + count) + before
    return repeated(node, bytes(_BLOCK), mebibytes - 1, bytes(count - (mebibytes - 1) * _BLOCK))


BOMBS: dict[str, Callable[[int], bytes]] = {
    "zeros": lambda n: repeated(b"", bytes(_BLOCK), n),
    "nodes": lambda n: repeated(b"", _filled(b"\x1a\x00"), n),
    "properties": lambda n: _within((3,), b"\x3a\x00", n),
    "frames": lambda n: _within((3, 10), b"\x1a\x00", n),
    "indices": _index_bomb,
    "loose": lambda n: _within((3, 8), b"\x08\x00", n),
    "data": _data_bomb,
    "texts": lambda n: _within((3, 2), b"n", n),
    "poses": lambda n: _within((3, 10), timbermesh_crowds.POSE, n),
    "groups": lambda n: repeated(b"", _filled(b"\x5b"), n),
}
