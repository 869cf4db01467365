"""Constraints that viewers can follow (animation format page, section 6)."""

from __future__ import annotations

from typing import Any

from ..avatar import skeleton_table
from .document import LONGEST_CHAIN, SecondLifeAnimation, text

_GROUND = "GROUND"
"""Target that is not a volume."""
_LAST_TYPE = 1


def source_name(constraint: Any) -> str:
    """Return the name of the volume that a constraint moves."""
    return _name(constraint["source"])


def unusable(document: SecondLifeAnimation) -> list[int]:
    """Return the constraints that viewers refuse, by index.

    Their type or a volume does not exist, they bend too many joints, or a joint that they bend is not in the file.
    """
    joints = {skeleton_table.canonical(text(joint.name)) for joint in document.joints}
    return [number for number, found in enumerate(document.constraints) if not _is_usable(found, joints)]


def _is_usable(constraint: Any, joints: set[str | None]) -> bool:
    source, target, length = source_name(constraint), _name(constraint["target"]), int(constraint["chain_length"])
    if not _is_volume(source) or not (target == _GROUND or _is_volume(target)):
        return False
    chain = skeleton_table.ancestors(source)[1 : length + 2]
    return constraint["type"] <= _LAST_TYPE and length <= LONGEST_CHAIN and joints.issuperset(chain)


def _is_volume(name: str) -> bool:
    joint = skeleton_table.table().get(name)
    return joint is not None and joint.is_collision_volume


def _name(stored: Any) -> str:
    """Return a name, which ends at its first zero byte; the bytes after it mean nothing."""
    return text(stored.tobytes().partition(b"\0")[0])
