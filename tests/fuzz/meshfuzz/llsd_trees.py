"""Values of LLSD that can be wrong in any way, and their bytes; made apart from the package's own codec."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[Any, ...]
"""Keys and numbers from the root to a value."""


@dataclass(frozen=True)
class Raw:
    """Bytes as they are, in the place of a value."""

    data: bytes


@dataclass(frozen=True)
class Text:
    """A string of any bytes; ``quote`` writes it as old servers did."""

    data: bytes
    quote: bytes = b""


@dataclass(frozen=True)
class Lied:
    """A value with another count or length in front than it has."""

    value: Any
    count: int


@dataclass(frozen=True)
class Pairs:
    """A map that may hold a key twice."""

    pairs: tuple[tuple[Any, Any], ...]


def encode(value: Any) -> bytes:
    """Return the bytes of a value."""
    if isinstance(value, Raw):
        return value.data
    if isinstance(value, Lied):
        content = encode(value.value)
        return content[:1] + struct.pack(">I", value.count & 0xFFFFFFFF) + content[5:]
    if value is None or isinstance(value, bool):
        return {None: b"!", True: b"1", False: b"0"}[value]
    if isinstance(value, int):
        return b"i" + struct.pack(">I", value & 0xFFFFFFFF)
    if isinstance(value, float):
        return b"r" + struct.pack(">d", value)
    if isinstance(value, str):
        return _counted(b"s", value.encode())
    if isinstance(value, Text):
        return value.quote + value.data + value.quote if value.quote else _counted(b"s", value.data)
    if isinstance(value, bytes):
        return _counted(b"b", value)
    if isinstance(value, list):
        return b"[" + struct.pack(">I", len(value)) + b"".join(map(encode, value)) + b"]"
    pairs = value.pairs if isinstance(value, Pairs) else tuple(value.items())
    content = b"".join(_key(key) + encode(inner) for key, inner in pairs)
    return b"{" + struct.pack(">I", len(pairs)) + content + b"}"


def _counted(marker: bytes, content: bytes) -> bytes:
    return marker + struct.pack(">I", len(content)) + content


def _key(key: Any) -> bytes:
    if isinstance(key, Text):
        return key.quote + key.data + key.quote if key.quote else _counted(b"k", key.data)
    return _counted(b"k", key.encode())


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """Yield the way to each value in a tree, to the tree itself first."""
    yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*here, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from paths(inner, (*here, number))


def at(value: Any, path: Path) -> Any:
    """Return the value at the end of a way."""
    for step in path:
        value = value[step]
    return value


def replaced(value: Any, path: Path, fresh: Any) -> Any:
    """Return a tree with another value at the end of a way."""
    if not path:
        return fresh
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], fresh)
    return copied
