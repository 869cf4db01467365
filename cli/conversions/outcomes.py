"""Settings of a conversion, and the outcome for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...io_formats.core.errors import ExportError
from ...io_formats.core.projects import Projects
from .clip_choice import ClipChoice

ANOTHER_FAILED = "Not written, since another file failed and the conversion is strict"


@dataclass(frozen=True)
class Settings:
    """The user's choices, by table of options. Only options that the user gave are included."""

    import_options: dict[str, Any] = field(default_factory=dict)
    export_options: Mapping[str, Any] = field(default_factory=dict)
    read_options: Mapping[str, Any] = field(default_factory=dict)
    """Read options of all formats; each format uses its own."""
    format_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Write options, by name of the target format."""
    clips: ClipChoice = field(default_factory=ClipChoice)
    collections: tuple[str, ...] = ()
    strict: bool = False
    is_flushed: bool = True
    """Whether each file is flushed to disk; see ``atomic_write.replace_file``."""
    dry_run: bool = False
    """Whether to write nothing, and only report files and losses."""
    projects: Projects = field(default_factory=lambda: Projects(is_fixed=True), compare=False)
    """The projects that are open in this run."""
    is_compressed: bool = False
    """Whether .blend files are compressed."""
    makes_assets: bool = False
    """Whether collections in .blend files become assets."""
    asset_catalog: str = ""
    """UUID of their catalog; empty for none."""
    asset_picture: Path | None = None
    """Image file for their previews, if there is one."""


@dataclass
class Outcome:
    """The outcome for one file, or for one collection of a .blend file."""

    source: Path
    target: Path
    collection: str = ""
    facts: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    problem: Exception | None = None
    files: list[Path] = field(default_factory=list)
    """All files of a set, the target last; empty for formats whose documents are a single file."""

    def attempt(self, work: Callable[[], None]) -> bool:
        """Call a function and record its exception as the problem; return whether it succeeded."""
        try:
            work()
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest; the reporter tells defects apart)
            self.problem = problem
        return self.problem is None

    def add(self, said: Sequence[str]) -> None:
        """Add warnings without duplicates."""
        self.warnings = list(dict.fromkeys([*self.warnings, *said]))

    def set_warnings(self, said: Sequence[str], lost: Sequence[str], *, strict: bool) -> None:
        """Record the warnings without duplicates; in a strict conversion, raise an error for those about losses.

        Findings about the target program's rules are not losses: ``check`` reports them.
        """
        self.warnings = list(dict.fromkeys(said))
        lost = list(dict.fromkeys(lost))
        if strict and lost:
            more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
            raise ExportError(f"Not written, since the conversion is strict: {lost[0]}{more}")
