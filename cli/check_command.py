"""``meshferry check``: check files against the rules of the program that will load them."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..io_formats import api
from ..io_formats.core.messages import Kind, Message, counted, errors_of, warnings_of
from ..io_formats.registry import FORMATS
from ..io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT
from .inspect_command import add_file_arguments, examine_files, open_projects
from .option_arguments import AddParser, OptionTable, format_table, given_options, preferred_options
from .output import Reporter, printable


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    parser = add(
        "check",
        help="check files against the rules of the program that will load them",
        description="Apply the rules of the program that will load each file: an error means that it fails there, "
        "a warning that it surprises. Exit status 1 if there is any error.",
    )
    add_file_arguments(parser, _tables())
    parser.set_defaults(run=run)


def _tables() -> list[OptionTable]:
    """Return the options of each format that its checks use; the key of a table is the name of the format."""
    return [format_table("checking", known.name, known.label, preferred_options(known)) for known in FORMATS]


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Print the findings for every file; return 1 if any is an error."""
    from ..io_formats.timbermesh.building import mod_check  # NumPy

    projects = open_projects(vars(arguments))

    def examine(
        loaded: api.LoadedFile, options: Mapping[str, Any], missing: Sequence[Message], entry: dict[str, Any]
    ) -> bool:
        return _report(reporter, entry, loaded.format.name, api.findings_of(loaded, options, missing, projects))

    count, wrong = examine_files(vars(arguments), _tables(), reporter, examine, projects)
    if count > 1:
        reporter.say(f"{count - wrong} of {counted(count, 'file')} without errors")
    game = str(given_options(vars(arguments)).get("game", ""))
    for folder in filter(mod_check.is_mod, map(Path, arguments.paths)):
        entry: dict[str, Any] = {"file": str(folder)}
        wrong += not _report(reporter, entry, TIMBERBORN_BLUEPRINT.name, mod_check.check_mod(folder, game))
        reporter.record(entry)
    return 1 if wrong else 0


def _report(reporter: Reporter, entry: dict[str, Any], name: str, findings: Sequence[Message]) -> bool:
    """Print the findings for a file or folder, and add them to its record; return whether none is an error."""
    errors, warnings = errors_of(findings), warnings_of(findings)
    entry["format"] = name
    entry["errors"] = [_entry(finding) for finding in errors]
    entry["warnings"] = [_entry(finding) for finding in warnings]
    entry["messages"] = [finding.as_json() for finding in errors + warnings]
    for finding in errors + warnings:
        show = reporter.result if finding.kind is Kind.ERROR else reporter.say
        show(f"{printable(entry['file'])}: {finding.kind.value}: {printable(str(finding))}")
    if not findings:
        reporter.say(f"{printable(entry['file'])}: No problems found")
    return not errors


def _entry(finding: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"code": finding.code, "item": finding.item, "message": finding.message}
    if finding.elements is not None:
        found = finding.elements
        entry["elements"] = {"kind": found.kind, "node": found.node, "members": list(found.members)}
    return entry
