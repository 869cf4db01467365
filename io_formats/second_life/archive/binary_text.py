"""Binary values as text: base64 and UUIDs."""

from __future__ import annotations

import re
import uuid
from binascii import a2b_base64

_OTHERS = re.compile(r"[^A-Za-z0-9+/]+")


def binary_of(text: str) -> tuple[bytes, bool]:
    """Decode base64 up to the first padding.

    Returns
    -------
    data, is_whole:
        The bytes, and False if the text is cut off or has other characters than blanks, which are ignored.
    """
    before = text.partition("=")[0]
    letters = _OTHERS.sub("", before)
    is_whole = len(letters) % 4 != 1 and len(letters) == len("".join(before.split()))
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    return a2b_base64(letters + "=" * (-len(letters) % 4)), is_whole


def uuid_text(data: bytes) -> str:
    """Return a UUID of 16 bytes as text in lower case."""
    return str(uuid.UUID(bytes=data))
