"""Watchdog that terminates this process when its parent process ends."""

from __future__ import annotations

import os
import sys
import threading
import time

_POLL_SECONDS = 0.5
ORPHANED = 75
"""Exit status after the end of the parent: EX_TEMPFAIL of sysexits, as the scheduler retries the shard elsewhere."""
_SCRIPT_LAUNCHER = "meshferry.exe"
"""Launcher that pip creates for the command on Windows; it starts Python and waits."""


def exit_with_parent() -> None:
    """Terminate this process immediately and without a message when its parent ends.

    Its worker processes then end, too. Files are written atomically, so none is incomplete.
    """
    threading.Thread(target=_watch, args=(_process_to_watch(),), name="parent watch", daemon=True).start()


def _process_to_watch() -> int:
    """Return the id of the process to watch: the parent or, on Windows, the first ancestor that is not a launcher.

    The ``python.exe`` of a virtual environment on Windows starts the real Python and waits. It outlives its parent, so
    this process would never end if it watched the launcher.
    """
    process = os.getppid()
    if sys.platform != "win32":
        return process
    processes = _windows_processes()
    launchers = [_SCRIPT_LAUNCHER]
    if sys.prefix != sys.base_prefix:
        launchers.insert(0, os.path.basename(sys.executable).lower())
    for launcher in launchers:
        parent, name = processes.get(process, (process, ""))
        if name.lower() == launcher:
            process = parent
    return process


def _windows_processes() -> dict[int, tuple[int, str]]:
    """Return parent id and program file name of each process on Windows, by process id."""
    import ctypes

    class Entry(ctypes.Structure):
        """``PROCESSENTRY32W``."""

        _fields_ = (
            ("size", ctypes.c_uint32),
            ("usage", ctypes.c_uint32),
            ("number", ctypes.c_uint32),
            ("heap", ctypes.c_size_t),
            ("module", ctypes.c_uint32),
            ("threads", ctypes.c_uint32),
            ("parent", ctypes.c_uint32),
            ("priority", ctypes.c_int32),
            ("flags", ctypes.c_uint32),
            ("name", ctypes.c_wchar * 260),
        )

    kernel: ctypes.CDLL = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    kernel.Process32FirstW.argtypes = kernel.Process32NextW.argtypes = (ctypes.c_void_p, ctypes.POINTER(Entry))
    kernel.CloseHandle.argtypes = (ctypes.c_void_p,)
    snapshot = kernel.CreateToolhelp32Snapshot(0x2, 0)  # TH32CS_SNAPPROCESS
    entry = Entry(size=ctypes.sizeof(Entry))
    found: dict[int, tuple[int, str]] = {}
    more = kernel.Process32FirstW(snapshot, ctypes.byref(entry))
    while more:
        found[entry.number] = entry.parent, entry.name
        more = kernel.Process32NextW(snapshot, ctypes.byref(entry))
    kernel.CloseHandle(snapshot)
    return found


def _watch(parent: int) -> None:
    if sys.platform == "win32":
        import _winapi

        handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
    os._exit(ORPHANED)
