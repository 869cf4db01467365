"""Recognise a UNIGINE skeleton by its magic."""

from __future__ import annotations

_MAGIC = b"sn10"


def sniff(head: bytes, size: int) -> bool:
    """Tell from the first bytes whether a file is a UNIGINE skeleton of a known version."""
    return head.startswith(_MAGIC)
