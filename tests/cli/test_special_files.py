"""FIFOs, devices and sockets among the input files: searches skip them, named ones are read within bounds."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LAMP = EXAMPLES / "lamp.mesh"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX system has these files")


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for a short time only, and fail instead of hanging."""
    from meshferry.io_formats.disk import special_files

    def fail(_number: int, _frame: object) -> None:
        pytest.fail("it hangs")

    monkeypatch.setattr(special_files, "SILENCE_LIMIT", 0.2)
    monkeypatch.setattr(special_files, "_WRITER_GRACE", 0.2)
    monkeypatch.setattr(special_files, "SIZE_LIMIT", 2**20)
    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with a mesh among files that are none."""
    place = tmp_path / "in"
    place.mkdir()
    shutil.copy(LAMP, place)
    os.mkfifo(place / "pipe.mesh")
    os.mkfifo(place / "pipe")
    os.mkfifo(place / "pipe.txt")
    (place / "zero.mesh").symlink_to("/dev/zero")
    (place / "zero.llmesh").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        working = os.getcwd()
        os.chdir(place)  # the paths of sockets are short
        bound.bind("socket.mesh")
        os.chdir(working)
        yield place


def feed(fifo: Path, data: bytes) -> threading.Thread:
    """Write to a FIFO from another thread."""
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(data,), daemon=True)
    writer.start()
    return writer


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "in"),
        ("check", "in"),
        ("convert", "in", "--to", "timbermesh", "-o", "out"),
        pytest.param(
            ("batch", "in", "--to", "timbermesh", "-o", "out", "--jobs", "1"), marks=pytest.mark.needs_workers
        ),
        ("inspect", "in/*"),
        pytest.param(
            ("batch", "in/*", "--to", "timbermesh", "-o", "out", "--jobs", "1"), marks=pytest.mark.needs_workers
        ),
    ],
    ids=" ".join,
)
def test_a_search_skips_them_with_a_warning(
    meshferry: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder.parent)
    (folder / "pipe.txt").unlink(missing_ok="*" not in command[1])
    done = meshferry(*command)
    assert done.status == 0, done
    for name, kind in (("pipe", "FIFO"), ("pipe.mesh", "FIFO"), ("zero.mesh", "device"), ("socket.mesh", "socket")):
        lines = [line for line in done.err.splitlines() if f"{name}: warning" in line]
        assert len(lines) == 1 and f"This is a {kind}, not a regular file; skipped" in lines[0]
    if command[0] in {"convert", "batch"}:
        assert [path.name for path in folder.parent.glob("out/*.*")] == ["lamp.timbermesh"]


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_a_fifo_that_is_named_is_read(meshferry: Callable, tmp_path: Path, command: str) -> None:
    writer = feed(tmp_path / "fed", LAMP.read_bytes())
    done = meshferry(command, tmp_path / "fed", "--json")
    writer.join()
    (entry,), (wanted,) = done.entries, meshferry(command, LAMP, "--json").entries
    assert done.status == 0 and {**entry, "file": ""} == {**wanted, "file": ""}


@pytest.mark.parametrize("target", ["out.timbermesh", "out.mesh"])
def test_a_fifo_is_converted(meshferry: Callable, tmp_path: Path, target: str) -> None:
    writer = feed(tmp_path / "fed", LAMP.read_bytes())
    done = meshferry("convert", tmp_path / "fed", tmp_path / target, *(["--turn"] if target.endswith("sh") else []))
    writer.join()
    assert done.status == 0 and "no effect" not in done.err
    meshferry("convert", LAMP, tmp_path / ("plain_" + target), *(["--turn"] if target.endswith("sh") else []))
    assert (tmp_path / target).stat().st_size == (tmp_path / ("plain_" + target)).stat().st_size


@pytest.mark.needs_bpy
def test_what_blender_would_read_itself_is_refused(meshferry: Callable, tmp_path: Path) -> None:
    for name in ("silent.blend", "silent.glb"):
        os.mkfifo(tmp_path / name)
        done = meshferry("convert", tmp_path / name, tmp_path / "out.mesh")
        assert done.status == 1
        assert done.err.count("\n") == 1 and f"{name}: This is a FIFO, not a regular file" in done.err


@pytest.mark.parametrize("command", ["inspect", "check", "convert"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("silent.mesh", "gave no data"),
        ("zero.mesh", "The device gives more than 1 MiB"),
        ("socket.mesh", "The file cannot be read"),
    ],
)
def test_one_error_for_a_special_file_without_a_model(
    meshferry: Callable, folder: Path, command: str, name: str, message: str
) -> None:
    if name == "silent.mesh":
        os.mkfifo(folder / name)
        keep = os.open(folder / name, os.O_RDWR)  # a writer that writes nothing
    more = ("--to", "timbermesh", "-o", folder / "out") if command == "convert" else ()
    done = meshferry(command, folder / name, LAMP, *more)
    if name == "silent.mesh":
        os.close(keep)
    assert done.status == 1
    assert len([line for line in done.err.splitlines() if name in line and message in line]) == 1
    assert "Traceback" not in done.err and "lamp" in done.out


def test_a_fifo_without_a_writer_is_one_error(meshferry: Callable, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alone")
    done = meshferry("inspect", tmp_path / "alone")
    assert done.status == 1 and done.err.count("alone") == 1


@pytest.mark.needs_workers
def test_a_batch_refuses_one_that_is_named(meshferry: Callable, folder: Path) -> None:
    done = meshferry("batch", folder / "pipe.mesh", LAMP, "--to", "timbermesh", "-o", folder / "out", "--jobs", "1")
    assert done.status == 1 and "pipe.mesh: This is a FIFO; batches read regular files only" in done.err
    assert (folder / "out" / "lamp.timbermesh").exists()


def test_blender_is_never_given_a_device() -> None:
    from meshferry.io_formats.core.errors import FormatError
    from meshferry.io_formats.disk.special_files import require_regular

    require_regular(LAMP)
    with pytest.raises(FormatError, match="a device, not a regular file"):
        require_regular("/dev/zero")


@pytest.mark.needs_bpy
def test_an_operator_reports_one(clean_blender: object, tmp_path: Path) -> None:
    import bpy

    os.mkfifo(tmp_path / "silent.mesh")
    keep = os.open(tmp_path / "silent.mesh", os.O_RDWR)
    with pytest.raises(RuntimeError, match="gave no data"):
        bpy.ops.import_scene.unigine(filepath=str(tmp_path / "silent.mesh"))
    os.close(keep)
    assert not bpy.data.objects


@pytest.mark.needs_bpy
def test_a_material_library_is_a_regular_file(meshferry: Callable, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "library.blend")
    done = meshferry("convert", LAMP, tmp_path / "out.blend", "--material-library", tmp_path / "library.blend")
    assert done.status == 1 and "Material library 'library.blend' is a FIFO" in done.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="process substitution is a feature of bash")
@pytest.mark.needs_workers
def test_process_substitution_works(tmp_path: Path) -> None:
    program = f"'{sys.executable}' -m meshferry inspect <(cat '{LAMP}')"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "2,300 triangles" in done.stdout


@pytest.mark.needs_workers
def test_a_list_may_be_a_fifo(meshferry: Callable, tmp_path: Path) -> None:
    feed(tmp_path / "list", os.fsencode(LAMP) + b"\n")
    out = tmp_path / "out"
    done = meshferry("batch", "--list", tmp_path / "list", "--to", "timbermesh", "-o", out, "--jobs", "1")
    assert done.status == 0 and [path.name for path in out.rglob("*.timbermesh")] == ["lamp.timbermesh"]


def test_a_list_that_never_comes_is_one_error(meshferry: Callable, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "list")
    silent = os.open(tmp_path / "list", os.O_RDWR)  # A writer that writes nothing.
    try:
        done = meshferry("batch", "--list", tmp_path / "list", "--to", "mesh", "-o", tmp_path / "out")
    finally:
        os.close(silent)
    assert done.status == 2 and done.err.count("\n") == 1
    assert f"{tmp_path / 'list'}: The FIFO gave no data for 0.2 seconds" in done.err
