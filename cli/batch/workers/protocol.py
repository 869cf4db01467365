"""Messages between driver and worker: a JSON header on one line, then a file's content if the header has its size.

JSON instead of pickle: a message cannot execute code in the other process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from ....io_formats.core.messages import Message, distinct
from ...conversions.settings import Settings
from ...output import plain
from ..tasks import SHARED_VALUES, TIME_LIMIT, LoadedTask, Result, Status, Task, TaskKind

_SIZE = "content_size"
_to_json = json.JSONEncoder(separators=(",", ":"), default=plain).encode


@dataclass(frozen=True, slots=True)
class Setup:
    """Settings that all tasks of a batch share."""

    settings: Settings
    output: str
    """The output folder."""
    roots: Sequence[str]
    """Root folders, indexed by ``Task.root``."""
    plan: str = ""
    """Path of the plan file; empty if no names are reserved."""
    time_limit: float = TIME_LIMIT
    """Seconds of wall time for one file, after which its process is killed; 0 for no limit."""


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
