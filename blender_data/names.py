"""Names in files <-> names of data blocks, which Blender cuts and makes unique."""

from __future__ import annotations

import bpy

from . import compat


def fit(name: str) -> str:
    """Return a name that Blender takes: no NUL, cut between two characters."""
    clean = name.replace("\0", "").strip() or "Unnamed"
    encoded = clean.encode("utf-8", "replace")
    # Four bytes are left for the '.001' that Blender may have to add.
    most = compat.MAX_NAME_BYTES - 4
    return clean if len(encoded) <= most else encoded[:most].decode("utf-8", "ignore")


def remember(block: bpy.types.ID, source_name: str) -> None:
    """Keep a data block's name in the file where Blender gave it another."""
    if block.name != source_name:
        block.meshferry.source_name = source_name
        block.meshferry.given_name = block.name


def file_name(block: bpy.types.ID) -> str:
    """Return the name to write: the file's own as long as nobody renamed the data block."""
    kept = block.meshferry
    return kept.source_name if kept.source_name and kept.given_name == block.name else block.name
