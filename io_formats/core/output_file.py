"""Files that a document becomes: the interface between a format's writer and the code that writes files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OutputFile:
    """One file of a set: its name, and its content or the file that it is a copy of."""

    name: str
    """Name with extension; relative to the folder of the chosen file, possibly in a subfolder."""
    data: bytes = b""
    copy_of: Path | None = None
    """File that is copied unchanged instead of writing ``data``."""
    delay: float = 0.0
    """Seconds by which its modification time is later than those of the other files of the set."""
    obsolete: tuple[str, ...] = ()
    """Names of files beside it that do not belong to the set, but that programs would take for a part of it. They are
    removed together with the writing of the set if their first bytes contain ``own_mark``."""
    own_mark: bytes = b""
    """Bytes in the head of a file by which its writer recognises its own files."""
    note: str = ""
    """Text for the user about the use of the file; no action is needed to correct anything."""
    usage: str = ""
    """What to do with the files of the set in the target program. The command line does not print it for each set."""
