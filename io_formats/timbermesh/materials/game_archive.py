"""Entries of the game's archive of blueprints, read within bounds."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ...core.errors import FormatError, refusal
from ...disk.rooted_files import path_key

LARGEST_ENTRY = 1 << 20
"""Largest size of an entry in bytes. The largest blueprint of the game has a third of it."""
_LARGEST_DIRECTORY = 4 << 20
"""Largest directory of the archive, in bytes. That of the game is about a tenth of it."""
_LONGEST_NAME = 200
_UNREADABLE = (
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
)
"""Exceptions of ``zipfile`` for damaged archives."""


class _BoundedReader(io.BufferedReader):
    """Reader for ``zipfile``, which reads the whole directory of an archive with a single call."""

    def read(self, size: int | None = -1) -> bytes:
        most = _LARGEST_DIRECTORY + 1
        content = super().read(most if size is None or size < 0 else min(size, most))
        if len(content) == most:
            raise FormatError("The zip file has too many entries for blueprints of the game")
        return content


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the archive.

    Raises
    ------
    FormatError
        It is damaged or too large, there or in the block.
    """
    try:
        with _BoundedReader(io.FileIO(path)) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except FormatError:
        raise
    except _UNREADABLE as problem:
        reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
        raise FormatError("The zip file is damaged ({})", reason[:_LONGEST_NAME]) from None


def read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return the content of an entry.

    Raises
    ------
    FormatError
        It is encrypted, compressed in an unusual way, or too large.
    """
    name = info.filename[-_LONGEST_NAME:]
    if info.flag_bits & 1:
        raise FormatError("The zip file is encrypted", item=name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # ``zipfile`` inflates other methods without a limit.
        raise FormatError("The zip file has an entry with an unusual compression", item=name)
    if info.file_size > LARGEST_ENTRY:
        raise FormatError("The entry has more than {:,} bytes", LARGEST_ENTRY, item=name)
    with archive.open(info) as stream:
        content = stream.read(LARGEST_ENTRY + 1)
    if len(content) > LARGEST_ENTRY:
        raise FormatError("The entry has more than {:,} bytes", LARGEST_ENTRY, item=name)
    return content


class GameArchive:
    """The blueprints in the archive, by their paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = _stamp(path)
        with open_archive(path) as archive:
            self._names = {path_key(info.filename): info.filename for info in archive.infolist()}
        self.folders = {key.rpartition("/")[0] for key in self._names}
        """Keys of the folders with blueprints."""

    def is_current(self) -> bool:
        """Return whether the archive has not changed."""
        return _stamp(self.path) == self._stamp

    def read(self, path: str) -> bytes | None:
        """Return the content of an entry, or None if there is none of this path.

        Raises
        ------
        FormatError
            The archive is damaged.
        """
        key = path_key(path)
        name = self._names.get(key) or self._names.get(f"blueprints/{key}")
        if name is None:
            return None
        with open_archive(self.path) as archive:
            return read_entry(archive, archive.getinfo(name))

    def has_folder(self, path: str) -> bool:
        """Return whether blueprints are in the folder of a path."""
        folder = path_key(path).rpartition("/")[0]
        return bool(folder) and not self.folders.isdisjoint({folder, f"blueprints/{folder}"})


def _stamp(path: Path) -> tuple[int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return 0, 0
    return info.st_size, info.st_mtime_ns
