"""File versions that are recognised but not supported."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.recognition import NearMiss

_VERSION = re.compile(rb"..\d\d(?![0-9A-Za-z])", re.DOTALL)


def unsupported_version(head: bytes, kinds: Mapping[bytes, str]) -> NearMiss | None:
    """Explain a file of an unsupported version.

    Parameters
    ----------
    kinds:
        Kind of file for each pair of letters at the start of a version, such as ``ms`` in ``ms13``.
    """
    kind = kinds.get(head[:2])
    if kind is None or not _VERSION.match(head[:5] + b" "):
        return None
    version = head[:4].decode("ascii")
    return NearMiss(
        f"This looks like a UNIGINE {kind} of version {version}, which is not supported", has_signature=True
    )
