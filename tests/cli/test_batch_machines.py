"""Batches on a dask cluster, one machine of which dies."""

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

import pytest
from batch_mills import TO, command, journal_lines, run, shard_journals, write_library, written
from meshferry.cli.batch import shard as machines
from meshferry.cli.batch.tasks import BatchSettings, Task
from meshferry.io_formats.core.errors import MeshferryError

pytestmark = pytest.mark.any_version

PATIENCE = 60
"""Seconds; everything takes a few, on a machine that does nothing else."""


def until(condition, what):
    """Wait for something and return it."""
    ends = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < ends, f"{what} did not happen"
        time.sleep(0.01)
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return a folder of models, and what they become on one machine."""
    folder = tmp_path_factory.mktemp("library")
    write_library(folder / "lib", 12)
    done = run("batch", folder / "lib", "--to", TO, "-o", folder / "alone", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    outputs = written(folder / "alone")
    assert len(outputs) == 12
    return folder / "lib", outputs


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Start a dask scheduler and two workers with a thread each; return its address, its process and theirs."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("dask.distributed is absent: pip install distributed")
    folder = tmp_path_factory.mktemp("cluster")
    found = folder / "scheduler.json"
    temporary = tmp_path_factory.mktemp("temporary")
    own = {"DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False"} | os.environ | {"TMPDIR": str(temporary)}
    with ExitStack() as stack:

        def start(*arguments):
            log = stack.enter_context((folder / f"{len(os.listdir(folder))}.log").open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard", "--scheduler-file", str(found)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=own,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        until(lambda: found.exists() and found.read_text().endswith("}"), "the scheduler's start")
        options = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        workers = [start("worker", *options) for _ in range(2)]
        yield json.loads(found.read_text())["address"], scheduler, workers


def batch_on(cluster, lib, out):
    """Start a batch on the cluster, as a process of its own."""
    arguments = [
        lib,
        "--to",
        TO,
        "-o",
        out,
        "--json",
        "--worker-command",
        shlex.join(command()),
        "--scheduler",
        cluster[0],
    ]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command("batch", *arguments), **pipes)


def until_a_shard_runs(workers, driver):
    """Return a worker that has a shard under way."""
    psutil = pytest.importorskip("psutil")

    def busy():
        assert driver.poll() is None, "the batch ended before anything could happen to it"
        for worker in workers:
            with suppress(psutil.Error):  # it has just ended
                if any("--range" in child.cmdline() for child in psutil.Process(worker.pid).children()):
                    return worker
        return None

    return until(busy, "the start of a shard")


def until_no_shard_runs(out):
    psutil = pytest.importorskip("psutil")

    def idle():
        words = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        return not any("--range" in line and str(out) in line for line in words)

    until(idle, "the end of the shards")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
def test_every_file_is_done_though_a_machine_dies(library, cluster, tmp_path):
    lib, outputs = library
    out = tmp_path / "out"
    driver = batch_on(cluster, lib, out)
    try:
        until_a_shard_runs(cluster[2], driver).send_signal(signal.SIGKILL)
        said, complaints = driver.communicate(timeout=PATIENCE)
    finally:
        driver.kill()
    assert driver.returncode == 0, complaints
    entries = [json.loads(line) for line in said.splitlines()]
    assert entries[-1]["summary"]["done"] == 12 and entries[-1]["summary"]["files"] == 12
    assert written(out) == outputs
    targets = [line["target"] for line in journal_lines(out)]
    assert sorted(targets) == sorted(outputs)
    assert all(line["result"] == "done" for line in journal_lines(out))
    # What the dead machine was at has ended with it, and left nothing that would be taken over again.
    until_no_shard_runs(out)
    assert shard_journals(out) == []


@pytest.mark.slow
def test_a_batch_outlives_its_scheduler(library, cluster, tmp_path):
    """Runs last, since it leaves the cluster unusable."""
    lib, outputs = library
    out = tmp_path / "out"
    address, scheduler, workers = cluster
    driver = batch_on(cluster, lib, out)
    try:
        until_a_shard_runs(workers, driver)
        scheduler.kill()
        _, complaints = driver.communicate(timeout=PATIENCE)
    finally:
        driver.kill()
    assert driver.returncode in {1, 2}
    (complaint,) = complaints.decode().splitlines()
    assert f"The dask scheduler at {address} has gone away (dask.distributed " in complaint
    assert "run the same command again to continue" in complaint
    # Its workers end their shards or give up; either way the next run goes on, here without a cluster.
    until_no_shard_runs(out)
    again = run("batch", lib, "--to", TO, "-o", out, "--jobs", 1)
    assert again.returncode == 0, again.stderr
    assert written(out) == outputs and shard_journals(out) == []
    assert sorted(line["target"] for line in journal_lines(out)) == sorted(outputs)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tls://127.0.0.1:9"])
def test_a_scheduler_that_is_not_there_is_named(tmp_path, meshferry, monkeypatch, address):
    """Also for an address that needs certificates, of which dask's settings name none."""
    pytest.importorskip("distributed", reason="dask.distributed is absent")
    monkeypatch.setattr(machines, "_CONNECT_SECONDS", 1)
    write_library(tmp_path / "lib", 1)
    arguments = ["--to", TO, "-o", tmp_path / "out", "--scheduler", address]
    done = meshferry("batch", tmp_path / "lib", *arguments)
    assert done.status == 2 and written(tmp_path / "out") == {}
    (complaint,) = done.err.splitlines()
    assert complaint.startswith(f"No dask scheduler answers at {address}: ")
    assert "(dask.distributed " in complaint


def test_without_dask_it_says_how_to_get_it(tmp_path, meshferry, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    write_library(tmp_path / "lib", 1)
    done = meshferry("batch", tmp_path / "lib", "--to", TO, "-o", tmp_path / "out", "--scheduler", "tcp://x:1")
    assert done.status == 2 and "pip install" in done.err and "distributed" in done.err


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (FileNotFoundError(2, "No such file"), "A dask worker has no command 'mf --x': install Meshferry there"),
        (subprocess.CalledProcessError(2, "mf", b"", b"one\nno plan here.\n"), "could not begin: no plan here. The"),
        (subprocess.CalledProcessError(1, "mf", b"", b""), "could not begin: it printed nothing. The"),
        (PermissionError(13, "Permission denied"), "could not start a shard: PermissionError: .*Permission denied"),
    ],
)
def test_what_stops_every_shard_ends_the_run_in_words(tmp_path, problem, said):
    pytest.importorskip("distributed", reason="dask.distributed is absent")
    pool = machines.DaskPool(BatchSettings(scheduler="tcp://x:1", worker_command="mf --x"), tmp_path)
    with pytest.raises(MeshferryError, match=said):
        pool._reason(problem)


def test_what_kills_a_shard_is_said_of_its_files(tmp_path):
    pytest.importorskip("distributed", reason="dask.distributed is absent")
    pool = machines.DaskPool(BatchSettings(scheduler="tcp://x:1"), tmp_path)
    said = pool._reason(subprocess.CalledProcessError(-9, "mf", b"", b"last words\n"))
    assert "Killed" in said and "memory" in said and said.endswith("and its shard with it: last words")


@pytest.mark.parametrize(
    ("count", "threads", "size"),
    [(1, 1, 1), (12, 2, 6), (24, 2, 10), (24, 8, 3), (1000, 4, 32), (100_000, 16, 200), (5, 100, 1)],
)
def test_shards_are_worth_a_start_and_leave_no_thread_idle(count, threads, size):
    assert machines.shard_size(count, threads) == size


@pytest.mark.parametrize(
    ("numbers", "size", "ranges"),
    [
        ([0, 1, 2, 3, 4], 2, ["1-2", "3-4", "5-5"]),
        ([4, 9, 30], 10, ["5-31"]),
        ([4, 9, 30_000, 30_001], 10, ["5-10", "30001-30002"]),
        ([], 10, []),
    ],
)
def test_shards_are_ranges_of_the_plan(numbers, size, ranges):
    tasks = [Task(number, 0, "", "", "", 0, 0) for number in numbers]
    shards = list(machines.make_shards(tasks, size))
    lines = [machines.lines_of(shard) for shard in shards]
    assert [f"{part[0]}-{part[-1]}" for part in lines] == ranges
    assert [task for shard in shards for task in shard] == tasks
