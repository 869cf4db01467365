"""Recognition of blueprints: JSON with members of blueprints (docs/formats/timberborn_blueprints.md)."""

from __future__ import annotations

import re

from ...core.messages import Text
from ...core.recognition import Match, NearMiss

_START = re.compile(rb"(?:\xef\xbb\xbf)?+(?:\s|//[^\n]*+|/\*.*?\*/)*+\{", re.DOTALL)
_TOKEN = re.compile(
    rb"//[^\n]*+|/\*.*?\*/|(?P<mark>[{}\[\]])|(?P<key>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[\w$]++)(?P<colon>\s*+:)?+",
    re.DOTALL,
)
_MEMBER = re.compile(rb"[\"']?(?:Children|BlueprintPath|Modification|[A-Za-z]\w*Spec)(?:#\w+)?[\"']?", re.ASCII)


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the outermost object has members of a blueprint; other JSON objects are near misses."""
    start = _START.match(head)
    if start is None:
        return Match.NONE
    depth = 1
    has_members = False
    for token in _TOKEN.finditer(head, start.end()):
        if token["mark"]:
            depth += 1 if token["mark"] in b"{[" else -1
        elif depth == 1 and token["colon"]:
            if _MEMBER.fullmatch(token["key"]):
                return Match.SIGNATURE
            has_members = True
        if depth == 0:
            break
    if b"\0" not in head and (has_members or (depth == 0 and size <= len(head))):
        return NearMiss(Text("This is JSON, but not a blueprint of Timberborn"), has_signature=True)
    return Match.NONE
