"""A long run in pieces: what is done, and what has to be done again, in a file that a later run continues."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .workers import Totals

PIECE = 20_000
"""Cases between two savings, for which each worker is a fresh process."""


@dataclass
class State:
    """The progress of the cases of one seed."""

    seed: int
    format: str = ""
    piece: int = PIECE
    next: int = 0
    """The first case that has not been run."""
    failed: list[tuple[int, int]] = field(default_factory=list)
    """First number and end of pieces with findings; a resumed run takes them first."""
    cases: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    largest: tuple[int, int] = (0, -1)
    leaked: int = 0

    def pieces(self, cases: int) -> list[range]:
        """Return the pieces up to this number of cases: failed ones, then those not run yet."""
        again = [range(start, stop) for start, stop in self.failed]
        starts = range(self.next, cases, self.piece)
        return again + [range(start, min(start + self.piece, cases)) for start in starts]

    def finish(self, numbers: range, totals: Totals, seconds: float, *, failed: bool) -> None:
        """Record a piece that was run to its end."""
        bounds = (numbers.start, numbers.stop)
        was_failed = bounds in self.failed
        self.failed = [other for other in self.failed if other != bounds]
        if failed:
            self.failed.append(bounds)
        self.next = max(self.next, numbers.stop)
        self.seconds += seconds
        if not was_failed:
            self.cases += totals.cases
            self.outcomes += totals.outcomes
        self.slowest = max(self.slowest, totals.slowest)
        self.largest = max(self.largest, totals.largest)
        self.leaked = max(self.leaked, totals.leaked)

    def save(self, folder: Path) -> None:
        """Write the state; a run that is killed meanwhile leaves the previous one."""
        folder.mkdir(parents=True, exist_ok=True)
        path = state_file(folder, self.seed, self.format)
        staged = path.with_suffix(".tmp")
        staged.write_text(json.dumps(vars(self), indent=2), encoding="utf-8")
        os.replace(staged, path)


def state_file(folder: Path, seed: int, only: str) -> Path:
    return folder / f"state-{seed}{'-' + only if only else ''}.json"


def load_state(folder: Path, seed: int, only: str) -> State:
    """Return the state that an earlier run left, or a new one."""
    path = state_file(folder, seed, only)
    if not path.is_file():
        return State(seed, only)
    values = json.loads(path.read_text(encoding="utf-8"))
    for name in ("slowest", "largest"):
        values[name] = tuple(values[name])
    values["failed"] = [(start, stop) for start, stop in values["failed"]]
    return State(**{**values, "outcomes": Counter(values["outcomes"])})
