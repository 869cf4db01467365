"""A file in place of another, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from .errors import ExportError


def replace_file(path: str | Path, data: bytes, *, is_flushed: bool = True) -> None:
    """Write ``data`` so that ``path`` is, at any moment, the old file or the new one.

    Parameters
    ----------
    is_flushed:
        Wait until the disk has it. Otherwise a power cut within the next half minute may leave an empty file; for those
        who write thousands, and look at sizes before they believe that something is there.

    Raises
    ------
    ExportError
        The system refuses; the old file is as it was.
    """
    path = Path(path)
    try:
        place = real_place(path)
        handle, temporary = temporary_file(place)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                if is_flushed:
                    stream.flush()
                    os.fsync(stream.fileno())
            copy_mode(place, temporary)
            os.replace(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, ValueError) as problem:
        raise ExportError(f"{path}: the file cannot be written: {refusal(problem)}") from None


def real_place(path: Path) -> Path:
    """Return the file to replace: through a link the file behind it is replaced, not the link."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def temporary_file(place: Path) -> tuple[int, str]:
    """Open a new file beside ``place`` that no reader takes for a model; return its handle and its name."""
    return tempfile.mkstemp(prefix=f".{place.name[:50]}.", suffix=".part", dir=place.parent)


def copy_mode(place: Path, temporary: str | Path) -> None:
    """Give the new file the rights of the old one, or those a plain new file would get (mkstemp gives 0600)."""
    try:
        mode = place.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    with contextlib.suppress(OSError):
        os.chmod(temporary, mode)


def refusal(problem: Exception) -> str:
    """Return the words of the system for why it refused."""
    return getattr(problem, "strerror", None) or str(problem)
