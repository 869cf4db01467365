"""A mesh asset -> bytes."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor

from ...core.errors import ExportError
from ..models.llsd import sorted_map
from ..models.llsd import write as write_value
from .container import block_entries, block_of_key
from .document import BLOCKS, Asset

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
        with ThreadPoolExecutor() as pool:  # zlib releases the GIL
            packed = list(pool.map(_deflated, contents))
    else:
        packed = list(map(_deflated, contents))
    return {**dict(zip(asset.blocks, packed, strict=True)), **asset.opaque}


def _deflated(content: bytes) -> bytes:
    return zlib.compress(content, _LEVEL)
