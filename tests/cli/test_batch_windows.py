"""What batches do on Windows and macOS, simulated: ends of processes, limits, drives, memory."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import re
import runpy
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from meshferry.cli import environment
from meshferry.cli.batch.report import Links
from meshferry.cli.batch.workers import protocol, worker
from meshferry.cli.batch.workers.pool import FOLDER_PREFIX
from meshferry.cli.batch.workers.worker import PartNames
from meshferry.io_formats.core import errors
from meshferry.io_formats.disk import reach
from meshferry.io_formats.disk.file_names import file_name


class Function:
    """A function of a library of Windows."""

    def __init__(self, does):
        self.does = does

    def __call__(self, *arguments):
        return self.does(*arguments)


def set_kernel(monkeypatch, **functions):
    """Let ``kernel32`` have these functions, on a system that reports to be Windows."""
    kernel = SimpleNamespace(GetCurrentProcess=Function(lambda: -1), **functions)
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: kernel, raising=False)
    monkeypatch.setattr(environment.sys, "platform", "win32")


def test_a_process_ends_without_the_destructors_of_libraries_on_windows(monkeypatch):
    def terminate(process, status):
        raise SystemExit(process.value, status.value)

    set_kernel(monkeypatch, TerminateProcess=Function(terminate))
    with pytest.raises(SystemExit) as ended:
        environment.end_process(3)
    assert ended.value.args == (2 ** (8 * ctypes.sizeof(ctypes.c_void_p)) - 1, 3)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EINVAL, errno.ENOSPC])
def test_a_worker_whose_driver_has_ended_removes_its_temporary_files(monkeypatch, tmp_path, number):
    """A pipe without a reader is EINVAL on Windows."""
    folder = tmp_path / f"{FOLDER_PREFIX}x"
    folder.mkdir()
    hello = io.BytesIO(protocol.encode({"token": "t", "threads": 1, "number": 0}))

    class Answers:
        def write(self, _data):
            raise OSError(number, os.strerror(number))

    def end(status):
        if threading.current_thread() is threading.main_thread():
            raise SystemExit(status)

    monkeypatch.setattr(worker, "_take_streams", lambda: (hello, Answers()))
    monkeypatch.setattr(worker, "make_streams_safe", lambda: None)
    monkeypatch.setattr(worker.faulthandler, "enable", lambda _stream: None)
    monkeypatch.setattr(worker.interruption, "ignore", lambda: None)
    monkeypatch.setattr(worker.gc, "disable", lambda: None)
    monkeypatch.setattr(worker.tempfile, "gettempdir", lambda: str(folder))
    monkeypatch.setattr(worker.environment, "end_process", end)
    others = {*threading.enumerate()}
    with pytest.raises(OSError if number == errno.ENOSPC else SystemExit):
        worker.run()
    for reader in {*threading.enumerate()} - others:
        reader.join()  # at the end of the test it would end the process of the tests
    assert number == errno.ENOSPC or not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "windows", "posix"),
    [(["C:\\My Files\\a.exe", "--x"], '"C:\\My Files\\a.exe" --x', "'C:\\My Files\\a.exe' --x"), (["a"], "a", "a")],
)
def test_commands_are_shown_for_the_shell_of_the_system(monkeypatch, arguments, windows, posix):
    for platform, expected in (("win32", windows), ("linux", posix)):
        monkeypatch.setattr(reach.sys, "platform", platform)
        assert reach.command_text(arguments) == expected


@pytest.mark.parametrize(
    ("parts", "number", "said"),
    [
        (["b" * 256], errno.ENOENT, "gone; Windows allows 255 characters in a name"),
        (["b" * 256], errno.EINVAL, "gone; Windows allows 255 characters in a name"),
        (["b" * 100] * 3, errno.ENOENT, "gone; the path has 30[0-9] characters, and Windows may allow only 259"),
        (["b" * 100] * 3, errno.EACCES, "gone"),
        (["b"], errno.ENOENT, "gone"),
    ],
)
def test_a_path_beyond_the_limits_of_windows_is_named(monkeypatch, parts, number, said):
    monkeypatch.setattr(errors.sys, "platform", "win32")
    path = os.path.join(os.sep, *parts)
    for problem in (OSError(number, "gone", path), OSError(number, "gone", "a", None, path)):
        assert re.fullmatch(said, errors.refusal(problem))


def test_the_memory_of_a_process_on_windows(monkeypatch):
    def fill(_process, counters, size):
        assert size == ctypes.sizeof(counters._obj) >= 72
        # PROCESS_MEMORY_COUNTERS: two DWORD, then eight SIZE_T of which the first is the peak of the working set
        ctypes.c_size_t.from_address(ctypes.addressof(counters._obj) + 8).value = 123456
        return 1

    set_kernel(monkeypatch, K32GetProcessMemoryInfo=Function(fill))
    assert environment.peak_memory() == 123456


def no_common_drive(*_):
    raise ValueError("path is on mount 'D:', start on mount 'C:'")


def test_files_on_another_drive_are_not_below_the_output_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(os.path, "relpath", no_common_drive)
    names = PartNames(tmp_path / "crate.mesh", tmp_path, frozenset())
    assert names.of_part(tmp_path / "crate.mesh", tmp_path / "crate.mesh", "lid") == tmp_path / "crate.lid.mesh"
    assert f'href="{tmp_path.as_uri()}/a.png"' in Links(tmp_path, Path("page.html")).element("a.png")


@pytest.mark.parametrize("name", ["CONIN$", "conout$", "CONOUT$.old", "aux", "LPT¹"])
def test_names_of_windows_devices_are_not_used_for_files(name):
    assert file_name(name).split(".")[0].rstrip().upper() != name.split(".")[0].upper()


def test_windows_has_no_module_resource(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert runpy.run_path(environment.__file__)["available_cores"]() > 0
