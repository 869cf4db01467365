"""``meshferry building``: write collections of a .blend file as new buildings of Timberborn into a mod."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..blender_data.steps import finish
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import counted
from ..io_formats.timbermesh.building.options import BuildingOptions
from .conversions.blend_files import BlendPart, BlendSession, parts_to_export
from .option_arguments import AddParser, OptionTable, add_arguments, given_options, require_usable_paths, values_of
from .output import Reporter, printable, warnings_entry

_TABLES = (OptionTable("building", "options of the building", BuildingOptions.table()),)


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    parser = add(
        "building",
        help="write collections of a .blend file as new buildings of Timberborn into a mod",
        description="Write models, blueprint, icon, texts and the entry in the toolbar of each building. "
        "Exit status 1 if it cannot be written; then the mod is unchanged.",
    )
    parser.add_argument("paths", nargs="+", metavar="BLEND", help="a .blend file")
    parser.add_argument(
        "--collection", action="append", default=[], metavar="NAME", help="a collection; may be repeated (default: all)"
    )
    add_arguments(parser, _TABLES)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Write the buildings of each file; return 1 if any file failed."""
    given = given_options(vars(arguments))
    require_usable_paths(given, _TABLES)
    options = BuildingOptions.of(values_of(given, _TABLES)["building"])
    failed = 0
    with BlendSession(show_chatter=reporter.debug) as session:
        for path in arguments.paths:
            entry: dict[str, Any] = {"input": path, "output": options.mod}
            try:
                _write(session, Path(path), arguments.collection, options, reporter, entry)
            except MeshferryError as problem:
                failed += 1
                entry["error"] = reporter.fail(path, problem)
            reporter.record(entry)
    return 1 if failed else 0


def _write(
    session: BlendSession,
    path: Path,
    wanted: list[str],
    options: BuildingOptions,
    reporter: Reporter,
    entry: dict[str, Any],
) -> None:
    session.open(path)
    context = session.load_for_changes().context
    from ..operators.families.timbermesh.buildings import plan_steps

    parts = parts_to_export(context.scene, wanted, several=True, with_meshes=True)
    collections = [part.collection or context.scene.collection for part in parts if isinstance(part, BlendPart)]
    with session.quiet():
        plan = finish(plan_steps(context, collections, options))
        messages = plan.write()
    entry["files"] = [str(place) for place in plan.files]
    entry["buildings"] = plan.facts
    entry |= warnings_entry(messages)
    for message in messages:
        reporter.warn(path, str(message))
    names = ", ".join(fact["building"] for fact in plan.facts)
    written = counted(len(plan.files), "file") if plan.files else "nothing changed"
    reporter.say(f"{printable(path)} -> {printable(options.mod)}: {printable(names)}, {written}")
