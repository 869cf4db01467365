"""How warnings are worded, and to whom they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Warn = Callable[[str], None]
"""Is told what was mended or left out, without the object's name."""


def unheard(_text: str) -> None:
    """Take a warning that nobody wants to hear."""


def counted(number: int, one: str, many: str) -> str:
    """Return ``1 vertex has`` or ``2 vertices have``."""
    return f"{number:,} {one if number == 1 else many}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, quoted, and how many more there are."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")
