"""Face count of a binary .fbx file; only its polygons are decoded.

A file is a tree of records behind a head of 27 bytes. A record is the offset of its end, the number of its properties
and their size in bytes (each 4 bytes, from version 7500 on 8), its name behind its length in one byte, the properties,
and the records below it, of which an empty one is the last. A property is a letter for its type and its value.

``Objects`` has a record ``Geometry`` for each mesh: its first property is the identifier, ``PolygonVertexIndex`` below
it an array of vertices in which the last one of each face is negative. ``Connections`` has a record ``C`` for each pair
of a child and its parent, such as a mesh and an object.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_MAGIC = b"Kaydara FBX Binary  \0\x1a\0"
_HEAD_BYTES = 27
_FIRST_WIDE_VERSION = 7500
_MOST_PACKED = 1032
"""Largest ratio of decompressed to compressed size in zlib."""
_INTEGERS = {"Y": "<h", "I": "<i", "L": "<q"}
_TEXTS = "SR"


@dataclass(frozen=True)
class _Record:
    name: bytes
    properties: int
    """Offset of the record's first property."""
    children: int
    """Offset of the first child record."""
    end: int


def count(path: Path) -> int | None:
    """Return the number of faces, once for each object that uses a mesh; None for other and damaged files.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data).count() if data[: len(_MAGIC)] == _MAGIC else None
    except (ValueError, LookupError, struct.error, zlib.error):
        return None  # Blender's importer reports the damage.


class _Reader:
    """Walks through the records of one file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        (version,) = struct.unpack_from("<I", data, len(_MAGIC))
        self._head = struct.Struct("<QQQB" if version >= _FIRST_WIDE_VERSION else "<IIIB")

    def count(self) -> int:
        faces: dict[int, int] = {}
        users: Counter[int] = Counter()
        for top in self._records(_HEAD_BYTES, len(self._data)):
            for record in self._records(top.children, top.end) if top.name in (b"Objects", b"Connections") else ():
                if record.name == b"Geometry":
                    (identifier,) = self._identifiers(record, 1)
                    faces[identifier] = sum(map(self._faces, self._records(record.children, record.end)))
                elif record.name == b"C":
                    users[self._identifiers(record, 2)[0]] += 1
        return sum(number * users[identifier] for identifier, number in faces.items())

    def _records(self, start: int, end: int) -> Iterator[_Record]:
        """Yield the sibling records that start at an offset; an empty record ends them."""
        while start + self._head.size <= end:
            record_end, _, size, length = self._head.unpack_from(self._data, start)
            if not record_end:
                return
            properties = start + self._head.size + length
            if not properties + size <= record_end <= end:
                raise ValueError("a record that is not in its parent")
            name = self._data[start + self._head.size : properties]
            yield _Record(name, properties, properties + size, record_end)
            start = record_end

    def _identifiers(self, record: _Record, wanted: int) -> list[int]:
        """Return the integers among the first properties of a record; strings are skipped."""
        found: list[int] = []
        at = record.properties
        while len(found) < wanted and at < record.children:
            kind = chr(self._data[at])
            if kind in _TEXTS:
                at += 5 + struct.unpack_from("<I", self._data, at + 1)[0]
            else:
                layout = _INTEGERS[kind]
                found += struct.unpack_from(layout, self._data, at + 1)
                at += 1 + struct.calcsize(layout)
        if len(found) < wanted:
            raise ValueError("a record without identifiers")
        return found

    def _faces(self, record: _Record) -> int:
        """Return the number of faces in a ``PolygonVertexIndex`` record, 0 for other records."""
        if record.name != b"PolygonVertexIndex" or self._data[record.properties] != ord("i"):
            return 0
        count, is_packed, size = struct.unpack_from("<III", self._data, record.properties + 1)
        content = self._data[record.properties + 13 : record.properties + 13 + size]
        if is_packed:
            if 4 * count > _MOST_PACKED * size:
                raise ValueError("an array larger than its packed content can be")
            content = zlib.decompressobj().decompress(content, 4 * count)
        return int(np.count_nonzero(np.frombuffer(content, "<i4", count) < 0))
