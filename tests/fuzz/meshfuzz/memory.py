"""Peak memory of a piece of work, C libraries included, as the kernel counts it.

``tracemalloc`` is slow and blind to protobuf's and zlib's memory. Linux keeps the high-water mark of a process and
lets it be reset; elsewhere the peaks read as 0 and the memory limit is not judged. The files of the kernel stay
open: reset and reading take 20 µs together, so that every case is measured.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import re
import sys
import zlib
from collections.abc import Callable

MEBIBYTE = 1024 * 1024
ALLOWED_BASE = 64 * MEBIBYTE
ALLOWED_RATIO = 20
INFLATED_BASE = 64 * MEBIBYTE
INFLATED_RATIO = 64
_PEAK = re.compile(rb"VmHWM:\s*(\d+)")


@functools.cache
def _opened(name: str, flags: int) -> int:
    """Return a descriptor of a file of this process in ``/proc``, or -1; it stays open."""
    if sys.platform != "linux":  # Wine finds /proc, but Windows's os has no pread
        return -1
    try:
        return os.open(f"/proc/self/{name}", flags)
    except OSError:
        return -1


def reset_peak() -> int:
    """Set the high-water mark to the memory in use now; return that, in bytes."""
    clear = _opened("clear_refs", os.O_WRONLY)
    if clear >= 0:
        os.write(clear, b"5")
    return _pages(1)


def peak() -> int:
    """Return the largest memory in use since the last reset, in bytes."""
    status = _opened("status", os.O_RDONLY)
    found = _PEAK.search(os.pread(status, 4096, 0)) if status >= 0 else None
    return int(found[1]) * 1024 if found else 0


def _pages(column: int) -> int:
    """Return a column of ``/proc/self/statm`` in bytes: 0 is the address space, 1 the memory in use."""
    sizes = _opened("statm", os.O_RDONLY)
    return int(os.pread(sizes, 256, 0).split()[column]) * mmap.PAGESIZE if sizes >= 0 else 0


def trimmer() -> Callable[[], None]:
    """Return a function that gives freed memory back to the system.

    Memory that an earlier case freed and the C library kept would be used again unseen.
    """
    try:
        libc = ctypes.CDLL(None)
        mallopt, trim = libc.mallopt, libc.malloc_trim
    except (OSError, AttributeError, TypeError):  # TypeError: Windows
        return lambda: None
    mallopt(-3, 256 * 1024)  # M_MMAP_THRESHOLD, fixed: large blocks go back at once
    mallopt(-1, 1024 * 1024)  # M_TRIM_THRESHOLD

    def give_back() -> None:
        trim(0)

    return give_back


def limit_address_space(more: int) -> None:
    """Let the process grow by at most so many bytes: a runaway allocation becomes a MemoryError, not a dead machine."""
    if sys.platform == "linux":
        import resource

        limit = _pages(0) + more
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def allowed(data: bytes) -> int:
    """Return how much memory reading a file may take: 64 MiB and 20 times what it holds, file and inflated content."""
    return ALLOWED_BASE + ALLOWED_RATIO * (len(data) + inflated_size(data))


def inflated_size(data: bytes) -> int:
    """Return what a reader may inflate of a file: its true inflated size, up to the cap that readers have to set."""
    cap = max(INFLATED_BASE, INFLATED_RATIO * len(data))
    if data[:1] == b"{" or data[:2] == b"<?":  # streams behind a header of LLSD, the content of which names them
        starts = [found.start() for found in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data)]
        return min(sum(_stream_size(data, start, 15, cap) for start in starts), cap)
    if data[:2] == b"\x1f\x8b":
        return _stream_size(data, 0, 31, cap)
    return _stream_size(data, 2, -15, cap) if len(data) >= 2 and data[0] & 15 == 8 else 0


def _stream_size(data: bytes, start: int, window: int, cap: int) -> int:
    stream = zlib.decompressobj(window)
    total = 0
    rest: bytes | memoryview = memoryview(data)[start:]
    with contextlib.suppress(zlib.error):
        while total < cap and not stream.eof:
            piece = len(stream.decompress(rest, MEBIBYTE))
            rest = stream.unconsumed_tail
            total += piece
            if not piece and not rest:
                break
    return min(total, cap)
