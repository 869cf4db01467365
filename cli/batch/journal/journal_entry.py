"""A line of the journal: what became of a work, and what that was made of."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tasks import Result, Status, Task

_START = b'{"target":'
"""Of every line that tells of a work."""
AFTER_TARGET = b',"source":'
"""What follows the target; never inside it, where quotes have backslashes."""
_decoder = json.JSONDecoder()
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


@dataclass(slots=True)
class Entry:
    """What the journal keeps of a work; the fields are the keys of the line, in this order."""

    target: str
    source: str
    """Path below its root; of something inside an archive, the archive's."""
    member: str
    size: int
    modified: int
    """Size and date of the source, as in :class:`Task`."""
    hash: str
    options: str
    """Digest of everything that decides what is written, but the source."""
    result: str
    """A value of :class:`Status`."""
    outputs: dict[str, int]
    """Files written, below the output folder, and their sizes in bytes; -1: it was gone at once."""
    warnings: list[str]
    facts: dict[str, Any]
    error: str
    seconds: float
    attempts: int
    time: str
    """When it ended, UTC, such as ``2026-01-31T12:00:00Z``."""

    def line(self) -> bytes:
        """Return the line, with its end; plain ASCII, which also holds names that are no text."""
        return _encode({name: getattr(self, name) for name in self.__slots__}).encode("ascii") + b"\n"

    def told(self, task: Task) -> Result:
        """Return the result again that this came from."""
        return Result(
            task,
            Status(self.result),
            hash=self.hash,
            outputs=list(self.outputs),
            warnings=self.warnings,
            facts=self.facts,
            error=self.error,
            seconds=self.seconds,
            attempts=self.attempts,
        )


def entry_of(result: Result, options: str, output: Path) -> Entry:
    """Return what the journal keeps of a result; the sizes are those of the files below the output folder now."""
    task, folder = result.task, str(output)
    return Entry(
        target=task.target,
        source=task.path,
        member=task.member,
        size=task.size,
        modified=task.modified,
        hash=result.hash,
        options=options,
        result=result.status.value,
        outputs={name: file_size(os.path.join(folder, name)) for name in result.outputs},
        warnings=result.warnings,
        facts=result.facts,
        error=result.error,
        seconds=round(result.seconds, 4),
        attempts=result.attempts,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def file_size(path: str | Path) -> int:
    """Return the size of a file in bytes; -1: it is not there."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return -1


def parse(line: bytes) -> Entry | None:
    """Read a line; None: it tells of no work, or somebody broke it."""
    try:
        kept = json.loads(line)
        entry = Entry(**kept)
        Status(entry.result)
        entry.outputs = {str(name): int(size) for name, size in entry.outputs.items()}
        entry.warnings = [str(text) for text in entry.warnings]
        entry.facts = dict(entry.facts)
        numbers = (entry.size, entry.modified, entry.seconds, entry.attempts)
        texts = (entry.target, entry.source, entry.member, entry.hash, entry.options, entry.error, entry.time)
        sound = all(isinstance(number, (int, float)) for number in numbers)
        return entry if sound and all(isinstance(text, str) for text in texts) else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def start_of(target: str) -> bytes:
    """Return how the lines of a target begin, up to :data:`AFTER_TARGET`."""
    return _START + json.dumps(target).encode("ascii")


def target_of(line: bytes) -> str | None:
    """Return the target that a line tells of, without reading the rest of the line."""
    if not line.startswith(_START):
        return None
    try:
        target, _end = _decoder.raw_decode(line.decode("utf-8", "replace"), len(_START))
    except (ValueError, RecursionError):
        return None
    return target if isinstance(target, str) else None
