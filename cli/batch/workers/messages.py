"""Messages between driver and worker: a line with a JSON header, then the bytes of a file if the header counts any.

Neither side builds Python objects from what it reads, so neither can run code in the other.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from ..tasks import LoadedTask, Result, Status, Task, TaskKind

_TASK = ("number", "root", "path", "member", "target", "size", "modified")
_RESULT = ("hash", "outputs", "warnings", "facts", "error", "seconds")
_SIZE = "content_size"


@dataclass(frozen=True, slots=True)
class Setup:
    """What all tasks of a batch have in common."""

    argv: tuple[str, ...]
    """Options of the conversion, as on the command line (``conversion_arguments``)."""
    extension: str
    """Type of file to write, as after ``--to``."""
    output: str
    """The output folder."""
    roots: tuple[str, ...]
    """The folders that ``Task.root`` counts."""
    plan: str = ""
    """Path of the plan file; without one, all names are free."""


def encode(header: dict[str, Any], content: bytes | None = None) -> bytes:
    """Return the bytes of one message."""
    if content is not None:
        header = header | {_SIZE: len(content)}
    return json.dumps(header, separators=(",", ":")).encode("ascii") + b"\n" + (content or b"")


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes | None]:
    """Wait for a message; return its header and its content.

    Raises
    ------
    EOFError
        The other side has closed the stream, perhaps within a message.
    ValueError
        This is not a message.
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


def encode_setup(setup: Setup, time_limit: float) -> bytes:
    """Return the message after which a worker gets tasks."""
    return encode({"setup": asdict(setup), "time_limit": time_limit})


def parse_setup(header: dict[str, Any]) -> tuple[Setup, float]:
    """Return the setup of a worker and the seconds that a task may take."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in header["setup"].items()
    }
    return Setup(**fields), header["time_limit"]


def encode_task(loaded: LoadedTask) -> bytes:
    """Return the message of a task."""
    header = {
        "task": [getattr(loaded.task, name) for name in _TASK],
        "kind": loaded.kind.value,
        "known_hash": loaded.known_hash,
    }
    return encode(header, loaded.content)


def parse_task(header: dict[str, Any], content: bytes | None) -> LoadedTask:
    """Return the task of a message."""
    task = Task(**dict(zip(_TASK, header["task"], strict=True)))
    return LoadedTask(task, TaskKind(header["kind"]), header["known_hash"], content)


def encode_result(result: Result, memory: int) -> bytes:
    """Return the message of a result; the driver knows its task.

    Parameters
    ----------
    memory:
        Peak memory of the worker in bytes; 0 if unknown.
    """
    header = {"status": result.status.value} | {name: getattr(result, name) for name in _RESULT}
    return encode(header | {"memory": memory})


def parse_result(header: dict[str, Any], loaded: LoadedTask, attempts: int) -> Result:
    """Return the result of a task from its message."""
    fields = {name: header[name] for name in _RESULT}
    return Result(loaded.task, Status(header["status"]), **fields, attempts=attempts, kind=loaded.kind)
