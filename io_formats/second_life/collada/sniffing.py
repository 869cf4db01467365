"""Recognise a Collada file by its root element."""

from __future__ import annotations

from ...core.recognition import Match, NearMiss, has_root

_ZIP = b"PK\x03\x04"
_LENGTH_OF_NAME, _NAME = slice(26, 28), 30
"""Byte positions of the length of the name, and of the name, in the header of a zip archive's first member."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the root element is COLLADA, in any namespace; a compressed Collada file is a NearMiss."""
    if has_root(head, "COLLADA"):
        return Match.SIGNATURE
    if head.startswith(_ZIP):
        name = head[_NAME:][: int.from_bytes(head[_LENGTH_OF_NAME], "little")].lower()
        if name == b"manifest.xml" or name.endswith(b".dae"):
            text = "This is a compressed Collada file (.zae); unpack it and import the .dae file in it"
            return NearMiss(text, has_signature=True)
    return Match.NONE
