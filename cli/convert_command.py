"""``meshferry convert``: between formats, and to and from .blend files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..blender_data.export_options import EXPORT_OPTIONS
from ..blender_data.import_options import IMPORT_OPTIONS, MATERIAL_LIBRARY
from ..io_formats.formats import FORMATS
from . import inputs
from .blend_files import BLEND_OPTIONS, BlendSession
from .conversion import Conversion, Outcome, Settings, target_format
from .convert_plan import Plan, make_plan
from .option_arguments import OptionTable, add_arguments, given_flags, given_values
from .reporting import Reporter, counted, grouped, summary

_IMPORT = OptionTable("import", "options for writing .blend files: how files become Blender data", IMPORT_OPTIONS)
_BLEND = OptionTable("blend", "options of .blend files", BLEND_OPTIONS)
_EXPORT = OptionTable("export", "options for reading .blend files: what of them becomes a file", EXPORT_OPTIONS)

_DESCRIPTION = """\
Convert files between the formats, and to and from .blend files.

  convert windmill.timbermesh windmill.blend      into one file
  convert a.timbermesh b.timbermesh both.blend    a collection for each
  convert models --to blend -o blends             a folder with all below it
  convert windmill.blend --to timbermesh -o out   a file for each collection

Files of the same name are replaced, inputs never. A bad file does not stop the rest.
Exit status: 0 all converted, 1 any failed, 2 refused before anything was written.
"""


def add_parser(subparsers: Any, parents: list[argparse.ArgumentParser]) -> None:
    """Add the sub command."""
    parser = subparsers.add_parser(
        "convert",
        parents=parents,
        allow_abbrev=False,
        help="convert files, also to and from .blend",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] IN… (OUT | --to EXTENSION -o FOLDER)",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="IN… OUT",
        help="files, folders (searched to the bottom) or patterns, and the file to write (not with --to)",
    )
    parser.add_argument("--to", metavar="EXTENSION", help="kind of file to write for each file read, such as blend")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="where --to writes; subfolders are kept")
    parser.add_argument(
        "--strict", action="store_true", help="take a warning of a loss for a failure: write nothing that lost anything"
    )
    parser.add_argument(
        "--collection",
        action="append",
        default=[],
        metavar="NAME",
        help="collection of a .blend file to export (repeatable with --to). Otherwise those that came from files; "
        "where there are none, those with objects; where one file is wanted and there are several, the whole scene",
    )
    add_arguments(parser, _tables())
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Convert every file; return 1 if any failed."""
    settings = _settings(arguments)
    library = settings.import_options.get(MATERIAL_LIBRARY.name)
    plan = make_plan(arguments.paths, arguments.to, arguments.output, also_read=[Path(library)] if library else [])
    for text in _useless(arguments, plan):
        reporter.warn("convert", text)
    failed = 0
    with BlendSession(show_chatter=reporter.debug) as session:
        conversion = Conversion(settings, session, plan.taken)
        for job in plan.jobs:
            failed_sources = set()
            for outcome in conversion.run(job):
                _report(outcome, reporter)
                if outcome.problem is not None:
                    failed_sources.add(outcome.source)
            failed += len(failed_sources)
    if plan.source_count > 1:
        reporter.say(f"Converted {plan.source_count - failed:,} of {counted(plan.source_count, 'file')}")
    return 1 if failed else 0


def _tables() -> list[OptionTable]:
    written = [
        OptionTable(known.name, f"options for writing {known.label} files", known.export_options) for known in FORMATS
    ]
    return [_IMPORT, _BLEND, _EXPORT, *written]


def _settings(arguments: argparse.Namespace) -> Settings:
    tables = _tables()
    return Settings(
        import_options=given_values(arguments, _IMPORT, tables),
        export_options=given_values(arguments, _EXPORT, tables),
        blend_options=given_values(arguments, _BLEND, tables),
        format_options={table.key: given_values(arguments, table, tables) for table in tables[3:]},
        collections=tuple(arguments.collection),
        strict=arguments.strict,
    )


def _useless(arguments: argparse.Namespace, plan: Plan) -> list[str]:
    """Say which of the given options concern nothing in this run."""
    tables = _tables()
    into_blend = inputs.is_blend(plan.jobs[0].target)
    from_blend = any(inputs.is_blend(source) for job in plan.jobs for source in job.sources)
    written = "" if into_blend else target_format(plan.jobs[0].target).name
    used = [_IMPORT, _BLEND] if into_blend else [_EXPORT] if from_blend else []
    used += [table for table in tables[3:] if table.key == written]
    counting = {flag for table in used for flag in given_flags(arguments, table, tables)}
    given = dict.fromkeys(flag for table in tables for flag in given_flags(arguments, table, tables))
    useless = [flag for flag in given if flag not in counting]
    if arguments.collection and not from_blend:
        useless.append("--collection")
    return _without_effect(useless, into_blend=into_blend)


def _without_effect(flags: Sequence[str], *, into_blend: bool) -> list[str]:
    place = "when writing .blend files" if into_blend else "in this conversion"
    return [f"{flag} has no effect {place}" for flag in flags]


def _report(outcome: Outcome, reporter: Reporter) -> None:
    entry: dict[str, Any] = {"input": str(outcome.source), "output": str(outcome.target)}
    if outcome.collection:
        entry["collection"] = outcome.collection
    if outcome.facts is not None:
        entry["facts"] = outcome.facts
    entry["warnings"] = outcome.warnings
    if outcome.problem is not None:
        entry["error"] = reporter.fail(outcome.source, outcome.problem)
    elif outcome.facts is not None:
        part = f" (collection '{outcome.collection}')" if outcome.collection and inputs.is_blend(outcome.source) else ""
        reporter.say(f"{outcome.source}{part} -> {outcome.target}: {summary(outcome.facts)}")
        for text in grouped(outcome.warnings):
            reporter.warn(outcome.source, text)
    reporter.record(entry)
