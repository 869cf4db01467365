"""Driver of a batch: search, plan, conversion, pictures, report and summary.

Tasks and results are streamed: neither the plan nor the results are in memory as a whole.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...blender_data.importing.import_options import MATERIAL_LIBRARY
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import counted
from ...io_formats.disk.file_names import CAUTIOUS
from ...io_formats.registry import FORMATS
from .. import environment, interruption
from ..conversions.conversion_arguments import (
    given_conversion,
    require_known_options,
    require_usable_paths,
    settings_of,
    useless_between,
)
from ..conversions.convert_plan import known_kind, refuse_same_kind, searched
from ..inputs import BLEND
from ..reporting import Reporter, cause, printable
from . import planning
from .catalogs import write_catalogs
from .journal import Known
from .leftovers import sweep
from .plan import Plan, PlanHead, PlannedNames
from .progress import Progress
from .sources.archives import ArchiveReader
from .sources.search import find
from .state import State, locked, require_own_state
from .summary import Summary
from .tasks import PROJECTS_FOLDER, REPORT_FILE, STATE_FOLDER, LoadedTask, Result, SourceFile, Status, Task, TaskKind
from .workers.messages import Setup
from .workers.pool import Pool
from .workers.resources import available_cores
from .workers.worker_process import WorkerProcess

if TYPE_CHECKING:
    from .remote.dask import DaskPool
    from .report.pictures import PictureRun

_FREE_BYTES = 1 << 20
"""Free space in bytes below which a failed file means that the disk is full."""


class Store(Protocol):
    """The tasks of a run and their results, such as :class:`.state.State`."""

    def tasks(self) -> Iterator[tuple[Task, Known | None]]:
        """Yield the tasks with their last conversion, if that is still valid."""

    def append(self, result: Result) -> None:
        """Store a result."""


class Run:
    """One pass over the tasks of a plan.

    Parameters
    ----------
    store:
        The state, or the part of a plan that this machine converts.
    checksum:
        Compare the content of sources with unchanged size and date, too.
    """

    def __init__(self, store: Store, plan: Plan, *, output: Path, progress: Progress, checksum: bool = False) -> None:
        self.summary = Summary()
        self._store = store
        self._output = output
        self._progress = progress
        self._checksum = checksum
        self._plan = plan
        self._archive = functools.lru_cache(1)(ArchiveReader)  # a reader closes its file when the next replaces it

    def convert(self, pool: Pool | DaskPool, count: int) -> Summary:
        """Convert all new, changed and failed sources among ``count`` tasks; return :attr:`summary`.

        Raises
        ------
        MeshferryError
            The run cannot continue: the disk is full, or no worker starts. Results until then are stored.
        """
        self._progress.begin("converting", count)
        started = time.monotonic()
        try:
            with closing(pool.run(self._load_tasks())) as results:
                for result in results:
                    self._finish(result)
        finally:
            self.summary.converting += time.monotonic() - started
        return self.summary

    def draw(self, pool: Pool | DaskPool, results: Iterable[Result], count: int) -> str:
        """Draw the missing pictures of ``count`` results; return an error message if this machine cannot draw."""
        return self._draw(pool, functools.partial(self._load_pictures, results), count)

    def draw_sources(self, pool: Pool | DaskPool, count: int) -> str:
        """Draw the pictures of all new, changed and failed sources; return an error message if this machine cannot.

        Sources that cannot be read fail here without a message: their conversion reports it.
        """
        return self._draw(pool, self._load_sources, count)

    def _draw(self, pool: Pool | DaskPool, load: Callable[[PictureRun], Iterator[LoadedTask]], count: int) -> str:
        from .report.pictures import PictureRun  # only batches with a report or assets load it

        pictures = PictureRun(self._output)
        self._progress.begin("drawing", count)
        with closing(pool.run(load(pictures))) as drawn:
            for result in drawn:
                pictures.note(result)
                self._progress.ended(result)
        return pictures.problem

    def _load_sources(self, pictures: PictureRun) -> Iterator[LoadedTask]:
        for task, known in self._store.tasks():
            if not pictures.problem and (known is None or not known.is_same or self._checksum):
                with contextlib.suppress(MeshferryError):
                    yield LoadedTask(task, TaskKind.PICTURE, content=self._content(task))
                    continue
            self._progress.skipped(task)

    def _load_tasks(self) -> Iterator[LoadedTask]:
        for task, known in self._store.tasks():
            if known is not None and known.is_same and not self._checksum:
                self.summary.skipped += 1
                self._progress.skipped(task)
                continue
            try:
                content = self._content(task)
            except MeshferryError as problem:
                self._finish(Result(task, Status.FAILED, error=cause(problem)))
                continue
            yield LoadedTask(task, known_hash=known.hash if known is not None else "", content=content)

    def _load_pictures(self, results: Iterable[Result], pictures: PictureRun) -> Iterator[LoadedTask]:
        for result in results:
            try:
                if pictures.wants(result):
                    content = self._content(result.task)
                    yield LoadedTask(result.task, TaskKind.PICTURE, known_hash=result.hash, content=content)
                    continue
            except MeshferryError:  # the archive has changed
                pass
            self._progress.skipped(result.task)

    def _content(self, task: Task) -> bytes | None:
        """Return the content of a member of an archive; None for a file."""
        return self._archive(self._plan.path_of(task)).content(task.member) if task.member else None

    def _finish(self, result: Result) -> None:
        """Store, count and report a result."""
        self._store.append(result)
        self.summary.add(result)
        self._progress.ended(result)
        if result.status is Status.FAILED and _is_full(self._output, result.error):
            raise MeshferryError(f"{self._output}: the disk is full; make room and run the same command again")


def _is_full(output: Path, error: str) -> bool:
    """Return whether a file failed because the disk is full, in which case all others would fail, too."""
    if any(os.strerror(number) in error for number in (errno.ENOSPC, errno.EDQUOT)):
        return True
    try:
        return shutil.disk_usage(output).free < _FREE_BYTES
    except OSError:
        return False


def run(arguments: argparse.Namespace, reporter: Reporter, started: float, processes: list[WorkerProcess]) -> int:
    """Run a batch; return 1 if any file failed.

    Parameters
    ----------
    started:
        ``time.monotonic()`` at the start of the command.
    processes:
        Workers that were started early.

    Raises
    ------
    KeyboardInterrupt, MeshferryError
        The run was interrupted, or failed before any file was converted.
    """
    output = Path(arguments.output).absolute()
    if arguments.dry_run:
        return _preview(arguments, output, reporter)
    problem: BaseException | None = None
    report = None
    with locked(output), _emptied(output / STATE_FOLDER / PROJECTS_FOLDER), Progress(reporter, output) as progress:
        sweep(output)
        plan = make_plan(arguments, output, progress)
        progress.plan = plan
        with State(output, plan, has_journal=arguments.journal) as state:
            makes_assets = settings_of(arguments).makes_assets
            if makes_assets:
                write_catalogs(output, (task.target for task in plan.tasks()))
            if arguments.openjd is not None:
                from .remote import openjd

                return openjd.write_job(arguments, plan, state, reporter)
            conversion = Run(state, plan, output=output, progress=progress, checksum=arguments.checksum)
            try:
                if makes_assets:
                    no_pictures = conversion.draw_sources(local_pool(arguments, plan, output), plan.count)
                    if no_pictures:
                        reporter.note(no_pictures)
                conversion.convert(_workers(arguments, plan, output, processes), plan.count)
                state.compact()
                if arguments.report is not None:
                    report = write_report(conversion, arguments, plan, state, progress)
            except (KeyboardInterrupt, MeshferryError) as ended:
                problem = ended
            unknown = _unknown_clips(arguments, state)
    summary = conversion.summary
    if isinstance(problem, MeshferryError) and not summary.converted:
        raise problem
    summary.planned, summary.unreadable, summary.report = plan.count, progress.unreadable, report
    summary.journal = state.journal_path if arguments.journal else None
    summary.seconds = time.monotonic() - started
    reporter.say(summary.text())
    reporter.record(summary.record())
    if isinstance(problem, KeyboardInterrupt):
        reporter.note("Finished files are kept; run the same command again to continue")
        raise problem
    if problem is not None:
        reporter.fail("", problem)
    elif summary.is_good and unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        reporter.fail("batch", MeshferryError(f"--rename-clip: no file has an animation {names}"))
    return 0 if summary.is_good and problem is None and not unknown else 1


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """Remove a folder with everything in it before and after a block."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _preview(arguments: argparse.Namespace, output: Path, reporter: Reporter) -> int:
    """Print what a run would convert; return 1 if a source cannot be searched."""
    require_own_state(output)
    count = done = 0
    with tempfile.TemporaryDirectory() as folder:
        with Progress(reporter, output) as progress:
            plan = make_plan(arguments, output, progress, Path(folder))
        with State(output, plan, is_preview=True) as state:
            for task, known in state.tasks():
                interruption.check()
                if known is not None and known.is_same and not arguments.checksum:
                    done += 1
                    continue
                count += 1
                source, target = plan.describe(task), output / task.target
                reporter.record({"input": source, "output": str(target), "dry_run": True})
                reporter.say(f"{printable(source)} would become {printable(target)}")
    skipped = f"; {done:,} done before" if done else ""
    reporter.say(f"{counted(count, 'file')} to convert{skipped}")
    return 1 if progress.unreadable else 0


def _unknown_clips(arguments: argparse.Namespace, state: State) -> list[str]:
    """Return the old names of ``--rename-clip`` that no animation of any converted file had."""
    unknown = {new: old for old, new in arguments.rename_clip}
    if not unknown or not known_kind(arguments.to)[1].capabilities.clips:
        return []
    for result in state.results():
        for clip in result.facts.get("clips", ()):
            unknown.pop(clip["name"], None)
    return list(unknown.values())


def make_plan(arguments: argparse.Namespace, output: Path, progress: Progress, folder: Path | None = None) -> Plan:
    """Find the sources and choose their targets. Contradicting arguments and clashing files are errors."""
    extension, kind = known_kind(arguments.to)
    # Options without effect are errors on the command line only: an options file may serve several formats.
    require_known_options(getattr(arguments, "typed", arguments), kind)
    require_usable_paths(arguments)
    head = PlanHead(given_conversion(arguments), arguments.to, extension, environment.version())
    found = find(
        arguments.paths,
        searched(kind, extension),
        lists=arguments.lists,
        base=arguments.base,
        match=arguments.match,
        skip=arguments.skip,
        newer=arguments.newer,
        leave_out=output,
        written=extension,
        on_problem=progress.fail,
        warn=progress.reporter.warn,
    )
    extensions: set[str] = set()
    progress.begin("finding", None)
    noted = _note_extensions(progress.shown(found), extensions, extension)
    # The file systems of a render farm may compare names differently than the one of this machine.
    rules = None if arguments.openjd is None else CAUTIOUS
    numbers = arguments.clashes == "number"
    plan = planning.make_plan(noted, output, head, numbers=numbers, rules=rules, folder=folder)
    _require_other_than_library(arguments, output, plan)
    read = [known for known in FORMATS if known.is_read and not extensions.isdisjoint(("", *known.extensions))]
    for text in useless_between(arguments, read, kind, from_blend=BLEND in extensions):
        progress.reporter.warn("batch", text)
    return plan


def _note_extensions(sources: Iterable[SourceFile], extensions: set[str], written: str) -> Iterator[SourceFile]:
    """Yield sources; add their extensions to a set. Members of archives have none, so they may have any format.

    Files of Blender's formats that already have the extension to write are refused.
    """
    for source in sources:
        found = "" if source.member else os.path.splitext(source.path)[1].lower()
        if found == written:
            refuse_same_kind(Path(source.root, source.path), written)
        extensions.add(found)
        yield source


def _require_other_than_library(arguments: argparse.Namespace, output: Path, plan: Plan) -> None:
    """Refuse to overwrite the .blend file that materials are taken from."""
    library = settings_of(arguments).import_options.get(MATERIAL_LIBRARY.name)
    if not library:
        return
    try:
        target = os.path.relpath(os.path.realpath(library), os.path.realpath(output)).replace(os.sep, "/")
    except ValueError:
        return  # it is on another drive
    if target in PlannedNames(plan.path):
        raise MeshferryError(f"A file would overwrite the material library {library}; nothing was written")


def _workers(
    arguments: argparse.Namespace, plan: Plan, output: Path, processes: list[WorkerProcess]
) -> Pool | DaskPool:
    if arguments.scheduler is None:
        return local_pool(arguments, plan, output, processes)
    from .remote.dask import DaskPool  # only batches on clusters load it

    return DaskPool(arguments, output)


def local_pool(
    arguments: argparse.Namespace, plan: Plan, output: Path, processes: list[WorkerProcess] | None = None
) -> Pool:
    """Return the worker processes of this machine."""
    setup = Setup(plan.head.argv, plan.head.to, str(output), plan.roots, str(plan.path), arguments.time_limit)
    jobs = arguments.jobs or available_cores()
    return Pool(setup, max(1, min(jobs, plan.count)), arguments.recycle, started=processes)


def write_report(conversion: Run, arguments: argparse.Namespace, plan: Plan, state: State, progress: Progress) -> Path:
    """Draw the missing pictures and write the report; return its path."""
    from .report.report import About, write

    no_pictures = conversion.draw(local_pool(arguments, plan, state.output), state.results(), plan.count)
    if no_pictures:
        progress.reporter.note(no_pictures)
    about = About(
        version=environment.described(),
        options=["--to", plan.head.to, *plan.head.argv],
        roots=plan.roots,
        ended=time.time(),
        no_pictures=no_pictures,
    )
    to = arguments.report if arguments.report.name else state.output / STATE_FOLDER / REPORT_FILE
    progress.begin("reporting", plan.count)
    return write(progress.shown(state.results()), about, state.output, to.absolute())
