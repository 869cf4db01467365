"""Recognise a UNIGINE skeleton by its magic number."""

from __future__ import annotations

from ...core.recognition import Match, NearMiss
from ..options import sniff_version


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file has the signature of a known version; a file of another version is a NearMiss."""
    return sniff_version(head, ["sn10"], {b"sn": "skeleton"})
