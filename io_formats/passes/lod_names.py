"""Names that say which level of detail or physics shape of what something is: ``chair_LOD1``, ``chair_PHYS``."""

from __future__ import annotations

import re
from dataclasses import dataclass

LEVEL_SUFFIXES = ("", "_LOD2", "_LOD1", "_LOD0")
"""What stands behind the names of the levels of an object, the finest first; that may also be called ``_LOD3``."""

PHYSICS_SUFFIX = "_PHYS"

_LEVEL_OF_DIGIT = {"3": 0, "2": 1, "1": 2, "0": 3}
_NAME = re.compile(r"(?P<stem>.+?)(?:_(?:LOD(?P<digit>[0-3])|(?P<physics>PHYS)))?(?P<number>\.\d{3,})?", re.IGNORECASE)


@dataclass(frozen=True)
class PartName:
    """What the name of an object says."""

    stem: str
    """The name without suffix and number."""
    number: str
    """Blender's ending such as ``.001``; empty: none."""
    level: int | None
    """0: the finest, to 3; None: the name has no suffix of a level."""
    is_physics: bool

    @property
    def is_part(self) -> bool:
        """Whether the name is that of something that belongs to a finer object."""
        return self.is_physics or bool(self.level)


def parse(name: str) -> PartName:
    """Take a name apart; capitals do not count in suffixes."""
    found = _NAME.fullmatch(name)
    if found is None:  # an empty name, or one with line breaks
        return PartName(name, "", None, False)
    digit = found["digit"]
    level = _LEVEL_OF_DIGIT[digit] if digit else None
    return PartName(found["stem"], found["number"] or "", level, found["physics"] is not None)


def without_suffix(name: str) -> str:
    """Return a name without the suffix of a level or of a physics shape; any number behind it stays."""
    found = parse(name)
    return found.stem + found.number if found.level is not None or found.is_physics else name


def of_level(name: str, level: int) -> str:
    """Return what a level of an object is called."""
    return without_suffix(name) + LEVEL_SUFFIXES[level]
