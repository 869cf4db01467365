"""Conversion jobs of ``convert`` inside a worker process. The driver names the files and counts renamed animations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk.file_names import PathTable
from ... import interruption
from ...conversions.blend_files import BlendSession
from ...conversions.conversion import Conversion
from ...conversions.convert_plan import ConversionJob
from ...conversions.scene_writing import Outcome
from ...conversions.settings import ConversionContext, FileNames
from ...output import cause
from . import conversion_messages, protocol
from .conversion_messages import BEGIN, CLAIM, END, INTERRUPTED, IS_TAKEN, OF_PART, REPORT, RunSetup

Call = Callable[..., Any]
"""Function that calls a function of the driver, given its name and arguments, and returns the value."""


class ConversionServer:
    """Runs the jobs of one run.

    Parameters
    ----------
    inbox:
        Jobs and values of calls.
    send:
        Sends a message to the driver.
    """

    def __init__(
        self,
        setup: RunSetup,
        session: BlendSession,
        inbox: SimpleQueue[tuple[dict[str, Any], bytes | None] | None],
        send: Callable[[bytes], None],
    ) -> None:
        sys.path += [folder for folder in setup.libraries if folder not in sys.path]
        self._inbox = inbox
        self._send = send
        context = ConversionContext(setup.settings, session, _NamesOfDriver(self._call))
        self._clips = context.clips
        self._conversion = Conversion(context, several=setup.several, on_source=self._begin)
        interruption.accept_forwarded()

    def run(self, job: ConversionJob, clips: Mapping[str, Any]) -> bool:
        """Run one job; return whether another one may follow, which is not so after an interruption."""
        self._clips.add_state(clips)
        try:
            self._report_all(job)
        except KeyboardInterrupt:
            self._send(_call(INTERRUPTED))
            return False
        self._send(_call(END, self._clips.state()))
        return True

    def _report_all(self, job: ConversionJob) -> None:
        try:
            for outcome in self._conversion.run(job):
                self._report(outcome)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (scripts of importers may call exit)
            for source in job.sources:
                self._report(Outcome(source, job.target, problem=MeshferryError(cause(problem))))

    def _report(self, outcome: Outcome) -> None:
        self._call(REPORT, conversion_messages.encode_outcome(outcome))

    def _begin(self, source: Path | None) -> None:
        self._call(BEGIN, None if source is None else str(source))

    def _call(self, name: str, *arguments: Any) -> Any:
        self._send(_call(name, *arguments))
        reply = self._inbox.get()
        if reply is None:
            raise KeyboardInterrupt
        return reply[0]["value"]


def _call(name: str, *arguments: Any) -> bytes:
    return protocol.encode({"call": name, "arguments": arguments})


class _NamesOfDriver(FileNames):
    """Asks the driver for the names of files, since the driver knows all files of the run."""

    def __init__(self, call: Call) -> None:
        super().__init__(PathTable())
        self._call = call

    def of_part(self, own: Path, target: Path, name: str) -> Path:
        return Path(self._call(OF_PART, str(own), str(target), name))

    def is_taken(self, path: Path) -> bool:
        return bool(self._call(IS_TAKEN, str(path)))

    def claim(self, companions: Mapping[Path, str]) -> list[Path]:
        return [Path(path) for path in self._call(CLAIM, {str(path): text for path, text in companions.items()})]
