"""Recognise a model bundle by its content: an LLSD map without prefix that lists meshes or their instances."""

from __future__ import annotations

from ...core.recognition import Match
from ..models.llsd import first_pairs
from .document import INSTANCES, MESHES


def sniff(head: bytes, size: int) -> Match:
    """Return whether the file starts like a model bundle: the list of meshes or of instances is near its beginning."""
    if not head.startswith(b"{\0\0"):
        return Match.NONE
    pairs, cut = first_pairs(head)
    is_complete = any(isinstance(pairs.get(key), list) for key in (MESHES, INSTANCES))
    return Match.SIGNATURE if is_complete or cut in ((MESHES, "["), (INSTANCES, "[")) else Match.NONE
