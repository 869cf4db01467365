"""Reports of operators: warnings one by one, causes of failures, a summary, and the last report for the sidebar."""

import os
import re
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ..io_formats.api import MOST_ERRORS
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import Kind, Message, Text, counted, errors_of, joined, listed
from .layouts import Sidebar
from .sidebar import draw_wrapped, redraw_sidebars
from .translations import iface_, rpt_

MOST_WARNINGS = 20
"""Maximum number of warnings reported one by one; if there are more, a text of the .blend file has all of them."""

REPORT_TEXT = "Meshferry Report"
"""Name of the text with all warnings."""


class MeshferryReport(bpy.types.PropertyGroup):
    """The last report."""

    summary: StringProperty(name="Summary", description="Result of the last import or export")
    lines: StringProperty(name="Lines", description="Warnings and notes, one a line")
    is_problem: BoolProperty(name="Problem", description="There are warnings or errors")


def keep_report(summary: str, lines: Sequence[str], *, is_problem: bool) -> None:
    """Store a report for the sidebar."""
    kept = bpy.context.window_manager.meshferry_report
    kept.summary, kept.is_problem = summary, is_problem
    kept.lines = "\n".join(lines)
    redraw_sidebars()


class ReportPanel(Sidebar):
    """Base of the panels with the last report, the last ones of their tabs."""

    bl_label = "Last Report"
    bl_order = 100

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a report."""
        return bool(context.window_manager.meshferry_report.summary)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the report."""
        kept = context.window_manager.meshferry_report
        column = self.layout.column(align=True)  # type: ignore[attr-defined]
        draw_wrapped(column, context, kept.summary, "ERROR" if kept.is_problem else "INFO")
        lines = kept.lines.split("\n") if kept.lines else []
        for line in lines[:MOST_WARNINGS]:
            draw_wrapped(column, context, line, "DOT")
        if len(lines) > MOST_WARNINGS:
            rest = len(lines) - MOST_WARNINGS
            more = iface_("and {} more in the Info editor or the text '{}'").format(rest, REPORT_TEXT)
            draw_wrapped(column, context, more, "DOT")


class MESHFERRY_PT_report(ReportPanel, bpy.types.Panel):
    """Panel with the last report."""


WINDOW_STATE = {"meshferry_report": MeshferryReport}


RAISE_SWITCH = "MESHFERRY_RAISE"
"""Environment variable; "1" raises unexpected exceptions instead of reporting them, for tests."""


@dataclass
class Messages:
    """The results for the files (or collections) of one run of an operator."""

    done: list[str] = field(default_factory=list)
    """Names of files that succeeded."""
    failures: list[tuple[str, Text]] = field(default_factory=list)
    """Names of failed files and the causes."""
    warnings: dict[Message, list[str]] = field(default_factory=dict)
    """The names of the files concerned, by text of the warning."""
    notes: dict[Message, list[str]] = field(default_factory=dict)
    """The names of the files concerned, by text of the informational message."""
    findings: list[Message] = field(default_factory=list)
    """Findings of the checks that prevented writing a file."""

    def warn(self, name: str, messages: Iterable[str]) -> None:
        """Add warnings and notes about a file, or about all with an empty name; equal ones are stored once."""
        for message in dict.fromkeys(messages):
            is_note = isinstance(message, Message) and message.kind is Kind.NOTE
            (self.notes if is_note else self.warnings).setdefault(message, []).extend([name] if name else [])

    def lines(self, found: Mapping[Message, Sequence[str]]) -> list[str]:
        """Return one line for each warning or note, with the names of the files concerned if there are several files.

        One that concerns no particular file has no name.
        """
        if len(self.done) + len(self.failures) <= 1:
            return [rpt_(text) for text in found]
        return [
            rpt_(Text("{}: {}", listed(list(dict.fromkeys(names)), 3, quote=""), text) if names else text)
            for text, names in found.items()
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


def cause_of(problem: MeshferryError, path: str) -> Text:
    """Return the text of an expected error without the path at its start, since the report contains it."""
    return problem.sentence(with_file=problem.file not in {path, str(Path(path)), Path(path).name})


def unexpected(problem: Exception) -> Text:
    """Print an unexpected exception and return the text of the report."""
    traceback.print_exception(problem)
    return Text(
        "unexpected problem in Meshferry {} on Blender {} ({}); please report it with the text on the console",
        *(addon_version(), bpy.app.version_string, f"{type(problem).__name__}: {problem}"),
    )


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
        Receives the reports: warnings, then the summary. It is an error, which Blender shows in a popup, if nothing
        succeeded, or if a user started the operator and any file failed. In a script, errors raise an exception.
    messages:
        The results.
    parts:
        Phrases of the summary, such as "3 objects".
    verb:
        "Imported" or "Exported".
    is_listed:
        Whether a dialog lists the causes of failures, so that Blender's error popup should not repeat them.
    """
    lines = messages.lines(messages.warnings)
    is_refused = bool(messages.failures) and not messages.done
    # The summary contains the only warning, or the first failure with its first errors, so they are not reported again.
    single = lines[0] if len(lines) == 1 and not messages.failures else ""
    others = [] if single else lines
    if len(messages.failures) == 1:
        others = [rpt_(error) for error in list(dict.fromkeys(errors_of(messages.findings)))[MOST_ERRORS:]] + others
    others = [rpt_(Text("{}: {}", *failure)) for failure in messages.failures[1:]] + others
    report_lines(operator, others, "INFO" if is_listed else "WARNING")
    notes = [] if is_refused else messages.lines(messages.notes)
    for note in notes:
        report(operator, "INFO", note)
    summary = rpt_(_summary(messages, parts, verb)) + (f": {single}" if single else "")
    is_problem = bool(lines or messages.failures)
    keep_report(readable(summary), [readable(line) for line in (*others, *notes)], is_problem=is_problem)
    level = "WARNING" if is_problem else "INFO"
    is_from_user = getattr(operator, "is_from_user", None)
    if is_refused or (messages.failures and is_from_user is not None and is_from_user()):
        level = "INFO" if is_listed else "ERROR"
    report(operator, level, summary)
    return {"CANCELLED"} if is_refused else {"FINISHED"}


def report(operator: Any, level: str, text: str) -> None:
    """Report one line."""
    operator.report({level}, readable(text))


def readable(text: str) -> str:
    """Return a line that Blender accepts: undecodable bytes, as in file names, become question marks.

    Line breaks and other control characters, as in names of bones, are escaped, since Blender also prints reports on
    the console. The user's home directory becomes ``~``, since reports are posted in public.
    """
    home = str(Path.home())
    if len(home) > 2:
        text = re.sub(re.escape(home) + r"(?=[/\\'\" :,;)]|$)", "~", text)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"[\0-\x1f\x7f-\x9f\u2028\u2029]", lambda found: ascii(found[0])[1:-1], text)


def inform(operator: Any, template: str, *values: object) -> None:
    """Report a text as information, translated."""
    report(operator, "INFO", rpt_(Text(template, *values)))


def warn(operator: Any, template: str, *values: object) -> None:
    """Report a text as a warning, translated."""
    report(operator, "WARNING", rpt_(Text(template, *values)))


def refuse(operator: Any, template: str, *values: object) -> set[str]:
    """Report a text as an error, translated, and return the result of an operator that did nothing."""
    report(operator, "ERROR", rpt_(Text(template, *values)))
    return {"CANCELLED"}


def report_lines(operator: Any, lines: list[str], level: str = "WARNING") -> None:
    """Report warnings one by one; if there are many, write all of them to a text of the .blend file."""
    for line in lines[:MOST_WARNINGS]:
        report(operator, level, line)
    if len(lines) > MOST_WARNINGS:
        text = bpy.data.texts.get(REPORT_TEXT) or bpy.data.texts.new(REPORT_TEXT)
        text.from_string("".join(f"{readable(line)}\n" for line in lines))
        more = Text("and {} more, all in the text '{}' of the Text Editor", len(lines) - MOST_WARNINGS, REPORT_TEXT)
        report(operator, level, rpt_(more))


def _summary(messages: Messages, parts: Iterable[str], verb: str) -> Text:
    """Return the first line of a report: how many files were done, and the first failure."""
    warnings = [counted(len(messages.warnings), "warning")] if messages.warnings else []
    success = joined([*filter(None, parts), *warnings] if messages.done else [])
    total = len(messages.done) + len(messages.failures)
    if not messages.failures:
        if total == 1:
            return Text("{}: {}", messages.done[0], success)
        return Text("{} {} files: {}", Text(verb), total, success)
    name, cause = messages.failures[0]
    failure = Text("{}: {}", name, cause) if name else Text("{}", cause)
    if total == 1:
        return failure
    if len(messages.failures) > 1:
        failure = Text("{} (and {} more)", failure, len(messages.failures) - 1)
    count = Text("{} {} of {} files", Text(verb), len(messages.done), total)
    return Text("{} ({}); {}", count, success, failure) if success else Text("{}; {}", count, failure)
