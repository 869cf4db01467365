"""``meshferry check``: check files against the rules of the program that will load them."""

from __future__ import annotations

import argparse
from typing import Any

from ..io_formats import api
from ..io_formats.core.findings import Finding, Severity, errors_of, warning, warnings_of
from ..io_formats.core.messages import counted
from ..io_formats.core.projects import Projects
from ..io_formats.registry import FORMATS, by_name
from . import inputs, interruption
from .option_arguments import (
    OptionTable,
    add_arguments,
    add_mounts_argument,
    format_table,
    preferred_options,
    usable_values,
)
from .reporting import Reporter, printable, unbroken


def add_parser(subparsers: Any, parents: list[argparse.ArgumentParser]) -> None:
    """Add the sub command."""
    parser = subparsers.add_parser(
        "check",
        parents=parents,
        allow_abbrev=False,
        help="check files against the rules of the program that will load them",
        description="Apply the rules of the program that will load each file: an error means that it fails there, "
        "a warning that it surprises. Exit status 1 if there is any error.",
    )
    parser.add_argument("paths", nargs="+", metavar="FILE", help="a file, a folder (searched to the bottom), a pattern")
    add_mounts_argument(parser)
    add_arguments(parser, list(_tables().values()))
    parser.set_defaults(run=run)


def _tables() -> dict[str, OptionTable]:
    """Return the options of each format that its checks use, by name of the format."""
    found = {known.name: preferred_options(known) for known in FORMATS}
    return {name: format_table("checking", name, by_name(name).label, options) for name, options in found.items()}


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Print the findings for every file; return 1 if any is an error."""
    tables = _tables()
    values = dict(zip(tables, usable_values(arguments, list(tables.values())), strict=True))
    projects = Projects(is_fixed=True, has_mounts=arguments.mounts)
    found = inputs.expand(arguments.paths, inputs.known_extensions(), warn=reporter.warn)
    wrong = reporter.fail_inputs("file", found.problems)
    count = len(found.files) + len(found.problems)
    for file in found.files:
        interruption.check()
        entry: dict[str, Any] = {"file": str(file.path)}
        try:
            with interruption.raising():
                loaded = api.load(file.path)
                own = values[loaded.format.name]
                findings = loaded.format.check(loaded.document, own, loaded.path)
                texts = loaded.format.missing(loaded.document, loaded.path, projects, own)
                findings += [warning("", text) for text in texts]
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest)
            wrong += 1
            entry["error"] = reporter.fail(file.path, problem)
            reporter.record(entry)
            continue
        errors, warnings = errors_of(findings), warnings_of(findings)
        wrong += bool(errors)
        entry["format"] = loaded.format.name
        entry["errors"] = [_entry(finding) for finding in errors]
        entry["warnings"] = [_entry(finding) for finding in warnings]
        reporter.record(entry)
        for finding in errors + warnings:
            _print(reporter, file, finding)
        if not findings:
            reporter.say(f"{printable(file.path)}: No problems found")
    if count > 1:
        reporter.say(f"{count - wrong} of {counted(count, 'file')} without errors")
    return 1 if wrong else 0


def _entry(finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {"item": finding.item, "message": finding.message}
    if finding.elements is not None:
        found = finding.elements
        entry["elements"] = {"kind": found.kind, "node": found.node, "members": list(found.members)}
    return entry


def _print(reporter: Reporter, file: inputs.InputFile, finding: Finding) -> None:
    line = f"{printable(file.path)}: {finding.severity.value}: {unbroken(str(finding))}"
    if finding.severity is Severity.ERROR:
        reporter.result(line)
    else:
        reporter.say(line)
