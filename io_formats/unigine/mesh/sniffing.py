"""Recognise a UNIGINE mesh by its magic."""

from __future__ import annotations

from .document import READ_VERSIONS as VERSIONS

_MAGICS = tuple(version.encode("ascii") for version in VERSIONS)


def sniff(head: bytes, size: int) -> bool:
    """Tell from the first bytes whether a file is a UNIGINE mesh of a known version."""
    return head.startswith(_MAGICS)
