"""Blueprints on top of each other (docs/formats/timberborn_blueprints.md, section 3)."""

from __future__ import annotations

from typing import Any

from ...core.errors import FormatError
from .document import Members

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
