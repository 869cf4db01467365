"""A mesh asset, one to one: the header and each block as LLSD values (formats page, section 2).

Values of LLSD are Python's: None, bool, int, float, str, bytes (binary), ``uuid.UUID``, list, dict, and
``llsd_binary.RawString``, ``URI`` and ``Date``; ``lod_block``, ``skin_block`` and ``physics_block`` make arrays of
them and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..models import LEVELS

BLOCKS = ("skin", "physics_convex", *reversed(LEVELS), "physics_mesh")
"""Blocks in the order in which the viewer lays them on disk."""

OLD_PHYSICS_MESH = "physics_shape"
"""What old files call ``physics_mesh``."""


@dataclass
class Asset:
    """A mesh asset."""

    header: dict[str, Any] = field(default_factory=dict)
    """Keys in the order of the file. ``offset`` and ``size`` of the blocks below are set anew by the writer."""
    blocks: dict[str, Any] = field(default_factory=dict)
    """The inflated LLSD value of each block, in their order on disk; those of :data:`BLOCKS` that are there."""
    opaque: dict[str, bytes] = field(default_factory=dict)
    """Bytes of blocks that are kept as they are (``physics_havok`` and what nobody knows)."""
    trailing: bytes = b""
    """What follows the last block."""
    stored_sizes: dict[str, int] = field(default_factory=dict)
    """Compressed bytes of each block in the file that was read; empty: the asset was not read from a file."""
    header_size: int = 0
    """Bytes of the header in the file that was read, without the prefix."""
    prefix_size: int = 0
    """Bytes of the old text prefix in the file that was read; never written."""
    warnings: list[str] = field(default_factory=list)
