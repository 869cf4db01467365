"""Meshes and animations in the archives of OpenSim regions (.oar) and inventories (.iar), read without unpacking them.

Such an archive is a gzipped tar file. Its assets are called ``assets/<uuid>_<type>.<extension>``, a mesh
``assets/<uuid>_mesh.llmesh``, an animation ``assets/<uuid>_animation.bvh``, although its content is not BVH
(``OpenSim/Framework/Serialization/ArchiveConstants.cs``), in the oldest tar layout, all with the same date
(``TarArchiveWriter.cs``). Other members are ignored.

An archive is read once from its start to its end, with limits for its inflated size, the number of members and the
size of an asset or a name. Links and sparse files are not followed.
"""

from __future__ import annotations

import gzip
import re
import stat
import sys
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ....io_formats.core.errors import FormatError, refusal
from ....io_formats.disk.file_names import file_name
from ...reporting import shortened

EXTENSIONS = (".oar", ".iar")
"""Extensions of archives in a searched folder."""
_BY_NAME = (*EXTENSIONS, ".tar.gz", ".tgz", ".tar")
"""Extensions of archives that are named one by one: users also repack them."""
ENDINGS = {".llmesh": ".llmesh", ".anim": "_animation.bvh"}
"""Extensions of files -> endings of the names that such files have as members of archives."""

LARGEST_MEMBER = 256 * 2**20
"""Bytes of an asset; meshes that can be uploaded have a hundredth of that."""
MOST_MEMBERS = 1_000_000
LEAST_INFLATED_LIMIT = 2**30
INFLATED_RATIO = 100
"""An archive may inflate to this multiple of its size, or to the limit above. Text shrinks to a tenth."""
_LONGEST_HEADERS = 2**18
"""Bytes of the headers of a member, such as names too long for the standard header."""
_BLOCK = 2**16
_MANY_DIGITS = re.compile(rb"[0-9]{400}")
_GZIP = b"\x1f\x8b"
_DAMAGE = (gzip.BadGzipFile, zlib.error, tarfile.TarError, ValueError, LookupError, ArithmeticError, RecursionError)
"""Exceptions of ``gzip`` and ``tarfile`` for damaged files."""


def is_archive(path: str | Path) -> bool:
    """Return whether a path has the extension of an archive."""
    return str(path).lower().endswith(_BY_NAME)


def place_of(archive: str, member: str) -> str:
    """Return the output path of a member: ``land/assets/x.llmesh`` for ``assets/x.llmesh`` in ``land.oar``.

    Every part of the member's name is made a valid file name, so the path stays below the archive's folder.
    """
    stem = next((archive[: -len(end)] for end in _BY_NAME if archive.lower().endswith(end)), archive)
    parts = [part for part in member.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
    *folders, name = parts or ["_"]
    ending = next((ending for ending in ENDINGS.values() if name.lower().endswith(ending)), "")
    plain = file_name(name[: len(name) - len(ending)]) + ending
    return "/".join([stem, *map(file_name, folders), plain])


def endings_of(extensions: Iterable[str]) -> tuple[str, ...]:
    """Return the ends of the names of members that are files of these extensions."""
    return tuple(ENDINGS[extension] for extension in extensions if extension in ENDINGS)


def members(
    path: str | Path,
    on_skip: Callable[[str], None] | None = None,
    endings: Iterable[str] = tuple(ENDINGS.values()),
) -> Generator[tuple[str, bytes], None, None]:
    """Yield the names and contents of the meshes and animations in an archive in their order, each name once.

    Of several members with the same name the first is used, as in OpenSim, where the asset of a UUID never changes.

    Parameters
    ----------
    on_skip:
        Called with a message for each skipped asset: too large, a link, or a repeated name.
    endings:
        Ends of the names of members to read.

    Raises
    ------
    FormatError
        The archive is unreadable from some offset on; members yielded before are valid.
    """
    seen: set[int] = set()
    wanted = tuple(endings)
    offset = None
    try:
        with _open(Path(path)) as stream:
            offset = 0
            archive = tarfile.TarFile(fileobj=cast("BinaryIO", stream))
            for _ in range(MOST_MEMBERS):
                offset = archive.offset
                info = _next_header(archive, stream)
                if info is None:
                    return
                if not info.name.lower().endswith(wanted) or info.isdir():
                    continue
                skipped = _why_not(info, seen)
                seen.add(hash(info.name))
                if not skipped:
                    offset = info.offset_data
                    yield info.name, stream.read_content(offset, info.size)
                elif on_skip is not None:
                    on_skip(f"{shortened(info.name)} is left out: {skipped}")
        problem = f"There are more than {MOST_MEMBERS:,} files in the archive"
    except FormatError as error:
        problem = error.message
    except EOFError:
        problem = "The archive is cut off here"
    except _DAMAGE:
        problem = (
            "The archive is damaged here" if offset else "This is not a gzipped tar file, as OpenSim's archives are"
        )
    except OSError as error:
        raise FormatError("The archive cannot be read: {}", refusal(error), file=str(path)) from None
    raise FormatError(problem, offset=offset, file=str(path))


class ArchiveReader:
    """Reads members of an archive by name.

    Any order works, but another one than that of the archive is slow: each time, it is read again from its start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._members = members(path)
        self._passed: set[str] = set()
        self._end = FormatError("It is not in the archive any more")
        """The error for all members that were not found before the end of the archive."""

    def content(self, name: str) -> bytes:
        """Return the content of a member.

        Raises
        ------
        FormatError
            The member is missing, or the archive cannot be read up to it.
        """
        if name in self._passed:
            self._members, self._passed = members(self._path), set()
        try:
            for found, content in self._members:
                self._passed.add(found)
                if found == name:
                    return content
        except FormatError as problem:
            self._end = problem
        raise FormatError(self._end.message, offset=self._end.offset, file=f"{self._path}: {shortened(name)}")


class _Forward:
    """A forward-only stream for ``tarfile`` that limits the bytes it reads, whatever the headers claim."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._offset = 0
        self.last = b""
        """The last header bytes that were read."""
        self.start()

    def start(self) -> None:
        """Allow the headers of the next member."""
        self._allowed = _LONGEST_HEADERS

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> int:
        """Skip to an offset, or to the end if the stream is shorter."""
        if offset < self._offset:
            raise tarfile.StreamError
        while self._offset < offset and self._count(self._stream.read(min(offset - self._offset, _BLOCK))):
            pass
        return self._offset

    def read(self, size: int) -> bytes:
        """Read header bytes."""
        self._allowed -= size
        if self._allowed < 0:
            raise FormatError("The headers of a file in the archive are too long")
        self.last = data = self._count(self._stream.read(size))
        if _MANY_DIGITS.search(data):  # Python 3.11.9 and older take hours to reject these as a number
            raise tarfile.ReadError
        return data

    def read_content(self, offset: int, size: int) -> bytes:
        """Read the content of a member."""
        self.seek(offset)
        data = self._count(self._stream.read(size))
        if len(data) < size:
            raise EOFError
        return data

    def _count(self, data: bytes) -> bytes:
        self._offset += len(data)
        if self._offset > self._limit:
            raise FormatError("The archive inflates to more than {:,} bytes, the limit for its size", self._limit)
        return data


@contextmanager
def _open(path: Path) -> Iterator[_Forward]:
    """Open an archive for reading once."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FormatError("This is not a file")
    with path.open("rb") as raw:
        is_packed = raw.peek(2)[:2] == _GZIP
        plain = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if is_packed else raw
        yield _Forward(plain, max(LEAST_INFLATED_LIMIT, INFLATED_RATIO * status.st_size))


def _next_header(archive: tarfile.TarFile, stream: _Forward) -> tarfile.TarInfo | None:
    """Return the next header, or None at the end."""
    stream.start()
    info = archive.next()
    archive.members = []  # type: ignore[attr-defined]  # otherwise all would be stored
    if info is None and stream.last.strip(b"\0"):
        raise tarfile.ReadError  # tarfile takes a broken header for the end
    if info is None:
        stream.seek(sys.maxsize)  # to the end, where gzip stores a checksum
    return info


def _why_not(info: tarfile.TarInfo, seen: set[int]) -> str:
    """Return the reason for skipping a member with the name of an asset, or an empty string."""
    if info.issym() or info.islnk():
        return "it is a link"
    if not info.isreg() or info.issparse():
        return "it is not a regular file"
    if not 0 <= info.size <= LARGEST_MEMBER:
        return f"its {info.size:,} bytes are more than the {LARGEST_MEMBER:,} that an asset may have"
    return "its name occurs twice; the first one is used" if hash(info.name) in seen else ""
