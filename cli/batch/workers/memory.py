"""Memory that this process takes."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    import resource


def peak_memory() -> int:
    """Return the largest resident memory that this process has had, in bytes; 0 where the system does not say."""
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
