"""Recognise an animation by its version and plausible values, since it has no signature (format page, section 1)."""

from __future__ import annotations

import math
import struct

from ...core.recognition import Match, NearMiss

_VERSIONS = (b"\x01\x00\x00\x00", b"\x00\x00\x01\x00")
_LONGEST = 3600.0
"""Seconds; viewers refuse more than 60, which the checks report."""
_MOST_LETTERS = 256
"""Longest plausible name of an emote or a joint."""


def sniff(head: bytes, size: int) -> Match:
    """Return whether the file starts with the header of an animation and the name of a joint."""
    return Match.LENGTH if _is_plausible(head) else Match.NONE


def near_miss(head: bytes, size: int) -> NearMiss | None:
    """Return None: other versions do not exist."""
    return None


def _is_plausible(head: bytes) -> bool:
    if len(head) < 45 or head[:4] not in _VERSIONS:
        return False
    priority, duration = struct.unpack_from("<if", head, 4)
    if not (-1 <= priority <= 100 and 0 <= duration <= _LONGEST):
        return False
    end = head.find(b"\0", 12)
    if not 0 <= end - 12 <= _MOST_LETTERS or end + 30 > len(head):
        return False
    loop_in, loop_out, _, ease_in, ease_out, _, joints = struct.unpack_from("<ffiffIi", head, end + 1)
    times = (loop_in, loop_out, ease_in, ease_out)
    return all(math.isfinite(time) and abs(time) <= _LONGEST for time in times) and -1 <= joints <= 10_000
