"""FIFOs, devices and sockets in the place of files: recognised, and read within bounds of size and time.

Opening a FIFO blocks until another process writes to it, and a device such as ``/dev/zero`` never ends.
"""

import errno
import os
import stat
import sys
import time
from pathlib import Path

from ..core.errors import FormatError, refusal

SIZE_LIMIT = 256 * 2**20
"""Maximum number of bytes read from a FIFO or device."""
SILENCE_LIMIT = 30.0
"""Seconds to wait for the first bytes, and for each further block."""
_BLOCK = 2**20
_WRITER_GRACE = 1.0
"""Seconds to wait for a writer to open a FIFO before its end of file means that it is empty."""
_POLL_SECONDS = 0.02

JUNCTION = 0xA0000003
"""Reparse tag of junctions, which are links to folders on Windows. Python reports them as folders."""

_KINDS = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def special_kind(path: str | os.PathLike[str]) -> str:
    """Return the kind of a path that is neither a regular file nor a folder, otherwise an empty string.

    A missing or inaccessible file also gives an empty string.
    """
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "")
    except (OSError, ValueError):
        return ""


def is_link(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a symbolic link, or a junction of Windows."""
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISLNK(info.st_mode) or getattr(info, "st_reparse_tag", 0) == JUNCTION


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise FormatError for a FIFO, device or socket: reading it may never end."""
    if kind := special_kind(path):
        raise FormatError("This is a {}, not a regular file", kind, file=str(path))


def read_regular(path: str | Path) -> bytes:
    """Return the content of a file like :func:`read_bytes`, but refuse FIFOs, devices and sockets at once."""
    require_regular(path)
    return read_bytes(path)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follows_links: bool = False) -> int:
    """Open a regular file without blocking; return its descriptor.

    Raises
    ------
    OSError
        The path is not a regular file, is a symbolic link that is not followed, or the operating system reports an
        error.
    """
    for name in ("O_BINARY", "O_CLOEXEC", "O_NOINHERIT", "O_NONBLOCK", "O_NOCTTY"):
        flags |= getattr(os, name, 0)
    if not follows_links and os.path.islink(path):  # O_NOFOLLOW alone would report "too many levels of links"
        raise OSError(errno.ELOOP, "This is a symbolic link, not a regular file", str(path))
    handle = os.open(path, flags if follows_links else flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "This is not a regular file", str(path))
    return handle


def read_bytes(path: str | Path) -> bytes:
    """Return a file's content; errors of the operating system become one clear error.

    FIFOs and devices are read too, see :func:`read_special`.
    """
    try:
        return read_special(path) if special_kind(path) else Path(path).read_bytes()
    except FormatError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a path that the operating system rejects
        raise FormatError("The file cannot be read: {}", refusal(problem), file=str(path)) from None


def read_special(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a FIFO or device.

    Raises
    ------
    FormatError
        It supplies more than ``SIZE_LIMIT`` bytes, or no data for ``SILENCE_LIMIT`` seconds. Always on Windows, which
        cannot wait for such files with a timeout.
    OSError
        The operating system reports an error.
    """
    kind = special_kind(path) or "special file"
    if sys.platform == "win32":
        raise FormatError("This is a {}, not a regular file", kind, file=str(path))
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return _content(handle, kind, Path(path))
    finally:
        os.close(handle)


def _content(handle: int, kind: str, path: Path) -> bytes:
    """Read a pipe or device to its end; raise FormatError if it gives nothing for long, or too much."""
    import select  # rarely needed

    content = bytearray()
    began = time.monotonic()
    while True:
        if not select.select([handle], [], [], SILENCE_LIMIT)[0]:
            raise FormatError("The {} gave no data for {:g} seconds", kind, SILENCE_LIMIT, file=str(path))
        try:
            block = os.read(handle, _BLOCK)
        except BlockingIOError:
            continue
        if not block and (content or kind != "FIFO" or time.monotonic() - began > _WRITER_GRACE):
            return bytes(content)
        if not block:
            time.sleep(_POLL_SECONDS)
        content += block
        if len(content) > SIZE_LIMIT:
            raise FormatError("The {} gives more than {} MiB", kind, SIZE_LIMIT // 2**20, file=str(path))
