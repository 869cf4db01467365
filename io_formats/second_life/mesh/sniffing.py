"""Recognise a mesh asset by content: an LLSD map, maybe after the old prefix, with keys that only it has."""

from __future__ import annotations

import re

PREFIX = b"<? LLSD/Binary ?>"

_KEYS = re.compile(
    rb"k\0\0\0(?:\x08high_lod|\x0amedium_lod|\x07low_lod|\x0alowest_lod|\x0ephysics_convex|\x0cphysics_mesh){"
)


def sniff(head: bytes, size: int) -> bool:
    """Tell from the first 4,096 bytes, in which the header of an asset has to fit, whether a file is one."""
    if head.startswith(PREFIX):
        head = head[len(PREFIX) :].lstrip()
    return head.startswith(b"{\0\0\0") and bool(_KEYS.search(head))
