"""What batches are measured by: a library of small files, a list of a million, the memory of a worker.

The peers are a loop over the library's API, and the start of Blender as a Python module, which a batch must not pay
for each file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from .library import ALL, MESHES, make_library
from .measure import Row, Task, in_turns, ratio_row

FILES = 2_000
FEW, MANY = 10_000, 1_000_000
"""Lines of the lists that are compared."""
IMPORTS, SETTLED = 5_000, 500
"""Files that one worker imports, and those after which its memory should have settled."""
MEBIBYTE = 2**20

_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled modules are kept, as of everything installed: the peer's are, too."""

EXCHANGED = 117
"""Files of the library that go to glTF, as many as in a real project."""

OPTIONS = f"""\
to glTF         {EXCHANGED} files of the library; the peer is one Blender that imports and exports each file in a loop
library         {FILES:,} files of 144 triangles or 8 joints, all formats in turns, in folders of 100; driver and worker
                included, from the start of the command to its end. Format to format: all with meshes to .mesh
bare loop       the same files format to format in one Python (api_loop.py), with its start: each file is read, fitted
                to the format, encoded and written by the functions that a worker calls, to the same bytes; without
                plan, journal, checksums, facts, time limits, and a process of its own for what crashes
two workers     batches with two workers : with one, divided by the same of two bare loops, each over every second file
start           python -c "import bpy", from the start of the process to its end
million         processor time of planning, journal and summary of a list of files that are not there, with a pool
                that does nothing
memory          resident memory of the one worker, recycling off, after {SETTLED} and {IMPORTS:,} files to .blend"""


def library(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare batches of small files with a bare loop and with starts of Blender, and two workers with one."""
    with _empty(folder / "library") as place:
        make_library(place / "meshes", FILES, MESHES)
        make_library(place / "all", FILES, ALL)

        def batch(source: str, to: str, jobs: int) -> Task:
            output = place / f"{source}_{to}_{jobs}"

            def run() -> None:
                _batch(place / source, to, output, "--jobs", str(jobs))

            def check() -> None:
                made = sum(1 for path in output.rglob(f"*.{to}") if path.is_file())
                assert made == FILES, f"{made} of {FILES} files were written"

            return Task(output.name, run, lambda: shutil.rmtree(output, ignore_errors=True), check)

        looped = place / "looped"

        def bare_loops(count: int) -> None:
            program = Path(__file__).with_name("api_loop.py")
            command = [sys.executable, str(program), str(place / "meshes"), str(looped)]
            loops = [
                subprocess.Popen([*command, str(start), str(count)], stdout=subprocess.DEVNULL, env=_ENVIRONMENT)
                for start in range(count)
            ]
            statuses = [loop.wait() for loop in loops]
            assert not any(statuses), statuses

        def expect_same() -> None:
            made = _contents(looped)
            assert len(made) == FILES, f"{len(made)} of {FILES} files were written"
            assert made == _contents(place / "meshes_mesh_1"), "the batch has written other bytes"

        starts = in_turns([Task("start", _start)], max(rounds, 5))
        seconds = in_turns(
            [
                batch("meshes", "mesh", 1),
                Task("loop", lambda: bare_loops(1), lambda: shutil.rmtree(looped, ignore_errors=True), expect_same),
                batch("meshes", "mesh", 2),
                Task("halves", lambda: bare_loops(2), lambda: shutil.rmtree(looped, ignore_errors=True), expect_same),
                batch("all", "blend", 1),
                batch("all", "blend", 2),
            ],
            min(rounds, 3),
        )
    seconds["50 starts"] = [50 * one for one in starts["start"]]
    return [
        ratio_row(f"batch : bare loop over the API, same {FILES:,} files", "meshes_mesh_1", "loop", 1.25, seconds),
        ratio_row(f"{FILES:,} files to .blend, 1 worker : 50 starts", "all_blend_1", "50 starts", 1.0, seconds),
        _two_workers("format to format", "meshes_mesh", seconds),
        _two_workers("to .blend", "all_blend", seconds),
    ]


def _two_workers(name: str, batch: str, seconds: dict[str, list[float]]) -> Row:
    """Return how much less two workers gain than two processes can on this machine, whose cores share much."""
    ours = ratio_row("", f"{batch}_2", f"{batch}_1", None, seconds)
    control = ratio_row("", "halves", "loop", None, seconds)
    assert ours.value is not None
    assert control.value is not None
    detail = f"{ours.value:.2f} : {control.value:.2f}"
    return Row(f"{name}, 2 workers : 1, to 2 bare loops : 1", ours.value / control.value, 1.1, detail, ours.data)


def exchange(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare a batch to glTF on two workers with a plain loop in one Blender."""
    with _empty(folder / "exchange") as place:
        source, output = place / "files", place / "out"
        make_library(source, EXCHANGED)

        def plain_loop() -> None:
            program = Path(__file__).with_name("plain_loop.py")
            command = [sys.executable, str(program), str(source), str(output)]
            subprocess.run(command, check=True, capture_output=True, env=_ENVIRONMENT)

        def fresh() -> None:
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir()

        def check() -> None:
            made = len(list(output.rglob("*.glb")))
            assert made == EXCHANGED, f"{made} of {EXCHANGED} files were written"

        seconds = in_turns(
            [
                Task("batch", lambda: _batch(source, "glb", output, "--jobs", "2"), fresh, check),
                Task("loop", plain_loop, fresh, check),
            ],
            min(rounds, 3),
        )
    return [ratio_row(f"{EXCHANGED} files to .glb, 2 workers : a plain loop", "batch", "loop", 1 / 1.5, seconds)]


def million(_triangles: int, _rounds: int, folder: Path) -> list[Row]:
    """Measure the processor time of a file in a list of a million, and look at the memory."""
    with _empty(folder / "million") as place:
        few, many = _list(place, FEW), _list(place, MANY)
    short, long = (1e6 * run["seconds"] / count for run, count in ((few, FEW), (many, MANY)))
    return [
        Row(f"processor time of a file of {MANY:,} (µs)", long, 250, f"{FEW:,}: {short:.0f}"),
        Row(
            f"peak memory, {MANY:,} files (MiB)", many["peak"] / MEBIBYTE, 500, f"{FEW:,}: {few['peak'] / MEBIBYTE:.0f}"
        ),
    ]


def memory(_triangles: int, _rounds: int, folder: Path) -> list[Row]:
    """Watch the memory of one worker over thousands of imports."""
    with _empty(folder / "memory") as place:
        make_library(place / "files", IMPORTS, ALL)
        seen = _watched(place / "files", place / "out")
    settled = next(resident for done, resident in seen if done >= SETTLED)
    last = seen[-1][1]
    detail = f"{settled / MEBIBYTE:.0f} MiB after {SETTLED}, {last / MEBIBYTE:.0f} MiB after {seen[-1][0]:,}"
    return [Row(f"growth of a worker over {IMPORTS:,} imports (MiB)", (last - settled) / MEBIBYTE, 100, detail)]


@contextmanager
def _empty(folder: Path) -> Iterator[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the meshes below a folder, by their path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.mesh") if path.is_file()}


def _start() -> None:
    program = "import bpy, os; os._exit(0)"  # its shutting down may hang, and is not what a batch saves
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=_ENVIRONMENT)


def _command(source: Path, to: str, output: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "meshferry", "batch", str(source), "--to", to, "-o", str(output)]
    return [*command, "--clashes", "number", "--quiet", *options]


def _batch(source: Path, to: str, output: Path, *options: str) -> None:
    command = _command(source, to, output, *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_ENVIRONMENT)
    if done.returncode:
        raise SystemExit(f"The batch ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _list(place: Path, count: int) -> dict[str, Any]:
    """Plan a list and go through it in a process of its own; return its time and its peak of memory."""
    program = Path(__file__).with_name("million.py")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        done = subprocess.run(
            [sys.executable, str(program), folder, str(count)], capture_output=True, text=True, check=True
        )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _watched(source: Path, output: Path) -> list[tuple[int, int]]:
    """Run a batch with one worker; return again and again how many files were done and the worker's memory."""
    seen: list[tuple[int, int]] = []
    command = _command(source, "blend", output, "--jobs", "1", "--recycle", "0")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as batch:
        driver = psutil.Process(batch.pid)
        while batch.poll() is None:
            time.sleep(0.2)
            done = sum(1 for path in output.rglob("*.blend") if not path.name.startswith("."))
            try:
                workers = [child.memory_info().rss for child in driver.children(recursive=True)]
            except psutil.Error:
                break
            if workers:
                seen.append((done, max(workers)))
    if batch.returncode:
        raise SystemExit(f"The batch ended with {batch.returncode}")
    return seen


GROUPS = {"library": library, "exchange": exchange, "million": million, "memory": memory}
