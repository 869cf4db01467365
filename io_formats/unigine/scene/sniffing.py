"""Recognise nodes and worlds by their root element (docs/formats/unigine_scenes.md, section 1)."""

from __future__ import annotations

import re

from ...core.recognition import Match

_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*\?>)?+(?:\s|<!--.*?-->)*+"
    rb"(?:<(?:nodes|world)\s+(?:[a-z_]+=\"[^\"]*\"\s+)*version=\"[\d.]+\"|<node\s[^>]*?type=\"[A-Z]\w+\""
    rb"|<!DOCTYPE\s+(?:nodes|node|world)\b)",
    re.DOTALL,
)
"""Matches the start of the root element. The quantifiers are possessive, since with others a file of blanks would take
quadratic time."""


def sniff(head: bytes, size: int) -> Match:
    """Return whether the root element belongs to a node or world file, and has a version or a node type."""
    return Match.SIGNATURE if _ROOT.match(head) else Match.NONE
