"""Files that a document becomes beside each other: what a format's writer hands to whoever writes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OutputFile:
    """One file of a set: its name, and its content or the file that it is a copy of."""

    name: str
    """With its extension; lies in the folder of the chosen file, or with a ``/`` in a folder of that."""
    data: bytes = b""
    copy_of: Path | None = None
    """Copied as it is instead of ``data``."""
    delay: float = 0.0
    """Seconds that its modification time lies after those of the others of the set."""
