"""The frame rate of USD files.

Blender's importer uses times as frames and ignores their rate, and not every build of Blender has the Python library
of USD. So the layer's metadata is read here: ``timeCodesPerSecond``, or else ``framesPerSecond``, or else 24.

A layer is text, which starts with ``#usda``, or binary ("crate"), which starts with ``PXR-USDC``: a table of named
sections at an offset stored at byte 16; TOKENS are names, FIELDS pairs of a name and a value. An archive (.usdz) is a
.zip file without compression whose first member is the layer.
"""

from __future__ import annotations

import contextlib
import mmap
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ...io_formats.core.errors import FormatError
from ...io_formats.encodings import lz4_block

DEFAULT_RATE = 24.0
_NAMES = (b"timeCodesPerSecond", b"framesPerSecond")
_MOST_TEXT = 1 << 16
"""Number of bytes of a text layer that are searched for its metadata."""
_MOST_UNPACKED = 1 << 28
_TEXT_FIELD = re.compile(rb"^\s*(timeCodesPerSecond|framesPerSecond)\s*=\s*([0-9.eE+-]+)", re.MULTILINE)
_DOUBLE, _FLOAT = 9, 8
"""Types of values in binary layers."""


def frames_per_second(path: Path) -> float:
    """Return the frame rate of a file, or :data:`DEFAULT_RATE` if it has none or an invalid one."""
    stated: dict[bytes, float] = {}
    # Blender reports errors of damaged files.
    with contextlib.suppress(FormatError, ValueError, IndexError, OverflowError, struct.error), _layer(path) as data:
        stated = dict(_binary_fields(data) if data[:8] == b"PXR-USDC" else _text_fields(data[:_MOST_TEXT]))
    rates = [stated[name] for name in _NAMES if 0.001 <= stated.get(name, 0) <= 100_000]
    return rates[0] if rates else DEFAULT_RATE


@contextlib.contextmanager
def _layer(path: Path) -> Iterator[bytes | mmap.mmap]:
    """Open the layer in a file or archive; large ones are memory-mapped."""
    if path.suffix.lower() == ".usdz":
        try:
            with zipfile.ZipFile(path) as archive:
                data = archive.read(archive.infolist()[0])
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error, EOFError):
            data = b""
        yield data
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped


def _text_fields(text: bytes) -> Iterator[tuple[bytes, float]]:
    """Yield the rates in the metadata of a text layer."""
    head = re.split(rb"^(?:def|over|class)\b", text, maxsplit=1, flags=re.MULTILINE)[0]
    for name, number in _TEXT_FIELD.findall(head):
        yield name, float(number)


def _binary_fields(data: bytes | mmap.mmap) -> Iterator[tuple[bytes, float]]:
    """Yield the rates among the fields of a binary layer."""
    (table,) = struct.unpack_from("<q", data, 16)
    (count,) = struct.unpack_from("<Q", data, table)
    starts: dict[bytes, int] = {}
    for number in range(min(count, 64)):
        name, start, _ = struct.unpack_from("<16sqq", data, table + 8 + 32 * number)
        starts[name.rstrip(b"\0")] = start
    if not {b"TOKENS", b"FIELDS"} <= set(starts):
        return
    _, unpacked, packed = struct.unpack_from("<QQQ", data, starts[b"TOKENS"])
    at = starts[b"TOKENS"] + 24
    tokens = _unpacked(data[at : at + packed], unpacked).split(b"\0")
    wanted = {tokens.index(name): name for name in _NAMES if name in tokens}
    count, packed = struct.unpack_from("<QQ", data, starts[b"FIELDS"])
    at = starts[b"FIELDS"] + 16
    names = _numbers(_unpacked(data[at : at + packed], 8 + 5 * count), count) if wanted else []
    (size,) = struct.unpack_from("<Q", data, at + packed)
    values = _unpacked(data[at + packed + 8 : at + packed + 8 + size], 8 * count) if wanted else b""
    for number, name in enumerate(names):
        if name in wanted:
            value = _value(data, *struct.unpack_from("<Q", values, 8 * number))
            if value is not None:
                yield wanted[name], value


def _value(data: bytes | mmap.mmap, stated: int) -> float | None:
    """Decode a number that is stored in 64 bits, directly or by its offset; return None for other types."""
    kind, place = stated >> 48 & 255, stated & (1 << 48) - 1
    if kind not in (_DOUBLE, _FLOAT):
        return None
    if stated >> 62 & 1:  # the value itself is stored here, as a 32-bit float
        return float(struct.unpack("<f", struct.pack("<I", place & 0xFFFFFFFF))[0])
    return float(struct.unpack_from("<d" if kind == _DOUBLE else "<f", data, place)[0])


def _numbers(packed: bytes, count: int) -> list[int]:
    """Decode integers stored as differences with variable length.

    The most common difference comes first, then two bits for each integer: this difference, or one of 1, 2 or 4 bytes,
    which follow.
    """
    (common,) = struct.unpack_from("<i", packed)
    codes = packed[4 : 4 + (2 * count + 7) // 8]
    at = 4 + len(codes)
    numbers: list[int] = []
    last = 0
    for number in range(count):
        size = (0, 1, 2, 4)[codes[number // 4] >> 2 * (number % 4) & 3]
        last += int.from_bytes(packed[at : at + size], "little", signed=True) if size else common
        at += size
        numbers.append(last)
    return numbers


def _unpacked(packed: bytes, most: int) -> bytes:
    """Decompress chunks of LZ4 blocks.

    Raises
    ------
    FormatError, ValueError
        The chunks are damaged, or decompress to more than ``most`` bytes.
    """
    if most > _MOST_UNPACKED:
        raise ValueError("too much")
    if not packed[0]:
        return bytes(lz4_block.decode(packed[1:], most, is_exact=False))
    made, at = bytearray(), 1
    for _ in range(packed[0]):
        (size,) = struct.unpack_from("<i", packed, at)
        made += lz4_block.decode(packed[at + 4 : at + 4 + size], most - len(made), is_exact=False)
        at += 4 + size
    return bytes(made)
