"""Recognise a BVH file of the avatar by its first word and the name of its root."""

from __future__ import annotations

import re

from ...core.recognition import Match, NearMiss

ROOTS = ("mPelvis", "hip", "avatar_mPelvis")
"""Names of the avatar's pelvis, one of which the viewer's uploader requires for the root."""
ADVICE = "import it with File > Import > Motion Capture (.bvh)"
_ROOT = re.compile(rb"^[ \t]*ROOT[ \t]+([^\r\n]*)", re.MULTILINE)


def sniff(head: bytes, size: int) -> Match:
    """Return whether the first line has the word HIERARCHY and the root is the avatar's pelvis."""
    return Match.SIGNATURE if _is_bvh(head) and _root(head) in ("", *ROOTS) else Match.NONE


def near_miss(head: bytes, size: int) -> NearMiss | None:
    """Explain a BVH file of another program."""
    root = _root(head)
    if not _is_bvh(head) or root in ("", *ROOTS):
        return None
    return NearMiss(f"This is not an animation of Second Life: its root is '{root}', not 'hip'; {ADVICE}", True)


def _is_bvh(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"HIERARCHY")


def _root(head: bytes) -> str:
    """Return the name of the root; empty if there is none, which the reader reports."""
    found = _ROOT.search(head)
    return found[1].decode("utf-8", "replace").strip() if found else ""
