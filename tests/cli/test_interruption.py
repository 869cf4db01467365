"""Signals that ask the command line to end: exit status, leftovers, tracebacks."""

import io
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = [pytest.param(name, status, id=name) for name, status in (("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129))]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signal can be sent to a single process there")


@pytest.fixture
def asks_to_end(monkeypatch):
    """Return a function that sends a signal to this process when the second file is read."""

    def ask(name):
        from meshferry.io_formats.timbermesh.model import codec

        calls = []

        def read(data, *, original=codec.read, **options):
            calls.append(None)
            if len(calls) == 2:
                signal.raise_signal(getattr(signal, name))
            return original(data, **options)

        monkeypatch.setattr(codec, "read", read)

    return ask


@pytest.mark.parametrize(("name", "status"), SIGNALS)
@pytest.mark.parametrize("command", ["convert", "inspect", "check"])
def test_commands_end_between_files(meshferry, write_windmill, asks_to_end, tmp_path, command, name, status):
    files = [write_windmill(f"in/{letter}.timbermesh") for letter in "abc"]
    out = tmp_path / "out"
    asks_to_end(name)
    before = signal.getsignal(signal.SIGINT)
    done = meshferry(command, *files, *(("--to", "meshy", "-o", out) if command == "convert" else ()), "--json")
    assert (done.status, done.err) == (status, "Interrupted\n")
    assert len(done.entries) == 1
    assert [path.name for path in tmp_path.rglob("*.meshy")] == (["a.meshy"] if command == "convert" else [])
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_signal_stays_ignored(meshferry, write_windmill, asks_to_end):
    files = [write_windmill(f"in/{letter}.timbermesh") for letter in "abc"]
    asks_to_end("SIGHUP")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert meshferry("inspect", *files).status == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("signals", "is_raised"), [(1, False), (2, True)])
def test_only_the_second_signal_interrupts_a_file(signals, is_raised, monkeypatch):
    from meshferry.cli import interruption

    monkeypatch.setattr(interruption, "_REPEAT_SECONDS", 0.0)
    with interruption.handled():
        try:
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            assert is_raised
        else:
            assert not is_raised
        with pytest.raises(KeyboardInterrupt):
            interruption.check()


def test_a_signal_sent_twice_in_a_row_counts_once():
    """As ``timeout`` does, which signals the process and its group."""
    from meshferry.cli import interruption

    with interruption.handled():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert interruption.status() == 143


def test_ctrl_c_before_the_first_line_of_a_list(monkeypatch):
    """Another program writes the list and has not printed anything yet."""
    from meshferry.cli import interruption
    from meshferry.cli.batch.sources import read_list

    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb") as other:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        actions = [(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)), (2.0, other.close)]
        timers = [threading.Timer(*action) for action in actions]
        with interruption.handled():
            for timer in timers:
                timer.start()
            with pytest.raises(KeyboardInterrupt):
                next(read_list("-"))
        timers[1].cancel()
        assert not other.closed, "the request waited for the other program"


@pytest.mark.slow
def test_a_batch_ends_and_goes_on(run_script, write_windmill, tmp_path):
    """The driver is signalled while it waits for its worker, which finishes its file."""
    pytest.importorskip("rich")
    for letter in "abc":
        write_windmill(f"in/{letter}.timbermesh")
    command = ("--", "batch", tmp_path / "in", "--to", "meshy", "-o", tmp_path / "out", "--jobs", "1", "--json")
    temporary = hooked(
        tmp_path,
        """
from importlib import import_module
def install():
    worker = import_module("meshferry.cli.batch.workers.pool")._Worker
    result_of = worker._result_of
    def signalled(*arguments):
        import os, signal
        worker._result_of = result_of
        os.kill(os.getpid(), signal.SIGTERM)
        return result_of(*arguments)
    worker._result_of = signalled
""",
        "meshferry.cli.batch.runner",
    )
    done = run_script(*command, **temporary)
    assert (done.status, "Traceback" in done.err) == (143, False), done.err
    assert leftovers(tmp_path) == []
    assert run_script(*command).status == 0
    assert len(list((tmp_path / "out").glob("*.meshy"))) == 3


@pytest.mark.parametrize("module", ["numpy.linalg", "bpy"])  # NumPy itself is looked for before
def test_ctrl_c_while_libraries_are_imported(run_script, windmill, tmp_path, module):
    if module == "bpy":
        pytest.importorskip("bpy", reason="Blender is absent")
    code = "def install():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n"
    done = run_script("--", windmill, tmp_path / "a.blend", **hooked(tmp_path, code, module))
    assert (done.status, done.err) == (130, "Interrupted\n")
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "a.blend").exists()


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.needs_bpy
@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_inside_an_exporter_of_blender(run_script, write_windmill, tmp_path, signals):
    """Blender turns an exception in an exporter written in Python into an error of its operator."""
    files = [write_windmill(f"in/{letter}.timbermesh") for letter in "ab"]
    code = f"""
def install():
    import os, signal, time
    from io_scene_fbx import export_fbx_bin
    def interrupted(*arguments, original=export_fbx_bin.save, **options):
        for _ in range({signals}):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.6)
        return original(*arguments, **options)
    export_fbx_bin.save = interrupted
"""
    arguments = ("--", *files, "--to", "fbx", "-o", tmp_path / "out")
    done = run_script(*arguments, **hooked(tmp_path, code, "io_scene_fbx.export_fbx_bin"))
    assert (done.status, done.err.splitlines()[-1]) == (130, "Interrupted"), done.err
    assert "Traceback" not in done.err
    assert [path.name for path in tmp_path.glob("out/*")] == (["a.fbx"] if signals == 1 else [])
    assert leftovers(tmp_path) == []


def hooked(tmp_path, code, module):
    """Return the environment of a process that runs ``install()`` of the code right after a module is imported."""
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "tmp").mkdir()
    (site / "sitecustomize.py").write_text(
        code
        + f"""
import importlib.abc, importlib.util, sys
class Hook(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != {module!r}: return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            install()
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Hook())
""",
        encoding="utf-8",
    )
    return {"PYTHONPATH": str(site), "TMPDIR": str(tmp_path / "tmp")}


def leftovers(folder):
    """Return temporary files, in the temporary folder and beside outputs."""
    return [str(path) for path in folder.rglob("*") if ".part" in path.name or path.parent.name == "tmp"]
