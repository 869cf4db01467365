"""Worker processes that run many cases each, watched from outside: a hang or a crash is a finding, not an end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from . import memory
from .cases import CaseMaker, from_file
from .judge import Finding, Judge, Verdict

HANG_SECONDS = 30.0
ADDRESS_SPACE = 6 * 1024**3
_REPORT_EVERY = 0.5
_CASES_A_WORKER = 20_000
"""Then a fresh process takes over, so that what leaks shows and does not pile up."""


@dataclass
class Totals:
    """What happened so far, over all workers."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    largest: tuple[int, int] = (0, -1)
    findings: list[Finding] = field(default_factory=list)
    leaked: int = 0
    """Largest growth of a worker over its life, in bytes."""


def _work(pipe: Connection, clock: Any, seed: int, only: str, numbers: range) -> None:
    """Run cases in a process of its own; ``clock``: the running case, when it began, how many are unreported."""
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        maker = CaseMaker(seed, only)
        judge = Judge()
        memory.limit_address_space(ADDRESS_SPACE)
        totals = Totals()
        reported = time.monotonic()
        first = memory.reset_peak()
        for number in numbers:
            clock[0], clock[1], clock[2] = number, time.monotonic(), totals.cases
            case = maker.make(number)
            clock[1] = time.monotonic()
            verdict = judge.judge(case)
            clock[1] = 0.0
            count(totals, number, verdict)
            if verdict.finding or time.monotonic() - reported > _REPORT_EVERY:
                pipe.send(totals)
                totals, reported = Totals(), time.monotonic()
        judge.give_back()
        totals.leaked = memory.reset_peak() - first
        pipe.send(totals)
        pipe.send("done")


def count(totals: Totals, number: int, verdict: Verdict) -> None:
    totals.cases += 1
    totals.outcomes[verdict.finding.kind if verdict.finding else verdict.outcome] += 1
    totals.slowest = max(totals.slowest, (verdict.seconds, number))
    totals.largest = max(totals.largest, (verdict.growth, number))
    if verdict.finding:
        totals.findings.append(verdict.finding)


def add(totals: Totals, more: Totals) -> None:
    totals.cases += more.cases
    totals.outcomes += more.outcomes
    totals.slowest = max(totals.slowest, more.slowest)
    totals.largest = max(totals.largest, more.largest)
    totals.leaked = max(totals.leaked, more.leaked)
    totals.findings += more.findings


class _Worker:
    """One process and the cases it has left: every ``step``-th from ``start`` on."""

    def __init__(self, seed: int, only: str, numbers: range) -> None:
        self.seed, self.only, self.numbers = seed, only, numbers
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe(duplex=False)
        self.clock = context.Array("d", [float(self.numbers.start), 0.0, 0.0], lock=False)
        mine = self.numbers[:_CASES_A_WORKER]
        self.process = context.Process(target=_work, args=(other, self.clock, self.seed, self.only, mine), daemon=True)
        self.process.start()
        other.close()

    def resume_after(self, number: int) -> bool:
        """Go on behind a case that ended the process; tell whether anything is left."""
        self.numbers = range(number + self.numbers.step, self.numbers.stop, self.numbers.step)
        if self.numbers:
            self.start()
        return bool(self.numbers)

    def stuck(self) -> bool:
        began = self.clock[1]  # read once: the worker sets it to 0 whenever a case ends
        return began > 0 and time.monotonic() - began > HANG_SECONDS

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(seed: int, cases: int, seconds: float, jobs: int, only: str = "", tell: Any = None) -> Totals:
    """Run cases ``0 … cases - 1`` of a seed, or as many as the seconds allow, in ``jobs`` processes."""
    totals = Totals()
    ends = time.monotonic() + seconds
    workers = [_Worker(seed, only, range(k, cases, jobs)) for k in range(min(jobs, cases))]
    try:
        while workers and time.monotonic() < ends:
            for ready in wait([worker.pipe for worker in workers], timeout=0.5):
                worker = next(w for w in workers if w.pipe is ready)
                _listen(worker, workers, totals)
            for worker in [w for w in workers if w.stuck()]:
                _lost(worker, workers, totals, "hang", f"no end after {HANG_SECONDS:.0f} s")
            if tell:
                tell(totals)
    finally:
        for worker in workers:
            worker.end()
    return totals


def _listen(worker: _Worker, workers: list[_Worker], totals: Totals) -> None:
    try:
        said = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join(5)
        _lost(worker, workers, totals, "crash", f"the process ended with {worker.process.exitcode}")
        return
    if said != "done":
        add(totals, said)
        return
    worker.process.join(5)
    last = worker.numbers[:_CASES_A_WORKER][-1]
    if not worker.resume_after(last):
        workers.remove(worker)


def _lost(worker: _Worker, workers: list[_Worker], totals: Totals, kind: str, detail: str) -> None:
    number = int(worker.clock[0])
    worker.end()
    case = CaseMaker(worker.seed, worker.only).make(number)
    unreported = int(worker.clock[2])
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
