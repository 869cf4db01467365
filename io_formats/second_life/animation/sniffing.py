"""Recognise an animation by its version and plausible values, since it has no signature (format page, section 1)."""

from __future__ import annotations

import math
import struct

from ...core.recognition import Match, NearMiss

_VERSIONS = (b"\x01\x00\x00\x00", b"\x00\x00\x01\x00")
_LONGEST = 3600.0
"""Largest duration in seconds that is plausible. Viewers refuse more than 60 s, which the checks report."""
_MOST_LETTERS = 256
"""Largest plausible length of the name of an emote or a joint, in bytes."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file starts with the header of an animation and the name of a joint.

    For an animation that is cut off within its header, or has an implausible one, the result is a NearMiss.
    """
    if _is_plausible(head, "<ffiffIix"):
        return Match.LENGTH
    return NearMiss("This is a Second Life animation") if _is_plausible(head, "<ff") else Match.NONE


def _is_plausible(head: bytes, layout: str) -> bool:
    """Return whether version, priority, duration and the values after the emote's name are plausible.

    ``layout`` is the ``struct`` format of these last values.
    """
    if len(head) < 12 or head[:4] not in _VERSIONS:
        return False
    priority, duration = struct.unpack_from("<if", head, 4)
    end = head.find(b"\0", 12) + 1
    if not (-1 <= priority <= 100 and 0 <= duration <= _LONGEST and 0 < end <= 13 + _MOST_LETTERS):
        return False
    if end + struct.calcsize(layout) > len(head):
        return False
    loop_in, loop_out, *others = struct.unpack_from(layout, head, end)
    times = (loop_in, loop_out, *others[1:3])
    joints = others[-1] if others else 1
    return all(math.isfinite(time) and abs(time) <= _LONGEST for time in times) and -1 <= joints <= 10_000
