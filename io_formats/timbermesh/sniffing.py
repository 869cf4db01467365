"""Recognition of Timbermesh files by their content."""

from __future__ import annotations

import zlib

from ..core.recognition import Match, is_unity_asset
from .wire import container


def sniff(head: bytes, size: int) -> Match:
    """Return the evidence for a Timbermesh in any of its containers."""
    if _is_in_container(head):
        return Match.SIGNATURE
    return Match.PLAUSIBLE if _is_bare_message(head, size) else Match.NONE


def _is_in_container(head: bytes) -> bool:
    if container.has_zlib_header(head):
        return _starts_message(head, 2, -15)
    if head.startswith(container.GZIP_MAGIC):
        return _starts_message(head, 0, 31)
    return container.is_prefab(head) and not is_unity_asset(head)


def _starts_message(head: bytes, start: int, window: int) -> bool:
    try:
        content = zlib.decompressobj(window).decompress(memoryview(head)[start:], 64)
    except zlib.error:
        # A stream damaged from its first block on still has a zlib header, which no other format has; the reader
        # reports the damage.
        return window == -15 and head[:2] == container.HEADER
    return content[:1] in (b"", b"\x08", b"\x12", b"\x1a")


def _is_bare_message(head: bytes, size: int) -> bool:
    """Return whether a bare message starts here: a known first tag whose length fits into the file."""
    if len(head) < 2 or head[0] not in container.FIRST_TAGS:
        return False
    if head[0] == 0x08:
        return head[1] < 0x80 and (size == 2 or head[2:3] in (b"\x12", b"\x1a"))
    length = shift = 0
    for position, byte in enumerate(head[1:6], 2):
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            end = position + length
            return end == size or (end < size and (end >= len(head) or head[end] in container.FIRST_TAGS))
    return False
