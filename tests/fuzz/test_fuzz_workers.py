"""The fuzzer's own watchdog: crashes and hangs are attributed to their case, and interrupted runs continue."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import pytest
from meshfuzz import memory, workers
from meshfuzz.cases import Case, CaseMaker
from meshfuzz.judge import Verdict
from meshfuzz.state import State, load_state
from meshfuzz.workers import Totals

pytest.importorskip("google.protobuf")

pytestmark = pytest.mark.any_version

CRASH, HANG = 5, 8


def harmful_judgement() -> workers.Judgement:
    """Return a judgement that ends its process at one case and never ends at another."""

    def judge(case: Case) -> Verdict:
        if case.number == CRASH:
            os._exit(3)
        while case.number == HANG:
            pass
        return Verdict("refused")

    return judge


@pytest.mark.slow
def test_crash_and_hang_are_found_at_their_case() -> None:
    totals = workers.run(1, range(12), seconds=60, jobs=1, judgement=harmful_judgement, hang_seconds=0.5)
    assert totals.cases == 12
    assert [(found.kind, found.number) for found in totals.findings] == [("crash", CRASH), ("hang", HANG)]
    assert totals.findings[0].data == CaseMaker(1).make(CRASH).data


def test_interrupted_run_continues_with_failed_pieces(tmp_path: Path) -> None:
    state = State(7, "timbermesh", piece=10)
    state.finish(range(10), Totals(cases=10), 1.0, failed=True)
    state.finish(range(10, 20), Totals(cases=10), 1.0, failed=False)
    state.save(tmp_path)
    resumed = load_state(tmp_path, 7, "timbermesh")
    assert resumed.pieces(25) == [range(10), range(20, 25)]
    resumed.finish(range(10), Totals(cases=10), 1.0, failed=False)
    assert resumed.pieces(25) == [range(20, 25)]
    assert resumed.cases == 20, "a repeated piece counts once"
    assert load_state(tmp_path, 8, "timbermesh").pieces(5) == [range(5)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets the high-water mark of a process be reset")
def test_peak_belongs_to_the_last_case() -> None:
    size = 50 * memory.MEBIBYTE
    before = memory.reset_peak()
    # Pages of the kernel: an allocator may have kept as many from earlier tests, and then no memory is added.
    with mmap.mmap(-1, size) as block:
        for start in range(0, size, mmap.PAGESIZE):
            block[start] = 1
    assert memory.peak() - before >= size * 0.9
    before = memory.reset_peak()
    assert memory.peak() - before < size / 2
