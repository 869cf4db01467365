"""What a machine does with the plan of a batch that another one made, and what it is given for that."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk.atomic_write import refusal
from ...conversions.conversion_arguments import given_conversion
from ...reporting import Reporter
from ..driver import Run
from ..journal.journal import Journal
from ..plan.plan_file import Plan
from ..progress import Progress
from ..running import written_report
from ..summary import Ending
from ..tasks import JOURNAL_FILE, STATE_FOLDER
from ..totals import Totals
from . import lifeline, shard
from .shard import Shard, open_plan, output_of


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Do what ``--plan`` asks for; return the exit status.

    Raises
    ------
    MeshferryError
        It cannot be done on this machine.
    """
    return collect(arguments, reporter) if arguments.collect else do_lines(arguments, reporter)


def do_lines(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Do the lines of ``--range``; return 0, also where files failed: the journal tells of them.

    Raises
    ------
    MeshferryError
        They cannot be done on this machine.
    """
    if arguments.end_with_parent:
        lifeline.end_with_parent()
    asked = Shard(
        plan=Path(arguments.plan),
        lines=arguments.range,
        group=arguments.lines,
        output=Path(arguments.output) if arguments.output else None,
        roots=tuple(arguments.root) if arguments.root else None,
        options=given_conversion(arguments),
        time_limit=arguments.time_limit,
        recycle_after=arguments.recycle,
        checksum=arguments.checksum,
    )
    shard.run(asked, reporter)
    return 0


def collect(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Take over what the machines noted down, and tell of it; return 1 if lines were not done, whatever came of them.

    Raises
    ------
    MeshferryError
        There is no plan, or the journal cannot be written.
    """
    plan = open_plan(Path(arguments.plan), arguments.root)
    output = output_of(plan, Path(arguments.output) if arguments.output else None)
    _bring_journal(plan, output)
    with Journal(output) as journal, Progress(reporter) as progress:
        journal.start(plan.batch.digest)
        journal.take_over_shards()
        journal.compact()
        totals = Totals()
        seconds = 0.0
        for result in journal.results(plan.tasks()):
            totals.add(result)
            seconds += result.seconds
        report = None
        if arguments.report is not None:
            way = Run(plan, journal, output=output, progress=progress)
            report = written_report(way, arguments, plan, journal, progress)
    ending = Ending(totals, plan.count, seconds, journal.path, report=report)
    reporter.say(ending.text())
    reporter.record(ending.record())
    return 1 if ending.left else 0


def _bring_journal(plan: Plan, output: Path) -> None:
    """Put the journal beside the plan into an output folder that has none: this machine does not see the real one.

    Raises
    ------
    MeshferryError
        It cannot be written there.
    """
    source, target = plan.folder / JOURNAL_FILE, output / STATE_FOLDER / JOURNAL_FILE
    if target.exists() or not source.exists():
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as problem:
        raise MeshferryError(f"{target}: {refusal(problem)}") from None
