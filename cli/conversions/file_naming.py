"""What files are called that one source becomes, and which names belong to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...io_formats.name_keys import PathTable


class FileNames:
    """The files of one run, so that none is written twice and none is written over that is read.

    Parameters
    ----------
    taken:
        Every file that nothing else may write to.
    """

    def __init__(self, taken: PathTable[Any]) -> None:
        self._taken = taken

    def of_part(self, target: Path, name: str) -> Path:
        """Return where one of several files goes that a source becomes instead of ``target``.

        ``name`` is that of what the file holds, without characters that a system refuses.
        """
        return target.with_name(name + target.suffix)

    def is_taken(self, path: Path) -> bool:
        """Tell whether a file belongs to others."""
        return self._taken.find(path) is not None

    def take(self, path: Path) -> None:
        """Keep a file from others."""
        self._taken.add(path, path)
