"""``--openjd``: the job for what a run would do, in place of the run."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ...reporting import Reporter, counted
from ..journal.journal import Journal
from ..plan.plan_file import Plan
from ..tasks import Task
from . import openjd_bundle
from .machine_arguments import shard_options, worker_command


def write_job(arguments: argparse.Namespace, plan: Plan, journal: Journal, reporter: Reporter) -> int:
    """Write the job for what a run would do, instead of doing it; return 0.

    Parameters
    ----------
    journal:
        Held, and started.

    Raises
    ------
    MeshferryError
        It cannot be written.
    """
    folder = Path(arguments.openjd).absolute()
    collect_options = []
    if arguments.report is not None:
        # A page that somebody named lies on this machine; the job's lies in the output folder.
        collect_options.append("--report")
    job = openjd_bundle.Job(
        plan=plan,
        tasks=(task for task in plan.tasks() if arguments.checksum or not _is_done(journal, task)),
        output=journal.output,
        command=worker_command(arguments),
        shard_options=shard_options(arguments),
        collect_options=tuple(collect_options),
    )
    count = openjd_bundle.write(job, folder)
    reporter.record({"job": str(folder), "files": count})
    if count:
        reporter.say(f"{folder}: a job for {counted(count, 'file')}; to run it here:")
        template, values = folder / openjd_bundle.TEMPLATE_FILE, folder / openjd_bundle.PARAMETERS_FILE
        reporter.say(shlex.join(["openjd", "run", str(template), "-p", f"file://{values}"]))
    else:
        reporter.say(f"There is nothing to do for {counted(plan.count, 'file')}, so no job was written")
    return 0


def _is_done(journal: Journal, task: Task) -> bool:
    known = journal.known(task)
    return known is not None and known.is_same
