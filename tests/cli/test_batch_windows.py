"""What batches do on Windows and macOS, simulated: drives, memory."""

from __future__ import annotations

import ctypes
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from meshferry.cli import environment
from meshferry.cli.batch.report import Links
from meshferry.cli.batch.workers.worker import PartNames
from meshferry.io_formats.disk.file_names import file_name


def test_the_memory_of_a_process_on_windows(monkeypatch):
    def fill(_process, counters, size):
        assert size == ctypes.sizeof(counters._obj) >= 72
        # PROCESS_MEMORY_COUNTERS: two DWORD, then eight SIZE_T of which the first is the peak of the working set
        ctypes.c_size_t.from_address(ctypes.addressof(counters._obj) + 8).value = 123456
        return 1

    class Function:
        def __init__(self, does):
            self.does = does

        def __call__(self, *arguments):
            return self.does(*arguments)

    kernel = SimpleNamespace(GetCurrentProcess=Function(lambda: -1), K32GetProcessMemoryInfo=Function(fill))
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: kernel, raising=False)
    monkeypatch.setattr(environment.sys, "platform", "win32")
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
