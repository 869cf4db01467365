"""Numbers of blueprints. Absent ones get a default; values that are not finite numbers are replaced and reported."""

from __future__ import annotations

import math
from typing import Any

from ...core.messages import Unresolved
from ...core.placement import Channels
from .document import Members, child_of
from .problems import Problem
from .transforms import Triple, to_channels

_LARGEST = 3.4028234e38
"""Largest number of single precision."""


class Numbers:
    """Reads numbers, and records those that cannot be used."""

    def __init__(self, unresolved: Unresolved) -> None:
        self._unresolved = unresolved

    def number(self, value: Any, default: float, location: str) -> float:
        """Return a number, or the default for other values; ``location`` names it in messages."""
        if value is None:
            return default
        if isinstance(value, float) and abs(value) <= _LARGEST:
            return value
        self._unresolved.add(Problem.NUMBER, location)
        return default

    def vector(self, members: Members, name: str, location: str, default: float = 0.0) -> Triple:
        """Return X, Y and Z of a member."""
        found = child_of(members, name)
        if found is None:
            if members.get(name) is not None:
                self._unresolved.add(Problem.NUMBER, f"{location}/{name}")
            return default, default, default
        x, y, z = (self.number(found.get(axis), default, f"{location}/{name}/{axis}") for axis in "XYZ")
        return x, y, z

    def transform(self, members: Members | None, location: str) -> Channels:
        """Return the channels of an object whose ``Position``, ``Rotation`` and ``Scale`` may be absent."""
        if members is None:
            return to_channels()
        return to_channels(
            self.vector(members, "Position", location),
            self.vector(members, "Rotation", location),
            self.vector(members, "Scale", location, 1.0),
        )

    def cell(self, members: Members, name: str, location: str) -> tuple[int, int, int]:
        """Return X, Y and Z of a member as whole numbers of a grid, at most a million."""
        x, y, z = map(whole_number, self.vector(members, name, location))
        return x, y, z


def whole_number(value: float) -> int:
    """Return a finite number as a whole number of a grid, at most a million."""
    return math.floor(max(-1e6, min(value, 1e6)))
