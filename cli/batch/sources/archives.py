"""Meshes inside the archives of OpenSim regions (.oar) and inventories (.iar), read without anything being unpacked.

Such an archive is a gzipped tar file. Its assets are called ``assets/<uuid>_<type>.<extension>``, a mesh
``assets/<uuid>_mesh.llmesh`` (``OpenSim/Framework/Serialization/ArchiveConstants.cs``), in tar's first layout, with one
and the same date for everything (``TarArchiveWriter.cs``). What else is inside is passed over.

An archive is read once from its start to its end, with bounds: what it inflates to, how many things are inside, how
large a mesh or a name is. Links and sparse files are never followed, and nothing is written to disk.
"""

from __future__ import annotations

import gzip
import re
import stat
import sys
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from ....io_formats import api
from ....io_formats.core.errors import FormatError
from ....io_formats.disk.atomic_write import refusal
from ...reporting import printable

EXTENSIONS = (".oar", ".iar")
"""What counts as an archive in a folder."""
_BY_NAME = (*EXTENSIONS, ".tar.gz", ".tgz", ".tar")
"""What counts as one where it is named: people pack them anew."""
MESH = ".llmesh"
"""Extension of the members that count."""

LARGEST_MEMBER = 256 * 2**20
"""Bytes of a mesh; those that can be uploaded have a hundredth of that."""
MOST_MEMBERS = 1_000_000
LEAST_INFLATED_LIMIT = 2**30
INFLATED_RATIO = 100
"""An archive may inflate to so many times its size, or to the limit above: textures hardly shrink, texts to a tenth."""
_LONGEST_HEADERS = 2**18
"""Bytes that stand in front of a member: names too long for tar's own header, and the like."""
_BLOCK = 2**16
_MANY_DIGITS = re.compile(rb"[0-9]{400}")
_LONGEST_SHOWN = 200
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Member:
    """A mesh inside an archive."""

    name: str
    """As the archive has it."""
    size: int
    modified: int
    """The archive's, in nanoseconds since 1970: OpenSim gives what is inside no date of its own."""
    content: bytes


def is_archive(path: str | Path) -> bool:
    """Tell from a path's extension whether it is that of an archive."""
    return str(path).lower().endswith(_BY_NAME)


def place_of(archive: str, member: str) -> str:
    """Return where a member belongs: ``land.oar`` and ``assets/x.llmesh`` give ``land/assets/x.llmesh``.

    Every part of the member's name becomes one that systems take for a file, so it stays below the archive's folder.
    """
    stem = next((archive[: -len(end)] for end in _BY_NAME if archive.lower().endswith(end)), archive)
    parts = [part for part in member.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
    *folders, name = parts or ["_"]
    plain = api.file_name(name[: -len(MESH)]) + MESH if name.lower().endswith(MESH) else api.file_name(name)
    return "/".join([stem, *map(api.file_name, folders), plain])


def members(path: str | Path, told: Callable[[str], None] | None = None) -> Generator[Member, None, None]:
    """Yield the meshes in an archive, in its order; each name once.

    Of several with one name the first counts, as in OpenSim, where what is stored under a UUID never changes.

    Parameters
    ----------
    told:
        Gets a sentence for whatever is left out: what is too large, links, names that come again.

    Raises
    ------
    FormatError
        The archive cannot be read, or not from some place on; what was yielded before is good.
    """
    path = Path(path)
    seen: set[int] = set()
    try:
        with ExitStack() as opened:
            archive, stream, modified = _open(path, opened)
            for info in _headers(archive, stream):
                if not info.name.lower().endswith(MESH) or info.isdir():
                    continue
                problem = _why_not(info, seen)
                seen.add(hash(info.name))
                if not problem:
                    with _in_words(info.offset_data):
                        content = stream.read_content(info.offset_data, info.size)
                    yield Member(info.name, info.size, modified, content)
                elif told is not None:
                    told(f"{_shown(info.name)} is left out: {problem}")
    except FormatError as problem:
        raise problem.in_file(str(path)) from None
    except OSError as problem:
        raise FormatError(f"The archive cannot be read: {refusal(problem)}", file=str(path)) from None


class ArchiveReader:
    """An archive whose members are asked for by name, in its order: the content for tasks.

    A context manager. Asking out of order is right, too, and slow: the archive is read again from its start.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._start()

    def _start(self) -> None:
        self._rest = members(self._path)
        self._passed: set[str] = set()
        self._ended: FormatError | None = None
        """What is said of members that are not among those passed, once there are no more."""

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(self, *_problem: object) -> None:
        self._rest.close()

    def content(self, name: str) -> bytes:
        """Return what is in a member.

        Raises
        ------
        FormatError
            It is not there (any more), or the archive cannot be read up to it.
        """
        if name in self._passed:
            self._rest.close()
            self._start()
        if self._ended is None:
            try:
                for member in self._rest:
                    self._passed.add(member.name)
                    if member.name == name:
                        return member.content
                self._ended = FormatError("It is not in the archive any more")
            except FormatError as problem:
                self._ended = problem
        raise FormatError(self._ended.message, offset=self._ended.offset, file=f"{self._path}: {_shown(name)}")


class _Forward:
    """A stream for ``tarfile`` that only goes on, by no more bytes than were agreed on, whatever the headers say."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._place = 0
        self.last = b""
        """What was read last of what stands in front of files."""
        self.start()

    def start(self) -> None:
        """Begin with the headers of the next file."""
        self._allowed = _LONGEST_HEADERS

    def tell(self) -> int:
        return self._place

    def seek(self, place: int) -> int:
        """Go on to a place, or to the end where it lies behind that."""
        if place < self._place:
            raise tarfile.StreamError
        while self._place < place and self._passed(self._stream.read(min(place - self._place, _BLOCK))):
            pass
        return self._place

    def read(self, size: int) -> bytes:
        """Read what stands in front of a file."""
        self._allowed -= size
        if self._allowed < 0:
            raise FormatError("What stands in front of a file in the archive is too long")
        self.last = data = self._passed(self._stream.read(size))
        if _MANY_DIGITS.search(data):  # Python 3.11.9 and older take hours to see that these are no number
            raise tarfile.ReadError
        return data

    def read_content(self, place: int, size: int) -> bytes:
        """Read a file."""
        self.seek(place)
        data = self._passed(self._stream.read(size))
        if len(data) < size:
            raise EOFError
        return data

    def _passed(self, data: bytes) -> bytes:
        self._place += len(data)
        if self._place > self._limit:
            raise FormatError(f"The archive inflates to more than {self._limit:,} bytes, which no real one does")
        return data


@contextmanager
def _in_words(place: int) -> Iterator[None]:
    """Say in one way all that ``tarfile`` and ``gzip`` raise at a place in the inflated archive."""
    try:
        yield
    except FormatError as problem:
        problem.offset = place
        raise
    except EOFError:
        raise FormatError("The archive is cut off here", offset=place) from None
    except (gzip.BadGzipFile, zlib.error, tarfile.TarError, ValueError, LookupError, ArithmeticError, RecursionError):
        what = "The archive is damaged here" if place else "This is not a gzipped tar file, as OpenSim's archives are"
        raise FormatError(what, offset=place) from None


def _open(path: Path, opened: ExitStack) -> tuple[tarfile.TarFile, _Forward, int]:
    """Open an archive for one passage; return it with its stream and the time of its change."""
    kind = path.stat()
    if not stat.S_ISREG(kind.st_mode):
        raise FormatError("This is not a file")
    raw = opened.enter_context(path.open("rb"))
    is_packed = raw.read(2) == _GZIP
    raw.seek(0)
    plain = cast("BinaryIO", opened.enter_context(gzip.GzipFile(fileobj=raw))) if is_packed else raw
    stream = _Forward(plain, max(LEAST_INFLATED_LIMIT, INFLATED_RATIO * kind.st_size))
    with _in_words(0):
        archive = tarfile.TarFile(fileobj=cast("BinaryIO", stream))
    return archive, stream, kind.st_mtime_ns


def _headers(archive: tarfile.TarFile, stream: _Forward) -> Iterator[tarfile.TarInfo]:
    """Yield what the members are, of all kinds."""
    for _ in range(MOST_MEMBERS):
        place = archive.offset
        stream.start()
        with _in_words(place):
            info = archive.next()
            if info is None and stream.last.strip(b"\0"):
                raise tarfile.ReadError  # a broken header passes for the end
            if info is None:
                stream.seek(sys.maxsize)  # to the end, where gzip keeps a checksum
                return
        archive.members = []  # type: ignore[attr-defined]  # or all would be kept
        yield info
    raise FormatError(f"There are more than {MOST_MEMBERS:,} files in the archive")


def _why_not(info: tarfile.TarInfo, seen: set[int]) -> str:
    """Say why a member with the name of a mesh does not count; nothing where it does."""
    if info.issym() or info.islnk():
        return "it is a link"
    if not info.isreg() or info.issparse():
        return "it is not a regular file"
    if not 0 <= info.size <= LARGEST_MEMBER:
        return f"its {info.size:,} bytes are more than the {LARGEST_MEMBER:,} that a mesh may have"
    return "it comes again, and the first counts" if hash(info.name) in seen else ""


def _shown(name: str) -> str:
    """Return a name out of an archive as a line can show it."""
    plain = printable(name)
    return plain if len(plain) <= _LONGEST_SHOWN else plain[:_LONGEST_SHOWN] + "…"
