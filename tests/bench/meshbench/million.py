"""Go through a list of files with a pool that does nothing: what planning, state and summary cost.

    python tests/bench/meshbench/million.py FOLDER COUNT

The files are not there, so that nothing but the batch itself is measured. Prints seconds of processor time
and the peak of resident memory in bytes as one JSON object.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from load_package import load_package


class EmptyPool:
    """Workers that say at once that all went well."""

    def __init__(self, result: Any, status: Any) -> None:
        self._result, self._done = result, status.DONE

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        for loaded in tasks:
            task = loaded.task
            yield self._result(task, self._done, hash=f"{task.number:032x}", outputs=[task.target], seconds=0.001)


def main(folder: Path, count: int) -> dict[str, float]:
    package = load_package().__name__
    names = ("runner", "progress", "tasks", "sources", "state", "plan")
    batch = {name: importlib.import_module(f"{package}.cli.batch.{name}") for name in names}
    environment = importlib.import_module(f"{package}.cli.environment")
    conversion_settings = importlib.import_module(f"{package}.cli.conversions.settings")
    output_module = importlib.import_module(f"{package}.cli.output")
    listed = folder / "list.txt"
    with listed.open("w", encoding="utf-8") as stream:
        for number in range(count):
            stream.write(f"{folder}/project/set_{number // 100:05d}/props/thing_{number:07d}.mesh\n")
    output = folder / "out"
    output.mkdir()
    begun = time.process_time()
    head = batch["plan"].PlanHead(conversion_settings.Settings("blend"), "0")
    with batch["state"].locked(output), batch["progress"].Progress(output_module.Reporter(quiet=True), output) as bar:
        choice = batch["tasks"].SourceChoice(lists=[str(listed)], base=str(folder))
        found = batch["sources"].find_files(choice, (".mesh",), leave_out=output)
        plan = batch["plan"].make_plan(found, output, head)
        pool = EmptyPool(batch["tasks"].Result, batch["tasks"].Status)
        with batch["state"].State(output, plan) as state:
            totals = batch["runner"].Run(state, plan, output=output, progress=bar).convert(pool, count)
            state.compact()
        assert totals.text() and plan.count == count
    seconds = time.process_time() - begun
    return {"seconds": seconds, "peak": _own_peak() or environment.peak_memory()}


def _own_peak() -> int:
    """Return the peak of this program alone: what ``getrusage`` tells on Linux, it may have from who started it."""
    with contextlib.suppress(OSError, StopIteration), open("/proc/self/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024
    return 0


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]).absolute(), int(sys.argv[2]))))
