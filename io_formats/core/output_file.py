"""Output files: the interface between the writers of formats and the code that writes to disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OutputFile:
    """One file of a set: its name, and its content or the file of which it is a copy."""

    name: str
    """Name with extension; relative to the folder of the chosen file, possibly in a subfolder."""
    data: bytes = b""
    copy_of: Path | None = None
    """File that is copied unchanged instead of writing ``data``."""
    delay: float = 0.0
    """Seconds by which its modification time is later than those of the other files of the set."""
    obsolete: tuple[str, ...] = ()
    """Names of existing files beside it that do not belong to the set, but that programs would read as part of it. They
    are removed when the set is written, if their first bytes contain ``own_mark``."""
    own_mark: bytes = b""
    """Bytes near the start of a file that identify files by the same writer."""
    own_prefix: str = ""
    """Start of the names of the other files of the set, if it is not the stem of the name. Existing files with other
    names are not replaced."""
    note: str = ""
    """Information for the user about the file, which requires no action."""
    usage: str = ""
    """Instructions for using the files of the set in the target program. The command line does not print them for each
    set."""
