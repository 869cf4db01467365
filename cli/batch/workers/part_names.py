"""What the files of a batch are called of which nobody knew when it was planned."""

from __future__ import annotations

import os
from pathlib import Path

from ....io_formats.name_keys import PathTable, cautious_key
from ...conversions.file_naming import FileNames
from ...inputs import file_key
from ..plan.target_index import TargetIndex


class PartNames(FileNames):
    """The files that one source of a batch becomes, if these are several: ``crate.door.mesh``, ``crate.lid.mesh``.

    Other processes name files at the same time, so a name follows from the source's own target and the plan alone:
    it begins with the target's, has one dot more, and gets a number where it is another source's target.
    """

    def __init__(self, target: Path, output: Path, index: TargetIndex) -> None:
        super().__init__(PathTable())
        self._target = target
        self._output = output
        self._index = index
        self._given: set[str] = set()

    def of_part(self, target: Path, name: str) -> Path:
        """Return where one of several files goes; ``target`` is the source's, or one that came from here."""
        own = self._target.stem
        before = target.stem[len(own) + 1 :]  # the collection of which this is a part
        # Without dots, so that the last one ends the source's own name: no two sources have the same.
        part = (f"{before}_{name}" if before else name).replace(".", "_")
        plain, number = f"{own}.{part}", 2
        path = self._target.with_name(plain + self._target.suffix)
        while cautious_key(str(path)) in self._given or self._is_planned(path):
            path = self._target.with_name(f"{plain}_{number}{self._target.suffix}")
            number += 1
        self._given.add(cautious_key(str(path)))
        return path

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
