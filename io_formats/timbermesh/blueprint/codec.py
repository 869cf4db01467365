"""Bytes -> document of a blueprint, and blueprints on top of each other (docs/formats/timberborn_blueprints.md)."""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import FormatError
from .json_text import BOM, MOST_BYTES, MOST_DEPTH, MOST_DIGITS, MOST_VALUES, parse

MOST_NODES = 100_000
"""Largest number of nodes with all nested blueprints."""
MOST_LEVELS = 16
"""Largest depth of blueprints that nest each other."""

Members = Mapping[str, Any]
"""A JSON object: texts, floats, booleans, lists and further objects by name."""


@dataclass
class Blueprint:
    """A ``.blueprint.json`` file."""

    root: Members
    """Its content, with ``#append``, ``#remove`` and ``#delete`` applied (section 3)."""
    digest: str = ""
    """SHA-256 of the file's bytes, of which an export changes only the numbers of edited nodes."""


@dataclass(frozen=True, eq=False)
class BlueprintSource:
    """Content of a blueprint from which nodes are made: the opened file, or a blueprint nested in it."""

    name: str
    """File name."""
    root: Members
    path: Path | None = None
    """Its path on disk; None in an archive, or if it is not known."""
    identity: str = ""
    """Identifier that is equal for equal files."""


def child_of(members: Members | None, name: str) -> Members | None:
    """Return a member that is an object, otherwise None."""
    found = members.get(name) if members is not None else None
    return found if isinstance(found, dict) else None


NESTED = "#nested"
"""Part of the names of children that are other blueprints."""
_APPEND, _REMOVE, _DELETE = _ENDINGS = ("#append", "#remove", "#delete")
_MOST_STEPS = 5_000_000
"""Limit of the values that are copied or compared: nested files could repeat large ones many times."""


def ending_of(name: str) -> str:
    """Return the ending that makes a member change another one, in lower case, or an empty text."""
    if "#" not in name:
        return ""
    lower = name.lower()
    return next((ending for ending in _ENDINGS if lower.endswith(ending)), "")


class Merger:
    """Merges blueprints, up to a limit for all that one file nests."""

    def __init__(self) -> None:
        self._steps = 0

    def merged(self, lower: Members, upper: Members, *, is_raw: bool = False) -> dict[str, Any]:
        """Return an object with another one on top; neither is changed.

        Parameters
        ----------
        is_raw:
            Whether the endings of names stay, as inside of nested children: their own files are merged first.

        Raises
        ------
        FormatError
            There is too much to merge.
        """
        self._count(len(lower) + len(upper))
        found = dict(lower)
        for name, value in upper.items():
            if isinstance(value, dict):
                old = found.get(name)
                inside = is_raw or NESTED in name
                found[name] = self.merged(old if isinstance(old, dict) else {}, value, is_raw=inside)
            elif value is not None:
                found[name] = value
        if not is_raw:
            self._apply_endings(found, upper)
        return found

    def _apply_endings(self, found: dict[str, Any], upper: Members) -> None:
        """Apply members such as ``Name#append`` to the member that they change, and remove them from ``found``."""
        names = [(name, ending) for name in upper if name in found and (ending := ending_of(name))]
        for wanted in _ENDINGS:
            for name in (name for name, ending in names if ending == wanted):
                value = found.pop(name)
                target = name[: -len(wanted)]
                old = found.get(target)
                if wanted == _DELETE:
                    found.pop(target, None)
                elif isinstance(value, list):
                    old = old if isinstance(old, list) else []
                    self._count((len(old) + 1) * len(value))
                    if wanted == _APPEND:
                        found[target] = old + [item for item in value if item not in old]
                    elif target in found:
                        found[target] = [item for item in old if item not in value]

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise FormatError("The blueprints that the file nests have too many values")


def read(data: bytes, *, inflated_limit: int | None = None) -> Blueprint:
    """Decode a blueprint.

    Raises
    ------
    FormatError
        The file is not JSON, not an object, or exceeds a limit.
    """
    content = _content(data)
    if not isinstance(content, dict):
        raise FormatError("The outermost value is not an object")
    return Blueprint(Merger().merged({}, content), hashlib.sha256(data).hexdigest())


def _content(data: bytes) -> Any:
    """Return the values of a file.

    Python's JSON parser is tried first: most files are strict JSON, which it parses in a tenth of the time.
    """
    if len(data) <= MOST_BYTES and b"\\u" not in data:  # may be half of a surrogate pair
        try:
            found = json.loads(data.removeprefix(BOM), parse_float=_number, parse_int=_number, strict=False)
        except (ValueError, RecursionError):
            return parse(data).plain()
        if not _is_large(found):
            return found
    return parse(data).plain()


def _number(text: str) -> float:
    if len(text) > MOST_DIGITS:
        raise ValueError
    return float(text)


def _is_large(value: Any) -> bool:
    """Return whether a value may exceed a limit of the parser."""
    level, number = [value], 0
    for _depth in range(MOST_DEPTH):
        number += len(level)
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = list(itertools.chain.from_iterable(inner))
    return bool(level) or number > MOST_VALUES


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have equal values, whatever their spelling and blanks."""
    return repr(parse(one).plain()) == repr(parse(other).plain())
