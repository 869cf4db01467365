"""The container of the blocks: their offsets, sizes and inflation (formats page, section 2)."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Report, Text
from ..models.llsd import Allowance, as_integer
from ..models.llsd import read as read_value
from .document import BLOCKS, OLD_PHYSICS_MESH, Asset
from .sniffing import prefix_size

DEFAULT_INFLATED_LIMIT = 64 * 1024 * 1024
DEFAULT_INFLATED_RATIO = 64

_LONGEST_HEADER = 1 << 20
_NEWEST_VERSION = 999
"""Newest version of the container that the viewer accepts."""


Stored = dict[str, tuple[str, bytes]]
"""Blocks by their key in the header, in their order in the file: the name of the block (empty if it is unknown) and its
compressed bytes."""


def take_apart(data: bytes, *, item: str = "") -> tuple[Asset, Stored]:
    """Read the header, and cut out the blocks that it lists and that are within the file.

    The returned asset does not contain the blocks yet.

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
            problem.message = Text("{}; a header has at most 1 MiB", problem.message)
        raise
    if not isinstance(header, dict):
        raise FormatError("The file is not a Second Life mesh: it does not start with a map", offset=prefix, item=item)
    if "404" in header:
        raise FormatError("There is no mesh in the file: it states that the server found none (404)", item=item)
    version = as_integer(header.get("version", 1))
    if version is not None and version > _NEWEST_VERSION:
        raise UnsupportedFormatError("The mesh is of version {:,}, which is not supported", version, item=item)
    asset = Asset(header, header_size=end - prefix, prefix_size=prefix)
    if prefix:
        template = "The old text in front of the header is not written again: current viewers do not read it"
        Report(asset.warnings).loss("old-prefix-left-out", template)
    return asset, _cut(data, end, asset)


def _cut(data: bytes, start: int, asset: Asset) -> Stored:
    """Return the stored bytes of the blocks that a header lists, in their order in the file."""
    places = []
    missing = set()
    last = start
    for key, offset, size in block_entries(asset.header):
        if offset < 0 or size <= 0:
            continue
        if start + offset + size > len(data):
            template = "The file is cut off: block '{}' is missing, since it extends beyond the end"
            Report(asset.warnings).loss("block-beyond-end", template, key)
            missing.add(key)
            continue
        places.append((offset, key, size))
        last = max(last, start + offset + size)
    asset.trailing = data[last:]
    # A block under an old name is used only if the block under the new name extends beyond the end of the file.
    present = asset.header.keys() - missing
    return {
        key: (block_of_key(present, key), data[start + offset : start + offset + size])
        for offset, key, size in sorted(places, key=lambda place: place[0])
    }


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
    """Inflates the blocks of a file; limits their total size and their number of values."""

    remaining: int
    allowance: Allowance = field(default_factory=lambda: Allowance(4 * Allowance().values))

    def inflate(self, stored: bytes, item: str) -> bytes:
        """Inflate a zlib stream, ignoring bytes after it, and remove the old text prefix from the result if it has one.

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
            raise FormatError("The compressed data is damaged ({})", reason, item=item) from None
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


def asset_inflater(size: int, inflated_limit: int | None) -> Inflater:
    """Return an inflater for a file of ``size`` bytes."""
    return Inflater(inflated_limit or max(DEFAULT_INFLATED_LIMIT, DEFAULT_INFLATED_RATIO * size))
