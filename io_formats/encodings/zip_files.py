"""Zip files, with bounds for their directories and the sizes of entries."""

import contextlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import FormatError, refusal

_LARGEST_DIRECTORY = 4 << 20
"""Largest directory of an archive, in bytes."""
_LONGEST_NAME = 200
_UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, OverflowError, zipfile.BadZipFile, zlib.error)
"""Exceptions of ``zipfile`` for damaged archives."""


class _BoundedReader(io.BufferedReader):
    """Reader for ``zipfile``, which reads the whole directory of an archive with a single call."""

    def read(self, size: int | None = -1) -> bytes:
        most = _LARGEST_DIRECTORY + 1
        content = super().read(most if size is None or size < 0 else min(size, most))
        if len(content) == most:
            raise FormatError("The zip file has too many entries")
        return content


@contextlib.contextmanager
def open_archive(source: Path | bytes) -> Iterator[zipfile.ZipFile]:
    """Open an archive: a file, or its content.

    Raises
    ------
    FormatError
        It is damaged or too large, there or in the block.
    """
    try:
        raw = io.BytesIO(source) if isinstance(source, bytes) else io.FileIO(source)
        with _BoundedReader(raw) as stream, zipfile.ZipFile(stream) as archive:  # type: ignore[arg-type]
            yield archive
    except FormatError:
        raise
    except _UNREADABLE as problem:
        reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
        raise FormatError("The zip file is damaged ({})", reason[:_LONGEST_NAME]) from None


def read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    """Return the content of an entry.

    Raises
    ------
    FormatError
        It is encrypted, compressed in an unusual way, or has more bytes than ``limit``.
    """
    name = info.filename[-_LONGEST_NAME:]
    if info.flag_bits & 1:
        raise FormatError("The zip file is encrypted", item=name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # ``zipfile`` inflates other methods without a limit.
        raise FormatError("The zip file has an entry with an unusual compression", item=name)
    if info.file_size <= limit:
        with archive.open(info) as stream:
            content = stream.read(limit + 1)
        if len(content) <= limit:
            return content
    raise FormatError("The entry has more than {:,} bytes", limit, item=name)
