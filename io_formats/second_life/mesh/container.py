"""The container of the blocks: their offsets, sizes and inflation (formats page, section 2)."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import FormatError, UnsupportedFormatError
from ..llsd_binary import Allowance, as_integer
from ..llsd_binary import read as read_value
from .document import BLOCKS, OLD_PHYSICS_MESH
from .sniffing import PREFIX

DEFAULT_INFLATED_LIMIT = 64 * 1024 * 1024
DEFAULT_INFLATED_RATIO = 64

_LONGEST_HEADER = 1 << 20
_NEWEST_VERSION = 999
"""The viewer rejects higher versions."""
_SPACE = b" \t\r\n\v\f"


@dataclass
class Parts:
    """A file split into blocks; only the header is decoded."""

    header: dict[str, Any]
    header_size: int
    prefix_size: int
    stored: dict[str, bytes] = field(default_factory=dict)
    """The compressed bytes of each block by its key in the header, in their order on disk, including opaque blocks."""
    trailing: bytes = b""
    warnings: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    """Keys of blocks that extend beyond the end of the file."""

    def block_of(self, key: str) -> str:
        """Return the block of a header key, or empty if it is unknown.

        An old name counts if the block of the new name is missing, that is, extends beyond the end of the file.
        """
        return block_of_key(self.header.keys() - self.missing, key)


def take_apart(data: bytes, *, item: str = "") -> Parts:
    """Read the header and cut out the blocks that it names; blocks that extend beyond the file are marked as missing.

    Raises
    ------
    FormatError
        There is no header, it is over 1 MiB, or it states that there is no mesh.
    """
    prefix = prefix_size(data)
    try:
        header, end = read_value(data[: prefix + _LONGEST_HEADER], start=prefix, item=item or "the header")
    except FormatError as problem:
        if len(data) > prefix + _LONGEST_HEADER:
            problem.message += "; a header has at most 1 MiB"
        raise
    if not isinstance(header, dict):
        raise FormatError("The file is not a Second Life mesh: it does not start with a map", offset=prefix, item=item)
    if "404" in header:
        raise FormatError("There is no mesh in the file: it states that the server found none (404)", item=item)
    version = as_integer(header.get("version", 1))
    if version is not None and version > _NEWEST_VERSION:
        raise UnsupportedFormatError(f"The mesh is of version {version:,}, which is not supported", item=item)
    parts = Parts(header, end - prefix, prefix)
    if prefix:
        parts.warnings.append(
            "The old text in front of the header is not written again: current viewers do not read it"
        )
    _cut(data, end, parts)
    return parts


def prefix_size(data: bytes) -> int:
    """Return the size of the old text in front of the LLSD data, including the white space after it, or 0."""
    if not data.startswith(PREFIX):
        return 0
    end = len(PREFIX)
    while data[end : end + 1] and data[end] in _SPACE:
        end += 1
    return end


def _cut(data: bytes, start: int, parts: Parts) -> None:
    """Cut out the blocks that a header names, in their order on disk."""
    places = []
    last = start
    for key, offset, size in block_entries(parts.header):
        if offset < 0 or size <= 0:
            continue
        if start + offset + size > len(data):
            parts.warnings.append(f"The file is cut off: block '{key}' is missing, since it extends beyond the end")
            parts.missing.add(key)
            continue
        places.append((offset, key, size))
        last = max(last, start + offset + size)
    for offset, key, size in sorted(places, key=lambda place: place[0]):
        parts.stored[key] = data[start + offset : start + offset + size]
    parts.trailing = data[last:]


def block_entries(header: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield key, offset and size of each block that a header names."""
    for key, entry in header.items():
        if isinstance(entry, dict) and "offset" in entry and "size" in entry:
            offset, size = as_integer(entry["offset"]), as_integer(entry["size"])
            if offset is not None and size is not None:
                yield key, offset, size


def block_of_key(header: Collection[str], key: str) -> str:
    """Return the block of a header key, which for ``physics_mesh`` may be its old name, or empty if it is unknown."""
    if key == OLD_PHYSICS_MESH and BLOCKS[-1] not in header:
        return BLOCKS[-1]
    return key if key in BLOCKS else ""


@dataclass
class Inflater:
    """Inflate the blocks of a file; their total size and number of values is limited."""

    remaining: int
    allowance: Allowance = field(default_factory=lambda: Allowance(4 * Allowance().values))

    def inflate(self, stored: bytes, item: str) -> bytes:
        """Return the content of a zlib stream, without the old prefix; bytes after the stream are ignored.

        Raises
        ------
        FormatError
            Not a zlib stream, damaged, incomplete, or larger than allowed.
        """
        stream = zlib.decompressobj()
        try:
            content = stream.decompress(stored, self.remaining + 1)
        except zlib.error as problem:
            reason = str(problem).rpartition(": ")[2]
            raise FormatError(f"The compressed data is damaged ({reason})", item=item) from None
        if len(content) > self.remaining:
            raise FormatError("The data inflates to far more than a mesh can be; it is damaged or hostile", item=item)
        if not stream.eof:
            raise FormatError("The compressed data is cut off", item=item)
        self.remaining -= len(content)
        size = prefix_size(content)
        return content[size:] if size else content

    def value(self, stored: bytes, item: str) -> Any:
        """Decode the value in a block."""
        return read_value(self.inflate(stored, item), item=item, allowance=self.allowance)[0]


def inflater(size: int, inflated_limit: int | None) -> Inflater:
    """Return an inflater for a file of ``size`` bytes."""
    return Inflater(inflated_limit or max(DEFAULT_INFLATED_LIMIT, DEFAULT_INFLATED_RATIO * size))
