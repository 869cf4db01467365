"""Recognise files by the version that they start with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.messages import Text
from ..core.recognition import Match, NearMiss

_VERSION = re.compile(rb"..\d\d(?![0-9A-Za-z])", re.DOTALL)


def sniff_version(head: bytes, versions: Sequence[str], kinds: Mapping[bytes, str]) -> Match | NearMiss:
    """Return whether a file has the signature of a known version; a file of another version is a NearMiss.

    Parameters
    ----------
    versions:
        The known versions, such as ``ms13``.
    kinds:
        Kind of file for each pair of letters at the start of a version.
    """
    if head.startswith(tuple(version.encode("ascii") for version in versions)):
        return Match.SIGNATURE
    kind = kinds.get(head[:2])
    if kind is None or not _VERSION.match(head[:5] + b" "):
        return Match.NONE
    version = head[:4].decode("ascii")
    text = Text("This looks like a UNIGINE {} of version {}, which is not supported", Text(kind), version)
    return NearMiss(text, has_signature=True)
