"""Binary files as rows of typed values, which can be changed one by one and put together again."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Token:
    """One value, one array or one block of a file."""

    kind: str
    """magic, cint, i32, i64, text, text32, floats, shorts, bytes, block, offset"""
    data: bytes = b""
    parts: tuple[Token, ...] = field(default=(), repr=False)
    """Of a block: its content."""
    number: int = 0
    """Of an offset: which block it points at."""
    pack: Callable[[bytes], bytes] | None = None
    """Of a block: how its content is stored; None: as it is."""


def encode(tokens: Iterable[Token]) -> bytes:
    """Return the bytes of a file; offsets of blocks that no longer exist are 0."""
    row = list(tokens)
    starts: list[int] = []
    pieces = []
    at = 0
    for token in row:
        piece = _encode_block(token) if token.kind == "block" else token.data
        if token.kind == "block":
            starts.append(at)
        elif token.kind == "offset" and not token.data:
            piece = bytes(8)  # the blocks stand before their offsets
            if token.number < len(starts):
                piece = struct.pack("<q", starts[token.number])
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _encode_block(block: Token) -> bytes:
    if block.data:  # an inconsistent header before the original content
        content = encode(block.parts)
        return block.data + content
    content = encode(block.parts)
    stored = block.pack(content) if block.pack else content
    if len(stored) >= len(content):
        stored = content
    return struct.pack("<qq", len(content), len(stored)) + stored


def magic(text: str) -> Token:
    return Token("magic", text.encode("ascii"))


def cint(value: int, *, short: bool = False) -> Token:
    """Return a compact integer as the engine writes it; ``short`` takes the fewest bytes instead."""
    return Token("cint", compact(value, short=short))


def compact(value: int, *, short: bool = False, length: int = 0) -> bytes:
    """Return a compact integer, of so many bytes where that is given (section 2.1 of docs/formats/unigine.md)."""
    rest = abs(value)
    least = 1
    while least < 9 and (1 << (6 + 7 * (least - 1))) - (0 if short else 1) <= rest:
        least += 1
    count = length or least
    groups = [(rest & 63) | (64 if value < 0 else 0)]
    rest >>= 6
    for _ in range(count - 1):
        groups.append(rest & 127)
        rest >>= 7
    return bytes([group | 128 for group in groups[:-1]] + groups[-1:])


def i32(value: int) -> Token:
    return Token("i32", struct.pack("<i", value))


def i64(value: int) -> Token:
    return Token("i64", struct.pack("<q", value))


def text(value: str) -> Token:
    data = value.encode() + b"\0"
    return Token("text", compact(len(data)) + data)


def text32(value: str) -> Token:
    data = value.encode() + b"\0"
    return Token("text32", struct.pack("<i", len(data)) + data)


def floats(*values: float) -> Token:
    return Token("floats", struct.pack(f"<{len(values)}f", *values))


def shorts(*values: int) -> Token:
    return Token("shorts", b"".join(struct.pack("<H", value & 65535) for value in values))


def plain(*values: int) -> Token:
    return Token("bytes", bytes(values))


def block(parts: Sequence[Token], pack: Callable[[bytes], bytes] | None = None) -> Token:
    return Token("block", parts=tuple(parts), pack=pack)


def offset(number: int) -> Token:
    return Token("offset", number=number)


def changed(token: Token, data: bytes) -> Token:
    return replace(token, data=data)


@functools.lru_cache(maxsize=256)
def lz4(content: bytes) -> bytes:
    """Return a content as one raw LZ4 block: greedy matches of four bytes and more, the last bytes as they are."""
    packed = bytearray()
    places: dict[bytes, int] = {}
    start = at = 0
    while at < len(content) - 12:
        four = content[at : at + 4]
        before = places.get(four, -1)
        places[four] = at
        if before < 0 or at - before > 65535:
            at += 1
            continue
        length = 4
        while at + length < len(content) - 5 and content[before + length] == content[at + length]:
            length += 1
        packed += _sequence(content[start:at], at - before, length)
        at += length
        start = at
    return bytes(packed + _sequence(content[start:], 0, 0))


def _sequence(literals: bytes, distance: int, length: int) -> bytes:
    run, match = len(literals), length - 4 if length else 0
    head = bytes([min(run, 15) << 4 | min(match, 15)])
    ended = head + _more(run) + literals
    return ended + struct.pack("<H", distance) + _more(match) if length else ended


def _more(number: int) -> bytes:
    if number < 15:
        return b""
    return b"\xff" * ((number - 15) // 255) + bytes([(number - 15) % 255])
