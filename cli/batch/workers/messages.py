"""What driver and worker say to each other: JSON, and the content of files as it is.

Nothing here is a Python object that is built from what comes in, so that neither side can run code in the other.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

from ..tasks import LoadedTask, Result, Status, Task, TaskKind
from .converting import Setup

_TASK = ("number", "root", "path", "member", "target", "size", "modified")
_RESULT = ("hash", "outputs", "warnings", "facts", "error", "seconds")


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first line of a worker's standard input."""

    number: int
    """By which the driver knows the worker again when it calls."""
    address: str
    family: str
    key: str
    """Hexadecimal; proves to each side that it talks to the other."""
    time_limit: float
    setup: Setup

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode("ascii") + b"\n"

    @staticmethod
    def parse(line: bytes) -> Greeting:
        found = json.loads(line)
        setup = found.pop("setup")
        for name in ("argv", "roots"):
            setup[name] = tuple(setup[name])
        return Greeting(**found, setup=Setup(**setup))


def send(connection: Connection, message: dict[str, Any]) -> None:
    """Send a message.

    Raises
    ------
    OSError
        The other side is gone.
    """
    connection.send_bytes(json.dumps(message, separators=(",", ":")).encode("ascii"))


def receive(connection: Connection) -> dict[str, Any]:
    """Wait for a message.

    Raises
    ------
    OSError, EOFError
        The other side is gone.
    """
    message: dict[str, Any] = json.loads(connection.recv_bytes())
    return message


def send_task(connection: Connection, loaded: LoadedTask) -> None:
    """Send a task, and behind it the content that it comes with."""
    message = {
        "task": [getattr(loaded.task, name) for name in _TASK],
        "kind": loaded.kind.value,
        "known_hash": loaded.known_hash,
        "has_content": loaded.content is not None,
    }
    send(connection, message)
    if loaded.content is not None:
        connection.send_bytes(loaded.content)


def receive_task(connection: Connection) -> LoadedTask:
    """Wait for a task."""
    message = receive(connection)
    content = connection.recv_bytes() if message["has_content"] else None
    task = Task(**dict(zip(_TASK, message["task"], strict=True)))
    return LoadedTask(task, TaskKind(message["kind"]), message["known_hash"], content)


def result_message(result: Result) -> dict[str, Any]:
    """Return the message of a result; its task is known to who waits for it."""
    return {"status": result.status.value} | {name: getattr(result, name) for name in _RESULT}


def result_of(message: dict[str, Any], loaded: LoadedTask, attempts: int) -> Result:
    """Return the result of a task out of its message."""
    kept = {name: message[name] for name in _RESULT}
    return Result(loaded.task, Status(message["status"]), **kept, attempts=attempts, kind=loaded.kind)
