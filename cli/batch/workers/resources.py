"""Processor cores available to this process, and its peak memory."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import resource

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_cores(control_groups: Path = _CONTROL_GROUPS) -> int:
    """Return the number of cores available to this process; the limit of a container is taken into account.

    Parameters
    ----------
    control_groups:
        Folder of the control groups of Linux, which contain the limit of a container.
    """
    if sys.platform != "win32" and hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    share = _processor_share(control_groups)
    return max(1, min(cores, math.ceil(share)) if share else cores)


def _processor_share(control_groups: Path) -> float:
    """Return the processor time that the control group may use, in cores; 0 if no limit is known."""
    try:
        quota, period = (control_groups / "cpu.max").read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass  # "max", or version 1 of control groups
    try:
        folder = control_groups / "cpu"
        quota, period = ((folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii") for name in ("quota", "period"))
        return max(0.0, int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0.0


def threads_for(jobs: int) -> int:
    """Return the number of threads for each worker; one core is reserved for the driver."""
    return max(1, (available_cores() - 1) // jobs)


@contextlib.contextmanager
def limited_cores(count: int) -> Iterator[None]:
    """Restrict this process to some cores, so that a library loaded meanwhile starts one thread for each of these only.

    No effect on other systems than Linux, and if the count is 0.
    """
    if sys.platform != "linux" or not count:
        yield
        return
    usual = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, sorted(usual)[:count])
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, usual)


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes; 0 if unknown."""
    if sys.platform == "win32":
        return _peak_working_set()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _peak_working_set() -> int:
    """Return ``PeakWorkingSetSize`` of Windows' ``GetProcessMemoryInfo``."""
    import ctypes

    class Counters(ctypes.Structure):
        """``PROCESS_MEMORY_COUNTERS``."""

        _fields_ = (
            ("size", ctypes.c_uint32),
            ("page_faults", ctypes.c_uint32),
            ("peak_working_set", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 7),
        )

    kernel: ctypes.CDLL = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.POINTER(Counters), ctypes.c_uint32)
    counters = Counters(size=ctypes.sizeof(Counters))
    if not kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size):
        return 0
    return int(counters.peak_working_set)
