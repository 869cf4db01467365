"""The container: a zlib stream around the protobuf message, and the other containers that real files have.

See docs/formats/timbermesh.md, container. The game compares the header with ``78 9C`` and ignores the checksum, which
105 of 964 real files lack.
"""

import re
import zlib
from dataclasses import dataclass, field

from ...core.errors import FormatError
from ...core.messages import Report, counted

DEFAULT_INFLATED_LIMIT = 64 * 1024 * 1024
DEFAULT_INFLATED_RATIO = 64
"""Largest accepted ratio of inflated to compressed size; the largest in real files is 7.1."""

HEADER = b"\x78\x9c"
GZIP_MAGIC = b"\x1f\x8b"
FIRST_TAGS = b"\x08\x12\x1a"
"""First byte of a bare message: field 1 (version), 2 (name) or 3 (nodes)."""

_PREFAB_BYTES = rb"(?m)^[ \t-]*_bytes:[ \t]*(?:!!binary[ \t]*)?['\"]?([0-9a-fA-F]*)"

_SMALL = 1 << 20
_MEDIUM = 8 << 20
_CHUNK = 1 << 18

_LEVELS = {"FAST": (1, 1, 1), "BALANCED": (9, 6, 1), "SMALL": (9, 9, 9)}
"""Deflate levels of small, medium and large models.

Large models consist mostly of floating-point numbers: level 1 gives 1 % more bytes than level 6 in a third of the time
(measured with a million triangles).
"""


@dataclass(eq=False, repr=False)
class Unpacked:
    """The message inside a file, and warnings about its container."""

    content: bytes
    report: Report = field(default_factory=Report)


def has_zlib_header(data: bytes) -> bool:
    """Return whether the first two bytes are a zlib header without a preset dictionary."""
    return (
        len(data) >= 2
        and data[0] & 15 == 8
        and data[0] >> 4 <= 7
        and (data[0] * 256 + data[1]) % 31 == 0
        and not data[1] & 32
    )


def is_prefab(data: bytes) -> bool:
    """Return whether the data is a Unity text asset, which holds a model as hexadecimal digits."""
    return data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%YAML") or b"_bytes:" in data[:4096]


def unpack(data: bytes, inflated_limit: int | None = None) -> Unpacked:
    """Return the protobuf message inside a file in any supported container.

    Raises
    ------
    FormatError
        Unknown container, damaged or truncated stream, or more than ``inflated_limit`` bytes.
    """
    limit = inflated_limit or max(DEFAULT_INFLATED_LIMIT, DEFAULT_INFLATED_RATIO * len(data))
    if has_zlib_header(data):
        return _unpack_zlib(data, limit)
    if data.startswith(GZIP_MAGIC):
        content, rest = _inflate(data, 0, 31, limit)
        unpacked = Unpacked(content)
        if rest:
            unpacked.report.loss("bytes-after-end", "{} after the gzip stream ignored", counted(rest, "byte"))
        return unpacked
    if data[:1] and data[:1] in FIRST_TAGS:
        unpacked = Unpacked(data)
        text = "The file is not compressed; the game does not load it until it is exported again"
        unpacked.report.change("not-compressed", text)
        return unpacked
    if is_prefab(data):
        return _unpack_prefab(data, limit)
    raise FormatError(
        "Not a Timbermesh file: expected a zlib stream, but the data starts with {}",
        data[:4].hex(" ") or "nothing",
        offset=0,
    )


def _unpack_zlib(data: bytes, limit: int) -> Unpacked:
    """Inflate a zlib stream; other headers, a wrong checksum and further bytes are reported."""
    content, rest = _inflate(data, 2, -15, limit)
    unpacked = Unpacked(content)
    if data[:2] != HEADER:
        template = "The zlib header is {}, not 78 9c; the game does not load it until it is exported again"
        unpacked.report.change("other-zlib-header", template, data[:2].hex(" "))
    if rest >= 4:
        start = len(data) - rest
        if int.from_bytes(data[start : start + 4], "big") != zlib.adler32(content):
            text = "The checksum is wrong: the file may be damaged (the game ignores the checksum)"
            unpacked.report.change("wrong-checksum", text)
    if rest not in (0, 4):
        ignored = rest - 4 if rest > 4 else rest
        unpacked.report.loss("bytes-after-end", "{} after the stream ignored", counted(ignored, "byte"))
    return unpacked


def _unpack_prefab(data: bytes, limit: int) -> Unpacked:
    found = re.search(_PREFAB_BYTES, data)
    if found is None or not found[1]:
        raise FormatError("A Unity text asset without a line '_bytes: …'; it does not contain a Timbermesh model")
    digits = found[1]
    if len(digits) % 2:
        raise FormatError("The line '_bytes: …' ends in the middle of a byte", offset=found.end())
    inner = bytes.fromhex(digits.decode("ascii"))
    if not has_zlib_header(inner):
        raise FormatError("The line '_bytes: …' does not contain a zlib stream", offset=found.start(1))
    return _unpack_zlib(inner, limit)


def _inflate(data: bytes, start: int, window: int, limit: int) -> tuple[bytes, int]:
    """Inflate one complete stream; return it with the number of bytes after it."""
    stream = zlib.decompressobj(window)
    try:
        content = stream.decompress(memoryview(data)[start:], limit + 1)
    except zlib.error as problem:
        raise FormatError("The compressed data is damaged ({})", _reason(problem), offset=start) from None
    if len(content) > limit:
        raise FormatError("The data inflates to more than {:,} bytes; it is damaged or hostile", limit, offset=start)
    if not stream.eof:
        raise FormatError("The file is cut off: its compressed data is incomplete", offset=len(data))
    return content, len(stream.unused_data)


def _reason(problem: zlib.error) -> str:
    return str(problem).rpartition(": ")[2]


def pack(content: bytes, compression: str = "BALANCED") -> bytes:
    """Compress a message into a file that the game loads: ``78 9C``, deflate, Adler-32.

    Small messages are deflated in one piece. Larger ones are deflated in parallel, in chunks of a fixed size, so that
    the same input gives the same bytes on every machine. Each chunk ends with a full flush, so that their concatenation
    is one stream.
    """
    size = len(content)
    level = _LEVELS[compression][0 if size <= _SMALL else 1 if size <= _MEDIUM else 2]
    view = memoryview(content)
    if size <= _SMALL:
        bodies = [_deflate(view, level, last=True)]
    else:
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and small files do not need it

        starts = range(0, size, _CHUNK)
        with ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(_deflate, view[start : start + _CHUNK], level, last=start == starts[-1]) for start in starts
            ]
            bodies = [job.result() for job in jobs]
    return b"".join((HEADER, *bodies, zlib.adler32(content).to_bytes(4, "big")))


def _deflate(chunk: memoryview, level: int, *, last: bool) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, -15, 9)
    return stream.compress(chunk) + stream.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)
