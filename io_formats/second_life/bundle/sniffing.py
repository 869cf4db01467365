"""Recognise a model bundle by content: an LLSD map without a prefix whose first keys only it has."""

from __future__ import annotations

import re

_KEYS = re.compile(rb"\A\{\0\0\0[\x02-\x10](?:k\0\0\0\x08instance\[|k\0\0\0\x04mesh\[)")


def sniff(head: bytes, size: int) -> bool:
    """Tell from the first bytes whether a file is a model bundle; keys are sorted, so one of two comes first."""
    return bool(_KEYS.match(head))
