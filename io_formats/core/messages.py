"""Helpers for the texts of warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Warn = Callable[[str], None]
"""A function that is called with each warning, without the object's name."""


def unheard(_text: str) -> None:
    """Ignore a warning."""


def counted(number: int, one: str, many: str) -> str:
    """Return ``1 vertex has`` or ``2 vertices have``."""
    return f"{number:,} {one if number == 1 else many}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, quoted, and how many more there are."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")
