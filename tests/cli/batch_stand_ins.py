"""Stand-ins for what surrounds the driver of a batch: a small plan, workers that only pretend, a mute listener."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def make_task(number: int, target: str = "", **values: Any) -> Any:
    """Return a work; of the fields that are left out, those of file number ``number``."""
    from meshferry.cli.batch.tasks import Task

    name = target or f"file{number}.blend"
    fields = {"root": 0, "path": f"file{number}.mesh", "member": "", "target": name, "size": 100, "modified": 1000}
    return Task(number=number, **(fields | values))


def plan_of(output: Path, tasks: Iterable[Any], *, root: Path | None = None, options: str = "options") -> Any:
    """Write a plan of these tasks and return it."""
    from meshferry.cli.batch import plan as plans
    from meshferry.cli.batch.tasks import STATE_FOLDER
    from meshferry.cli.conversions.settings import Settings

    folder = output / STATE_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with plans.new_plan(folder) as connection:
        for task in tasks:
            count += 1
            names = map(plans.to_sql, (task.path, task.member, task.target))
            plans.insert_tasks(connection, [(task.number + 1, task.root, *names, task.size, task.modified)])
            connection.execute("INSERT OR IGNORE INTO names VALUES (?)", (plans.name_hash(task.target),))
        settings = Settings("blend", collections=(options,))
        head = plans.PlanHead(settings, "0", (str(root or output),), count)
        plans.set_head(connection, head)
    return plans.Plan(folder)


@contextmanager
def opened(output: Path, tasks: Iterable[Any], *, options: str = "options", **values: Any) -> Iterator[Any]:
    """Lock an output folder and open its state for a plan of these tasks."""
    from meshferry.cli.batch.state import State, locked

    with locked(output), State(output, plan_of(output, tasks, options=options), **values) as state:
        yield state


@dataclass
class PretendedWorkers:
    """Write a small file for each task; ``fate`` may say something else of a work, or raise."""

    output: Path
    fate: Callable[[Any], Any] = lambda loaded: None
    asked: list[Any] = field(default_factory=list)
    ahead: int = 2

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        waiting: list[Any] = []
        for loaded in tasks:
            waiting.append(loaded)
            if len(waiting) > self.ahead:
                yield self._done(waiting.pop(0))
        for loaded in waiting:
            yield self._done(loaded)

    def _done(self, loaded: Any) -> Any:
        from meshferry.cli.batch.tasks import Result, Status

        self.asked.append(loaded)
        fated = self.fate(loaded)
        if fated is not None:
            return fated
        hashed = content_hash(loaded.task)
        if loaded.known_hash == hashed:
            return Result(loaded.task, Status.UNCHANGED, hash=hashed)
        place = self.output / loaded.task.target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"made of " + loaded.task.source.encode("utf-8", "surrogateescape"))
        return Result(
            loaded.task,
            Status.DONE,
            hash=hashed,
            outputs=[loaded.task.target],
            warnings=losses("Roof: no UV layer"),
            facts={"triangles": 12},
            seconds=0.5,
        )


def losses(*texts: str) -> list[Any]:
    """Return messages; the text before a colon is the item."""
    from meshferry.io_formats.core.messages import Kind, Message

    parts = [text.rpartition(": ") for text in texts]
    return [Message(Kind.LOSS, item, text, code="any-loss") for item, _, text in parts]


def content_hash(task: Any) -> str:
    """Return what stands for the content of a source: its path and its size, not its date."""
    told = f"{task.path}{task.member}{task.size}"
    return hashlib.blake2b(told.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@dataclass
class Heard:
    """Keeps what the driver tells."""

    begun: list[tuple[str, int]] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def begin(self, what: str, count: int) -> None:
        self.begun.append((what, count))

    def skipped(self, task: Any) -> None:
        self.left_alone.append(task.target)

    def ended(self, result: Any) -> None:
        self.results.append(result)
