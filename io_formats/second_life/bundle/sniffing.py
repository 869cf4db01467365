"""Recognise a model bundle by content: an LLSD map without a prefix that lists meshes or their instances."""

from __future__ import annotations

from ..llsd_binary import first_pairs
from .document import INSTANCES, MESHES


def sniff(head: bytes, size: int) -> bool:
    """Tell from the first bytes whether a file is a model bundle; keys are sorted, so one of two comes first."""
    if not head.startswith(b"{\0\0"):
        return False
    pairs, cut = first_pairs(head)
    return any(isinstance(pairs.get(key), list) for key in (MESHES, INSTANCES)) or cut in (
        (MESHES, "["),
        (INSTANCES, "["),
    )
