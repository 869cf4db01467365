"""Names of the files that a source becomes, without conflicts with other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...io_formats.disk.file_names import PathTable, cautious_key


class FileNames:
    """The files of one run: none is written twice, and no input is overwritten.

    Parameters
    ----------
    taken:
        Every file that may not be written.
    """

    def __init__(self, taken: PathTable[Any]) -> None:
        self._taken = taken
        self._given: set[str] = set()

    def of_part(self, own: Path, target: Path, name: str) -> Path:
        """Return the path of one of several files that a source becomes, such as ``crate.lid.mesh``, and take it.

        Parameters
        ----------
        own:
            The path of the file that the source would become if it were the only one.
        target:
            The same, or a path from here of which the file is a part.
        name:
            What the file holds, without characters that a system refuses. Its dots become underscores, so that no two
            sources have the same names. The name of a file that belongs to others gets a number.
        """
        before = target.stem[len(own.stem) + 1 :]
        part = (f"{before}_{name}" if before else name).replace(".", "_")
        plain, number = f"{own.stem}.{part}", 2
        path = own.with_name(plain + own.suffix)
        while cautious_key(str(path)) in self._given or self.is_taken(path):
            path = own.with_name(f"{plain}_{number}{own.suffix}")
            number += 1
        self._given.add(cautious_key(str(path)))
        self.take(path)
        return path

    def is_taken(self, path: Path) -> bool:
        """Return whether a file belongs to others."""
        return self._taken.find(path) is not None

    def take(self, path: Path) -> None:
        """Keep a file from others."""
        self._taken.add(path, path)
