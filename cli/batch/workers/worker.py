"""A worker process: it reads tasks from its standard input, converts them and writes results to its standard output.

Blender and its add-ons print to standard output and may read standard input, so the worker first duplicates both
descriptors for itself, then redirects descriptor 1 to the standard error and 0 to the null device.

A thread reads the standard input. Its end means that the driver has ended: the thread then terminates this process,
even during a conversion. Blender must run in the main thread.
"""

import _thread
import contextlib
import errno
import faulthandler
import gc
import hashlib
import itertools
import math
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ....blender_data.addon_formats import offered_families
from ....io_formats.core.errors import FormatError, MeshferryError, refusal
from ....io_formats.core.messages import distinct
from ....io_formats.disk.atomic_write import remove_folder
from ....io_formats.disk.file_names import PathTable
from ....io_formats.disk.special_files import read_bytes
from ....io_formats.partner_files import FileSet, PartnerFiles, file_set
from ....io_formats.projects import Projects
from ... import environment, interruption
from ...conversions import blender_formats
from ...conversions.blend_files import BlendSession, CannotDrawError
from ...conversions.conversion import Conversion
from ...conversions.convert_plan import ConversionJob, Outcome, is_format_name, known_kind
from ...conversions.settings import ConversionContext, FileNames, Settings
from ...environment import peak_memory
from ...inputs import file_key
from ...output import CLOSED_READER, cause, error_cause, make_streams_safe, plain
from .. import output_folder, report_pictures
from ..plan import PlannedNames
from ..tasks import CANNOT_DRAW, DISK_FULL, PROJECTS_FOLDER, STATE_FOLDER, LoadedTask, Result, Status, TaskKind
from . import protocol
from .pool import FOLDER_PREFIX
from .protocol import Setup

_HASH_SIZE = 16
_LARGE = 64 * 2**20
"""Bytes above which a file is read twice, for its hash and its content, instead of kept in memory."""
_LAYERS = frozenset({"uv_layers", "color_layers"})
"""Facts whose maximum is used when the facts of several scenes are merged; other numbers are added."""


class Converter:
    """Converter of tasks. All tasks share one Blender, which is loaded when the first one needs it."""

    def __init__(self, setup: Setup, session: BlendSession) -> None:
        self._output = Path(setup.output).absolute()
        self._settings = setup.settings
        store = self._output / STATE_FOLDER / PROJECTS_FOLDER
        self._projects = Projects(
            is_fixed=True, store=store, has_mounts=setup.settings.mounts, reach_of=setup.settings.reach_of
        )
        self._format = known_kind(setup.settings.to)[1]
        self._is_named = is_format_name(setup.settings.to)
        self._roots = setup.roots
        self._index = PlannedNames(Path(setup.plan))
        self._session = session
        self._finder = PartnerFiles()

    def prepare(self) -> None:
        """Load Blender if the batch writes files of Blender's formats."""
        if self._format.needs_blender:
            self._session.load()

    def run(self, header: dict[str, Any], content: bytes | None) -> bytes:
        """Execute the task of a message; return the answer."""
        return protocol.encode_result(self.convert(protocol.parse_task(header, content)), peak_memory())

    def convert(self, loaded: LoadedTask) -> Result:
        """Execute a task. Errors of the file are returned in the result, not raised."""
        began = time.perf_counter()
        task = loaded.task
        result = Result(task, Status.DONE, kind=loaded.kind)
        try:
            source = Path(self._roots[task.root], task.path, task.member)
            files = FileSet(source) if task.member else file_set(source, self._settings.read_options, self._finder)
            content, result.hash = _content_and_hash(files, loaded)
            if loaded.kind is TaskKind.PICTURE:
                self._draw(source, content, result)
            elif loaded.known_hash == result.hash:
                result.status = Status.UNCHANGED
            else:
                self._convert(files, content, result)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (scripts of importers may call exit)
            _set_errors(result, [problem])
        self._index.close()
        result.seconds = time.perf_counter() - began
        return result

    def _convert(self, files: FileSet, content: bytes | None, result: Result) -> None:
        target = self._output / result.task.target
        names = PartNames(target, self._output, self._index)
        context = ConversionContext(self._settings, self._session, names, self._projects)
        job = ConversionJob(
            (files.path,),
            target,
            self._format,
            self._output,
            is_named=self._is_named,
            content=content,
            sets={files.path: files},
            # The state stores the sizes of the outputs, so a file that a power cut has truncated is converted again.
            is_flushed=False,
            **self._asset_marks(result),
        )
        outcomes = list(Conversion(context, several=True).run(job))
        good = [outcome for outcome in outcomes if outcome.problem is None and outcome.facts is not None]
        paths = dict.fromkeys(path for outcome in good for path in (outcome.files or [outcome.target]))
        result.outputs = [path.relative_to(self._output).as_posix() for path in paths if path != target]
        if target in paths:
            result.outputs.append(result.task.target)
        result.warnings = distinct(text for outcome in outcomes for text in outcome.warnings)
        result.facts = _merge_facts([plain(outcome.facts) for outcome in outcomes if outcome.facts is not None])
        _set_errors(result, [outcome.problem for outcome in outcomes if outcome.problem is not None])

    def _asset_marks(self, result: Result) -> dict[str, Any]:
        """Return catalog and preview picture for the asset of a task; None if the picture could not be drawn."""
        if not self._settings.blend_options.use_assets:
            return {}
        has_picture = report_pictures.read_picture(self._output, result.hash) is not None
        return {
            "asset_catalog": output_folder.catalog_id(result.task.target),
            "asset_picture": report_pictures.picture_file(self._output, result.hash) if has_picture else None,
        }

    def _draw(self, source: Path, content: bytes | None, result: Result) -> None:
        to = report_pictures.picture_file(self._output, result.hash)
        if report_pictures.read_picture(self._output, result.hash) is None:
            report_pictures.render(
                self._session, source, to, content=content, settings=self._settings, projects=self._projects
            )
        result.outputs = [to.relative_to(self._output).as_posix()]


class JobConverter:
    """Runs jobs of ``convert``. The driver names the files and counts renamed animations.

    ``ask`` sends a message and returns the driver's reply.
    """

    def __init__(self, setup: Setup, session: BlendSession, ask: Callable[..., Any]) -> None:
        sys.path += [folder for folder in setup.libraries if folder not in sys.path]
        self._session = session
        self._ask = ask
        context = ConversionContext(setup.settings, session, _NamesOfDriver(ask))
        self._clips = context.clips
        self._conversion = Conversion(context, several=True, on_source=lambda source: ask(begin=source))
        interruption.accept_forwarded()

    def prepare(self) -> None:
        """Load Blender. If that fails, the first job reports it."""
        with contextlib.suppress(MeshferryError):
            self._session.load()

    def run(self, header: dict[str, Any], _content: bytes | None) -> bytes:
        """Execute the job of a message; return the last answer."""
        self._clips.add_state(header["clips"])
        job = protocol.parse_job(header["job"])
        try:
            for outcome in self._conversion.run(job):
                self._ask(outcome=protocol.encode_outcome(outcome))
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (scripts of importers may call exit)
            for source in job.sources:
                failed = Outcome(source, job.target, problem=MeshferryError(cause(problem)))
                self._ask(outcome=protocol.encode_outcome(failed))
        return protocol.encode({"end": self._clips.state()})


class _NamesOfDriver(FileNames):
    """Asks the driver for the names of files, since the driver knows all files of the run."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        super().__init__(PathTable())
        self._ask = ask

    def of_part(self, own: Path, target: Path, name: str) -> Path:
        return Path(self._ask(names=["of_part", own, target, name]))

    def is_taken(self, path: Path) -> bool:
        return bool(self._ask(names=["is_taken", path]))

    def claim(self, companions: Mapping[Path, str]) -> list[Path]:
        return list(map(Path, self._ask(names=["claim", *companions.items()])))


class PartNames(FileNames):
    """Names of the outputs of one source.

    Other processes name their outputs at the same time, so the names depend only on the target and the plan.
    """

    def __init__(self, target: Path, output: Path, index: PlannedNames) -> None:
        super().__init__(PathTable())
        self._target = target
        self._output = output
        self._index = index

    def is_taken(self, path: Path) -> bool:
        """Return whether a path is a source, the target of another task, or used by another output of this source."""
        if file_key(path) == file_key(self._target):
            return False
        source = os.path.join(file_key(path.parent), path.name)  # links are resolved in the plan's paths of sources
        with contextlib.suppress(ValueError):  # on another drive, so not below the output folder
            source = os.path.relpath(source, file_key(self._output)).replace(os.sep, "/")
        target = path.relative_to(self._output).as_posix()
        return target in self._index or source in self._index or super().is_taken(path)


def _set_errors(result: Result, problems: Sequence[BaseException]) -> None:
    """Store status and error in a result if there are problems."""
    if not problems:
        return
    result.status = Status.FAILED
    result.error = "; ".join(dict.fromkeys(map(cause, problems)))
    result.error_cause = "; ".join(dict.fromkeys(map(error_cause, problems)))
    if any(map(_is_disk_full, problems)):
        result.error_code = DISK_FULL
    elif any(isinstance(problem, CannotDrawError) for problem in problems):
        result.error_code = CANNOT_DRAW


def _is_disk_full(problem: BaseException | None) -> bool:
    """Return whether an exception, or the one that it was raised for, reports a full disk or an exceeded quota."""
    while problem is not None:
        if isinstance(problem, OSError) and problem.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _content_and_hash(files: FileSet, loaded: LoadedTask) -> tuple[bytes | None, str]:
    """Return the content of a file, and the hash of its set.

    The content is None if the file is large or Blender opens it.
    """
    source, content = files.path, loaded.content
    if content is None and loaded.task.size <= _LARGE and blender_formats.by_path(source) is None:
        content = read_bytes(source)
    if content is not None:
        found: Any = hashlib.blake2b(content, digest_size=_HASH_SIZE)
    else:
        try:
            with source.open("rb") as stream:
                found = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_HASH_SIZE))
        except (OSError, ValueError) as problem:
            raise FormatError("The file cannot be read: {}", refusal(problem), file=str(source)) from None
    for path in files.partners.values():
        with contextlib.suppress(FormatError):  # the conversion reports it
            found.update(read_bytes(path))
    return content, found.hexdigest()


def _merge_facts(facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge the facts of several scenes."""
    if len(facts) < 2:
        return facts[0] if facts else {}
    found: dict[str, Any] = {}
    for name in dict.fromkeys(itertools.chain(*facts)):
        values = [one[name] for one in facts if name in one]
        if isinstance(values[0], list):
            found[name] = list(itertools.chain(*values))
        else:
            found[name] = max(values) if name in _LAYERS else sum(values)
    return found


_BEYOND_LIMIT = 60.0
"""Seconds after the time limit of a task at which the process terminates itself. This is needed if it hangs in C code
that blocks the reading thread, and the driver has been killed."""
_REMOVAL_LIMIT = 60.0
"""Time limit in seconds for removing the temporary files after the driver was killed."""
_WATCHDOG_AGE = 10.0
"""Seconds after which the watchdog is restarted. A restart for each task would take 0.1 ms, as it makes a thread."""
_Inbox = queue.SimpleQueue[tuple[dict[str, Any], bytes | None] | None]
_NEW_OBJECTS = 50_000
"""Allocations between two runs of the garbage collector. The default of 700 takes 8% of the time of small files."""


def run() -> int:
    """Execute tasks until the driver sends no more, then exit."""
    gc.disable()  # until all modules are loaded
    requests, answers = _take_streams()
    make_streams_safe()
    faulthandler.enable(sys.__stderr__ or 2)
    interruption.ignore()  # the driver gets the same signal and waits for the present tasks
    try:
        hello, _ = protocol.read(requests)
    except (EOFError, ValueError):
        _remove_temporary_files()  # the driver may have been killed
        raise MeshferryError("A worker is started by 'meshferry batch', not by hand") from None
    inbox: _Inbox = queue.SimpleQueue()
    reader = threading.Thread(target=_read_requests, args=(requests, inbox), daemon=True)
    reader.start()
    try:
        answers.write(b"\n" + hello["token"].encode("ascii") + b"\n")
        answers.flush()
        _serve(hello, inbox, answers)
    except KeyboardInterrupt:  # which the driver forwarded
        pass
    except OSError as problem:
        if problem.errno not in CLOSED_READER:
            raise
        # The driver has ended, and the reader removes the temporary files before it exits.
        reader.join(_REMOVAL_LIMIT)
    # Skip the shutdown of Blender and Python, which is slow and may crash. The driver removes the temporary files.
    environment.end_process(0)


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return private streams for requests and answers, which no other code in this process uses."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (requests, answers):
            msvcrt.setmode(descriptor, os.O_BINARY)
    return os.fdopen(requests, "rb"), os.fdopen(answers, "wb")


def _read_requests(requests: BinaryIO, inbox: _Inbox) -> None:
    """Queue the requests of the driver, None for a stop; terminate this process when the driver ends."""
    with contextlib.suppress(EOFError, OSError, ValueError):
        while True:
            header, content = protocol.read(requests)
            if "interrupt" in header:
                _thread.interrupt_main()
                continue
            if "stop" not in header:
                inbox.put((header, content))
                continue
            with contextlib.suppress(queue.Empty):
                inbox.get_nowait()  # the task that was sent ahead
            inbox.put(None)
    _remove_temporary_files()
    environment.end_process(1)


def _remove_temporary_files() -> None:
    """Remove the folder that the driver made for the temporary files of this process."""
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(FOLDER_PREFIX):
        remove_folder(folder)


def _serve(hello: dict[str, Any], inbox: _Inbox, answers: BinaryIO) -> None:
    """Execute the tasks that the driver sends after its settings."""

    def answer(message: bytes) -> None:
        answers.write(message)
        answers.flush()

    def ask(**message: Any) -> Any:
        answer(protocol.encode(message))
        if (reply := inbox.get()) is None:
            raise KeyboardInterrupt
        return reply[0]["value"]

    # Blender's output becomes the log of the worker: the last output before a crash.
    with BlendSession(show_chatter=True, threads=hello["threads"], number=hello["number"]) as session:
        if (request := inbox.get()) is None:
            return
        offered_families.load(request[0]["addons"])
        setup = Setup(**request[0] | {"settings": Settings(**request[0]["settings"])})
        try:
            converter = Converter(setup, session) if setup.output else JobConverter(setup, session, ask)
            converter.prepare()
        except MeshferryError as problem:
            answer(protocol.encode({"refused": protocol.encode_problem(problem)}))
            return
        answer(_ready())
        watchdog = _Watchdog(setup.time_limit if setup.output else 0)
        while True:
            if inbox.empty():
                watchdog.stop()
            if (request := inbox.get()) is None:
                return
            _empty_log()
            watchdog.start()
            answer(converter.run(*request))


class _Watchdog:
    """Terminates this process if a task exceeds its time limit by more than a minute."""

    def __init__(self, time_limit: float) -> None:
        self._time_limit = time_limit
        self._started = -math.inf

    def start(self) -> None:
        """Start the watchdog, unless it was started shortly before."""
        if self._time_limit and time.monotonic() - self._started > _WATCHDOG_AGE:
            self._started = time.monotonic()
            faulthandler.dump_traceback_later(self._time_limit + _WATCHDOG_AGE + _BEYOND_LIMIT, exit=True)

    def stop(self) -> None:
        """Stop the watchdog while this process waits for a task."""
        self._started = -math.inf
        faulthandler.cancel_dump_traceback_later()


def _ready() -> bytes:
    """Enable the garbage collector, as all modules are loaded; return the message about that."""
    gc.collect()
    gc.freeze()  # exclude modules and tables of options, which are never released, from later collections
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
    gc.enable()
    return protocol.encode({"ready": environment.described(), "memory": peak_memory()})


def _empty_log() -> None:
    """Empty the log, which has the output of one task."""
    with contextlib.suppress(OSError):
        if os.lseek(2, 0, os.SEEK_END):
            os.lseek(2, 0, os.SEEK_SET)
            os.ftruncate(2, 0)
