"""Recognise a BVH file by its first word."""

from __future__ import annotations

from ...core.recognition import Match, NearMiss


def sniff(head: bytes, size: int) -> Match:
    """Return whether the first line has the word HIERARCHY; the reader decides whether the avatar has its joints."""
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0]
    return Match.SIGNATURE if line.startswith(b"HIERARCHY") else Match.NONE


def near_miss(head: bytes, size: int) -> NearMiss | None:
    """Return None: there are no other versions."""
    return None
