"""Files held by one process at a time; the system lets go of them when it ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import IO, Any

from .atomic_write import remove_file

_LOOKS = 100
"""How often a file may be taken away while it is waited for."""


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
        pass  # a disk without locks: two processes in the same place at the same time are not to be expected
    return True


def hold(path: Path) -> IO[bytes] | None:
    """Make a file that stands for a right and hold it; None: another process does.

    Closing what is returned lets go. Who removes the file has to hold it: whoever was waiting for it then looks again.

    Raises
    ------
    OSError
        The file cannot be made.
    """
    for _ in range(_LOOKS):
        stream = path.open("ab")
        if not lock(stream):
            stream.close()
            return None
        try:
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                break
        except FileNotFoundError:
            pass
        stream.close()  # it was removed between opening and locking
    else:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
    return stream


def remove(path: Path, held: IO[bytes]) -> None:
    """Let go of a file that stands for a right, and take it away."""
    if sys.platform == "win32":
        held.close()  # no open file can be removed there
    with contextlib.suppress(OSError):
        remove_file(path)
    held.close()
