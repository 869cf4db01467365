"""Stand-ins for what surrounds the driver of a batch: a plan in memory, workers that only pretend, a mute listener."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def make_work(number: int, target: str = "", **values: Any) -> Any:
    """Return a work; of the fields that are left out, those of file number ``number``."""
    from meshferry.cli.batch.work import Work

    name = target or f"file{number}.blend"
    fields = {"root": 0, "path": f"file{number}.mesh", "member": "", "target": name, "size": 100, "modified": 1000}
    return Work(number=number, **(fields | values))


@dataclass
class PlanInMemory:
    """Works that are there at once."""

    made: list[Any]
    root: Path = Path("/sources")

    @property
    def count(self) -> int:
        return len(self.made)

    def works(self) -> Iterator[Any]:
        yield from self.made

    def path_of(self, work: Any) -> Path:
        return self.root / work.path


@dataclass
class PretendedWorkers:
    """Write a small file for each task; ``fate`` may say something else of a work, or raise."""

    output: Path
    fate: Callable[[Any], Any] = lambda task: None
    asked: list[Any] = field(default_factory=list)
    ahead: int = 2

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        waiting: list[Any] = []
        for task in tasks:
            waiting.append(task)
            if len(waiting) > self.ahead:
                yield self._done(waiting.pop(0))
        for task in waiting:
            yield self._done(task)

    def _done(self, task: Any) -> Any:
        from meshferry.cli.batch.work import Ended, Result

        self.asked.append(task)
        fated = self.fate(task)
        if fated is not None:
            return fated
        hashed = content_hash(task.work)
        if task.known_hash == hashed:
            return Result(task.work, Ended.UNCHANGED, hash=hashed)
        place = self.output / task.work.target
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"made of " + task.work.source.encode("utf-8", "surrogateescape"))
        return Result(
            task.work,
            Ended.DONE,
            hash=hashed,
            outputs=[task.work.target],
            warnings=["Roof: no UV layer"],
            facts={"triangles": 12},
            seconds=0.5,
        )


def content_hash(work: Any) -> str:
    """Return what stands for the content of a source: its path and its size, not its date."""
    told = f"{work.path}{work.member}{work.size}"
    return hashlib.blake2b(told.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


@dataclass
class Heard:
    """Keeps what the driver tells."""

    begun: list[tuple[str, int]] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def begin(self, what: str, count: int) -> None:
        self.begun.append((what, count))

    def skipped(self, work: Any) -> None:
        self.left_alone.append(work.target)

    def ended(self, result: Any) -> None:
        self.results.append(result)
