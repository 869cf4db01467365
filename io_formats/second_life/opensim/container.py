"""The container of archives: a tar file that is read once from its start to its end, and XML and contents in it.

OpenSim writes the oldest tar layout, all members with the same date (``TarArchiveWriter.cs``); users also repack
archives with other programs. There are limits for the inflated size, the number of members and the size of each member
and its name, whatever the headers claim. Links and sparse files are not followed.
"""

import math
import os
import re
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self, TypeAlias, cast
from xml.etree.ElementTree import Element

from ...core.errors import FormatError, refusal
from ...core.messages import Report, Text, counted
from ...encodings.xml_files import parse_xml

Opener: TypeAlias = Callable[[], BinaryIO]
"""Opens an archive at its start; called again for each pass. The stream can seek."""

LARGEST_ASSET = 256 * 2**20
"""Bytes of an asset; meshes that can be uploaded have a hundredth of that."""
MOST_MEMBERS = 1_000_000
LEAST_INFLATED_LIMIT = 2**30
INFLATED_RATIO = 100
"""An archive may inflate to this multiple of its size, or to the limit above. Text shrinks to a tenth."""
_LONGEST_HEADERS = 2**18
"""Bytes of the headers of a member, such as names too long for the standard header."""
_PIECE = 2**20
"""Bytes of a member that are read at a time."""
_BLOCK = 2**16
"""Bytes that are skipped or inflated at a time."""
_PACKED = 2**15
"""Bytes of the file that are read at a time; the rest of them is copied at the end of each gzip stream."""
_MOST_STREAMS = 1_000_000
_MANY_DIGITS = re.compile(rb"[0-9]{400}")
_GZIP = b"\x1f\x8b"
_DAMAGE = (zlib.error, tarfile.TarError, ValueError, LookupError, ArithmeticError, RecursionError)
"""Exceptions of ``zlib`` and ``tarfile`` for damaged files."""


def file_opener(path: str | Path) -> Opener:
    """Return a function that opens the file at a path, which must be a regular file."""

    def open_file() -> BinaryIO:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FormatError("This is not a file")
        return open(path, "rb")

    return open_file


def archive_members(
    open_archive: Opener,
    limit_of: Callable[[str], int],
    on_skip: Callable[[str, Text], None] | None = None,
    *,
    inflated_limit: int | None = None,
    report: Report | None = None,
) -> Generator[tuple[str, bytes | None], None, None]:
    """Yield the names of the files in an archive in their order, each with its content if that is wanted.

    A wanted name is yielded once: of several members with the same name the first is used, as in OpenSim, where the
    asset of a UUID never changes.

    Parameters
    ----------
    limit_of:
        Returns the largest size in bytes that is accepted for a member of a name; 0 if its content is not wanted.
    on_skip:
        Called with name and reason for each member that is left out: a link, a device, or a wanted one that is too
        large or has a repeated name.
    inflated_limit:
        Maximum inflated size of the archive (default: the larger of 1 GiB and 100 times its size).
    report:
        Receives a note if bytes follow the archive.

    Raises
    ------
    FormatError
        The archive is unreadable from some offset on; members yielded before are valid.
    """
    seen: set[int] = set()
    offset = None
    try:
        with _opened(open_archive, inflated_limit, report) as stream:
            offset = 0
            archive = tarfile.TarFile(fileobj=cast("BinaryIO", stream), encoding="utf-8")
            for _ in range(MOST_MEMBERS):
                offset = archive.offset
                info = _next_header(archive, stream)
                if info is None:
                    return
                if info.isdir():
                    continue
                limit = limit_of(info.name)
                skipped = _why_not(info, limit, seen)
                if limit:
                    seen.add(hash(info.name))
                if not skipped:
                    offset = info.offset_data
                    yield info.name, stream.read_content(offset, info.size) if limit else None
                elif on_skip is not None:
                    on_skip(info.name, skipped)
        problem = FormatError("There are more than {:,} files in the archive", MOST_MEMBERS)
    except FormatError as error:
        problem = error
    except EOFError:
        offset = stream.tell()
        problem = FormatError("The archive is cut off here")
    except _DAMAGE:
        if offset:
            problem = FormatError("The archive is damaged here")
        else:
            problem = FormatError("This is not a gzipped tar file, as OpenSim's archives are")
    except OSError as error:
        raise FormatError("The archive cannot be read: {}", refusal(error)) from None
    problem.offset = offset
    raise problem from None


class _Inflated:
    """The inflated content of one or more gzip streams that follow each other."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._inflater = zlib.decompressobj(wbits=31)
        self._input = b""
        self._streams_left = _MOST_STREAMS
        self.rest = 0
        """Number of bytes after the last stream."""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, empty at the end; raise EOFError if a stream is cut off."""
        data = b""
        while not data and (not self._inflater.eof or self._start_next()):
            packed = self._inflater.unconsumed_tail or self._input or self._packed.read(_PACKED)
            self._input = b""
            if not packed:
                raise EOFError
            data = self._inflater.decompress(packed, size)
        return data

    def _start_next(self) -> bool:
        """Return whether another stream follows."""
        after = self._inflater.unused_data
        if len(after) < len(_GZIP):
            after += self._packed.read(_PACKED)
        if not after.startswith(_GZIP):
            position = self._packed.tell()
            self.rest = len(after) + self._packed.seek(0, os.SEEK_END) - position
            return False
        self._streams_left -= 1
        if not self._streams_left:
            raise FormatError("The archive has more than {:,} gzip streams", _MOST_STREAMS)
        self._inflater = zlib.decompressobj(wbits=31)
        self._input = after
        return True


class _Forward:
    """A forward-only stream for ``tarfile`` that limits the bytes it reads, whatever the headers claim."""

    def __init__(self, stream: BinaryIO | _Inflated, limit: int, report: Report) -> None:
        self._stream = stream
        self._limit = limit
        self._report = report
        self._offset = 0
        self._last = b""
        """The last header bytes that were read."""
        self.start()

    def start(self) -> None:
        """Allow the headers of the next member."""
        self._allowed = _LONGEST_HEADERS

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> int:
        """Skip to an offset; raise EOFError if the stream is shorter."""
        if offset < self._offset:
            raise tarfile.StreamError
        while self._offset < offset:
            if not self._piece(min(offset - self._offset, _BLOCK)):
                raise EOFError
        return self._offset

    def read(self, size: int) -> bytes:
        """Read header bytes."""
        self._allowed -= size
        if self._allowed < 0:
            raise FormatError("The headers of a file in the archive are too long")
        self._last = data = b"".join(self._pieces(size))
        if _MANY_DIGITS.search(data):  # Python 3.11.9 and older take hours to reject these as a number
            raise tarfile.ReadError
        return data

    def read_content(self, offset: int, size: int) -> bytes:
        """Read the content of a member."""
        self.seek(offset)
        data = b"".join(self._pieces(size))
        if len(data) < size:
            raise EOFError
        return data

    def finish(self) -> None:
        """Check that the last header was the mark of the end, and read on to the end, where gzip stores a checksum."""
        if self._last.strip(b"\0"):  # tarfile takes a broken header for the end
            raise EOFError if len(self._last) < tarfile.BLOCKSIZE else tarfile.ReadError
        if not self._last and not isinstance(self._stream, _Inflated):
            raise EOFError  # without gzip's checksum, a file that lacks the mark may be cut off
        while self._piece(_BLOCK):
            pass
        if isinstance(self._stream, _Inflated) and self._stream.rest:
            self._report.note("bytes-after-end", "{} after the gzip stream ignored", counted(self._stream.rest, "byte"))

    def _pieces(self, size: int) -> Iterator[bytes]:
        """Yield the next bytes in pieces, since a single read would allocate all that a header claims."""
        end = self._offset + size
        while self._offset < end and (piece := self._piece(min(end - self._offset, _PIECE))):
            yield piece

    def _piece(self, size: int) -> bytes:
        """Read up to ``size`` bytes; none at the end."""
        data = self._stream.read(size)
        self._offset += len(data)
        if self._offset > self._limit:
            raise FormatError("The archive inflates to more than {:,} bytes, the limit for its size", self._limit)
        return data


@contextmanager
def _opened(open_archive: Opener, inflated_limit: int | None, report: Report | None) -> Iterator[_Forward]:
    """Open an archive for reading once."""
    with open_archive() as raw:
        size = raw.seek(0, os.SEEK_END)
        raw.seek(0)
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        limit = max(LEAST_INFLATED_LIMIT, INFLATED_RATIO * size) if inflated_limit is None else inflated_limit
        yield _Forward(_Inflated(raw) if is_packed else raw, limit, report or Report())


def _next_header(archive: tarfile.TarFile, stream: _Forward) -> tarfile.TarInfo | None:
    """Return the next header, or None at the end."""
    stream.start()
    if archive.firstmember is None and archive.offset:  # type: ignore[attr-defined]  # the first one was read before
        stream.seek(archive.offset)
    info = archive.next()
    archive.members = []  # type: ignore[attr-defined]  # otherwise all would be stored
    if info is None:
        stream.finish()
    return info


def _why_not(info: tarfile.TarInfo, limit: int, seen: set[int]) -> Text | None:
    """Return the reason for skipping a member."""
    if info.issym() or info.islnk():
        return Text("it is a link")
    if not info.isreg() or info.issparse():
        return Text("it is not a regular file")
    if not limit:
        return None
    if not 0 <= info.size <= limit:
        return Text("its {:,} bytes are more than the {:,} that are read", info.size, limit)
    return Text("its name occurs twice; the first one is used") if hash(info.name) in seen else None


class ContentStore:
    """Contents by key. Close the store, or use it as a context manager, to delete its temporary file.

    Parameters
    ----------
    limit:
        Number of bytes that are held in memory.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._contents: dict[str, bytes | tuple[int, int]] = {}
        """The bytes, or their offset and length in the file."""
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget all contents and delete the temporary file."""
        self._contents.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, key: str, content: bytes) -> None:
        """Store a content; the first one of a key is kept.

        Raises
        ------
        FormatError
            There is no space for the temporary file.
        """
        if key in self._contents:
            return
        if len(content) <= self._left:
            self._left -= len(content)
            self._contents[key] = content
            return
        try:
            if self._file is None:
                self._file = cast("BinaryIO", tempfile.TemporaryFile(prefix="meshferry-"))  # noqa: SIM115 (see close)
            start = self._file.seek(0, 2)
            self._file.write(content)
        except OSError as error:
            raise FormatError("The temporary file for the assets cannot be written: {}", refusal(error)) from None
        self._contents[key] = start, len(content)

    def get(self, key: str) -> bytes | None:
        """Return a content, or None if there is none of this key.

        Raises
        ------
        FormatError
            The temporary file cannot be read.
        """
        found = self._contents.get(key)
        if not isinstance(found, tuple) or self._file is None:
            return found if isinstance(found, bytes) else None
        start, size = found
        try:
            self._file.seek(start)
            return self._file.read(size)
        except OSError as error:
            raise FormatError("The temporary file for the assets cannot be read: {}", refusal(error)) from None


_MOST_TAGS = 2_000_000
"""Limit of the number of ``<`` in a member. A part has about 220, and each thing in its contents 60."""
_MOST_ATTRIBUTES = 500_000
"""Limit of the number of ``=`` in a member, each of which takes as long as 20 elements. A part has about a dozen, in
namespaces and base64."""
_FORBIDDEN = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]"
    rb"|&#(?:x0*(?:1?[0-9a-f]|d[89a-f][0-9a-f]{2}|fff[ef])|0*(?:[12]?[0-9]|3[01]));",
    re.IGNORECASE,
)
"""Control characters, and references to these and to surrogates. OpenSim's reader and writer do not check them."""
_REPEATED_PREFIX = re.compile(rb"(?:xmlns:){2,}")
"""OpenSim writes such prefixes, which is not XML, and repairs them before it parses."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LONGEST_NAME = 255


@dataclass
class Allowance:
    """How much XML may still be parsed, shared by all members of an archive: small files can inflate to hours of it."""

    tags: int = 50_000_000
    """Number of ``<``."""
    attributes: int = 5_000_000
    """Number of ``=``."""

    def spend(self, data: bytes) -> None:
        """Subtract a member; raise FormatError if it is too large, or more than is left."""
        tags, attributes = data.count(b"<"), data.count(b"=")
        if tags > _MOST_TAGS or attributes > _MOST_ATTRIBUTES:
            raise FormatError("The XML file is too large")
        self.tags -= tags
        self.attributes -= attributes
        if self.tags < 0 or self.attributes < 0:
            raise FormatError("The XML in the archive is too large")


def parse_member(data: bytes, allowance: Allowance | None = None) -> Element:
    """Return the root element of a member.

    Members of which an archive may have many share an ``allowance``.

    Raises
    ------
    FormatError
        It is not well-formed, even without forbidden characters; it is too large, or has a document type.
    """
    (allowance or Allowance()).spend(data)
    data = _REPEATED_PREFIX.sub(b"xmlns:", data)
    try:
        return parse_xml(data, encoding="utf-8")
    except FormatError:
        repaired = _FORBIDDEN.sub(b"", data.decode("utf-8", "replace").encode())
        if repaired == data:
            raise
        return parse_xml(repaired, encoding="utf-8")


def text_of(element: Element | None) -> str:
    """Return the text of an element; empty if there is none."""
    return (element.text if element is not None else None) or ""


def name_of(element: Element | None) -> str:
    """Return a name, which is cut off where it is too long."""
    return text_of(element)[:LONGEST_NAME].strip()


def uuid_of(element: Element | None) -> str:
    """Return the UUID in an element, or in an element in it, in lower case; empty if it is not one."""
    if element is not None and len(element):
        element = element[0]
    text = text_of(element).strip().lower()
    return text if _UUID.fullmatch(text) else ""


def number(text: str) -> float:
    """Return a number, which may be infinite; 0 for an empty text, and NaN for one that is not a number."""
    try:
        return float(text or "0")
    except ValueError:
        return math.nan


def integer(text: str, default: int) -> int:
    """Return an integer; the default if the text is not one."""
    try:
        return int(text)
    except ValueError:
        return default
