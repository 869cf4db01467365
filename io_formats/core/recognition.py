"""Results of recognising a file by its content."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Match(IntEnum):
    """The evidence for a format. The format with the strongest evidence reads the file."""

    NONE = 0
    PLAUSIBLE = 1
    """The first bytes are possible in the format. It has no signature."""
    LENGTH = 2
    """The file is exactly as long as its header requires. The format has no signature."""
    SIGNATURE = 3
    """The file starts with the format's signature."""


@dataclass(frozen=True)
class NearMiss:
    """A file that the format does not read but can explain, such as one of an unsupported version."""

    text: str
    """A sentence without a full stop."""
    has_signature: bool = False
    """Whether the file has a signature, which rules out every format without one."""

    def __bool__(self) -> bool:
        """Return False, like ``Match.NONE``, since the format does not recognise the file."""
        return False
