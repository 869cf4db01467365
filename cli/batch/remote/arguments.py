"""Arguments for batches on several machines."""

from __future__ import annotations

import argparse
import shlex
import sys

from ....io_formats.core.errors import MeshferryError
from ...option_arguments import number

WITH_PARENT = "--end-with-parent"
"""Flag of a shard that ends when its parent process ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for clusters and farms, and the arguments for single machines of these."""
    group = parser.add_argument_group("several machines with the same folders")
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="convert on the workers of this dask scheduler, such as tcp://farm:8786"
    )
    group.add_argument(
        "--openjd",
        metavar="FOLDER",
        help="do not convert; write a job for render farms (Open Job Description) to this folder",
    )
    group.add_argument(
        "--worker-command",
        default="meshferry",
        metavar="COMMAND",
        help="command of this program on the machines, such as 'blender --command meshferry' (default: meshferry)",
    )
    group = parser.add_argument_group("one of several machines; used by farms")
    group.add_argument(
        "--plan", metavar="FOLDER", help="convert part of the plan in this folder; without SOURCE and --to"
    )
    group.add_argument("--range", metavar="LINES", help="lines of the plan to convert, such as 1-50")
    group.add_argument(
        "--lines",
        type=number(int, 1),
        default=1,
        metavar="N",
        help="lines of the plan for each number of --range (default: 1)",
    )
    group.add_argument(
        "--root",
        action="append",
        metavar="FOLDER",
        help="path of a folder of sources on this machine; once for each folder in the plan, in the same order",
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
        The command is empty, or a quotation mark is not closed.
    """
    is_windows = sys.platform == "win32"  # backslashes are part of paths there
    try:
        words = shlex.split(arguments.worker_command, posix=not is_windows)
    except ValueError as problem:
        raise MeshferryError(f"--worker-command {arguments.worker_command}: {problem}") from None
    if not words:
        raise MeshferryError("--worker-command is empty; give the command of this program")
    return tuple(word.strip('"') if is_windows else word for word in words)


def shard_options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the arguments for every shard of a run."""
    options = [f"--time-limit={arguments.time_limit:g}", f"--recycle={arguments.recycle}"]
    return (*options, *(["--checksum"] if arguments.checksum else []))


def require_consistent(arguments: argparse.Namespace) -> None:
    """Check that the arguments do not contradict each other.

    Raises
    ------
    MeshferryError
        They do.
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
