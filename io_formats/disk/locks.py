"""Lock files, held by one process at a time; the operating system releases them when the process ends."""

import contextlib
import errno
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from .special_files import open_regular

_PAUSE = 0.01
"""Seconds until the next attempt, on Windows, while another process removes the lock file."""
_RETRIES = 100
"""Maximum number of attempts if other processes remove the lock file between opening and locking."""


def lock(stream: IO[Any] | int) -> bool:
    """Lock an open file until it is closed or its process ends. Return False if another process has locked it."""
    handle = stream if isinstance(stream, int) else stream.fileno()
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass  # the file system has no locks: two processes are unlikely to use one folder at the same time
    return True


def hold(path: Path) -> IO[bytes] | None:
    """Create and lock a lock file. Return None if another process holds it.

    Closing the returned stream releases the lock. Only the holder may remove the file; a process that opened it before
    the removal then tries again.

    Raises
    ------
    OSError
        The file cannot be created, or another kind of file has its name.
    """
    problem = OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
    for _ in range(_RETRIES):
        try:
            stream = os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "ab")
        except PermissionError as refused:
            if sys.platform != "win32":
                raise
            problem = refused  # another process may be about to remove the file
            time.sleep(_PAUSE)
            continue
        if not lock(stream):
            stream.close()
            return None
        try:
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                break
        except FileNotFoundError:
            pass
        stream.close()  # the previous holder removed the file between opening and locking
    else:
        raise problem
    return stream


def remove(path: Path, held: IO[bytes]) -> None:
    """Release a lock and remove its file."""
    if sys.platform == "win32":
        held.close()  # Windows cannot remove an open file
    with contextlib.suppress(OSError):
        path.unlink()
    held.close()
