"""Check a skeleton against the rules of UNIGINE (docs/formats/unigine.md, sections 7 and 11)."""

from __future__ import annotations

from ...core.messages import Message, Report, Text
from ..bones import check_bones
from .document import SkeletonFile


def check(document: SkeletonFile) -> list[Message]:
    """Return errors for an unusable skeleton and warnings for suspicious data."""
    report = Report()
    check_bones(document.bones, report)
    count = len(document.bones)
    if not count:
        report.error("no-bones", "it has no bones")
    for mask in document.blend_masks:
        if len(mask.values) != count:
            template, item = "{:,} values for {:,} bones", Text("Blend mask '{}'", mask.name)
            report.warning("values-for-bones", template, len(mask.values), count, item=item)
    if document.retargeting and len(document.retargeting) != count:
        report.warning("values-for-bones", "{:,} retargeting entries for {:,} bones", len(document.retargeting), count)
    return report.messages
