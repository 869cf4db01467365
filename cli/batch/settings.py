"""Settings of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..conversions.settings import Settings

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
