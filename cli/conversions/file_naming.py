"""Names of the files that a source becomes, without conflicts with other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...io_formats.disk.file_names import PathTable, cautious_key
from ..inputs import file_key


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
        self._companions: PathTable[str] = PathTable()

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

    def claim(self, companions: Mapping[Path, str]) -> list[Path]:
        """Reserve the companion files of a set. If some belong to other files of the run, return them and reserve none.

        Parameters
        ----------
        companions:
            Paths, such as that of a texture that several sets share, with text that is the same for equal content.
        """
        clashing = [path for path, content in companions.items() if not self._is_free(path, content)]
        if not clashing:
            for path, content in companions.items():
                self.take(path)
                self._companions.add(path, content)
        return clashing

    def _is_free(self, path: Path, content: str) -> bool:
        """Return whether a companion file may have a path: it is free, or reserved for the same content."""
        there = self._companions.find(path)
        return there == content if there is not None else content == text_of_copy(path) or not self.is_taken(path)


def text_of_copy(path: Path) -> str:
    """Return the text of :meth:`FileNames.claim` for a copy of a file on disk."""
    return f"copy of {file_key(path)}"
