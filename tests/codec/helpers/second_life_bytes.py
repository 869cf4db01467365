"""Values of LLSD by the ``llsd`` library."""

from __future__ import annotations

from typing import Any

import llsd


def binary(value: Any) -> bytes:
    """Return a value as the library writes it, without the text that it puts in front."""
    text: bytes = llsd.format_binary(value)
    return text[text.index(b"\n") + 1 :]


def plain(data: bytes) -> Any:
    """Return the value that the library reads."""
    return llsd.parse_binary(data)
