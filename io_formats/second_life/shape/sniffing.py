"""Recognise an appearance export by its root element, and a body part asset by its first line."""

from __future__ import annotations

from ...core.recognition import Match, NearMiss, has_root

SIGNATURE = "LLWearable version "
"""Start of a body part asset."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file is an appearance export or a wearable; the viewer's own tables are a NearMiss."""
    if head.removeprefix(b"\xef\xbb\xbf").startswith(SIGNATURE.encode()) or has_root(head, "linden_genepool"):
        return Match.SIGNATURE
    if has_root(head, "linden_avatar"):
        return NearMiss("This is the viewer's description of avatars, not a shape", has_signature=True)
    return Match.NONE
