"""``meshferry convert``: between formats, and to and from .blend files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..blender_data.exporting.export_options import CLIP_FILTER, EXPORT_OPTIONS, KEEP_IMPORTED, export_options_for
from ..blender_data.importing.import_options import IMPORT_OPTIONS, MATERIAL_LIBRARY, import_options_for
from ..io_formats.errors import MeshferryError
from ..io_formats.formats import FORMATS, Format
from ..io_formats.options import Option
from . import inputs
from .blend_files import BLEND_OPTIONS, BlendSession
from .clip_choice import ClipChoice, parse_renaming, wanted_names
from .conversion import Conversion
from .convert_plan import Plan, make_plan
from .option_arguments import OptionTable, add_arguments, format_table, given_flags, given_values
from .outcomes import Outcome, Settings
from .reporting import Reporter, counted, grouped, summary
from .scene_writing import EMBEDDED

_IMPORT = OptionTable("import", "options for writing .blend files: how files become Blender data", IMPORT_OPTIONS)
_BLEND = OptionTable("blend", "options of .blend files", BLEND_OPTIONS)
_EXPORT = OptionTable("export", "options for reading .blend files: what of them becomes a file", EXPORT_OPTIONS)

_DESCRIPTION = """\
Convert files between the formats, and to and from .blend files.

  convert windmill.timbermesh windmill.blend      into one file
  convert a.timbermesh b.timbermesh both.blend    a collection for each
  convert models --to blend -o blends             a folder with all below it
  convert windmill.blend --to timbermesh -o out   a file for each collection
  convert robot.mesh idle.anim robot.blend        animations go onto the bones of the mesh
  convert gun.mesh --to anim -o out               the animations in a mesh; several by their names
  convert gun.mesh idle.anim out.mesh --mesh-version ms12 --embedded-animation
                                                  animations into a mesh
  convert house.blend house.dae                   an upload set for Second Life: with house_LOD2.dae and so on
  convert 98a6e63e-12e2-481a-93db-93e6fa4f8b6d ear.blend
                                                  a file without extension: the content decides

A folder gives meshes where meshes are written, and animations where those are; a mesh and the animation of its name
become one .blend file. --to takes a format's name, too.
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
    parser.add_argument(
        "--rename-clip",
        action="append",
        default=[],
        type=parse_renaming,
        metavar="OLD=NEW",
        help="give an animation another name (repeatable); it is an error where there is none of the old name",
    )
    add_arguments(parser, [table for table, _ in _tables()])
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Convert every file; return 1 if any failed."""
    settings = _settings(arguments)
    library = settings.import_options.get(MATERIAL_LIBRARY.name)
    plan = make_plan(
        arguments.paths,
        arguments.to,
        arguments.output,
        also_read=[Path(library)] if library else [],
        embeds=any(values.get(EMBEDDED) for values in settings.format_options.values()),
    )
    for text in _useless(arguments, plan):
        reporter.warn("convert", text)
    failed = 0
    with BlendSession(show_chatter=reporter.debug) as session:
        conversion = Conversion(settings, session, plan.taken, several=len(plan.jobs) > 1)
        for job in plan.jobs:
            failed_sources = set()
            for outcome in conversion.run(job):
                _report(outcome, reporter)
                if outcome.problem is not None:
                    failed_sources.add(outcome.source)
            failed += len(failed_sources)
    if plan.source_count > 1:
        reporter.say(f"Converted {plan.source_count - failed:,} of {counted(plan.source_count, 'file')}")
    if not failed:
        failed += _unknown_clips(settings.clips, reporter)
    return 1 if failed else 0


def _unknown_clips(clips: ClipChoice, reporter: Reporter) -> int:
    """Say which new name no animation of any file has got; return 1 if there is one."""
    try:
        clips.require_all()
    except MeshferryError as problem:
        reporter.fail("convert", problem)
        return 1
    return 0


def _tables() -> list[tuple[OptionTable, Format | None]]:
    """Return all tables, in the order of the help; those of a format with it."""
    tables: list[tuple[OptionTable, Format | None]] = [(_IMPORT, None), (_BLEND, None), (_EXPORT, None)]
    for known in FORMATS:
        tables.append((format_table("reading", f"read-{known.name}", known.label, known.import_options), known))
        tables.append((format_table("writing", known.name, known.label, known.export_options), known))
    return tables


def _settings(arguments: argparse.Namespace) -> Settings:
    owned = _tables()
    tables = [table for table, _ in owned]
    values = {table.key: given_values(arguments, table, tables) for table in tables}
    export = values[_EXPORT.key]
    return Settings(
        import_options=values[_IMPORT.key],
        export_options=export,
        blend_options=values[_BLEND.key],
        read_options={
            name: value
            for table, known in owned
            if known and table.action == "reading"
            for name, value in values[table.key].items()
        },
        format_options={known.name: values[known.name] for known in FORMATS},
        clips=ClipChoice(wanted_names(str(export.get(CLIP_FILTER.name, ""))), dict(arguments.rename_clip)),
        collections=tuple(arguments.collection),
        strict=arguments.strict,
    )


def _useless(arguments: argparse.Namespace, plan: Plan) -> list[str]:
    """Say which of the given options concern nothing in this run."""
    owned = _tables()
    tables = [table for table, _ in owned]
    target = plan.jobs[0].format
    sources = [source for job in plan.jobs for source in job.sources]
    read = {known.name: known for source in sources for known in inputs.formats_of(source)}
    from_blend = any(inputs.is_blend(source) for source in sources)
    counting: dict[str, set[str]] = {}
    if target is None:
        counting[_IMPORT.key] = _names(import_options_for(known.capabilities for known in read.values()))
        counting[_BLEND.key] = _names(BLEND_OPTIONS)
    elif from_blend:
        counting[_EXPORT.key] = _names(export_options_for(target.capabilities))
    elif target.capabilities.placed_models and any(known.capabilities.placed_models for known in read.values()):
        counting[_EXPORT.key] = {KEEP_IMPORTED.name}
    if any(known.capabilities.clips for known in read.values()):
        counting.setdefault(_EXPORT.key, set()).add(CLIP_FILTER.name)
    for table, known in owned:
        if known and (known.name in read if table.action == "reading" else known == target):
            counting[table.key] = _names(table.options)
    given = {table.key: given_flags(arguments, table, tables) for table in tables}
    useful = {flag for key, names in counting.items() for flag, option in given[key].items() if option.name in names}
    useless = [flag for flag in dict.fromkeys(flag for flags in given.values() for flag in flags) if flag not in useful]
    if arguments.collection and not from_blend:
        useless.append("--collection")
    return _without_effect(useless, into_blend=target is None)


def _names(options: Iterable[Option]) -> set[str]:
    return {option.name for option in options}


def _without_effect(flags: Sequence[str], *, into_blend: bool) -> list[str]:
    place = "when writing .blend files" if into_blend else "in this conversion"
    return [f"{flag} has no effect {place}" for flag in flags]


def _report(outcome: Outcome, reporter: Reporter) -> None:
    entry: dict[str, Any] = {"input": str(outcome.source), "output": str(outcome.target)}
    if outcome.files:
        entry["files"] = [str(path) for path in outcome.files]
    if outcome.collection:
        entry["collection"] = outcome.collection
    if outcome.facts is not None:
        entry["facts"] = outcome.facts
    entry["warnings"] = outcome.warnings
    if outcome.problem is not None:
        entry["error"] = reporter.fail(outcome.source, outcome.problem)
    elif outcome.facts is not None:
        part = f" (collection '{outcome.collection}')" if outcome.collection and inputs.is_blend(outcome.source) else ""
        beside = f" and {counted(len(outcome.files) - 1, 'file')} beside it" if len(outcome.files) > 1 else ""
        reporter.say(f"{outcome.source}{part} -> {outcome.target}{beside}: {summary(outcome.facts)}")
        for text in grouped(outcome.warnings):
            reporter.warn(outcome.source, text)
    reporter.record(entry)
