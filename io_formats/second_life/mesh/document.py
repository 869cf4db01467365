"""A mesh asset: the header and each block as LLSD values (formats page, section 2).

LLSD values are Python's: None, bool, int, float, str, bytes (binary), ``uuid.UUID``, list, dict, and
``llsd_binary.RawString``, ``URI`` and ``Date``. ``lod_block``, ``skin_block`` and ``physics_block`` convert them to
arrays and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ...core.messages import Message, Text
from ..options import LEVELS

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
