"""Recognise a mesh asset by content: an LLSD map, maybe after the old prefix, that says where its levels lie."""

from __future__ import annotations

from ..llsd_binary import first_pairs
from ..models import LEVELS

PREFIX = b"<? LLSD/Binary ?>"

_ALSO = ("physics_convex", "physics_mesh", "physics_shape", "skin", "404")


def sniff(head: bytes, size: int) -> bool:
    """Tell from the first 4,096 bytes, in which the header of an asset has to fit, whether a file is one."""
    if head.startswith(PREFIX):
        head = head[len(PREFIX) :].lstrip()
    if not head.startswith(b"{\0\0"):
        return False
    pairs, cut = first_pairs(head)
    if any(_is_block(pairs.get(key)) for key in (*LEVELS, *_ALSO)) or "404" in pairs:
        return True
    return cut is not None and cut[0] in LEVELS and cut[1] == "{"


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and "offset" in value and "size" in value
