"""``meshferry building``: write collections of a .blend file as new buildings of Timberborn into a mod."""

import argparse
from pathlib import Path
from typing import Any

from ..blender_data.steps import finish
from ..io_formats.core.errors import ExportError, MeshferryError
from ..io_formats.core.messages import counted
from ..io_formats.timbermesh.building.options import BuildingOptions
from ..io_formats.timbermesh.game_names import FACTIONS
from .conversions.blend_files import BlendSession, parts_to_export
from .option_arguments import AddParser, OptionTable, add_arguments, given_options, require_usable_paths, values_of
from .output import Reporter, printable, warnings_entry

_TABLES = (OptionTable("building", "options of the building", BuildingOptions.table()),)


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    text = "write collections of a .blend file as new buildings of Timberborn into a mod"
    parser = add("building", help=text, description=f"W{text[1:]}. Exit status 1 if one cannot be written.")
    parser.add_argument("paths", nargs="+", metavar="BLEND", help=".blend files")
    text = "a collection; may be repeated (default: all that are named Name.Faction)"
    parser.add_argument("--collection", action="append", default=[], metavar="NAME", help=text)
    add_arguments(parser, _TABLES)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Write the buildings of each file, or none of them; return 1 if any file failed."""
    given = given_options(vars(arguments))
    require_usable_paths(given, _TABLES)
    options = BuildingOptions.of(values_of(given, _TABLES)["building"])
    entries: list[dict[str, Any]] = []
    with BlendSession(show_chatter=reporter.debug) as session:
        for path in arguments.paths:
            entries.append({"input": path, "output": options.mod})
            try:
                entries[-1] |= _written(session, Path(path), arguments.collection, options)
                files = counted(len(entries[-1]["files"]), "file")
                reporter.say(f"{printable(path)} -> {printable(options.mod)}: {files} changed")
                for text in entries[-1]["warnings"]:
                    reporter.warn(path, text)
            except MeshferryError as problem:
                if problem.file not in {"", path}:  # a file of the mod
                    problem = ExportError("{}", problem.sentence())
                entries[-1]["error"] = reporter.fail(path, problem)
            reporter.record(entries[-1])
    return 1 if any("error" in entry for entry in entries) else 0


def _written(session: BlendSession, path: Path, wanted: list[str], options: BuildingOptions) -> dict[str, Any]:
    """Write the buildings of a file; return the entries of its record."""
    messages = session.open(path)
    from ..operators.families.timbermesh.building.plan import plan_steps

    context = session.load_for_changes().context
    named = [one.name for one in context.scene.collection.children_recursive if one.name.partition(".")[2] in FACTIONS]
    parts = parts_to_export(context.scene, wanted or named, several=True, with_meshes=True)
    with session.quiet():
        plan = finish(plan_steps(context, [part.collection or context.scene.collection for part in parts], options))
        messages += plan.write()
    return {"files": [*map(str, plan.files)], "buildings": plan.facts, **warnings_entry(messages)}
