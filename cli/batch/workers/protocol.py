"""Messages between driver and worker: a JSON header on one line, then a file's content if the header has its size.

The driver sends the settings, then tasks: rows of the plan of a batch, or jobs of ``convert``. A worker answers a row
with its ``end``, which is the result. For a job it sends ``begin`` for each source that it adds to a file with others,
``names`` for the names of further files, an ``outcome`` for each file, and ``end``; it waits for the reply to all but
the last.

JSON instead of pickle: a message cannot execute code in the other process.
"""

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ....blender_data.addon_formats import offered_families
from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.core.messages import Message, distinct
from ....io_formats.partner_files import FileSet
from ...conversions.blender_formats import format_named
from ...conversions.convert_plan import ConversionJob, Outcome
from ...conversions.settings import Settings
from ...output import cause, plain
from ..tasks import SHARED_VALUES, TIME_LIMIT, LoadedTask, Result, Status, Task, TaskKind

_SIZE = "content_size"
_to_json = json.JSONEncoder(separators=(",", ":"), default=plain).encode


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings that all tasks of a run share."""

    settings: Settings
    output: str = ""
    """The output folder of a batch; empty for ``convert``."""
    roots: Sequence[str] = ()
    """Root folders, indexed by ``Task.root``."""
    plan: str = ""
    """Path of the plan file; empty if no names are reserved."""
    time_limit: float = TIME_LIMIT
    """Seconds of wall time for one file, after which its process is killed; 0 for no limit."""
    libraries: Sequence[str] = ()
    """Folders from which the driver imports modules."""
    addons: Sequence[tuple[str, str]] = field(default_factory=offered_families.files)
    """Modules of the driver's add-ons that offer formats, and their files."""


def encode(header: dict[str, Any], content: bytes | None = None) -> bytes:
    """Encode a message."""
    if content is not None:
        header = header | {_SIZE: len(content)}
    return _to_json(header).encode("ascii") + b"\n" + (content or b"")


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes | None]:
    """Wait for a message; return its header and its content.

    Raises
    ------
    EOFError, ValueError
        The other process closed the stream, possibly within a message, or the line is not a message.
    """
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header: dict[str, Any] = json.loads(line)
    size = header.pop(_SIZE, None)
    content = None if size is None else stream.read(size)
    if content is not None and len(content) < size:
        raise EOFError
    return header, content


def encode_task(loaded: LoadedTask) -> bytes:
    """Encode a task."""
    return encode({"task": loaded.task, "kind": loaded.kind.value, "known_hash": loaded.known_hash}, loaded.content)


def parse_task(header: dict[str, Any], content: bytes | None) -> LoadedTask:
    """Parse the message of a task."""
    return LoadedTask(Task(*header["task"]), TaskKind(header["kind"]), header["known_hash"], content)


def encode_result(result: Result, memory: int) -> bytes:
    """Encode a result without its task, which the driver has, with the peak memory of the worker in bytes."""
    header = {name: getattr(result, name) for name in SHARED_VALUES}
    warnings = [message.as_json() for message in distinct(result.warnings)]
    header |= {"outputs": result.outputs, "warnings": warnings}
    return encode(header | {"status": result.status.value, "memory": memory})


def parse_result(header: dict[str, Any], loaded: LoadedTask, attempts: int) -> Result:
    """Parse the message of a result."""
    fields = {name: header[name] for name in (*SHARED_VALUES, "outputs")}
    fields["warnings"] = list(map(Message.from_json, header["warnings"]))
    return Result(loaded.task, Status(header["status"]), **fields, attempts=attempts, kind=loaded.kind)


def encode_job(job: ConversionJob, clips: dict[str, Any]) -> bytes:
    """Encode a job of ``convert``, without content, and the state of the animations of the run."""
    fields = {name: getattr(job, name) for name in ("sources", "target", "folder", "is_named")}
    sets = [files._asdict() for files in job.sets.values()]
    return encode({"job": fields | {"format": job.format.name, "sets": sets}, "clips": clips})


def parse_job(data: dict[str, Any]) -> ConversionJob:
    """Parse the ``job`` of a message of :func:`encode_job`."""
    sets = [
        FileSet(Path(path), {part: Path(partner) for part, partner in partners.items()}, tuple(map(Path, levels)))
        for path, partners, levels in map(dict.values, data["sets"])
    ]
    return ConversionJob(
        tuple(map(Path, data["sources"])),
        Path(data["target"]),
        format_named(data["format"]),
        data["folder"] and Path(data["folder"]),
        data["is_named"],
        sets={files.path: files for files in sets},
    )


def encode_problem(problem: BaseException) -> list[Any]:
    """Return an exception as data for JSON, with its traceback for ``--debug``."""
    trace = "".join(traceback.format_exception(problem)).rstrip()
    return [cause(problem), isinstance(problem, MissingLibraryError), trace]


def parse_problem(data: list[Any]) -> MeshferryError:
    """Return the error of :func:`encode_problem`, with the type of the driver's own errors."""
    text, is_missing, trace = data
    problem = (MissingLibraryError if is_missing else MeshferryError)(text)
    problem.add_note(trace)
    return problem


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as data for JSON."""
    problem = outcome.problem and encode_problem(outcome.problem)
    return vars(outcome) | {"warnings": [message.as_json() for message in outcome.warnings], "problem": problem}


def parse_outcome(data: dict[str, Any]) -> Outcome:
    """Return the outcome of :func:`encode_outcome`."""
    outcome = Outcome(**data | {"source": Path(data["source"]), "target": Path(data["target"])})
    outcome.warnings = list(map(Message.from_json, data["warnings"]))
    outcome.files = list(map(Path, data["files"]))
    outcome.problem = data["problem"] and parse_problem(data["problem"])
    return outcome
