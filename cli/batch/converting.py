"""One task after the other, in one process: what a worker does, free of processes and messages."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from .work import Result, Task


@dataclass(frozen=True, slots=True)
class Setup:
    """What all tasks of a batch have in common."""

    argv: tuple[str, ...]
    """Options of the conversion, as on the command line (``conversion_arguments``)."""
    extension: str
    """Kind of file to write, as after ``--to``."""
    output: str
    """The output folder."""
    roots: tuple[str, ...]
    """The folders that ``Work.root`` counts."""


class Converter:
    """Does tasks, with one Blender for all, which is loaded when first needed."""

    def __init__(self, setup: Setup) -> None:
        raise NotImplementedError

    def __enter__(self) -> Converter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def prepare(self) -> None:
        """Load what every task will need, Blender where its files are to be written.

        Raises
        ------
        MissingLibraryError
            It is not there.
        """
        raise NotImplementedError

    def convert(self, task: Task) -> Result:
        """Do one task; a bad file is a result that says so, never an exception."""
        raise NotImplementedError
