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
    """Return the number of cores available to this process, within the limit of its container (``control_groups``)."""
    if sys.platform != "win32" and hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    share = _processor_share(control_groups)
    return max(1, min(cores, math.ceil(share)) if share else cores)


def _processor_share(control_groups: Path) -> float:
    """Return the processor time that the control group may use, in cores; 0 if no limit is known."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # version 2 and version 1
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # "max 100000", for example
            quota, period = " ".join((control_groups / name).read_text("ascii") for name in names).split()
            return max(0.0, int(quota) / int(period))
    return 0.0


def threads_for(jobs: int) -> int:
    """Return the number of threads for each worker; one core is reserved for the driver."""
    return max(1, (available_cores() - 1) // jobs)


@contextlib.contextmanager
def limited_cores(count: int, number: int = 0) -> Iterator[None]:
    """On Linux, restrict this process to ``count`` cores inside a ``with`` block.

    A library that is loaded in the block starts one thread for each of these cores. Processes with consecutive numbers
    use different cores as long as there are enough: on the same cores they would load Blender one after the other.
    """
    if sys.platform != "linux" or not count:
        yield
        return
    usual = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            cores = sorted(usual)
            os.sched_setaffinity(0, {cores[(number * count + index) % len(cores)] for index in range(count)})
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
    """Return ``PeakWorkingSetSize`` of Windows' ``GetProcessMemoryInfo``; 0 if it fails."""
    import ctypes

    kernel: ctypes.CDLL = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    counters = (ctypes.c_size_t * 9)()  # two DWORD, then eight SIZE_T, the first of which is the peak
    kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), ctypes.sizeof(counters))
    return counters[1]
