"""The Collada file in a ``.zae`` file, which is a zip file (page ``docs/formats/collada.md``, section 2)."""

from __future__ import annotations

import io
import zipfile
import zlib

from ...core.errors import FormatError
from ...encodings.xml_files import SIZE_LIMIT

ZIP = b"PK\x03\x04"
_LARGEST = 256 * 2**20
"""Bytes of a zip file; its directory has an object of half a kilobyte for each 50 bytes."""
_MOST_ENTRIES = 10_000
_ENTRY = b"PK\x01\x02"
"""Mark of an entry in the directory at the end."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError)
"""Exceptions of ``zipfile`` for damaged files."""


def unpacked(data: bytes, limit: int | None = None) -> bytes:
    """Return the only ``.dae`` file in a zip file, or other data as they are.

    Parameters
    ----------
    limit:
        Maximum size of the file in bytes; None for that of XML files.

    Raises
    ------
    FormatError
        The zip file is damaged, encrypted or too large, or has no ``.dae`` file or several.
    """
    if not data.startswith(ZIP):
        return data
    limit = SIZE_LIMIT if limit is None else min(limit, SIZE_LIMIT)
    if len(data) > _LARGEST or data.count(_ENTRY) > _MOST_ENTRIES:
        raise FormatError("The zip file is too large or has too many files")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [info for info in archive.infolist() if info.filename.lower().endswith(".dae")]
            if len(found) != 1:
                raise FormatError("The zip file has {:,} .dae files; one is expected", len(found))
            info = found[0]
            # ``zipfile`` inflates other methods without a limit.
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FormatError("The .dae file in the zip file is encrypted, or compressed in an unusual way")
            with archive.open(info) as stream:
                content = stream.read(limit + 1)
    except FormatError:
        raise
    except _DAMAGE as problem:
        raise FormatError("The zip file is damaged ({})", str(problem)[:100]) from None
    if len(content) > limit:
        raise FormatError("The .dae file in the zip file has more than {:,} bytes", limit)
    return content
