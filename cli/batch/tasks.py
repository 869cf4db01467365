"""What a batch works through: files found, the lines of its plan, what is asked of a worker and what became of it.

A batch keeps what it knows in the folder ``meshferry-batch`` of its output folder::

    batch.json       what was asked for: options, kind of file to write, roots of the sources, version
    plan.jsonl       one line for each file to write, made before anything is written
    journal.jsonl    one line for each file that was worked on, the last one of a target counts
    shards/          journals of parts of the plan that were done elsewhere, until they are taken over
    pictures/        small pictures for the report, named after the hash of the source
    report.html      where one was asked for

Paths in these files are relative, with ``/`` between folders, so that another machine can see them in another place.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

STATE_FOLDER = "meshferry-batch"
BATCH_FILE = "batch.json"
PLAN_FILE = "plan.jsonl"
JOURNAL_FILE = "journal.jsonl"
SHARDS_FOLDER = "shards"
PICTURES_FOLDER = "pictures"
REPORT_FILE = "report.html"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was found, on disk or inside an archive."""

    root: str
    """The absolute folder that was searched, or that a file given by name lies in."""
    path: str
    """Below the root; of something inside an archive, the archive's."""
    member: str
    """Name inside the archive; empty outside of archives."""
    place: str
    """Where it belongs in the output folder, still under its own name."""
    size: int
    """Bytes; -1: it is not there, which its reading will say."""
    modified: int
    """Time of the last change, in nanoseconds since 1970; of something inside an archive, the archive's."""
    is_link: bool = False
    """A link to a file that lies elsewhere."""


@dataclass(frozen=True, slots=True)
class Task:
    """A line of the plan: a source and the file that it becomes."""

    number: int
    """Line in the plan, from 0."""
    root: int
    """Which of the batch's roots the source lies under."""
    path: str
    member: str
    target: str
    """Below the output folder. No two works have the same, so this is what the journal knows a work by."""
    size: int
    modified: int

    @property
    def source(self) -> str:
        """What people are told: ``region.oar: assets/…_mesh.llmesh`` of something inside an archive."""
        return f"{self.path}: {self.member}" if self.member else self.path


class Status(enum.Enum):
    """How a task ended."""

    DONE = "done"
    UNCHANGED = "unchanged"
    """Its source has another date, but the same content as when it was done: nothing was written."""
    FAILED = "failed"
    """Refused in words: the file is broken, or cannot become what was asked for."""
    CRASHED = "crashed"
    """The process died of it twice, the second time alone in a fresh one."""
    TIMED_OUT = "timed out"

    @property
    def is_good(self) -> bool:
        return self is Status.DONE or self is Status.UNCHANGED

    @property
    def is_quarantined(self) -> bool:
        return self is Status.CRASHED or self is Status.TIMED_OUT


class TaskKind(enum.Enum):
    """What a worker is asked to do."""

    CONVERT = "convert"
    PICTURE = "picture"
    """Render the source into ``pictures/<hash>.webp``."""


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """What is handed to a worker."""

    task: Task
    kind: TaskKind = TaskKind.CONVERT
    known_hash: str = ""
    """Hash of the source when it was done the last time, with the same options and its outputs still there."""
    content: bytes | None = None
    """Of something inside an archive, which is read in order by the one who hands out."""


@dataclass(slots=True)
class Result:
    """What became of a task."""

    task: Task
    status: Status
    hash: str = ""
    """BLAKE2b (16 bytes, hex) of the source's content."""
    outputs: list[str] = field(default_factory=list)
    """Files written, below the output folder; the target is the last where it is among them."""
    warnings: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """As ``convert --json`` gives them."""
    error: str = ""
    """One line; of a crash the signal and the last words of the process."""
    seconds: float = 0.0
    attempts: int = 1
    kind: TaskKind = TaskKind.CONVERT
