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
        """Return and reserve the path of one of several files that a source becomes, such as ``crate.lid.mesh``.

        Parameters
        ----------
        own:
            The path for a source that becomes a single file.
        target:
            The same path, or one that this method returned and of which this file is a part.
        name:
            Name of the file's content, without forbidden characters. Dots become underscores, so that files of
            different sources have different names. If the path is reserved already, a number is added.
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
        """Return whether a path is reserved."""
        return self._taken.find(path) is not None

    def take(self, path: Path) -> None:
        """Reserve a path."""
        self._taken.add(path, path)
