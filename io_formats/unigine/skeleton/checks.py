"""Check a skeleton against the rules of UNIGINE (docs/formats/unigine.md, sections 7 and 11)."""

from __future__ import annotations

from ...core.findings import Finding, error, warning
from ..animation.checks import check_bones
from .document import SkeletonFile


def check(document: SkeletonFile) -> list[Finding]:
    """Return errors for an unusable skeleton and warnings for suspicious data."""
    findings = check_bones(document.bones)
    count = len(document.bones)
    if not count:
        findings.append(error("", "it has no bones"))
    for mask in document.blend_masks:
        if len(mask.values) != count:
            message = f"{len(mask.values):,} values for {count:,} bones"
            findings.append(warning(f"Blend mask '{mask.name}'", message))
    if document.retargeting and len(document.retargeting) != count:
        findings.append(warning("", f"{len(document.retargeting):,} retargeting entries for {count:,} bones"))
    return findings
