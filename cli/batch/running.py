"""A batch from its arguments to its summary, in order: hold the folder, sweep, find, plan, convert, draw, report."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ...blender_data.importing.import_options import MATERIAL_LIBRARY
from ...io_formats.core.errors import MeshferryError
from ...io_formats.disk.file_names import CAUTIOUS
from ...io_formats.registry import FORMATS, Format
from .. import environment
from ..conversions.blender_formats import BlenderFormat
from ..conversions.conversion_arguments import given_conversion, require_known_options, settings_of, useless_between
from ..conversions.convert_plan import known_kind, searched
from ..inputs import BLEND
from ..reporting import Reporter
from .driver import Run, Workers
from .finding import sources
from .journal.journal import Journal
from .leftovers import sweep
from .machines.dask_cluster import DaskPool
from .machines.job_writing import write_job
from .machines.machine_arguments import shard_options, worker_command
from .plan import planning
from .plan.plan_file import BatchFile, Plan
from .plan.target_index import TargetIndex
from .progress import Progress
from .report.report import About, write
from .summary import Ending
from .tasks import REPORT_FILE, STATE_FOLDER, Source
from .workers.messages import Setup
from .workers.pool import Pool
from .workers.resources import available_cores
from .workers.worker_process import WorkerProcess

_GO_ON = "What is done is kept: the same command goes on from here"


def run(arguments: argparse.Namespace, reporter: Reporter, started: float, processes: list[WorkerProcess]) -> int:
    """Do a batch; return 1 if any file failed.

    Parameters
    ----------
    started:
        ``time.monotonic()`` of when the command began.
    processes:
        Workers that were started early.

    Raises
    ------
    MeshferryError
        Nothing was converted.
    """
    output = Path(arguments.output).absolute()
    with Journal(output) as journal:
        journal.take_over_shards()
        sweep(output)
        with Progress(reporter) as progress:
            found = _Found(reporter)
            plan = make_plan(arguments, output, found, progress)
            journal.start(plan.batch.digest)
            progress.concerns(plan, output)
            if arguments.openjd is not None:
                return write_job(arguments, plan, journal, reporter)
            way = Run(plan, journal, output=output, progress=progress, checksum=arguments.checksum)
            problem, report = _gone(way, arguments, plan, journal, progress, processes)
            unknown = _unknown_clips(arguments, plan, journal)
        ending = Ending(
            way.totals, plan.count, time.monotonic() - started, journal.path, report=report, unreadable=found.unreadable
        )
    status = _told(ending, problem, reporter)
    if not status and unknown:
        reporter.fail("batch", MeshferryError(f"--rename-clip: no file has an animation {_listed(unknown)}"))
        return 1
    return status


def _unknown_clips(arguments: argparse.Namespace, plan: Plan, journal: Journal) -> list[str]:
    """Return the old names of ``--rename-clip`` that no animation of any file had, as far as the journal knows."""
    unknown = {new: old for old, new in arguments.rename_clip}
    if not unknown or not known_kind(arguments.to)[1].capabilities.clips:
        return []
    for result in journal.results(plan.tasks()):
        for clip in result.facts.get("clips", ()):
            unknown.pop(clip["name"], None)
    return list(unknown.values())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def make_plan(arguments: argparse.Namespace, output: Path, found: _Found, progress: Progress) -> Plan:
    """Find the sources and decide what becomes what.

    Raises
    ------
    MeshferryError
        The arguments make no sense together, or files would clash; nothing was written.
    """
    extension, kind = known_kind(arguments.to)
    # A file of options may serve several targets: of those without effect it is only warned.
    require_known_options(getattr(arguments, "typed", arguments), kind)
    batch = BatchFile(given_conversion(arguments), arguments.to, extension, environment.version())
    sought = sources.find(
        arguments.paths,
        searched(kind, extension),
        lists=arguments.lists,
        base=arguments.base,
        match=arguments.match,
        skip=arguments.skip,
        newer=arguments.newer,
        leave_out=output,
        written=extension,
        told=found.tell,
        warn=found.warn,
    )
    passing = found.passing(progress.found(sought))
    # A farm may write on machines whose folders compare names in other ways than this one's.
    rules = None if arguments.openjd is None else CAUTIOUS
    plan = planning.make_plan(passing, output, extension, arguments.clashes, batch, rules)
    _require_other_than_library(arguments, output)
    found.warn_of_useless(arguments, kind)
    return plan


def _require_other_than_library(arguments: argparse.Namespace, output: Path) -> None:
    """Refuse to write over the .blend file that materials are taken from.

    Raises
    ------
    MeshferryError
        A work of the plan would become it.
    """
    library = settings_of(arguments).import_options.get(MATERIAL_LIBRARY.name)
    if not library:
        return
    try:
        place = os.path.relpath(os.path.realpath(library), os.path.realpath(output)).replace(os.sep, "/")
    except ValueError:
        return  # it lies on another drive
    if place in TargetIndex(output):
        raise MeshferryError(f"A file would overwrite the material library {library}; nothing was written")


class _Found:
    """Takes down what sources there are, and what could not be searched."""

    def __init__(self, reporter: Reporter) -> None:
        self.unreadable = 0
        self._extensions: set[str] = set()
        self._reporter = reporter

    def passing(self, found: Iterable[Source]) -> Iterator[Source]:
        """Look at sources that pass by."""
        for source in found:
            self._extensions.add(os.path.splitext(source.path)[1].lower())
            if source.member:
                self._extensions.add("")
            yield source

    def warn_of_useless(self, arguments: argparse.Namespace, kind: Format | BlenderFormat) -> None:
        """Say which options concern nothing; what a file without a telling extension holds could be anything."""
        read = [
            known
            for known in FORMATS
            if known.is_read and ("" in self._extensions or not self._extensions.isdisjoint(known.extensions))
        ]
        from_blend = BLEND in self._extensions
        for text in useless_between(arguments, read, kind, from_blend=from_blend):
            self._reporter.warn("batch", text)

    def warn(self, path: object, text: str) -> None:
        """Warn of something that is skipped."""
        self._reporter.warn(path, text)

    def tell(self, path: str, text: str) -> None:
        self.unreadable += 1
        self._reporter.fail(path, MeshferryError(text))


def _gone(
    way: Run,
    arguments: argparse.Namespace,
    plan: Plan,
    journal: Journal,
    progress: Progress,
    processes: list[WorkerProcess],
) -> tuple[BaseException | None, Path | None]:
    """Convert, put the journal in order, draw and report; return what broke that off, and the report."""
    report = None
    try:
        with _workers(arguments, plan, journal.output, processes) as pool:
            way.convert(pool)
        journal.compact()
        if arguments.report is not None:
            report = written_report(way, arguments, plan, journal, progress)
    except (KeyboardInterrupt, MeshferryError) as problem:
        return problem, None
    return None, report


def _workers(
    arguments: argparse.Namespace, plan: Plan, output: Path, processes: list[WorkerProcess]
) -> AbstractContextManager[Workers]:
    """Return who converts."""
    if arguments.scheduler is not None:
        return DaskPool(
            arguments.scheduler, output, command=worker_command(arguments), options=shard_options(arguments)
        )
    return local_pool(arguments, plan, output, processes)


def local_pool(
    arguments: argparse.Namespace, plan: Plan, output: Path, processes: list[WorkerProcess] | None = None
) -> Pool:
    """Return the worker processes of this machine."""
    setup = Setup(plan.batch.argv, plan.batch.to, str(output), plan.roots)
    jobs = arguments.jobs or available_cores()
    return Pool(setup, max(1, min(jobs, plan.count)), arguments.time_limit, arguments.recycle, started=processes)


def written_report(way: Run, arguments: argparse.Namespace, plan: Plan, journal: Journal, progress: Progress) -> Path:
    """Draw the pictures that are missing and write the report; return it."""
    with local_pool(arguments, plan, journal.output) as pool:
        no_pictures = way.draw(pool)
    if no_pictures:
        progress.note(no_pictures)
    about = About(
        version=environment.described(),
        options=["--to", plan.batch.to, *plan.batch.argv],
        roots=plan.roots,
        ended=time.time(),
        no_pictures=no_pictures,
    )
    to = arguments.report if arguments.report.name else journal.output / STATE_FOLDER / REPORT_FILE
    progress.begin("reporting", plan.count)
    results = progress.shown(journal.results(plan.tasks()))
    return write(results, about, journal.output, to.absolute())


def _told(ending: Ending, problem: BaseException | None, reporter: Reporter) -> int:
    """Say how a run ended; return its exit status.

    Raises
    ------
    KeyboardInterrupt, MeshferryError
        It was broken off, before anything was converted in the case of the latter.
    """
    if isinstance(problem, MeshferryError) and not ending.totals.converted:
        raise problem
    reporter.say(ending.text())
    reporter.record(ending.record())
    if isinstance(problem, KeyboardInterrupt):
        reporter.note(_GO_ON)
        raise problem
    if problem is not None:
        reporter.fail("", problem)
    return 0 if ending.is_good and problem is None else 1
