"""Reports of operators: warnings one by one, causes of failures, and a summary at the end."""

from __future__ import annotations

import os
import re
import tomllib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpy

from ..io_formats.api import MOST_ERRORS
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.findings import Finding, errors_of
from ..io_formats.core.messages import counted, listed
from .last_report import MOST_WARNINGS, REPORT_TEXT, keep_report
from .translations import rpt_

RAISE_SWITCH = "MESHFERRY_RAISE"
"""Environment variable; "1" raises unexpected exceptions instead of reporting them, for tests."""


@dataclass
class Messages:
    """The results for the files (or collections) of one run of an operator."""

    done: list[str] = field(default_factory=list)
    """Names of files that succeeded."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Names of failed files and the causes."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """The names of the files concerned, by text of the warning."""
    notes: list[str] = field(default_factory=list)
    """Informational messages."""
    findings: list[Finding] = field(default_factory=list)
    """Findings of the checks that prevented writing a file."""

    @property
    def total(self) -> int:
        """Number of processed files, whether they succeeded or failed."""
        return len(self.done) + len(self.failures)

    def warn(self, name: str, texts: Iterable[str]) -> None:
        """Add warnings about ``name``; equal texts are stored once."""
        for text in texts:
            self.warnings.setdefault(text, []).append(name)

    def lines(self) -> list[str]:
        """Return one line for each different warning, with the names of the files concerned if there are several files.

        A warning that concerns no particular file has no name.
        """
        if self.total <= 1:
            return [rpt_(text) for text in self.warnings]
        return [
            f"{rpt_(listed(list(dict.fromkeys(names)), 3, quote=''))}: {rpt_(text)}" if names else rpt_(text)
            for text, names in self.warnings.items()
        ]

    @contextmanager
    def outcome(self, path: str, name: str | None = None) -> Iterator[str]:
        """Record the result for one file, so that a failure does not stop the others; yield its name."""
        failed = len(self.failures)
        with self.attempt(path, name) as called:
            yield called
        if len(self.failures) == failed:
            self.done.append(called)

    @contextmanager
    def attempt(self, path: str, name: str | None = None) -> Iterator[str]:
        """Record a failure like :meth:`outcome`, but no success: for files that need more work."""
        name = Path(path).name if name is None else name
        try:
            yield name
        except MeshferryError as problem:
            self.failures.append((name, cause_of(problem, path)))
            self.findings += getattr(problem, "findings", ())
        except Exception as problem:  # report any error, and continue with the other files
            if os.environ.get(RAISE_SWITCH) == "1":
                raise
            self.failures.append((name, unexpected(problem)))


def cause_of(problem: Exception, path: str = "") -> str:
    """Return the translated text of an expected error without the path at its start, since the report contains it."""
    text = rpt_(str(problem))
    for front in (path, str(Path(path)), Path(path).name) if path else ():
        text = text.removeprefix(f"{front}: ")
    return masked(text)


def unexpected(problem: Exception) -> str:
    """Print an unexpected exception and return the text of the report."""
    traceback.print_exception(problem)
    return rpt_(
        "unexpected problem in Meshferry {} on Blender {} ({}); please report it with the text on the console"
    ).format(addon_version(), bpy.app.version_string, masked(f"{type(problem).__name__}: {problem}"))


def masked(text: str) -> str:
    """Replace the user's home directory by ``~``, since reports are posted in public."""
    home = str(Path.home())
    if len(home) < 3:
        return text
    return re.sub(re.escape(home) + r"(?=[/\\'\" :,;)]|$)", "~", text)


def addon_version() -> str:
    """Return the version in the add-on's manifest."""
    manifest = Path(__file__).parent.parent / "blender_manifest.toml"
    try:
        return str(tomllib.loads(manifest.read_text(encoding="utf-8"))["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "?"


def conclude(
    operator: Any, messages: Messages, parts: Iterable[str], verb: str, *, is_listed: bool = False
) -> set[str]:
    """Report the warnings one by one and a summary; return the operator's result.

    Parameters
    ----------
    operator:
        Receives the reports: warnings, then the summary, which is an error if nothing succeeded.
    messages:
        The results.
    parts:
        Phrases of the summary, such as "3 objects".
    verb:
        "Imported" or "Exported".
    is_listed:
        Whether a dialog lists the causes of failures, so that Blender's error popup should not repeat them.
    """
    lines = messages.lines()
    # The summary contains the only warning, or the first failure with its first errors, so they are not reported again.
    single = lines[0] if len(lines) == 1 and not messages.failures else ""
    others = [] if single else lines
    if len(messages.failures) == 1:
        errors = list(dict.fromkeys(map(str, errors_of(messages.findings))))
        others = [rpt_(text) for text in errors[MOST_ERRORS:]] + others
    others = [f"{name}: {cause}" for name, cause in messages.failures[1:]] + others
    report_lines(operator, others, "INFO" if is_listed else "WARNING")
    if messages.failures and not messages.done:
        summary = _failure_summary(messages, verb)
        report(operator, "INFO" if is_listed else "ERROR", summary)
        keep_report(readable(summary), [readable(line) for line in others], is_problem=True)
        return {"CANCELLED"}
    notes = [rpt_(note) for note in messages.notes]
    for note in notes:
        report(operator, "INFO", note)
    summary = _summary(messages, [rpt_(part) for part in parts if part], verb) + (f": {single}" if single else "")
    is_problem = bool(lines or messages.failures)
    keep_report(readable(summary), [readable(line) for line in (*others, *notes)], is_problem=is_problem)
    report(operator, "WARNING" if is_problem else "INFO", summary)
    return {"FINISHED"}


def report(operator: Any, level: str, text: str) -> None:
    """Report one line."""
    operator.report({level}, readable(text))


def readable(text: str) -> str:
    """Return a line that Blender accepts: undecodable bytes, as in file names, become question marks.

    Line breaks, as in names of bones, are escaped.
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace("\r", r"\r").replace("\n", r"\n")


def report_lines(operator: Any, lines: list[str], level: str = "WARNING") -> None:
    """Report warnings one by one; if there are many, write all of them to a text of the .blend file."""
    for line in lines[:MOST_WARNINGS]:
        report(operator, level, line)
    if len(lines) > MOST_WARNINGS:
        text = bpy.data.texts.get(REPORT_TEXT) or bpy.data.texts.new(REPORT_TEXT)
        text.from_string("".join(f"{readable(line)}\n" for line in lines))
        more = rpt_("and {} more, all in the text '{}' of the Text Editor")
        report(operator, level, more.format(len(lines) - MOST_WARNINGS, REPORT_TEXT))


def _summary(messages: Messages, parts: list[str], verb: str) -> str:
    if messages.warnings:
        parts = [*parts, rpt_(counted(len(messages.warnings), "warning"))]
    success = ", ".join(parts)
    if messages.failures:
        return _failure_summary(messages, verb, success)
    if messages.total == 1:
        return f"{messages.done[0]}: {success}"
    return rpt_("{} {} files: {}").format(rpt_(verb), len(messages.done), success)


def _failure_summary(messages: Messages, verb: str, success: str = "") -> str:
    name, cause = messages.failures[0]
    said = f"{name}: {cause}" if name else cause
    if messages.total == 1:
        return said
    rest = len(messages.failures) - 1
    if rest:
        said += rpt_(" (and {} more)").format(rest)
    count = rpt_("{} {} of {} files").format(rpt_(verb), len(messages.done), messages.total)
    return f"{count} ({success}); {said}" if success else f"{count}; {said}"
