"""Bytes -> a mesh asset."""

from __future__ import annotations

from typing import Any

from ...core.errors import FormatError
from ..options import LEVELS
from .container import Inflater, asset_inflater, take_apart
from .document import Asset

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
