"""Recognise a BVH file of the avatar by its first word and the name of its root."""

from __future__ import annotations

import re

from ...core.messages import Text
from ...core.recognition import Match, NearMiss

ROOTS = ("mPelvis", "hip", "avatar_mPelvis")
"""Names of the avatar's pelvis, one of which the viewer's uploader requires for the root."""
ADVICE = "import it with File > Import > Motion Capture (.bvh)"
_ROOT = re.compile(rb"^[ \t]*ROOT[ \t]+([^\r\n]*)", re.MULTILINE)


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the first line has the word HIERARCHY and the root is the avatar's pelvis.

    A BVH file of another program is a NearMiss.
    """
    if not _is_bvh(head):
        return Match.NONE
    root = _root(head)
    if root in ("", *ROOTS):
        return Match.SIGNATURE
    text = Text("This is not an animation of Second Life: its root is '{}', not 'hip'; {}", root, Text(ADVICE))
    return NearMiss(text, has_signature=True)


def _is_bvh(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"HIERARCHY")


def _root(head: bytes) -> str:
    """Return the name of the root; empty if there is none, which the reader reports."""
    found = _ROOT.search(head)
    return found[1].decode("utf-8", "replace").strip() if found else ""
