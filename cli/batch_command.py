"""``meshferry batch``: whole libraries, resumable, over all cores."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ..io_formats.core.errors import MeshferryError, MissingLibraryError
from . import environment
from .batch.remote import arguments as machine_arguments
from .batch.sources import choice
from .batch.tasks import REPORT_FILE, STATE_FOLDER
from .batch.workers.pool import RECYCLE_AFTER, TIME_LIMIT
from .batch.workers.resources import available_cores, threads_for
from .batch.workers.worker_process import WorkerProcess, started_early
from .conversions.blender_formats import BlenderFormat
from .conversions.conversion_arguments import add_conversion_arguments, settings_of
from .conversions.convert_plan import known_kind
from .reporting import Reporter

_MOST_EARLY = 4
"""Workers that are started before it is known how many files there are."""

_DESCRIPTION = f"""\
Convert everything below folders, or everything that a list names, over all cores.

  batch project/data --to blend -o blends         a tree of .blend files, like the tree of sources
  batch region.oar --to glb -o region             every mesh in an OpenSim archive
  batch --list changed.txt --to timbermesh -o out what a list names; - is the standard input
  batch sdk --to blend -o out --match 'props/**' --newer 7d
                                                  files of a folder that changed this week
  batch --options nightly.toml                    with the options in a file

The folder tree is kept. The same command again does only what is new, changed or failed, also after Ctrl+C, a kill or
a power cut: the folder {STATE_FOLDER} in the output folder has what was done. A broken file does not stop the
rest. One that brings Blender down is tried once more, alone; if it does so again, and if a file takes longer than
--time-limit, it is put in quarantine. Files are written whole or not at all; sources are never written over.
Exit status: 0 all converted, 1 any failed, 2 refused before anything was written; after Ctrl+C 130, after
SIGTERM 143, after SIGHUP 129.
"""


def add_parser(subparsers: Any, parents: list[argparse.ArgumentParser]) -> None:
    """Add the sub command."""
    parser = subparsers.add_parser(
        "batch",
        parents=parents,
        allow_abbrev=False,
        help="convert whole libraries of files, over all cores",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] SOURCE… --to EXTENSION -o FOLDER",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="SOURCE",
        help="files, folders (searched to the bottom), patterns, and .oar and .iar archives of OpenSim",
    )
    choice.add_arguments(parser)
    parser.add_argument("--to", metavar="EXTENSION", help="kind of file to write for each file read, such as blend")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="where --to writes; subfolders are kept")
    parser.add_argument(
        "--options", metavar="FILE", help="options of this command in a TOML or JSON file; the command line wins"
    )
    parser.add_argument(
        "--clashes",
        choices=("refuse", "number"),
        default="refuse",
        help="what happens where several files would become one: refuse before anything is written; number the later "
        "ones, x_2.blend (default: refuse)",
    )
    parser.add_argument(
        "-j", "--jobs", type=_number(int, 1), metavar="N", help="processes that work at once (default: the cores)"
    )
    parser.add_argument(
        "--time-limit",
        type=_number(float, 0),
        default=TIME_LIMIT,
        metavar="S",
        help=f"seconds that a file may take; 0: any time (default: {TIME_LIMIT:g})",
    )
    parser.add_argument(
        "--recycle",
        type=_number(int, 0),
        default=RECYCLE_AFTER,
        metavar="N",
        help="files after which a process is replaced by a fresh one, unless its memory has not grown; 0: never "
        f"(default: {RECYCLE_AFTER})",
    )
    parser.add_argument(
        "--checksum",
        action="store_true",
        help="read what was done before, too, and do it again if its content changed; otherwise size and date decide",
    )
    parser.add_argument(
        "--journal",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=f"write {STATE_FOLDER}/journal.jsonl, a line for each finished file, for other programs (default: yes)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="list the files to convert, with their targets; write nothing",
    )
    parser.add_argument(
        "--report",
        nargs="?",
        const="",
        type=_page,
        metavar="FILE.html",
        help="write a page with a small picture of every model, its counts and warnings "
        f"(default: {STATE_FOLDER}/{REPORT_FILE} in the output folder)",
    )
    machine_arguments.add_arguments(parser)
    add_conversion_arguments(parser)
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Do a batch; return 1 if any file failed."""
    started = time.monotonic()
    _require_rich()
    machine_arguments.require_consistent(arguments)
    if arguments.plan is not None:
        from .batch.remote import shard  # rich, which it needs, is there

        return shard.run(arguments, reporter)
    if not arguments.paths and not arguments.lists:
        raise MeshferryError("There is nothing to convert: name files, folders or archives, or a --list of them")
    if arguments.to is None:
        raise MeshferryError("Give the kind of file to write with --to EXTENSION")
    if arguments.output is None:
        raise MeshferryError("Give the folder to write into with -o FOLDER")
    settings_of(arguments)
    with _early_workers(arguments) as processes:
        from .batch import runner  # rich, which it needs, is there

        return runner.run(arguments, reporter, started, processes)


def _early_workers(arguments: argparse.Namespace) -> AbstractContextManager[list[WorkerProcess]]:
    """Start workers that load Blender while the driver finds and plans the files.

    Only for a new output folder: in others there may be nothing to do.
    """
    is_local = arguments.scheduler is None and arguments.openjd is None and not arguments.dry_run
    if not is_local or Path(arguments.output, STATE_FOLDER).exists():
        return nullcontext([])
    jobs = arguments.jobs or available_cores()
    if not arguments.lists and all(os.path.isfile(path) for path in arguments.paths):
        jobs = min(jobs, len(arguments.paths))
    loads_blender = isinstance(known_kind(arguments.to)[1], BlenderFormat)
    return started_early(min(jobs, _MOST_EARLY), threads_for(jobs), loads_blender=loads_blender)


def _require_rich() -> None:
    if "rich" in environment.missing_libraries():
        raise MissingLibraryError("Batches need the library rich, which shows how far they are")


def _number(kind: type[int] | type[float], least: int) -> Callable[[str], int | float]:
    def parse(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
        if not math.isfinite(number) or number < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} on")
        return number

    return parse


def _page(text: str) -> Path | None:
    """Return the file to write a report to; what does not look like one is a source in the wrong place."""
    if text and Path(text).suffix.lower() not in {".html", ".htm"}:
        raise argparse.ArgumentTypeError(f"'{text}' is not an .html file; put what to convert in front of --report")
    return Path(text)
