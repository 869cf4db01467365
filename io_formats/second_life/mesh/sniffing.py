"""Recognise a mesh asset by its content: an LLSD map, possibly after the old prefix, with the offsets of its levels."""

from __future__ import annotations

import math
import re
import struct

from ...core.recognition import Match, NearMiss
from ..llsd_binary import first_pairs
from ..models.levels import LEVELS

PREFIX = b"<? LLSD/Binary ?>"

_ALSO = ("physics_convex", "physics_mesh", "physics_shape", "skin", "404")


_VIEWER_CACHE = re.compile(rb"\x01\0\0\0.{8}\{\0\0\0.k\0\0\0", re.DOTALL)
"""Start of a mesh in a viewer's cache: version, header size and flags (12 bytes), then the LLSD map of an asset."""


def sniff(head: bytes, size: int) -> Match:
    """Return whether the file starts with the header of an asset, which must fit into the first 4,096 bytes."""
    return Match.SIGNATURE if _has_header(head) else Match.NONE


def near_miss(head: bytes, size: int) -> NearMiss | None:
    """Recognise other Second Life files: other LLSD, meshes of a viewer's cache, animations."""
    if head.startswith(PREFIX) or (head[:3] == b"{\0\0" and head[5:8] == b"k\0\0"):  # an LLSD map with its first key
        return NearMiss("This is a Second Life file, but not a mesh", has_signature=True)
    if _VIEWER_CACHE.match(head):
        text = "This is a mesh in the cache of a Second Life viewer, where parts of it may be missing"
        return NearMiss(text, has_signature=True)
    return NearMiss("This is a Second Life animation") if _is_motion(head) else None


def _has_header(head: bytes) -> bool:
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


def _is_motion(head: bytes) -> bool:
    """Recognise a keyframe motion: version 1.0, a priority, a duration, a name, and a loop within the duration."""
    if len(head) < 21 or head[:4] != b"\x01\x00\x00\x00":
        return False
    priority, duration = struct.unpack_from("<if", head, 4)
    end = head.find(b"\0", 12)
    if not (-1 <= priority <= 7 and 0 <= duration <= 3600) or end < 0 or end + 9 > len(head):
        return False
    times = struct.unpack_from("<ff", head, end + 1)
    return all(math.isfinite(time) and -1 <= time <= duration + 1 for time in times)
