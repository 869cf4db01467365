"""Bytes <-> a mesh asset: the header and each block as LLSD values (formats page, section 2).

LLSD values are Python's: None, bool, int, float, str, bytes (binary), ``uuid.UUID``, list, dict, and
``llsd.RawString``, ``URI`` and ``Date``. ``level_block``, ``skin_block`` and ``physics_block`` convert them to
arrays and back.
"""

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import ExportError, FormatError, UnsupportedFormatError
from ...core.messages import Message, Report, Text
from ..models.llsd import Allowance, as_integer, sorted_map
from ..models.llsd import read as read_value
from ..models.llsd import write as write_value
from ..options import LEVELS
from .format import prefix_size

BLOCKS = ("skin", "physics_convex", *reversed(LEVELS), "physics_mesh")
"""The blocks, in the order in which the viewer writes them."""

OLD_PHYSICS_MESH = "physics_shape"
"""Name of the block ``physics_mesh`` in old files."""


@dataclass
class Asset:
    """A mesh asset."""

    header: dict[str, Any] = field(default_factory=dict)
    """Keys in the order of the file. The writer recomputes ``offset`` and ``size`` of the blocks below."""
    blocks: dict[str, Any] = field(default_factory=dict)
    """The inflated LLSD value of each existing block of :data:`BLOCKS`, in their order on disk."""
    opaque: dict[str, bytes] = field(default_factory=dict)
    """Bytes of blocks that are kept unchanged (``physics_havok`` and unknown ones)."""
    trailing: bytes = b""
    """Bytes after the last block."""
    stored_sizes: dict[str, int] = field(default_factory=dict)
    """Compressed size of each block in the file that was read; empty if the asset was not read from a file."""
    header_size: int = 0
    """Size of the header in the file that was read, without the prefix."""
    prefix_size: int = 0
    """Size of the old text prefix in the file that was read; never written."""
    warnings: list[Message] = field(default_factory=list)


def of_mesh(number: int, message: Message) -> Message:
    """Return a message with the number of the mesh that it is about, for a file with several meshes."""
    text = Text("{}: {}", message.item, message.message) if message.item else message.message
    return replace(message, item=Text("Mesh {}", number), message=text)


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


BLOCK_LABELS = {
    "skin": "rig",
    "physics_convex": "physics hulls",
    "lowest_lod": "lowest level of detail",
    "low_lod": "low level of detail",
    "medium_lod": "medium level of detail",
    "high_lod": "high level of detail",
    "physics_mesh": "physics mesh",
}
"""Display names of the blocks."""


def read(data: bytes, *, inflated_limit: int | None = None) -> Asset:
    """Decode a mesh asset (formats page, section 2).

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Maximum inflated size of all blocks in bytes (default: the larger of 64 MiB and 64 times the file size).

    Raises
    ------
    FormatError
        The header or a block is damaged, or no level of detail has a triangle.
    """
    return read_within(data, asset_inflater(len(data), inflated_limit))


def read_within(data: bytes, inflating: Inflater, *, item: str = "") -> Asset:
    """Decode a mesh asset that is a part, ``item``, of a file; ``inflating`` holds the limits of the whole file."""
    asset, blocks = take_apart(data, item=item)
    for key, (block, stored) in blocks.items():
        if block:
            label = BLOCK_LABELS[block]
            asset.blocks[block] = inflating.value(stored, f"{item}, {label}" if item else label)
            asset.stored_sizes[block] = len(stored)
        else:
            asset.opaque[key] = stored
    if not any(_has_triangles(asset.blocks.get(level)) for level in LEVELS):
        raise _no_geometry(item)
    return asset


def read_highest(data: bytes) -> tuple[Asset, Any]:
    """Decode only the finest level of a mesh asset that has triangles; return the asset, without blocks, and the level.

    Raises
    ------
    FormatError
        The header or the level is damaged, or no level of detail has a triangle.
    """
    asset, blocks = take_apart(data)
    stored = {block: content for block, content in blocks.values() if block}
    inflating = asset_inflater(len(data), None)
    for level in LEVELS:
        value = inflating.value(stored[level], BLOCK_LABELS[level]) if level in stored else None
        if _has_triangles(value):
            return asset, value
    raise _no_geometry()


def _no_geometry(item: str = "") -> FormatError:
    return FormatError("The mesh has no geometry: no level of detail has a triangle", item=item)


def _has_triangles(block: Any) -> bool:
    """Return whether a face of a level has at least one triangle and its vertices."""
    return isinstance(block, list) and any(
        isinstance(face, dict)
        and "NoGeometry" not in face
        and isinstance(face.get("Position"), bytes)
        and isinstance(face.get("TriangleList"), bytes)
        and min(len(face["Position"]) // 3, len(face["TriangleList"])) >= 6
        for face in block
    )


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two assets have the same header keys in the same order and the same inflated blocks.

    Offsets and compressed sizes of blocks, their order on disk, and the old prefix are ignored.
    """
    return one == other or contents_of(one) == contents_of(other)


def contents_of(data: bytes) -> tuple[Any, ...]:
    """Return the content of an asset that writing it again must preserve, for comparison."""
    asset, blocks = take_apart(data)
    inflating = asset_inflater(len(data), None)
    contents = {key: inflating.inflate(stored, key) if block else stored for key, (block, stored) in blocks.items()}
    header = [(key, _without_place(entry) if key in contents else repr(entry)) for key, entry in asset.header.items()]
    return header, contents, asset.trailing


def _without_place(entry: dict[str, Any]) -> list[str]:
    return [name if name in ("offset", "size") else f"{name}: {value!r}" for name, value in entry.items()]


LONGEST_HEADER = 4096
"""Number of header bytes that the viewer downloads."""

_LEVEL = 9
_IN_PARALLEL = 1 << 18


def write(asset: Asset, *, longest_header: int = LONGEST_HEADER) -> bytes:
    """Encode an asset: blocks in its order, then opaque blocks, with new offsets and sizes (formats page, section 2).

    Keys of the header keep their order; if it lacks blocks, it is sorted like in the viewer. The old prefix is never
    written.

    Raises
    ------
    ExportError
        The header is longer than the viewer downloads, or a value cannot be stored.
    """
    stored = _stored_blocks(asset)
    header = dict(asset.header)
    keys = {block_of_key(header, key) or key: key for key in reversed(header)}
    complete = all(name in keys for name in stored)
    for name, _, size in list(block_entries(header)):
        if size > 0 and (block_of_key(asset.header, name) or name) not in stored:
            del header[name]  # the header listed a block that the file did not contain
    place = 0
    for name, content in stored.items():
        key = keys.get(name, name)
        before = asset.header.get(key)
        entry = dict(before) if isinstance(before, dict) else {}
        header[key] = {**entry, "offset": place, "size": len(content)}
        place += len(content)
    encoded = write_value(header if complete else sorted_map(header))
    if len(encoded) > longest_header:
        raise ExportError(
            "The header of the asset takes {:,} bytes, the viewer fetches {:,}; give the "
            "mesh fewer or shorter names of materials",
            len(encoded),
            longest_header,
        )
    return b"".join((encoded, *stored.values(), asset.trailing))


def block_sizes(asset: Asset) -> dict[str, int]:
    """Return the compressed size of each block as :func:`write` would store it, even for an asset that was read."""
    return {name: len(content) for name, content in _stored_blocks(asset).items() if name in BLOCKS}


def _stored_blocks(asset: Asset) -> dict[str, bytes]:
    """Return the compressed bytes of each block, then the opaque blocks unchanged."""
    contents = [write_value(value) for value in asset.blocks.values()]
    if sum(map(len, contents)) > _IN_PARALLEL:
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        with ThreadPoolExecutor() as pool:  # zlib releases the GIL
            packed = list(pool.map(_deflated, contents))
    else:
        packed = list(map(_deflated, contents))
    return {**dict(zip(asset.blocks, packed, strict=True)), **asset.opaque}


def _deflated(content: bytes) -> bytes:
    return zlib.compress(content, _LEVEL)
