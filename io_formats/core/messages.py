"""Helpers for the texts of warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Warn = Callable[[str], None]
"""A function that is called with each warning, without the object's name."""


def unheard(_text: str) -> None:
    """Ignore a warning."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return ``1 vertex has`` or ``1,284 vertices have``; the default of ``many`` is ``one`` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = 8, *, quote: str = "'") -> str:
    """Return the first names, quoted, and how many more there are."""
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
