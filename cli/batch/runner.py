"""Driver of a batch: search, plan, conversion, pictures, report and summary.

Tasks and results are streamed: neither the plan nor the results are in memory as a whole.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import counted
from ...io_formats.registry import FORMATS, extension_of
from .. import environment, interruption
from ..conversions.conversion_arguments import useless_between
from ..conversions.convert_plan import known_kind, refuse_same_kind, searched
from ..conversions.settings import Settings
from ..environment import available_cores
from ..inputs import BLEND
from ..output import Reporter, cause, error_cause, printable
from . import plan as batch_plan
from .output_folder import remove_leftovers, write_catalogs
from .plan import Plan, PlanHead, PlannedNames
from .progress import Progress, Summary
from .sources import ArchiveReader, find_files
from .state import Known, State, locked, require_own_state
from .tasks import (
    DISK_FULL,
    PROJECTS_FOLDER,
    REPORT_FILE,
    STATE_FOLDER,
    BatchSettings,
    LoadedTask,
    Result,
    SourceFile,
    Status,
    Task,
    TaskKind,
)
from .workers.pool import Pool
from .workers.protocol import Setup

if TYPE_CHECKING:
    from .report_pictures import PictureRun
    from .shard import DaskPool, ShardStore

_FREE_BYTES = 1 << 20
"""Free space in bytes below which a failed file means that the disk is full."""


class Run:
    """One pass over the tasks of a plan.

    Parameters
    ----------
    store:
        Tasks and results: the state, or the part of a plan that this machine converts.
    checksum:
        Compare the content of sources with unchanged size and date, too.
    """

    def __init__(
        self, store: State | ShardStore, plan: Plan, *, output: Path, progress: Progress, checksum: bool = False
    ) -> None:
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

    def draw(self, pool: Pool | DaskPool, results: Iterable[Result] | None, count: int) -> str:
        """Draw the missing pictures of ``count`` results; print and return a message if this machine cannot draw.

        Without results, draw those of all new, changed and failed sources. Sources that cannot be read fail here
        without a message: their conversion reports it.
        """
        from .report_pictures import PictureRun  # only batches with a report or assets load it

        pictures = PictureRun(self._output)
        if results is None:
            tasks = ((task, not self._is_done(known)) for task, known in self._store.tasks())
        else:
            tasks = ((result.task, pictures.wants(result)) for result in results)
        self._progress.begin("drawing", count)
        with closing(pool.run(self._load_pictures(pictures, tasks))) as drawn:
            for result in drawn:
                pictures.note(result)
                self._progress.ended(result)
        if pictures.problem:
            self._progress.reporter.note(pictures.problem)
        return pictures.problem

    def _load_pictures(self, pictures: PictureRun, tasks: Iterable[tuple[Task, bool]]) -> Iterator[LoadedTask]:
        for task, is_wanted in tasks:
            if is_wanted and not pictures.problem:
                with contextlib.suppress(MeshferryError):  # the archive has changed
                    yield LoadedTask(task, TaskKind.PICTURE, content=self._content(task))
                    continue
            self._progress.skipped(task)

    def _is_done(self, known: Known | None) -> bool:
        return known is not None and known.is_same and not self._checksum

    def _load_tasks(self) -> Iterator[LoadedTask]:
        for task, known in self._store.tasks():
            if self._is_done(known):
                self.summary.skipped += 1
                self._progress.skipped(task)
                continue
            try:
                content = self._content(task)
            except MeshferryError as problem:
                self._finish(Result(task, Status.FAILED, error=cause(problem), error_cause=error_cause(problem)))
                continue
            yield LoadedTask(task, known_hash=known.hash if known is not None else "", content=content)

    def _content(self, task: Task) -> bytes | None:
        """Return the content of a member of an archive; None for a file."""
        return self._archive(self._plan.path_of(task)).content(task.member) if task.member else None

    def _finish(self, result: Result) -> None:
        """Store, count and report a result."""
        self._store.append(result)
        self.summary.add(result)
        self._progress.ended(result)
        if result.status is Status.FAILED and _is_full(self._output, result):
            raise MeshferryError("{}: the disk is full; make room and run the same command again", self._output)


def _is_full(output: Path, result: Result) -> bool:
    """Return whether a file failed because the disk is full, in which case all others would fail, too."""
    if result.error_code == DISK_FULL:
        return True
    try:
        return shutil.disk_usage(output).free < _FREE_BYTES
    except OSError:
        return False


def run(settings: BatchSettings, output: Path, reporter: Reporter, started: float) -> int:
    """Run a batch; return 1 if any file failed.

    Parameters
    ----------
    started:
        ``time.monotonic()`` at the start of the command.

    Raises
    ------
    KeyboardInterrupt, MeshferryError
        The run was interrupted, or failed before any file was converted.
    """
    if settings.dry_run:
        return _preview(settings, output, reporter)
    problem: BaseException | None = None
    report = None
    unknown: list[str] = []
    with locked(output), _emptied(output / STATE_FOLDER / PROJECTS_FOLDER), Progress(reporter, output) as progress:
        remove_leftovers(output)
        plan = make_plan(settings, output, progress)
        progress.plan = plan
        with State(output, plan) as state:
            makes_assets = settings.conversion.blend_options.use_assets
            if makes_assets:
                write_catalogs(output, (task.target for task in plan.tasks()))
            conversion = Run(state, plan, output=output, progress=progress, checksum=settings.checksum)
            try:
                if makes_assets:
                    conversion.draw(local_pool(settings, plan, output), None, plan.count)
                conversion.convert(_workers(settings, plan, output), plan.count)
                if settings.report is not None:
                    report = write_report(conversion, settings, plan, state, progress)
                unknown = _unknown_clips(settings.conversion, state)
                state.compact()
            except (KeyboardInterrupt, MeshferryError) as ended:
                problem = ended
    if state.damage is not None:
        reporter.fail(state.journal_path, state.damage)
    summary = conversion.summary
    if isinstance(problem, MeshferryError) and not summary.converted:
        raise problem
    summary.planned, summary.unreadable, summary.report = plan.count, progress.unreadable, report
    summary.journal = state.journal_path
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
        reporter.fail("batch", MeshferryError("--rename-clip: no file has an animation {}", names))
    return 0 if summary.is_good and problem is None and not unknown else 1


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """Remove a folder with everything in it before and after a block."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _preview(settings: BatchSettings, output: Path, reporter: Reporter) -> int:
    """Print what a run would convert; return 1 if a source cannot be searched."""
    require_own_state(output)
    count = done = 0
    with tempfile.TemporaryDirectory() as folder:
        with Progress(reporter, output) as progress:
            plan = make_plan(settings, output, progress, Path(folder))
        with State(output, plan, is_preview=True) as state:
            for task, known in state.tasks():
                interruption.check()
                if known is not None and known.is_same and not settings.checksum:
                    done += 1
                    continue
                count += 1
                source, target = plan.describe(task), output / task.target
                reporter.record({"input": source, "output": str(target), "dry_run": True})
                reporter.say(f"{printable(source)} would become {printable(target)}")
    if state.damage is not None:
        reporter.fail(state.journal_path, state.damage)
    skipped = f"; {done:,} done before" if done else ""
    reporter.say(f"{counted(count, 'file')} to convert{skipped}")
    return 1 if progress.unreadable else 0


def _unknown_clips(settings: Settings, state: State) -> list[str]:
    """Return the old names of ``--rename-clip`` that no animation of any converted file had."""
    unknown = {new: old for old, new in settings.new_names.items()}
    if not unknown or not known_kind(settings.to)[1].capabilities.clips:
        return []
    for result in state.results():
        for clip in result.facts.get("clips", ()):
            unknown.pop(clip["name"], None)
    return list(unknown.values())


def make_plan(settings: BatchSettings, output: Path, progress: Progress, folder: Path | None = None) -> Plan:
    """Find the sources and choose their targets. Clashing files are errors."""
    extension, kind = known_kind(settings.conversion.to)
    head = PlanHead(settings.conversion, environment.version())
    found = find_files(
        settings.sources,
        searched(kind, extension),
        leave_out=output,
        written=extension,
        on_problem=progress.fail,
        warn=progress.reporter.warn,
    )
    extensions: set[str] = set()
    progress.begin("finding", None)
    noted = _note_extensions(progress.shown(found), extensions, extension)
    plan = batch_plan.make_plan(noted, output, head, numbers=settings.clashes == "number", folder=folder)
    _require_other_than_library(settings.conversion, output, plan)
    read = [known for known in FORMATS if known.is_read and not extensions.isdisjoint(("", *known.extensions))]
    for text in useless_between(settings.conversion, read, kind, from_blend=BLEND in extensions):
        progress.reporter.warn("batch", text)
    return plan


def _note_extensions(sources: Iterable[SourceFile], extensions: set[str], written: str) -> Iterator[SourceFile]:
    """Yield sources; add their extensions to a set. Members of archives have none, so they may have any format.

    Files of Blender's formats that already have the extension to write are refused.
    """
    for source in sources:
        found = "" if source.member else extension_of(source.path)
        if found == written:
            refuse_same_kind(Path(source.root, source.path), written)
        extensions.add(found)
        yield source


def _require_other_than_library(settings: Settings, output: Path, plan: Plan) -> None:
    """Refuse to overwrite the .blend file that materials are taken from."""
    library = settings.material_library
    if not library:
        return
    try:
        target = os.path.relpath(os.path.realpath(library), os.path.realpath(output)).replace(os.sep, "/")
    except ValueError:
        return  # it is on another drive
    if target in PlannedNames(plan.path):
        raise MeshferryError("A file would overwrite the material library {}; nothing was written", library)


def _workers(settings: BatchSettings, plan: Plan, output: Path) -> Pool | DaskPool:
    if settings.scheduler is None:
        return local_pool(settings, plan, output)
    from .shard import DaskPool  # only batches on clusters load it

    return DaskPool(settings, output)


def local_pool(settings: BatchSettings, plan: Plan, output: Path) -> Pool:
    """Return the worker processes of this machine."""
    setup = Setup(plan.head.settings, str(output), plan.roots, str(plan.path), settings.time_limit)
    jobs = settings.jobs or available_cores()
    return Pool(setup, max(1, min(jobs, plan.count)), settings.recycle)


def write_report(conversion: Run, settings: BatchSettings, plan: Plan, state: State, progress: Progress) -> Path:
    """Draw the missing pictures and write the report; return its path."""
    from .report import About, write_report

    no_pictures = conversion.draw(local_pool(settings, plan, state.output), state.results(), plan.count)
    about = About(
        version=environment.described(),
        options=["--to", plan.head.settings.to, *plan.head.settings.spelled()],
        roots=plan.roots,
        ended=time.time(),
        no_pictures=no_pictures,
    )
    to = Path(settings.report) if settings.report else state.output / STATE_FOLDER / REPORT_FILE
    progress.begin("reporting", plan.count)
    return write_report(progress.shown(state.results()), about, state.output, to.absolute())
