"""Worker processes that run many cases each, watched from outside: a hang or a crash is a finding, not the end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import psutil

from . import memory
from .cases import Case, CaseMaker, from_file
from .judge import Finding, Judge, Verdict, sampled_depth

HANG_SECONDS = 30.0
"""Processor time of one case: elapsed time says nothing on a machine that is busy with other work."""
BLOCKED_SECONDS = 900.0
"""Elapsed time of one case, for a worker that waits and takes no processor time."""
ADDRESS_SPACE = 6 * 1024**3
_REPORT_EVERY = 0.5

Judgement = Callable[[Case], Verdict]


@dataclass
class Totals:
    """Results so far, over all workers."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    largest: tuple[int, int] = (0, -1)
    findings: list[Finding] = field(default_factory=list)
    leaked: int = 0
    """Largest growth of a worker over its life, in bytes."""

    def count(self, number: int, verdict: Verdict) -> None:
        """Add one case."""
        self.cases += 1
        self.outcomes[verdict.finding.kind if verdict.finding else verdict.outcome] += 1
        self.slowest = max(self.slowest, (verdict.seconds, number))
        self.largest = max(self.largest, (verdict.growth, number))
        if verdict.finding:
            self.findings.append(verdict.finding)

    def add(self, more: Totals) -> None:
        """Add the results of other cases."""
        self.cases += more.cases
        self.outcomes += more.outcomes
        self.slowest = max(self.slowest, more.slowest)
        self.largest = max(self.largest, more.largest)
        self.leaked = max(self.leaked, more.leaked)
        self.findings += more.findings


def sampled_judgement() -> Judgement:
    """Return the judgement of a long run: all cases, each with its share of the steps."""
    judge = Judge()
    return lambda case: judge.judge(case, sampled_depth(case.number))


def _work(
    pipe: Connection, clock: Any, seed: int, only: str, numbers: range, judgement: Callable[[], Judgement]
) -> None:
    """Run cases in a process of its own.

    ``clock``: the number of the running case, its start (elapsed and processor time; 0: no case is running), and the
    number of cases that are not reported yet.
    """
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        maker = CaseMaker(seed, only)
        judge = judgement()
        memory.limit_address_space(ADDRESS_SPACE)
        totals = Totals()
        reported = time.monotonic()
        first = memory.reset_peak()
        for number in numbers:
            clock[0], clock[3] = number, totals.cases
            case = maker.make(number)
            clock[2], clock[1] = time.process_time(), time.monotonic()
            verdict = judge(case)
            clock[1] = 0.0
            totals.count(number, verdict)
            if verdict.finding or time.monotonic() - reported > _REPORT_EVERY:
                pipe.send(totals)
                totals, reported = Totals(), time.monotonic()
        totals.leaked = max(0, memory.reset_peak() - first)
        pipe.send(totals)
        pipe.send("done")


class _Worker:
    """One process and the cases that it has left."""

    def __init__(self, seed: int, only: str, numbers: range, judgement: Callable[[], Judgement]) -> None:
        self.seed, self.only, self.numbers, self.judgement = seed, only, numbers, judgement
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe(duplex=False)
        self.clock = context.Array("d", [float(self.numbers.start), 0.0, 0.0, 0.0], lock=False)
        arguments = (other, self.clock, self.seed, self.only, self.numbers, self.judgement)
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other.close()

    def resume_after(self, number: int) -> bool:
        """Continue behind a case that ended the process; return whether any is left."""
        self.numbers = range(number + self.numbers.step, self.numbers.stop, self.numbers.step)
        if self.numbers:
            self.start()
        return bool(self.numbers)

    def is_stuck(self, limit: float) -> bool:
        """Return whether the running case has taken too long."""
        began = self.clock[1]  # read once: the worker sets it to 0 whenever a case ends
        if began <= 0 or time.monotonic() - began < limit:
            return False
        with contextlib.suppress(psutil.Error):
            used = psutil.Process(self.process.pid).cpu_times()
            return used.user + used.system - self.clock[2] > limit or time.monotonic() - began > BLOCKED_SECONDS
        return False

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(
    seed: int,
    numbers: range,
    *,
    seconds: float,
    jobs: int,
    only: str = "",
    progress: Callable[[Totals], None] | None = None,
    judgement: Callable[[], Judgement] = sampled_judgement,
    hang_seconds: float = HANG_SECONDS,
) -> Totals:
    """Run the cases with these numbers, or as many as the seconds allow, in ``jobs`` processes."""
    totals = Totals()
    ends = time.monotonic() + seconds
    workers = [_Worker(seed, only, numbers[k::jobs], judgement) for k in range(min(jobs, len(numbers)))]
    try:
        while workers and time.monotonic() < ends:
            for ready in wait([worker.pipe for worker in workers], timeout=0.5):
                worker = next(w for w in workers if w.pipe is ready)
                _receive(worker, workers, totals)
            for worker in [w for w in workers if w.is_stuck(hang_seconds)]:
                _discard(worker, workers, totals, "hang", f"no end after {hang_seconds:.0f} s")
            if progress:
                progress(totals)
    finally:
        for worker in workers:
            worker.end()
    return totals


def _receive(worker: _Worker, workers: list[_Worker], totals: Totals) -> None:
    """Add the results that a worker sent, or note its crash."""
    try:
        received = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join(5)
        _discard(worker, workers, totals, "crash", f"the process ended with {worker.process.exitcode}")
        return
    if received != "done":
        totals.add(received)
        return
    worker.process.join(5)
    worker.end()
    workers.remove(worker)


def _discard(worker: _Worker, workers: list[_Worker], totals: Totals, kind: str, detail: str) -> None:
    """End a worker whose case does not end or ended the process; a fresh one takes the cases behind it."""
    number = int(worker.clock[0])
    worker.end()
    case = CaseMaker(worker.seed, worker.only).make(number)
    unreported = int(worker.clock[3])
    totals.cases += 1 + unreported
    totals.outcomes[kind] += 1
    totals.outcomes["passed, unreported"] += unreported
    totals.findings.append(Finding(kind, f"{kind}: {detail}", detail, number, case.recipe, case.data))
    if not worker.resume_after(number):
        workers.remove(worker)


def alone(paths: list[str], times: int = 1) -> list[Verdict]:
    """Judge files in a fresh process, each several times; the fastest counts, since other work may slow one down."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        verdicts = []
        for path in paths:
            runs = pool.map_async(_judge_file, [path] * times, chunksize=1).get(HANG_SECONDS * (times + 1))
            verdicts.append(min(runs, key=lambda verdict: (verdict.finding is not None, verdict.seconds)))
    return verdicts


def _judge_file(path: str) -> Verdict:
    from pathlib import Path

    from .checkout import load_package

    load_package()
    return Judge().judge(from_file(Path(path)))


def default_jobs() -> int:
    return max(1, min(8, os.cpu_count() or 1))
