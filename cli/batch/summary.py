"""What a batch says at its end: how many of what, what took long, and why files are missing."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..reporting import counted, one_line, printable
from .progress import rate_text, time_text
from .tasks import Status
from .totals import Totals

_CAUSES_SHOWN = 10
_QUARANTINED_SHOWN = 20
_MOMENT = 1.0
"""Seconds to begin and to end with that nobody asks about."""
_WIDTH = 1000
"""Columns where there is no terminal: nothing is broken over lines."""
_WORDS = {
    Status.DONE: ("done", ""),
    Status.UNCHANGED: ("unchanged", "another date, the same content"),
    Status.FAILED: ("failed", ""),
    Status.CRASHED: ("crashed", "in quarantine"),
    Status.TIMED_OUT: ("timed out", "in quarantine"),
}


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    totals: Totals
    planned: int
    """Works of the plan."""
    seconds: float
    """From the start of the command on."""
    journal: Path
    report: Path | None = None
    unreadable: int = 0
    """Folders, archives and patterns that could not be searched."""

    @property
    def is_good(self) -> bool:
        """Every file is what it should be, as far as the run came."""
        return not self.totals.failed and not self.unreadable

    @property
    def left(self) -> int:
        """Works that the run did not come to."""
        return self.planned - self.totals.skipped - self.totals.converted

    def record(self) -> dict[str, Any]:
        """Return what programs are told."""
        totals = self.totals
        return {
            "summary": {
                "files": self.planned,
                **{status.value: totals.by_status[status] for status in Status},
                "skipped": totals.skipped,
                "left": self.left,
                "with warnings": totals.warned,
                "unreadable": self.unreadable,
                "seconds": round(self.seconds, 3),
                "converting seconds": round(totals.seconds, 3),
                "slowest": [
                    {"input": source, "seconds": round(seconds, 4)} for seconds, source in totals.slowest_first()
                ],
                "quarantined": [{"input": source, "error": error} for source, error in totals.quarantined],
                "causes": [
                    {"error": cause.text, "count": cause.count, "first": cause.example}
                    for cause in totals.commonest_causes()[:_CAUSES_SHOWN]
                ],
                "journal": str(self.journal),
                "report": str(self.report) if self.report is not None else None,
            }
        }

    def text(self) -> str:
        """Return what people are told: tables without lines and colours, which any console can show."""
        from rich.console import Console
        from rich.table import Table

        width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else _WIDTH
        console = Console(
            file=io.StringIO(),
            width=width,
            color_system=None,
            force_terminal=False,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )
        console.print(self._first_line())
        for title, rows in self._tables():
            table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
            table.add_column(justify="right", no_wrap=True)
            table.add_column(overflow="fold")
            table.add_column(overflow="fold")
            for row in rows:
                table.add_row(*(printable(one_line(cell)) for cell in row))
            if title:
                console.print(f"\n{title}")
            console.print(table)
        console.print(f"\nJournal: {printable(self.journal)}")
        if self.report is not None:
            console.print(f"Report: {printable(self.report)}")
        printed = console.file
        assert isinstance(printed, io.StringIO)  # noqa: S101 (for the type checker)
        return "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())

    def _first_line(self) -> str:
        totals = self.totals
        if not totals.converted:
            if not self.planned:
                return "There is nothing to convert"
            return f"Nothing was to do for {counted(totals.skipped, 'file')}" if totals.skipped else "Nothing was done"
        good = totals.converted - totals.failed
        seconds = totals.seconds or self.seconds
        rate = rate_text(totals.converted, seconds)
        whole = f"; {time_text(self.seconds)} in all" if self.seconds > max(seconds + _MOMENT, 1.1 * seconds) else ""
        return f"Converted {good:,} of {counted(totals.converted, 'file')} in {time_text(seconds)}, {rate}{whole}"

    def _tables(self) -> Iterator[tuple[str, list[Sequence[str]]]]:
        """Yield titles and rows of three cells."""
        totals = self.totals
        counts = [(totals.by_status[status], *words) for status, words in _WORDS.items()]
        counts.insert(2, (totals.skipped, "skipped", "done before, and as it was"))
        counts += [
            (totals.retried, "went well alone", "at the second try, in a process without other files before"),
            (totals.warned, "with warnings", "which the journal tells"),
            (self.unreadable, "could not be searched", "see above"),
            (self.left, "left", "the same command goes on with them"),
        ]
        if rows := [(f"{count:,}", *words) for count, *words in counts if count]:
            yield "", list(rows)
        if causes := totals.commonest_causes():
            rows = [(f"{cause.count:,}", cause.text, cause.example) for cause in causes[:_CAUSES_SHOWN]]
            yield "Failed, and the first of each kind", [*rows, *_more(len(causes) - len(rows), "other cause")]
        if totals.in_quarantine:
            quarantined = [("", source, reason) for source, reason in totals.quarantined[:_QUARANTINED_SHOWN]]
            yield "In quarantine", [*quarantined, *_more(totals.in_quarantine - len(quarantined), "more file")]
        if slowest := totals.slowest_first():
            yield "The slowest", [(time_text(seconds), source, "") for seconds, source in slowest]


def _more(count: int, noun: str) -> list[Sequence[str]]:
    return [("", f"and {counted(count, noun)}", "")] if count > 0 else []
