"""What the driver knows of one of its workers."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from ..tasks import LoadedTask
from . import messages
from .starting import WorkerProcess

START_LIMIT = 300.0
"""Seconds that a start may take, on a machine with much to do."""
_AHEAD = 2
"""Tasks that a worker has: one that it is at, and one that it finds as soon as it is done."""
_ALMOST_WORN = 64
"""Tasks before its last at which a process is better followed by one that has started meanwhile."""
_GROWTH = 128 * 2**20
"""Bytes by which the memory of a process may be more than at its start, and it is as good as a fresh one."""
_LIVES = 10
"""Times that its lifetime may pass at most before a process is replaced nevertheless."""
_SMALL = 4096
"""Bytes of content that fit into the line while nobody reads there: the driver must never wait for a busy worker."""


@dataclass(slots=True)
class Handed:
    """A task that was given to a worker."""

    loaded: LoadedTask
    attempts: int = 0
    """How often a process has ended over it."""
    is_sent: bool = False


@dataclass(slots=True)
class PoolWorker:
    """A process, the line to it and what it has to do."""

    number: int
    process: WorkerProcess
    span: int
    """Tasks after which it is replaced, unless it has not grown meanwhile; 0: it never is."""
    connection: Connection | None = None
    """None: it has not called yet."""
    handed: deque[Handed] = field(default_factory=deque)
    """The first is the one that it is at."""
    is_ready: bool = False
    is_alone: bool = False
    """Whether nothing may be given to it beside what it is at, which may end it."""
    is_spare: bool = False
    """Whether it waits to take the place of another."""
    described: str = ""
    """Versions of Meshferry, Python and Blender."""
    done: int = 0
    lifetime: int = 0
    """Tasks that it may do, as far as is known; 0: any number."""
    _memory: int = 0
    """The most that it had when it was ready, in bytes; 0: it does not know."""
    _since: float = field(default_factory=time.monotonic)
    """When it was started, or began with the first task."""

    def __post_init__(self) -> None:
        self.lifetime = self.span

    @property
    def has_room(self) -> bool:
        return len(self.handed) < (1 if self.is_alone else _AHEAD) and not self.is_worn and not self.is_spare

    @property
    def is_worn(self) -> bool:
        """Whether it gets no further tasks."""
        return 0 < self.lifetime <= self.done + len(self.handed)

    @property
    def is_almost_worn(self) -> bool:
        """Whether another should be about to start."""
        return self._is_worn_within(0)

    @property
    def seconds(self) -> float:
        """How long it has been starting, or at the first task."""
        return time.monotonic() - self._since

    def deadline(self, time_limit: float) -> float | None:
        """Return until when something has to come from it; None: whenever it likes."""
        if not self.is_ready:
            return self._since + START_LIMIT
        return self._since + time_limit if self.handed and time_limit else None

    def is_late(self, time_limit: float) -> bool:
        """Tell whether it takes too long; what it has just said is heard first."""
        deadline = self.deadline(time_limit)
        if deadline is None or time.monotonic() < deadline:
            return False
        return self.connection is None or not self.connection.poll()

    def hand(self, handed: Handed) -> None:
        """Give it a task; one that is not ready finds it once it is."""
        handed.is_sent = False
        self.handed.append(handed)
        if len(self.handed) == 1:
            self._begin()
        self._send()

    def make_ready(self, described: str, memory: int) -> None:
        """Note that it has started, and with how much memory; send what waits for that."""
        self.is_ready = True
        self.described = described
        self._memory = memory
        self._begin()
        self._send()

    def finish(self, memory: int) -> Handed:
        """Note that the first task is done, and the most memory that it has had so far; return the task."""
        handed = self.handed.popleft()
        self.done += 1
        self.is_alone = False
        if self._is_worn_within(_AHEAD) and self._has_kept_size(memory) and self.lifetime < _LIVES * self.span:
            self.lifetime += self.span
        self._begin()
        self._send()
        return handed

    def _is_worn_within(self, tasks: int) -> bool:
        """Tell whether another should be about to start once it has been given so many more tasks."""
        ahead = min(_ALMOST_WORN, self.span // 4) + tasks
        return 0 < self.lifetime <= self.done + len(self.handed) + ahead

    def _has_kept_size(self, memory: int) -> bool:
        return self._memory > 0 and memory <= self._memory + _GROWTH

    def _begin(self) -> None:
        if self.is_ready:
            self._since = time.monotonic()

    def _send(self) -> None:
        """Send the task that it is to be at, and the next where it need not be read at once."""
        if self.connection is None or not self.is_ready:
            return
        for place, handed in enumerate(self.handed):
            if not handed.is_sent and (place == 0 or len(handed.loaded.content or b"") <= _SMALL):
                handed.is_sent = True
                with contextlib.suppress(OSError):  # it has ended, which shows when it is listened to
                    messages.send_task(self.connection, handed.loaded)
