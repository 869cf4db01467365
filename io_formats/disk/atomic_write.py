"""Replace files atomically; replace and remove files under the restrictions of Windows.

On Windows, a file that another program has open (a virus scanner, an indexer, a sync client) cannot be replaced or
removed for a moment, and a read-only file (Perforce makes every file read-only) not at all.
"""

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

from ..core.errors import ExportError, refusal
from ..core.messages import Text
from .file_names import is_device
from .locks import lock
from .rooted_files import is_inside, leads_to_network
from .special_files import is_link

DEVICE_NAME = "Windows reserves this name for a device; choose another name"
_PAUSES = (0.1, 0.3, 0.6)
"""Seconds before each retry after a sharing violation."""


def replace_file(
    path: str | Path, data: bytes | Iterator[bytes], *, is_flushed: bool = True, within: Path | None = None
) -> None:
    """Write ``data``, whole or in pieces, so that ``path`` is, at any moment, the old file or the new one.

    Parameters
    ----------
    is_flushed:
        Wait until the data is on the disk. Otherwise a power failure within the next half minute can leave an empty
        file, which is acceptable for callers that write thousands of files and check sizes later.
    within:
        Folder that links must not lead out of; see :func:`real_place`.

    Raises
    ------
    ExportError
        The operating system reports an error, or a link leads out of ``within``; the old file is unchanged.
    """
    path = Path(path)
    try:
        place = real_place(path, within)
        handle, temporary = temporary_file(place)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.writelines(data if isinstance(data, Iterator) else [data])
                stream.flush()
                if is_flushed:
                    os.fsync(stream.fileno())
                copy_mode(place, temporary)
                if sys.platform != "win32":
                    # before the lock is released, so that no batch removes the temporary file
                    os.replace(temporary, place)
            if sys.platform == "win32":  # after closing, since Windows cannot rename an open file
                rename_over(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                remove_file(temporary)
            raise
    except ExportError:
        raise
    except (OSError, ValueError) as problem:
        raise ExportError(why_not_written(path, problem), file=path) from None


def rename_over(source: str | Path, target: str | Path) -> None:
    """Rename a file over another, which may be read-only; retry for a second while another program has it open.

    Raises
    ------
    OSError
        The operating system reports an error. The target is unchanged.
    """
    mode = _make_writable(target)
    try:
        _retry_while_shared(lambda: os.replace(source, target))
    except OSError:
        if mode is not None:
            with contextlib.suppress(OSError):
                os.chmod(target, mode)
        raise


def remove_file(path: str | Path) -> None:
    """Remove a file, which may be read-only; retry for a second while another program has it open.

    Raises
    ------
    OSError
        The operating system reports an error, or the file does not exist.
    """
    _make_writable(path)
    _retry_while_shared(lambda: os.unlink(path))


def remove_folder(folder: str | Path) -> None:
    """Remove a folder with its read-only files; leave files that cannot be removed."""

    def retry(_function: object, path: str, _problem: object) -> None:
        with contextlib.suppress(OSError):
            (os.rmdir if os.path.isdir(path) else remove_file)(path)

    if sys.version_info >= (3, 12):
        shutil.rmtree(folder, onexc=retry)
    else:
        shutil.rmtree(folder, onerror=retry)


def _make_writable(path: str | Path) -> int | None:
    """Clear the read-only attribute of a file on Windows; return its previous mode, or None if nothing was changed."""
    if sys.platform != "win32":
        return None  # on other systems, only the folder must be writable
    try:
        mode = os.stat(path).st_mode
        if mode & stat.S_IWRITE:
            return None
        os.chmod(path, mode | stat.S_IWRITE)
    except OSError:
        return None
    return mode


def _retry_while_shared(action: Callable[[], None]) -> None:
    if sys.platform == "win32":
        for pause in _PAUSES:
            try:
                return action()
            except PermissionError:  # another program has the file open
                time.sleep(pause)
    return action()


def real_place(path: Path, within: Path | None = None) -> Path:
    """Return the file to replace: for a symbolic link, its target.

    Parameters
    ----------
    within:
        A folder above ``path``. Links below it may come from a stranger, so they must not lead out of it. The folder
        itself may be a link.

    Raises
    ------
    ExportError
        A link leads out of the folder.
    OSError
        The path is that of a device.
    """
    if is_device(path):
        raise OSError(errno.EINVAL, DEVICE_NAME)
    if within is None:
        return Path(os.path.realpath(path)) if is_link(path) else path
    links = [place for place in (path, *takewhile(lambda folder: folder != within, path.parents)) if is_link(place)]
    for link in reversed(links):
        if leads_to_network(str(link)) or not is_inside(os.path.realpath(link), os.path.realpath(within)):
            raise ExportError("{} is a link that leads out of {}; remove it or use another folder", link, within)
    return Path(os.path.realpath(path)) if links else path


OWN_MARK = "meshferry-"
"""Part of the names of all temporary files beside outputs, since other programs use .part too."""


OWN_TEMPORARY = rf"\.(.+\.)?{OWN_MARK}[a-z0-9_]{{8}}\.part"
"""Regular expression that matches the names of these temporary files."""

_RANDOM_PART = "xxxxxxxx.part"
"""Placeholder with the length of the random letters and the extension after the prefix of a temporary name."""


def temporary_prefix(place: Path, suffix: str = "") -> str:
    """Return the first part of the name of a temporary file or folder beside ``place``.

    The whole name is not longer than that of ``place``, unless that has fewer than 25 characters, because systems and
    disks limit paths to 260 characters and names to 143 or 255 bytes.

    Parameters
    ----------
    suffix:
        Follows ``.part``.
    """
    rest = len(f"..{OWN_MARK}{_RANDOM_PART}{suffix}")
    start = place.name[: min(50, max(0, len(place.name) - rest))]
    return f".{start}.{OWN_MARK}" if start else f".{OWN_MARK}"


def temporary_file(place: Path) -> tuple[int, str]:
    """Create and lock a temporary file beside ``place``, with the extension .part; return handle and name."""
    handle, name = tempfile.mkstemp(prefix=temporary_prefix(place), suffix=".part", dir=place.parent)
    if sys.platform != "win32":  # Windows protects open files from removal anyway
        lock(handle)
    return handle, name


def copy_mode(place: Path, temporary: str | Path) -> None:
    """Copy the permissions of the old file, or use those of a new file (mkstemp gives 0600)."""
    try:
        mode = place.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    with contextlib.suppress(OSError):
        os.chmod(temporary, mode)


def why_not_written(path: Path, problem: Exception) -> Text:
    """Return the reason why a file cannot be written.

    The text of the operating system may only say that the file does not exist.
    """
    if isinstance(problem, FileNotFoundError) and not os.path.isdir(path.parent):
        return Text("the folder does not exist: {}", path.parent)
    return Text("the file cannot be written: {}", refusal(problem))


def make_folders(folder: Path) -> None:
    """Make a folder and its missing parents, unless it exists.

    ``Path.mkdir(parents=True)`` recurses, which fails for a path of some 1,000 folders.

    Raises
    ------
    OSError
        The operating system reports an error.
    """
    missing = [*takewhile(lambda path: not path.is_dir(), (folder, *folder.parents))]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents unless it exists.

    Raises
    ------
    ExportError
        The operating system reports an error.
    """
    try:
        make_folders(folder)
    except OSError as problem:
        raise ExportError("the folder cannot be made: {}", refusal(problem), file=folder) from None
