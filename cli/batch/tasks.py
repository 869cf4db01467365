"""Types of a batch: sources, tasks and results; names of its files.

A batch stores its state in the folder ``meshferry-batch`` of the output folder::

    plan.sqlite      options, roots of the sources, one row for each file to write; complete before the conversion
    journal.jsonl    one JSON line for each finished task; the last line of a target counts
    shards/          journals of the parts of the plan that other machines converted, until the driver merges them
    projects/        what the workers found out about the projects of the sources; removed at the end of a run
    pictures/        small pictures for the report and for assets, named after the hash of the source
    report.html      if ``--report`` was given

Paths in these files are relative, with ``/`` between folders: other machines may see the folders elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...io_formats.core.messages import Message

STATE_FOLDER = "meshferry-batch"
PLAN_FILE = "plan.sqlite"
JOURNAL_FILE = "journal.jsonl"
SHARDS_FOLDER = "shards"
PICTURES_FOLDER = "pictures"
PROJECTS_FOLDER = "projects"
REPORT_FILE = "report.html"
DISK_FULL, CANNOT_DRAW = "disk-full", "cannot-draw"


class SourceFile(NamedTuple):
    """A file that was found, on disk or inside an archive."""

    root: str
    """Absolute folder that was searched, or the folder of a file given by name."""
    path: str
    """Path below the root; for a member of an archive, the archive's path."""
    member: str
    """Name inside the archive; empty outside of archives."""
    place: str
    """Path below the output folder, still with the source's own name."""
    size: int
    """Bytes; -1 if the file does not exist; the error is reported when it is read."""
    modified: int
    """Time of the last change, in nanoseconds since 1970; for a member of an archive, the archive's."""
    is_link: bool = False
    """Whether the path is a symbolic link to a file."""


class Task(NamedTuple):
    """A row of the plan: a source and the file to write."""

    number: int
    """Row of the plan, from 0. Removed duplicates leave gaps."""
    root: int
    """Index of the source's root in the plan."""
    path: str
    member: str
    target: str
    """Path below the output folder. Unique in the plan, so it identifies the task in state and journal."""
    size: int
    modified: int

    @property
    def source(self) -> str:
        """Name of the source in messages, such as ``region.oar: assets/…_mesh.llmesh`` for a member of an archive."""
        return f"{self.path}: {self.member}" if self.member else self.path


class Status(enum.Enum):
    """Outcome of a task."""

    DONE = "done"
    UNCHANGED = "unchanged"
    """The source has another date, but the content of the last conversion; nothing was written."""
    FAILED = "failed"
    """Ended with an error: the file is broken or cannot be converted to the format."""
    CRASHED = "crashed"
    """The worker process died twice, the second time in a fresh process without other files."""
    TIMED_OUT = "timed out"

    @property
    def is_good(self) -> bool:
        return self is Status.DONE or self is Status.UNCHANGED

    @property
    def is_quarantined(self) -> bool:
        return self is Status.CRASHED or self is Status.TIMED_OUT


class TaskKind(enum.Enum):
    """Kind of work for a task."""

    CONVERT = "convert"
    PICTURE = "picture"
    """Render the source into ``pictures/<hash>.webp``, if that is missing or damaged."""


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task with the data that a worker needs."""

    task: Task
    kind: TaskKind = TaskKind.CONVERT
    known_hash: str = ""
    """Hash of the source at its last conversion, if that had the same options and its outputs still exist."""
    content: bytes | None = None
    """Content of a member of an archive, which the driver reads."""


SHARED_VALUES = ("hash", "facts", "error", "error_code", "error_cause", "seconds")
"""Fields of a result that messages of workers and lines of journals contain as they are."""


@dataclass(slots=True)
class Result:
    """Result of a task."""

    task: Task
    status: Status
    hash: str = ""
    """BLAKE2b (16 bytes, hex) of the source's content."""
    outputs: list[str] = field(default_factory=list)
    """Files written, below the output folder; the target is the last if it is among them."""
    warnings: Sequence[Message] = ()
    """Messages; as plain texts if an old journal has nothing else."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts, in the form in which ``convert --json`` prints them."""
    error: str = ""
    """One line; for a crash, the signal and the last output of the process."""
    error_code: str = ""
    """``DISK_FULL`` or ``CANNOT_DRAW`` if the error concerns all files, not this one."""
    error_cause: str = ""
    """The error without names and numbers; empty if unknown."""
    seconds: float = 0.0
    attempts: int = 1
    kind: TaskKind = TaskKind.CONVERT
