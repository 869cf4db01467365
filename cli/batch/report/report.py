"""Results of a batch -> pages of HTML that need nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..work import Result

ENTRIES_A_PAGE = 2000


@dataclass(frozen=True)
class About:
    """What a report says of the batch as a whole."""

    version: str
    """``environment.described()``."""
    options: Sequence[str]
    """Of the conversion, as they were given on the command line."""
    roots: Sequence[str]
    """Folders that the sources were found in."""
    ended: float
    """When the run was over, in seconds since 1970."""
    no_pictures: str = ""
    """Why pictures are missing (``PictureRun.problem``)."""


def write(results: Iterable[Result], about: About, output: Path, to: Path, *, a_page: int = ENTRIES_A_PAGE) -> Path:
    """Write the report; return the file to open.

    One file of up to ``a_page`` models; of more, an index that finds each, and pages ``NAME-001.html`` beside it.
    Pages are written one after the other, so a library of any size can be shown; those of a longer report that stood
    there before are removed.

    Parameters
    ----------
    results:
        What is known of each work of the plan, each once, in the order that they are to stand in (the plan's).
    output:
        The output folder of the batch: outputs and pictures are looked for and linked below it.
    to:
        The file to write, ``report.html`` say.

    Raises
    ------
    ExportError
        The system refuses; what could not be replaced is as it was.
    """
    raise NotImplementedError
