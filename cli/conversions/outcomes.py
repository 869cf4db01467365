"""The outcome of a conversion for each file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Message, Text, distinct

ANOTHER_FAILED = "Not written, since another file failed and the conversion is strict"


@dataclass
class Outcome:
    """The outcome for one file, or for one collection of a .blend file."""

    source: Path
    target: Path
    collection: str = ""
    facts: dict[str, Any] | None = None
    warnings: list[Message] = field(default_factory=list)
    problem: Exception | None = None
    files: list[Path] = field(default_factory=list)
    """All files of a set, the target last; empty for formats whose documents are a single file."""

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Record an exception in the ``with`` block as the problem, and continue after the block."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest; the reporter tells defects apart)
            self.problem = problem

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages without duplicates."""
        self.warnings = distinct([*self.warnings, *messages])

    def report(self, messages: Iterable[Message], *, strict: bool) -> None:
        """Add messages without duplicates. In a strict conversion, raise an error if some are losses."""
        new = distinct(messages)
        self.add(new)
        lost = [message for message in new if message.is_loss]
        if strict and lost:
            more = Text(" (and {:,} more)", len(lost) - 1) if len(lost) > 1 else ""
            raise ExportError("Not written, since the conversion is strict: {}{}", lost[0], more)
