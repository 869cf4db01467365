"""A worker process for jobs of ``convert`` with sources of Blender's own importers, some of which crash Blender."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ....io_formats.core.errors import ExportError, MeshferryError
from ... import interruption
from ...conversions.conversion import Conversion
from ...conversions.convert_plan import ConversionJob
from ...conversions.scene_writing import ANOTHER_FAILED, Outcome
from ...output import printable
from . import conversion_messages as calls
from . import protocol
from .conversion_messages import RunSetup
from .worker_process import WorkerProcess, remove_abandoned_folders, worker_command

_CHECK_SECONDS = 0.1
"""Interval of checks for a termination request, which is then forwarded."""
_EXIT_LIMIT = 3.0
"""Grace period in seconds after a second termination request, in which the worker removes its temporary files."""

Message = dict[str, Any] | None
"""A message of the worker; None after its end."""


class ConversionWorker:
    """Runs jobs in one process, which is replaced if it dies. If none can start, the jobs run in this process.

    Parameters
    ----------
    conversion:
        Runs the other jobs, in this process.
    several:
        Whether the run has several jobs.
    shows_log:
        Print the output of the worker after each job.
    """

    def __init__(self, conversion: Conversion, *, several: bool, shows_log: bool = False) -> None:
        setup = RunSetup(conversion.settings, several, sys.path)
        self._setup = protocol.encode({"run": asdict(setup)})
        self._names = conversion.context.names
        self._conversion = conversion
        self._clips = conversion.clips
        self._shows_log = shows_log
        self._can_start = True
        self._process: WorkerProcess | None = None
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._versions = ""
        """Versions of Meshferry, Python and Blender."""
        self._source: Path | None = None
        """The source that is being imported into a file with others."""
        remove_abandoned_folders()

    def __enter__(self) -> ConversionWorker:
        return self

    def __exit__(self, *_problem: object) -> None:
        self._end()

    def run(self, job: ConversionJob) -> Iterator[Outcome]:
        """Run one job; yield an outcome for each file read or written, as :meth:`Conversion.run` does.

        If the process dies while it imports one of several sources, the others are converted without that one.
        """
        waiting: ConversionJob | None = job
        while waiting is not None:
            process = self._start()
            if process is None:
                yield from self._conversion.run(waiting)
                return
            try:
                yield from self._outcomes(waiting, process)
                return
            except WorkerDiedError as death:
                failed, waiting = self._split(waiting, death)
                yield from failed

    def _split(self, job: ConversionJob, death: WorkerDiedError) -> tuple[list[Outcome], ConversionJob | None]:
        """Return the outcomes of a job whose process died, and the job that is left."""
        culprit = self._source
        others = tuple(source for source in job.sources if source != culprit)
        if culprit is None or not others:
            return [Outcome(source, job.target, problem=death) for source in job.sources], None
        failed = [Outcome(culprit, job.target, problem=death)]
        if self._conversion.settings.strict:
            failed += [Outcome(source, job.target, problem=ExportError(ANOTHER_FAILED)) for source in others]
            return failed, None
        return failed, replace(job, sources=others)

    def _start(self) -> WorkerProcess | None:
        """Return the process, which is started if there is none, or None if it cannot start."""
        if self._process is not None or not self._can_start:
            return self._process
        self._can_start = False
        with contextlib.suppress(MeshferryError):
            self._process = process = WorkerProcess(worker_command(0))
            self._inbox = queue.SimpleQueue()
            threading.Thread(target=_read, args=(process, self._setup, self._inbox), daemon=True).start()
            ready = self._receive(process)
            interruption.check()
            if ready is None:
                self._end()
            else:
                self._can_start = True
                self._versions = ready["ready"]
        return self._process

    def _outcomes(self, job: ConversionJob, process: WorkerProcess) -> Iterator[Outcome]:
        """Send a job to the process; yield its outcomes and answer its calls.

        Raises
        ------
        WorkerDiedError
            The process has ended during the job.
        """
        self._source = None
        process.send(protocol.encode({"job": calls.encode_job(job), "clips": self._clips.state()}))
        while (message := self._receive(process)) is not None:
            name, arguments = message["call"], message["arguments"]
            if name == calls.INTERRUPTED:
                raise KeyboardInterrupt
            if name == calls.END:
                self._clips.add_state(*arguments)
                self._show_log(process)
                return
            if name == calls.REPORT:
                yield calls.parse_outcome(*arguments)
            process.send(protocol.encode({"value": self._value(name, arguments)}))
        self._end()
        raise WorkerDiedError("{} ({})", process.describe_end(), self._versions)

    def _value(self, name: str, arguments: list[Any]) -> Any:
        """Execute a call of the worker in this process; return its value."""
        if name == calls.BEGIN:
            self._source = None if arguments[0] is None else Path(arguments[0])
            if self._source is not None:
                interruption.check()
        elif name == calls.OF_PART:
            own, target, part = arguments
            return str(self._names.of_part(Path(own), Path(target), part))
        elif name == calls.IS_TAKEN:
            return self._names.is_taken(Path(arguments[0]))
        elif name == calls.CLAIM:
            return [str(path) for path in self._names.claim({Path(path): text for path, text in arguments[0].items()})]
        return None

    def _receive(self, process: WorkerProcess) -> Message:
        """Wait for a message. Forward termination requests: the worker stops as this process would."""
        is_forwarded = False
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    return self._inbox.get(timeout=_CHECK_SECONDS)
                process.limit_log()
                if not is_forwarded and interruption.is_requested():
                    is_forwarded = True
                    process.interrupt()
        except KeyboardInterrupt:  # the second request
            process.interrupt()
            self._end(_EXIT_LIMIT)
            raise

    def _show_log(self, process: WorkerProcess) -> None:
        if self._shows_log and (log := process.read_log()):
            print(*map(printable, log.splitlines()), sep="\n", file=sys.stderr, flush=True)

    def _end(self, seconds: float = 0.0) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(seconds)


class WorkerDiedError(MeshferryError):
    """The process of a job has ended."""


def _read(process: WorkerProcess, setup: bytes, inbox: queue.SimpleQueue[Message]) -> None:
    """Queue all messages of a process."""
    message = process.prepare(setup)
    inbox.put(message)
    while message is not None:
        inbox.put(message := process.receive())
