"""What the files of a batch are called of which nobody knew when it was planned."""

from __future__ import annotations

import os
from pathlib import Path

from ....io_formats.disk.file_names import PathTable
from ...conversions.file_naming import FileNames
from ...inputs import file_key
from ..plan.target_index import TargetIndex


class PartNames(FileNames):
    """The files that one source of a batch becomes.

    Other processes name files at the same time, so a name follows from the source's own target and the plan alone.
    """

    def __init__(self, target: Path, output: Path, index: TargetIndex) -> None:
        super().__init__(PathTable())
        self._target = target
        self._output = output
        self._index = index

    def is_taken(self, path: Path) -> bool:
        """Tell whether a file is the target of another source, or a source."""
        return file_key(path) != file_key(self._target) and (self._is_planned(path) or super().is_taken(path))

    def _is_planned(self, path: Path) -> bool:
        return path.relative_to(self._output).as_posix() in self._index or self._below(path) in self._index

    def _below(self, path: Path) -> str:
        """Return where a file is below the output folder behind links, as a plan knows its sources."""
        behind_links = os.path.join(file_key(path.parent), path.name)
        try:
            return os.path.relpath(behind_links, file_key(self._output)).replace(os.sep, "/")
        except ValueError:  # on another drive, so not below the output folder
            return behind_links
