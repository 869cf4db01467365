"""An independent reading of Timbermesh files: protobuf's own parser, a schema typed from the format page, plain zlib.

Nothing here comes from ``io_formats``. ``Mesh.indices`` is what the page says, ``repeated int32``, whereas the codec
describes it as bytes and decodes the varints itself.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshfuzz import wire
from meshfuzz.wire import varint
from timbermesh_oracle import message_class


def parse(content: bytes, name: str = "Model") -> Any:
    """Parse an inflated file with protobuf."""
    message = message_class(name)()
    message.ParseFromString(content)
    return message


def inflate(data: bytes) -> bytes:
    """Inflate a .timbermesh as the game does: two bytes of header, raw deflate, whatever follows."""
    return zlib.decompressobj(-15).decompress(data[2:])


def deflate(content: bytes, level: int = 6) -> bytes:
    """Wrap a message in the container."""
    return zlib.compress(content, level)


# -- wire format by hand ------------------------------------------------------------------------


def tag(number: int, kind: int) -> bytes:
    return varint(number << 3 | kind)


def scalar(number: int, value: int) -> bytes:
    return wire.number(number, value).encode()


def chunk(number: int, content: bytes | str) -> bytes:
    """Encode a string, bytes, packed or message field."""
    return wire.Field(number, wire.BYTES, content.encode() if isinstance(content, str) else content).encode()


def real(number: int, value: float) -> bytes:
    return wire.Field(number, wire.FIXED32, struct.pack("<f", value)).encode()


def packed(values: Sequence[int]) -> bytes:
    return b"".join(varint(value) for value in values)


def floats(values: Sequence[float]) -> bytes:
    """Encode a Vector3Float or QuaternionFloat, zero components left out."""
    return wire.encode(wire.floats(*values))


# -- interpreters of their own ------------------------------------------------------------------


def environment(**more: str) -> dict[str, str]:
    """Return the environment in which an interpreter finds the tests' modules and what MESHFERRY_SITE brings."""
    kept = {name: value for name, value in os.environ.items() if name != "MESHFERRY_SITE"}
    tests = Path(__file__).resolve().parents[2]
    folders = [str(tests), str(tests / "oracles"), str(tests / "fuzz"), os.environ.get("MESHFERRY_SITE", "")]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept | more


# -- the samples' README ------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """One row of the table of facts."""

    file: str
    bytes: int
    nodes: int
    roots: int
    vertices: int
    triangles: int
    materials: int
    submeshes: int
    layers: frozenset[str]
    animations: str


def facts_table(folder: Path) -> list[Facts]:
    """Read the facts that an independent probe found in the samples."""
    rows = []
    for line in (folder / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 11 and cells[1].isdigit():
            numbers = [int(cell) for cell in cells[1:8]]
            rows.append(Facts(cells[0], *numbers, frozenset(cells[8].split()), cells[9]))
    return rows
