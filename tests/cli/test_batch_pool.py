"""The processes of a batch: what one file does to one of them is nothing to the others."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

if getattr(getattr(sys.modules.get("bpy"), "app", None), "binary_path", ""):
    pytest.skip("Blender's own Python cannot run the workers of the tests", allow_module_level=True)

HERE = Path(__file__).resolve().parent
ODD = [sys.executable, str(HERE / "batch_odd_worker.py")]


def task_of(number, name, content=None):
    from meshferry.cli.batch.tasks import LoadedTask, Task

    return LoadedTask(Task(number, 0, name, "", f"{number}-{name}.mesh", 1, 1), content=content)


def tasks_of(*names):
    return [task_of(number, name) for number, name in enumerate(names)]


@pytest.fixture
def make_pool(tmp_path):
    """Return a function that makes a pool of odd workers."""
    from meshferry.cli.batch.workers.pool import Pool
    from meshferry.cli.batch.workers.protocol import Setup
    from meshferry.cli.conversions.settings import Settings

    def make(jobs=1, time_limit=60.0, recycle_after=0, extension="mesh", command=ODD):
        setup = Setup(Settings(extension), str(tmp_path), (str(tmp_path),), time_limit=time_limit)
        return Pool(setup, jobs, recycle_after, command=command)

    return make


def is_running(pid):
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    psutil = pytest.importorskip("psutil")
    return psutil.pid_exists(pid)


def wait_until(is_so, seconds=60.0):
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "that did not happen"
        time.sleep(0.02)


def test_every_task_is_done_once_and_taken_only_when_somebody_is_free(make_pool):
    from meshferry.cli.batch.tasks import Status

    taken, done, ahead = [], [], []

    def tasks():
        for loaded in tasks_of(*["fine"] * 40):
            taken.append(loaded.task.number)
            yield loaded

    for result in make_pool(2).run(tasks()):
        ahead.append(len(taken) - len(done))
        done.append(result)
    assert list(make_pool(2).run([])) == []
    assert sorted(result.task.number for result in done) == list(range(40))
    assert {(result.status, result.attempts, result.error) for result in done} == {(Status.DONE, 1, "")}
    assert max(ahead) <= 6
    pids = {result.facts["pid"] for result in done}
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


@pytest.mark.slow
def test_a_crash_costs_its_file_alone(make_pool):
    from meshferry.cli.batch.tasks import Status

    names = ["fine"] * 5 + ["crash", "fine", "once", "fine", "leave"] + ["fine"] * 10
    results = {result.task.number: result for result in make_pool(2).run(tasks_of(*names))}
    assert sorted(results) == list(range(len(names)))
    for number, name in enumerate(names):
        result = results[number]
        if name == "fine":
            assert (result.status, result.attempts) == (Status.DONE, 1)
    assert (results[7].status, results[7].attempts, results[7].facts["nth"]) == (Status.DONE, 2, 1), "alone and fresh"
    crash, left = results[5], results[9]
    assert (crash.status, crash.attempts) == (Status.CRASHED, 2)
    if sys.platform != "win32":
        assert crash.error.startswith("The process died of a signal: Segmentation fault")
    assert "batch_odd_worker.py, line" in crash.error and "Meshferry " in crash.error
    assert (left.status, left.attempts) == (Status.CRASHED, 2)
    assert left.error.startswith(
        "The process ended with status 7; its last output: first words | I have had enough (Meshferry"
    )


@pytest.fixture
def late_when_hanging(monkeypatch, tmp_path):
    """Let exactly the tasks be late that hang and have said so, however busy this machine is."""
    from meshferry.cli.batch.workers import pool as module

    def check(worker, now, original=module._Worker.check):
        marks = [path.read_text().split() for path in tmp_path.glob("hang*")]
        hangs = any(pids and int(pids[0]) == worker._process.pid for pids in marks if worker._process is not None)
        original(worker, now + 1000 if hangs else 0)

    monkeypatch.setattr(module._Worker, "check", check)
    monkeypatch.setattr(module, "_CHECK_SECONDS", 0.05)


@pytest.mark.usefixtures("late_when_hanging")
def test_what_takes_too_long_is_ended_with_all_that_it_started(make_pool, tmp_path):
    from meshferry.cli.batch.tasks import Status

    results = list(make_pool(1).run(tasks_of("loud", "hang", "slow", "slow", "slow")))
    assert [result.status for result in results] == [Status.DONE, Status.TIMED_OUT, *[Status.DONE] * 3]
    hang = results[1]
    assert hang.error == "It took longer than 60 seconds; last output: still here"
    assert hang.attempts == 1
    pids = [int(pid) for pid in (tmp_path / "hang").read_text().split()]
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_the_time_limit(make_pool):
    from meshferry.cli.batch.tasks import Status

    (hang,) = make_pool(1, time_limit=0.5).run(tasks_of("hang"))
    assert hang.status is Status.TIMED_OUT and hang.error.startswith("It took longer than 0.5 seconds")
    assert hang.seconds >= 0.5


def test_workers_that_cannot_start_are_not_blamed_on_files(make_pool):
    from meshferry.io_formats.core.errors import MeshferryError, MissingLibraryError

    program = "import sys; print('no such thing: numpy'); sys.exit(3)"
    for command, said in (
        ([sys.executable, "-c", program], "A worker could not start. The process ended with status 3; .*: numpy"),
        (["/nowhere/at-all"], "A worker cannot be started: /nowhere/at-all: "),
    ):
        with pytest.raises(MeshferryError, match=said):
            list(make_pool(command=command).run(tasks_of("fine")))
    with pytest.raises(MissingLibraryError, match="There is no Blender"):
        list(make_pool(extension="anim").run(tasks_of("fine", "fine")))
    with pytest.raises(MeshferryError, match=r"Nothing here writes '\.odd"):
        list(make_pool(extension="odd").run(tasks_of("fine")))


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_start_that_fails_once_is_tried_again(make_pool, tmp_path):
    mark = tmp_path / "mark"
    program = (
        "import os, runpy, signal, sys; mark = sys.argv[1]; first = not os.path.exists(mark); open(mark, 'w').close()\n"
        "if first: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    pool = make_pool(1, command=[sys.executable, "-c", program, str(mark), ODD[1]])
    results = list(pool.run(tasks_of("fine", "fine", "fine")))
    assert [result.task.number for result in results] == [0, 1, 2]
    assert {result.attempts for result in results} == {1}


def test_processes_that_have_grown_are_replaced(make_pool, monkeypatch):
    from meshferry.cli.batch.workers import pool as module

    monkeypatch.setattr(module, "_GROWTH", -1)
    pool = make_pool(1, recycle_after=4)
    results = list(pool.run(tasks_of(*["fine"] * 10)))
    assert pool.started == 3
    counts = Counter(result.facts["pid"] for result in results)
    assert sorted(counts.values()) == [2, 4, 4]
    assert sorted(result.task.number for result in results) == list(range(10))


def test_processes_that_have_kept_their_size_stay(make_pool):
    pool = make_pool(1, recycle_after=4)
    results = list(pool.run(tasks_of(*["fine"] * 50)))
    assert pool.started == 1 and len({result.facts["pid"] for result in results}) == 1


def test_memory_counts_at_its_peak():
    import psutil
    from meshferry.cli.environment import peak_memory

    if sys.platform == "win32":
        pytest.skip("measured in a simulation there")
    before, now = peak_memory(), psutil.Process().memory_info().rss
    assert before > 0.9 * now
    taken = bytearray(before + 2**20 * 50 - now + 2**20 * 50)
    taken[::4096] = b"x" * len(taken[::4096])
    del taken
    assert peak_memory() - before >= 2**20 * 50


def test_content_arrives(make_pool):
    sizes = [0, 100, 5_000_000, 3, 5_000_000, 70_000]
    tasks = [task_of(number, "fine", bytes(size)) for number, size in enumerate(sizes)]
    assert [result.facts["size"] for result in make_pool(1).run(tasks)] == sizes


@pytest.mark.usefixtures("late_when_hanging")
def test_the_driver_never_waits_for_a_worker_to_read(make_pool):
    results = list(make_pool(1).run([task_of(0, "hang locked"), task_of(1, "fine", bytes(5_000_000))]))
    assert results[0].status.is_quarantined and results[1].facts["size"] == 5_000_000


def test_who_leaves_early_lets_files_be_finished(make_pool, tmp_path):
    results = make_pool(1).run(tasks_of("fine", "slow1", "slow2"))
    pid = next(results).facts["pid"]
    wait_until((tmp_path / "slow1").exists)
    results.close()
    assert (tmp_path / "slow1").read_text() == "done"
    assert not (tmp_path / "slow2").exists()
    assert not is_running(pid)


_DRIVER = """
import sys
sys.path[:0] = [{tests!r}, {here!r}]
from load_package import load_package
load_package()
import test_batch_pool
from meshferry.cli.batch.workers.protocol import Setup
from meshferry.cli.batch.workers.pool import Pool
from meshferry.cli.conversions.settings import Settings
pool = Pool(Setup(Settings("mesh"), {output!r}, ({output!r},)), 1, command=test_batch_pool.ODD)
for result in pool.run(test_batch_pool.tasks_of("fine", "hang")):
    print("one is done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_nobody_is_left_of_a_killed_driver(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = _DRIVER.format(tests=str(HERE.parent), here=str(HERE), output=str(tmp_path))
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as driver:
        mark = tmp_path / "hang"
        wait_until(lambda: mark.exists() and " " in mark.read_text())
        worker = int(mark.read_text().split()[0])
        assert is_running(worker)
        driver.send_signal(signal.SIGKILL)
        wait_until(lambda: not is_running(worker))
    os.kill(int(mark.read_text().split()[1]), signal.SIGKILL)  # what an importer starts does not know of drivers
    if sys.platform == "linux":
        assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_worker_removes_its_folder_if_the_driver_is_killed_at_its_start(tmp_path, has_begun):
    from meshferry.cli.batch.workers import pool, protocol

    folder = tmp_path / f"{pool.FOLDER_PREFIX}x"
    folder.mkdir()
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    hello = {"token": "0", "threads": 1, "number": 0}
    command = pool.worker_command(1)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as worker:
        worker.stdout.close()
        if has_begun:
            worker.stdin.write(protocol.encode(hello))
            worker.stdin.flush()
            with pytest.raises(subprocess.TimeoutExpired):
                worker.wait(1)
        worker.stdin.close()
        assert worker.wait(60) == 1
    assert not folder.exists()


def test_old_temporary_folders_of_killed_workers_are_removed(make_pool, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name, days in {"meshferry-worker-dead": 31, "meshferry-worker-young": 29, "other": 31}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "half.glb").touch()
        changed = time.time() - days * 86400
        os.utime(folder, (changed, changed))
    assert [result.error for result in make_pool(1).run(tasks_of("fine"))] == [""]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["meshferry-worker-young", "other"]


def test_a_full_disk_for_temporary_files_is_told(make_pool, tmp_path, monkeypatch):
    from meshferry.io_formats.core.errors import MeshferryError

    reason = "" if sys.platform == "win32" else "No such"  # the text of Windows depends on its language
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(MeshferryError, match=f"temporary files cannot be made there: {reason}"):
        list(make_pool(1).run(tasks_of("fine")))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals for single processes")
def test_an_interruption_is_for_the_driver_alone(make_pool, tmp_path):
    results = make_pool(1).run(tasks_of("fine", "slow"))
    pid = next(results).facts["pid"]
    assert os.getpgid(pid) != os.getpgid(0)
    wait_until((tmp_path / "slow").exists)
    os.kill(pid, signal.SIGINT)
    assert next(results).facts["pid"] == pid
    results.close()


def test_a_process_that_prints_without_end_does_not_fill_the_disk(monkeypatch):
    from meshferry.cli.batch.workers import pool

    program = "import sys; sys.stderr.write('x' * 5000); sys.stdin.read(); sys.exit('the end')"
    process = pool.WorkerProcess([sys.executable, "-c", program])
    wait_until(lambda: os.fstat(process._log.fileno()).st_size == 5000)
    process.limit_log()
    assert os.fstat(process._log.fileno()).st_size == 5000, "that is not too much"
    monkeypatch.setattr(pool, "_LARGEST_LOG", 4999)
    process.limit_log()
    assert os.fstat(process._log.fileno()).st_size == 0
    process._input.close()
    process.end(60)
    assert process.last_output == "the end"


def test_no_threads_are_left(make_pool):
    before = threading.active_count()
    list(make_pool(1).run(tasks_of("fine")))
    wait_until(lambda: threading.active_count() <= before)
