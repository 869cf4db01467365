"""The Collada file in a ``.zae`` file, which is a zip file (page ``docs/formats/collada.md``, section 2)."""

from ...core.errors import FormatError
from ...encodings.xml_files import SIZE_LIMIT
from ...encodings.zip_files import open_archive, read_entry

ZIP = b"PK\x03\x04"


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
    with open_archive(data) as archive:
        found = [info for info in archive.infolist() if _is_collada(info.filename)]
        if len(found) != 1:
            raise FormatError("The zip file has {:,} .dae files; one is expected", len(found))
        return read_entry(archive, found[0], min(SIZE_LIMIT, limit or SIZE_LIMIT))


def _is_collada(path: str) -> bool:
    """Return whether an entry is a Collada file; macOS adds a file ``._x.dae`` with the attributes of each."""
    return path.lower().endswith(".dae") and not path.rpartition("/")[2].startswith("._")
