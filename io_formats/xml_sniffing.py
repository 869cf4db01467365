"""Recognition of XML files by their root element, without the parser, which makes start-up slower."""

from __future__ import annotations

import functools
import re

_START = r"(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*\[[^\]]*\]\s*>)*+(?:<!DOCTYPE\s+|<(?:[\w.-]+:)?)"
"""A document type is matched, too, so that the reader can state why it rejects the file. The repetition is possessive:
otherwise the matching time would double with each processing instruction."""
_ENCODINGS = tuple(
    (start, name) for name in ("utf-16-le", "utf-16-be") for start in ("\ufeff".encode(name), "<".encode(name))
)


def has_root(head: bytes, *names: str) -> bool:
    """Return whether the root element or document type has one of these names, in any namespace."""
    encoding = next((name for mark, name in _ENCODINGS if head.startswith(mark)), "utf-8")
    return bool(_pattern(names).match(head.decode(encoding, "replace").lstrip("\ufeff")))


@functools.cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"{_START}(?:{'|'.join(names)})[\s>/\[]", re.DOTALL)
