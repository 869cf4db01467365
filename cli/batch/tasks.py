"""Types of a batch: its settings, sources, tasks and results; names of its files.

A batch stores its state in the folder ``meshferry-batch`` of the output folder::

    plan.sqlite      options, roots of the sources, one row for each file to write; complete before the conversion
    journal.jsonl    one JSON line for each finished task; the last line of a target counts
    shards/          journals of the parts of the plan that other machines converted, until the driver merges them
    projects/        what the workers found out about the projects of the sources; removed at the end of a run
    pictures/        small pictures for the report and for assets, named after the hash of the source
    report.html      if ``--report`` was given

Paths in these files are relative, with ``/`` between folders: other machines may see the folders elsewhere.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...io_formats.core.messages import Message
from ..conversions.settings import Settings

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


TIME_LIMIT = 600.0
"""Default time limit of a file in seconds."""
RECYCLE_AFTER = 500
"""Tasks after which a process is replaced if its memory has grown, because Blender does not release all memory. Others
continue: a start takes as long as a hundred small files."""


@dataclass(frozen=True)
class SourceChoice:
    """Which files are the sources of a batch."""

    paths: Sequence[str] = ()
    """Files, folders (searched recursively; links to folders are not followed), patterns that the shell did not expand,
    and archives."""
    lists: Sequence[str] = ()
    """Files with one path a line; ``-`` is the standard input. They may name folders and archives, but no patterns."""
    base: str | None = None
    """Folder of relative paths in lists; single files below it keep their subfolders, others their whole path. Default:
    the working folder for lists; files of the command line go directly into the output folder."""
    match: Sequence[str] = ()
    """Patterns (:func:`.sources.choice.compile_pattern`) of which one must match the path below the searched folder."""
    skip: Sequence[str] = ()
    """Patterns of which none may match that path."""
    newer: int | None = None
    """Only files changed after this time, in nanoseconds since 1970, and missing ones."""


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """The user's choices for a batch, or for the part of a plan that one of several machines converts."""

    conversion: Settings = field(default_factory=Settings)
    sources: SourceChoice = field(default_factory=SourceChoice)
    output: str | None = None
    clashes: str = "refuse"
    """Whether to ``refuse`` sources with the same target or to ``number`` the later ones."""
    jobs: int | None = None
    time_limit: float = TIME_LIMIT
    """Seconds of wall time for one file, after which its process is killed; 0 for no limit."""
    recycle: int = RECYCLE_AFTER
    """Tasks after which a process is replaced if its memory has grown; 0 for never."""
    checksum: bool = False
    """Whether to compare the content of sources with unchanged size and date, too."""
    dry_run: bool = False
    report: str | None = None
    """Page to write; empty for the default one."""
    scheduler: str | None = None
    """Address of a dask scheduler."""
    worker_command: str = "meshferry"
    plan: str | None = None
    range: str | None = None
    end_with_parent: bool = False
