"""Check a shape against the rules of the viewers that import appearance exports (shape format page, section 5.1)."""

from __future__ import annotations

from ...core.messages import Message, counted, listed, warning
from .document import Shape

_VERSION = "1.0"


def check(document: Shape) -> list[Message]:
    """Return warnings about values that other viewers do not read. They do not import body part assets at all."""
    if document.is_body_part:
        return []
    findings = []
    if document.version != _VERSION:
        template = "the version is '{}'; viewers that import shapes take {} only"
        findings.append(warning("shape-version", template, document.version, _VERSION))
    if document.has_only_codes:
        codes = document.has_only_codes
        template = "{} code but no value, so viewers ignore it: {}"
        findings.append(
            warning("shape-codes", template, counted(len(codes), "slider has a", "sliders have a"), listed(codes))
        )
    return findings
