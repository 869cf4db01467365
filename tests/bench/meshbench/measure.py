"""Fair times and honest tables.

What is compared runs in turns in one process, so that a slow minute of the machine hits both sides. One round
warms up and is thrown away; medians of the others count.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """One thing to time: ``prepare`` brings the scene to its start, ``work`` is timed, ``check`` proves it was done."""

    name: str
    work: Callable[[], None]
    prepare: Callable[[], None] = lambda: None
    check: Callable[[], None] = lambda: None


def in_turns(tasks: Sequence[Task], rounds: int) -> dict[str, list[float]]:
    """Run all tasks in turns, once to warm up and ``rounds`` times for the record; return seconds by name."""
    seconds: dict[str, list[float]] = {task.name: [] for task in tasks}
    for turn in range(rounds + 1):
        for task in tasks:
            task.prepare()
            gc.collect()
            started = time.perf_counter()
            task.work()
            elapsed = time.perf_counter() - started
            task.check()
            if turn:
                seconds[task.name].append(elapsed)
    return seconds


@dataclass(frozen=True)
class Row:
    """One line of the table: a measured value, and the limit that it must not exceed (None: for information)."""

    name: str
    value: float | None
    """None: not measured, for the reason in ``detail``."""
    limit: float | None
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def missed(self) -> bool:
        # Rounded like the printed value, so that "0.60 of 0.60" does not count as a miss.
        return self.limit is not None and self.value is not None and round(self.value, 2) > self.limit

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "missed": self.missed}


def ratio_row(name: str, ours: str, peer: str, limit: float | None, seconds: dict[str, list[float]]) -> Row:
    """Return a row of two medians."""
    mine, theirs = statistics.median(seconds[ours]), statistics.median(seconds[peer])
    detail = f"{mine:.3f} s : {theirs:.3f} s"
    return Row(name, mine / theirs, limit, detail, {ours: seconds[ours], peer: seconds[peer]})


def reset_peak() -> int:
    """Reset the process's high-water mark of resident memory (Linux only); return the memory in use."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")
    return memory_of("VmRSS")


def memory_of(key: str) -> int:
    """Return a figure of ``/proc/self/status`` in bytes, such as ``VmHWM``."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    width = max((len(row.name) for row in rows), default=0)
    lines = [f"{'':{width}}  {'value':>6}  {'limit':>6}         medians"]
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.2f}"
        value = "" if row.value is None else f"{row.value:.2f}"
        verdict = "" if not limit or not value else "MISS" if row.missed else "ok"
        lines.append(f"{row.name:{width}}  {value:>6}  {limit:>6}  {verdict:4}   {row.detail}")
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """Name what was measured on; a figure without its machine is none."""
    import psutil

    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as text:
            model = next((line.split(":", 1)[1].strip() for line in text if line.startswith("model name")), model)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
        "load before": f"{load:.2f}",
    }
