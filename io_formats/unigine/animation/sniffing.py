"""Recognise a UNIGINE animation by its magic number."""

from __future__ import annotations

from ...core.recognition import Match, NearMiss
from ..versions import unsupported_version
from .versions import VERSIONS

_KINDS = {b"an": "animation"}
_MAGICS = tuple(version.encode("ascii") for version in VERSIONS)


def sniff(head: bytes, size: int) -> Match:
    """Return whether the file has the signature of a known version."""
    return Match.SIGNATURE if head.startswith(_MAGICS) else Match.NONE


def near_miss(head: bytes, size: int) -> NearMiss | None:
    """Explain a file of an unsupported version."""
    return unsupported_version(head, _KINDS)
