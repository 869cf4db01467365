"""Files that a command reads one by one: its arguments, and its loop over them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..io_formats import api
from ..io_formats.core.messages import Message
from ..io_formats.partner_files import file_sets
from ..io_formats.projects import Projects
from . import inputs, interruption, option_arguments
from .option_arguments import OptionTable
from .reporting import Reporter

Examine = Callable[[api.LoadedFile, Mapping[str, Any], Sequence[Message], dict[str, Any]], bool]
"""Function that prints facts of a file and adds them to its JSON record, the last argument. The others are the options
of its format and messages about missing and damaged files. It returns whether the file is good."""


def add_file_arguments(parser: argparse.ArgumentParser, tables: Sequence[OptionTable]) -> None:
    """Add arguments for files, and for the options of formats, whose names are the keys of the tables."""
    parser.add_argument("paths", nargs="+", metavar="FILE", help="a file, a folder (searched to the bottom), a pattern")
    option_arguments.add_mounts_argument(parser)
    option_arguments.add_arguments(parser, tables)


def open_projects(parsed: Mapping[str, Any]) -> Projects:
    """Return the projects for the parsed arguments, none of which is open."""
    return Projects(is_fixed=True, has_mounts=parsed["mounts"])


def examine_files(
    parsed: Mapping[str, Any],
    tables: Sequence[OptionTable],
    reporter: Reporter,
    examine: Examine,
    projects: Projects | None = None,
) -> tuple[int, int]:
    """Examine every file of the parsed arguments; return how many there are, and how many of them failed.

    ``projects`` is the result of :func:`open_projects`, if ``examine`` uses it, too.
    """
    given = option_arguments.given_options(parsed)
    option_arguments.require_usable_paths(given, tables)
    values = option_arguments.values_of(given, tables)
    projects = projects or open_projects(parsed)
    found = inputs.expand(parsed["paths"], inputs.known_extensions(), warn=reporter.warn)
    bad = reporter.fail_inputs("file", found.problems)
    sets = file_sets(file.path for file in found.files)
    for files in sets:
        interruption.check()
        entry: dict[str, Any] = {"file": str(files.path)}
        try:
            with interruption.raising():
                loaded = api.load_set(files)
                own = values.get(loaded.format.name, {})
                missing = loaded.format.missing(loaded.document, loaded.path, projects, own)
                if loaded.partners:
                    entry["partner_files"] = {part: str(path) for part, path in loaded.partners.items()}
                bad += not examine(loaded, own, [*loaded.messages, *missing], entry)
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest)
            bad += 1
            entry["error"] = reporter.fail(files.path, problem)
        reporter.record(entry)
    return len(sets) + len(found.problems), bad
