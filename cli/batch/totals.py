"""Numbers of a run, and the few names worth showing at its end; of bounded size, however long the run."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from dataclasses import dataclass, field

from .tasks import Result, Status

SLOWEST_KEPT = 10
QUARANTINED_KEPT = 100
_CAUSES_KEPT = 1000
_ODD_DETAILS = re.compile(r"'[^']*'|\d[\d.,]*")
"""What differs between two failures of the same cause: names and numbers."""


@dataclass
class Cause:
    """Why files failed."""

    text: str
    """Of the first."""
    example: str
    """The first source."""
    count: int = 0


@dataclass
class Totals:
    """What became of the works of a run."""

    skipped: int = 0
    """Done by an earlier run, and as they were."""
    seconds: float = 0.0
    """How long it took to convert them, without what comes before and after; 0: nobody looked."""
    by_status: Counter[Status] = field(default_factory=Counter)
    warned: int = 0
    """Files with warnings."""
    retried: int = 0
    """Files that a worker died of once, and that went well alone."""
    slowest: list[tuple[float, str]] = field(default_factory=list)
    """Seconds and source; a heap, see :meth:`slowest_first`."""
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    """Source and reason of the first ones."""
    causes: dict[str, Cause] = field(default_factory=dict)
    """Why files failed, by what such failures have in common."""

    @property
    def converted(self) -> int:
        """How many works were handed out and ended."""
        return self.by_status.total()

    @property
    def failed(self) -> int:
        """How many did not become what they should, quarantined ones among them."""
        return sum(count for status, count in self.by_status.items() if not status.is_good)

    @property
    def in_quarantine(self) -> int:
        return sum(count for status, count in self.by_status.items() if status.is_quarantined)

    def add(self, result: Result) -> None:
        """Count a work that ended."""
        self.by_status[result.status] += 1
        self.warned += bool(result.warnings)
        if len(self.slowest) < SLOWEST_KEPT:
            heapq.heappush(self.slowest, (result.seconds, result.task.source))
        elif result.seconds > self.slowest[0][0]:
            heapq.heapreplace(self.slowest, (result.seconds, result.task.source))
        if result.status.is_good:
            self.retried += result.attempts > 1
        elif not result.status.is_quarantined:
            self._add_cause(result.error, result.task.source)
        elif len(self.quarantined) < QUARANTINED_KEPT:
            self.quarantined.append((result.task.source, result.error))

    def slowest_first(self) -> list[tuple[float, str]]:
        return sorted(self.slowest, reverse=True)

    def commonest_causes(self) -> list[Cause]:
        return sorted(self.causes.values(), key=lambda cause: -cause.count)

    def _add_cause(self, error: str, source: str) -> None:
        key = _ODD_DETAILS.sub("…", error)
        if key not in self.causes and len(self.causes) >= _CAUSES_KEPT:
            key = ""
        self.causes.setdefault(key, Cause(error if key else "other causes", source)).count += 1
