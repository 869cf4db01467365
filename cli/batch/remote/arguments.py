"""Arguments for batches on several machines."""

from __future__ import annotations

import argparse
import shlex
import sys

from ....io_formats.core.errors import MeshferryError

WITH_PARENT = "--end-with-parent"
"""Flag of shards that end with the process that started them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for clusters and farms, and those for their machines."""
    group = parser.add_argument_group("many machines, which see the same folders")
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="convert on the workers of this dask scheduler, such as tcp://farm:8786"
    )
    group.add_argument(
        "--openjd",
        metavar="FOLDER",
        help="convert nothing, but write a job for render farms into this folder, after Open Job Description",
    )
    group.add_argument(
        "--worker-command",
        default="meshferry",
        metavar="COMMAND",
        help="what starts this program on the machines, such as 'blender --command meshferry' (default: meshferry)",
    )
    group = parser.add_argument_group("one of many machines; farms use these")
    group.add_argument("--plan", metavar="FOLDER", help="do part of the plan in this folder; no SOURCE and no --to")
    group.add_argument("--range", metavar="LINES", help="the lines of the plan to do, such as 1-50")
    group.add_argument(
        "--lines", type=_count, default=1, metavar="N", help="lines that a number of --range stands for (default: 1)"
    )
    group.add_argument(
        "--root",
        action="append",
        metavar="FOLDER",
        help="where a folder of sources lies on this machine; once for each in the plan, in its order",
    )
    group.add_argument(
        "--collect", action="store_true", help="merge the results of all machines, after the last line is done"
    )
    group.add_argument(WITH_PARENT, action="store_true", help=argparse.SUPPRESS)


def worker_command(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the words of ``--worker-command``.

    Raises
    ------
    MeshferryError
        There are none, or a quotation mark is not closed.
    """
    is_windows = sys.platform == "win32"  # where backslashes are parts of paths
    try:
        words = shlex.split(arguments.worker_command, posix=not is_windows)
    except ValueError as problem:
        raise MeshferryError(f"--worker-command {arguments.worker_command}: {problem}") from None
    if not words:
        raise MeshferryError("--worker-command names no program")
    return tuple(word.strip('"') if is_windows else word for word in words)


def shard_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the arguments for every shard of a run."""
    options = [f"--time-limit={arguments.time_limit:g}", f"--recycle={arguments.recycle}"]
    return (*options, *(["--checksum"] if arguments.checksum else []))


def require_consistent(arguments: argparse.Namespace) -> None:
    """Refuse contradictory arguments.

    Raises
    ------
    MeshferryError
        They contradict each other.
    """
    if arguments.plan is None:
        for flag in ("range", "root", "collect"):
            if getattr(arguments, flag):
                raise MeshferryError(f"--{flag} needs a plan: give its folder with --plan FOLDER")
        if arguments.scheduler is not None and arguments.openjd is not None:
            raise MeshferryError("--scheduler converts now and --openjd writes a job for later; choose one")
        return
    for flag in ("paths", "lists", "to", "scheduler", "openjd", "dry_run"):
        if getattr(arguments, flag):
            name = {"paths": "A SOURCE", "lists": "--list"}.get(flag, f"--{flag.replace('_', '-')}")
            raise MeshferryError(f"{name} cannot be combined with --plan, which defines what to convert")
    if (arguments.range is None) == (not arguments.collect):
        raise MeshferryError("Give the lines of the plan with --range, or use --collect when all are done")


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return number
