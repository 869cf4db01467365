"""Second Life BVH: names, capabilities, and recognition by the first word and the name of the root."""

import re

from ...core.format import FileFormat, modules_of
from ...core.messages import Text
from ...core.recognition import Match, NearMiss
from ..animation.format import _ANIMATION

SECOND_LIFE_BVH = FileFormat(
    name="second_life_bvh",
    label="Second Life BVH",
    extensions=(".bvh",),
    capabilities=_ANIMATION,
    modules=modules_of(__package__),
    ambiguous=(".bvh",),
)


ROOTS = ("mPelvis", "hip", "avatar_mPelvis")
"""Names of the avatar's pelvis, one of which the viewer's uploader requires for the root."""
ADVICE = "import it with File > Import > Motion Capture (.bvh)"
_ROOT = rb"(?m)^[ \t]*ROOT[ \t]+([^\r\n]*)"


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the first line has the word HIERARCHY and the root is the avatar's pelvis.

    A BVH file of another program is a NearMiss.
    """
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"HIERARCHY"):
        return Match.NONE
    root = _root(head)
    if root in ("", *ROOTS):
        return Match.SIGNATURE
    text = Text("This is not an animation of Second Life: its root is '{}', not 'hip'; {}", root, Text(ADVICE))
    return NearMiss(text, has_signature=True)


def _root(head: bytes) -> str:
    """Return the name of the root; empty if there is none, which the reader reports."""
    found = re.search(_ROOT, head)
    return found[1].decode("utf-8", "replace").strip() if found else ""
