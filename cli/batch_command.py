"""``meshferry batch``: resumable conversion of whole libraries on all cores."""

import argparse
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..io_formats.core.errors import MeshferryError
from .batch import sources
from .batch.tasks import RECYCLE_AFTER, REPORT_FILE, STATE_FOLDER, TIME_LIMIT, BatchSettings, SourceChoice
from .conversions.conversion_arguments import add_conversion_arguments, require_known_options, settings_of
from .conversions.convert_plan import known_kind, output_folder
from .conversions.settings import Settings, option_tables
from .option_arguments import AddParser, number, require_usable_paths
from .output import Reporter

_DESCRIPTION = f"""\
Convert all files below folders or in a list, on all cores.

  batch project/data --to blend -o blends         .blend files in the same folder tree as the sources
  batch region.oar --to glb -o region             every mesh in an OpenSim archive
  batch --list changed.txt --to timbermesh -o out files in a list; - is the standard input
  batch sdk --to blend -o out --match 'props/**' --newer 7d
                                                  files of a folder that changed this week
  batch --options nightly.toml                    with options from a file

The folder tree is kept. Running the same command again converts only new, changed and failed files, also after Ctrl+C,
a kill or a power cut: the folder {STATE_FOLDER} in the output folder stores the results. A broken file does not
stop the others. A file that crashes Blender is retried once in a fresh process. It is quarantined if it crashes again,
as is a file that takes longer than --time-limit. Files are written completely or not at all; sources are never
overwritten. Exit status: 0 all files converted, 1 a file failed, 2 an error before anything was written, 130 after
Ctrl+C, 143 after SIGTERM, 129 after SIGHUP.
"""


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    parser = add(
        "batch",
        help="convert whole libraries of files on all cores",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] SOURCE… --to EXTENSION -o FOLDER",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="SOURCE",
        help="files, folders (searched recursively), patterns, and .oar and .iar archives of OpenSim",
    )
    sources.add_arguments(parser)
    parser.add_argument("--to", metavar="EXTENSION", help="type of the files to write, such as blend")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="output folder; subfolders are kept")
    parser.add_argument(
        "--options",
        action="append",
        metavar="FILE",
        help="TOML or JSON file with options of this command; the command line has priority",
    )
    _add_run_arguments(parser)
    _add_machine_arguments(parser)
    add_conversion_arguments(parser)
    parser.set_defaults(run=run, parser=parser)


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for worker processes, for the comparison with earlier results, and for the report."""
    parser.add_argument(
        "--clashes",
        choices=("refuse", "number"),
        default="refuse",
        help="if several files have the same target: refuse the batch before anything is written, or number the later "
        "files, x_2.blend (default: refuse)",
    )
    parser.add_argument(
        "-j", "--jobs", type=number(int, 1), metavar="N", help="number of worker processes (default: number of cores)"
    )
    parser.add_argument(
        "--time-limit",
        type=number(float, 0),
        default=TIME_LIMIT,
        metavar="S",
        help=f"time limit of a file in seconds; 0 for no limit (default: {TIME_LIMIT:g})",
    )
    parser.add_argument(
        "--recycle",
        type=number(int, 0),
        default=RECYCLE_AFTER,
        metavar="N",
        help=f"files after which a process is replaced if its memory has grown; 0 for never (default: {RECYCLE_AFTER})",
    )
    parser.add_argument(
        "--checksum",
        action="store_true",
        help="compare the content of sources that are done, too; by default, only size and date are compared",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="list the files to convert and their targets; write nothing"
    )
    parser.add_argument(
        "--report",
        nargs="?",
        const="",
        type=_page,
        metavar="FILE.html",
        help="write an HTML page with a picture, the counts and the warnings of each model "
        f"(default: {STATE_FOLDER}/{REPORT_FILE} in the output folder)",
    )


def _add_machine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for clusters, and the arguments for single machines of these."""
    group = parser.add_argument_group("several machines with the same folders")
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="convert on the workers of this dask scheduler, such as tcp://farm:8786"
    )
    group.add_argument(
        "--worker-command",
        default="meshferry",
        metavar="COMMAND",
        help="command of this program on the machines, such as 'blender --command meshferry' (default: meshferry)",
    )
    group = parser.add_argument_group("one of several machines; used by --scheduler")
    group.add_argument(
        "--plan", metavar="FOLDER", help="convert part of the plan of this output folder; without SOURCE and --to"
    )
    group.add_argument("--range", metavar="LINES", help="lines of the plan to convert, such as 1-50")
    group.add_argument("--end-with-parent", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Run a batch; return 1 if any file failed."""
    started = time.monotonic()
    _require_consistent(arguments)
    settings = batch_settings(vars(arguments))
    if settings.plan is not None:
        from .batch import shard  # only machines of a cluster load it

        return shard.run(settings, settings.plan, reporter)
    if not settings.sources.paths and not settings.sources.lists:
        raise MeshferryError("There is nothing to convert: give files, folders, archives or a --list of them")
    if not settings.conversion.to:
        raise MeshferryError("Give the type of the files to write with --to EXTENSION")
    if settings.output is None:
        raise MeshferryError("Give the folder to write into with -o FOLDER")
    output = output_folder(settings.output).absolute()
    kind = known_kind(settings.conversion.to)[1]
    # Options without effect are errors on the command line only: an options file may serve several formats.
    require_known_options(settings_of(vars(getattr(arguments, "typed", arguments))), kind)
    require_usable_paths(settings.conversion.options, option_tables())
    from .batch import runner  # loads modules that the other uses of this command do not need

    return runner.run(settings, output, reporter, started)


def batch_settings(parsed: Mapping[str, Any]) -> BatchSettings:
    """Return the settings of the parsed arguments, by name."""
    sources = {field.name: parsed[field.name] for field in fields(SourceChoice)}
    own = {field.name: parsed[field.name] for field in fields(BatchSettings) if field.name in parsed}
    return BatchSettings(conversion=settings_of(parsed), sources=SourceChoice(**sources), **own)


def _require_consistent(arguments: argparse.Namespace) -> None:
    """Check that the arguments do not contradict each other.

    Raises
    ------
    MeshferryError
        They do.
    """
    if (arguments.plan is None) != (arguments.range is None):
        raise MeshferryError("--plan and --range need each other: the output folder, and the lines of its plan")
    if arguments.plan is None:
        return
    for flag in ("paths", "lists", "to", "output", "scheduler", "dry_run"):
        if getattr(arguments, flag):
            name = {"paths": "A SOURCE", "lists": "--list"}.get(flag, f"--{flag.replace('_', '-')}")
            raise MeshferryError("{} cannot be combined with --plan, which defines what to convert", name)
    if settings_of(vars(arguments)) != Settings():
        raise MeshferryError("Options of the conversion cannot be combined with --plan, which has its own")


def _page(text: str) -> str:
    """Return the path of the report. Reject other extensions than .html: then ``--report`` is followed by a source."""
    if text and Path(text).suffix.lower() not in {".html", ".htm"}:
        raise argparse.ArgumentTypeError(f"'{text}' is not an .html file; put sources before --report")
    return text
