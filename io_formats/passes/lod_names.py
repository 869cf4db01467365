"""Names of levels of detail and physics shapes: ``chair_LOD1``, ``chair_PHYS``."""

import re
from collections.abc import Mapping
from typing import NamedTuple

LEVEL_SUFFIXES = ("", "_LOD2", "_LOD1", "_LOD0")
"""Suffixes of the levels of an object, the finest first; the finest may also have the suffix ``_LOD3``."""

PHYSICS_SUFFIX = "_PHYS"

FILE_SUFFIXES: Mapping[str, str] = {
    "_lod3": "",
    "_high": "",
    "_lod2": "_LOD2",
    "_med": "_LOD2",
    "_mid": "_LOD2",
    "_lod1": "_LOD1",
    "_low": "_LOD1",
    "_lod0": "_LOD0",
    "_lowest": "_LOD0",
    "_phys": PHYSICS_SUFFIX,
}
"""Suffixes of the names of files of one model, in lower case, and the suffix of the level or shape that they hold."""

_SIMILAR = r"(?i)(?P<stem>.+?)[-_. ](?P<suffix>LOD[0-3]|HIGH|MED|MID|LOW|LOWEST|PHYS)(?P<number>\.\d{3,})?"
_LEVEL_OF_DIGIT = {"3": 0, "2": 1, "1": 2, "0": 3}
_NAME = r"(?i)(?P<stem>.+?)(?:_(?:LOD(?P<digit>[0-3])|(?P<physics>PHYS)))?(?P<number>\.\d{3,})?"


class PartName(NamedTuple):
    """The parts of an object's name."""

    stem: str
    """The name without suffix and number."""
    number: str
    """Blender's number suffix such as ``.001``, or empty."""
    level: int | None
    """0 (finest) to 3; None if the name has no level suffix."""
    is_physics: bool

    @property
    def is_part(self) -> bool:
        """Whether the name is that of a level or shape of a finer object."""
        return self.is_physics or bool(self.level)


def parse(name: str) -> PartName:
    """Split a name into its parts; case is ignored in suffixes."""
    found = re.fullmatch(_NAME, name)
    if found is None:  # the pattern rejects empty names and line breaks
        return PartName(name, "", None, False)
    digit = found["digit"]
    level = _LEVEL_OF_DIGIT[digit] if digit else None
    return PartName(found["stem"], found["number"] or "", level, found["physics"] is not None)


def meant_name(name: str) -> str:
    """Return the name of the level or shape that a similar name such as ``chair-LOD2`` or ``chair_LOW`` may mean.

    Return an empty text for other names, and for those of levels and shapes.
    """
    found, own = re.fullmatch(_SIMILAR, name), parse(name)
    if found is None or own.level is not None or own.is_physics:
        return ""
    suffix = FILE_SUFFIXES["_" + found["suffix"].lower()]
    return suffix and found["stem"] + suffix + (found["number"] or "")


def without_suffix(name: str) -> str:
    """Return a name without the suffix of a level or physics shape; a number after it is kept."""
    found = parse(name)
    return found.stem + found.number if found.level is not None or found.is_physics else name


def of_level(name: str, level: int) -> str:
    """Return the name of a level of an object."""
    return without_suffix(name) + LEVEL_SUFFIXES[level]
