"""Compression of messages, recognition by content, and the limit of the inflated size."""

from __future__ import annotations

import gzip
import random
import re
import tracemalloc
import zlib

import models
import oracle
import pytest
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.timbermesh.model import codec, container
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH


@pytest.fixture(scope="module")
def message() -> bytes:
    return codec.serialise(models.model(models.mesh_node(), models.node("#Slot#Entrance", 0)))


def raw_deflate(content: bytes, level: int = 6) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, -15)
    return stream.compress(content) + stream.flush()


def sniffs(data: bytes) -> bool:
    return TIMBERMESH.sniff(data[: registry.HEAD_SIZE], len(data))


def content_of(document: object) -> bytes:
    return oracle.inflate(TIMBERMESH.write(document))


def test_written_files_begin_with_the_one_header_the_game_takes(message: bytes) -> None:
    document = TIMBERMESH.read(oracle.deflate(message))
    for compression in ("FAST", "BALANCED", "SMALL"):
        document.compression = compression
        written = TIMBERMESH.write(document)
        assert written[:2] == b"\x78\x9c"
        assert zlib.decompress(written) == message  # checks the Adler-32, and that the stream ends
        stream = zlib.decompressobj()
        stream.decompress(written)
        assert stream.eof
        assert stream.unused_data == b""


@pytest.mark.parametrize("compression", ["FAST", "BALANCED", "SMALL"])
@pytest.mark.parametrize("size", [0, 1, 1024 * 1024, 1024 * 1024 + 1, 9 * 1024 * 1024 + 5])
def test_large_messages_make_one_stream(size: int, compression: str) -> None:
    content = random.Random(size).randbytes(size // 2) + bytes(size - size // 2)
    packed = container.pack(content, compression)
    assert zlib.decompress(packed) == content
    assert packed == container.pack(content, compression)
    assert container.unpack(packed).content == content


def test_missing_checksum_is_accepted_silently(message: bytes) -> None:
    document = TIMBERMESH.read(oracle.deflate(message)[:-4])
    assert document.warnings == []
    assert content_of(document) == message


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_cut_checksum_is_told(message: bytes, kept: int) -> None:
    document = TIMBERMESH.read(oracle.deflate(message)[: kept - 4])
    assert document.warnings == [f"{kept} byte{'s' * (kept > 1)} after the stream ignored"]


def test_wrong_checksum_is_told(message: bytes) -> None:
    for position in (-1, -4):
        data = bytearray(oracle.deflate(message))
        data[position] ^= 0x55
        assert TIMBERMESH.sniff(bytes(data), len(data))
        warnings = TIMBERMESH.read(bytes(data)).warnings
        assert len(warnings) == 1
        assert "checksum is wrong" in warnings[0]


@pytest.mark.parametrize(("level", "header"), [(0, "78 01"), (1, "78 01"), (4, "78 5e"), (9, "78 da")])
def test_other_levels_are_read_and_told(message: bytes, level: int, header: str) -> None:
    data = oracle.deflate(message, level)
    assert data[:2].hex(" ") == header
    assert sniffs(data)
    document = TIMBERMESH.read(data)
    assert len(document.warnings) == 1
    assert header in document.warnings[0]
    assert content_of(document) == message


@pytest.mark.parametrize("window", range(9, 16))
def test_other_windows_are_read(message: bytes, window: int) -> None:
    stream = zlib.compressobj(6, zlib.DEFLATED, window)
    data = stream.compress(message) + stream.flush()
    assert sniffs(data)
    assert content_of(TIMBERMESH.read(data)) == message


def test_any_deflate_level_behind_the_usual_header(message: bytes) -> None:
    for level in range(10):
        data = b"\x78\x9c" + raw_deflate(message, level)
        assert sniffs(data)
        assert TIMBERMESH.read(data).warnings == []


def test_preset_dictionary_is_refused(message: bytes) -> None:
    stream = zlib.compressobj(zdict=b"BaseWood_Brown.Folktails")
    data = stream.compress(message) + stream.flush()
    assert data[1] & 32
    with pytest.raises(FormatError, match="expected a zlib stream"):
        TIMBERMESH.read(data)


def test_gzip(message: bytes) -> None:
    data = gzip.compress(message)
    assert sniffs(data)
    assert content_of(TIMBERMESH.read(data)) == message
    assert TIMBERMESH.read(data + b"tail").warnings == ["4 bytes after the gzip stream ignored"]
    with pytest.raises(FormatError, match="damaged"):
        TIMBERMESH.read(data[:-5] + b"\0" + data[-4:])
    assert not sniffs(gzip.compress(b"#!/bin/sh"))


def test_bare_message(message: bytes) -> None:
    assert message[0] == 0x1A
    assert sniffs(message)
    document = TIMBERMESH.read(message)
    assert document.warnings == ["The file is not compressed; the game does not load it until it is exported again"]
    assert content_of(document) == message
    for beginning in (oracle.scalar(1, 3), oracle.chunk(2, "Lodge"), oracle.scalar(1, 3) + oracle.chunk(2, "Lodge")):
        assert sniffs(beginning + message)
        assert len(TIMBERMESH.read(beginning + message).nodes) == 2


def test_bare_message_needs_lengths_that_fit() -> None:
    assert not sniffs(b"\x1a\x7fhello")
    assert not sniffs(b"\x12\x05hello, world")
    assert not sniffs(b"\x1a" + b"\xff" * 10)
    assert not sniffs(b"\x08")
    assert not sniffs(b"\x08\x80\x01")
    assert not sniffs(b"")


@pytest.mark.parametrize(
    ("before", "quote"), [("  _bytes: ", ""), ("_bytes: ", "'"), ("  - _bytes: ", '"'), ("\t_bytes: !!binary ", "")]
)
def test_prefab_text(message: bytes, before: str, quote: str) -> None:
    inner = oracle.deflate(message)
    for digits in (inner.hex(), inner.hex().upper()):
        text = f"%YAML 1.1\n--- !u!114 &1\nMonoBehaviour:\n  m_Name: Lodge\n{before}{quote}{digits}{quote}\n  x: 1\n"
        data = text.encode()
        assert sniffs(data)
        assert content_of(TIMBERMESH.read(data)) == message
        assert content_of(TIMBERMESH.read(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))) == message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("m_Name: Lodge", "_bytes"),
        ("  _bytes: ", "_bytes"),
        ("  _bytes: 789", "middle of a byte"),
        ("  _bytes: 789c", "cut off"),
        ("  _bytes: 00112233", "not contain a zlib stream"),
    ],
)
def test_prefab_without_a_model(line: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        TIMBERMESH.read(f"%YAML 1.1\nMonoBehaviour:\n{line}\n".encode())


def test_prefab_of_one_long_line_takes_no_time() -> None:
    for filler in (b" ", b"-", b"\t", b"_bytes", b"_bytes: ", b"\n   ", b"\n- "):
        with pytest.raises(FormatError):
            TIMBERMESH.read(b"%YAML 1.1\n" + filler * 500_000)


def test_bytes_after_the_stream(message: bytes) -> None:
    document = TIMBERMESH.read(oracle.deflate(message) + b"abc")
    assert document.warnings == ["3 bytes after the stream ignored"]
    assert content_of(document) == message


@pytest.mark.parametrize("data", [b"", b"x", b"\x78\x9d\0\0", b"\x79\x9c\0\0\0", b"OBJ\n", bytes(64)])
def test_other_content_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="expected a zlib stream"):
        TIMBERMESH.read(data)
    assert not sniffs(data)


def test_inflated_limit(message: bytes) -> None:
    data = oracle.deflate(message)
    assert len(TIMBERMESH.read(data, inflated_limit=len(message)).nodes) == 2
    with pytest.raises(FormatError, match="inflates to more than"):
        TIMBERMESH.read(data, inflated_limit=len(message) - 1)
    with pytest.raises(FormatError, match="inflates to more than"):
        TIMBERMESH.read(gzip.compress(message), inflated_limit=len(message) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [oracle.deflate, gzip.compress])
def test_bombs_do_not_go_off(wrap: object) -> None:
    bomb = wrap(bytes(300_000_000))  # type: ignore[operator]
    assert len(bomb) < 400_000
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"inflates to more than 67,108,864 bytes"):
            TIMBERMESH.read(bomb)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()


def test_limit_grows_with_the_file() -> None:
    noise = random.Random(1).randbytes(2_000_000)
    content = noise + bytes(100_000_000)
    assert container.unpack(oracle.deflate(content)).content == content


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"", "empty"),
        (b"glTF\2\0\0\0", "glTF"),
        (b"PK\3\4", "zip"),
        (b"BLENDER-v405", "blend"),
        (b"version https://git-lfs.github.com/spec/v1", "git lfs pull"),
        (b"Kaydara FBX Binary", "FBX"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\xff\xfe\xfd", "not a format that Meshferry reads"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "it looks like a PNG image"),
        (b"\x89HDF\r\n\x1a\n\0\0", "it looks like a MED mesh"),
        (b"\nMeshVersionFormatted 2\n", "it looks like an INRIA mesh"),
        (b"v 1.0 2.0 3.0\n", "it looks like plain text"),
        ("vögel und bäume".encode(), "it looks like plain text"),
        ("é".encode() * 9 + b"\xc3", "it looks like plain text"),
        (b"text\0with a zero", "not a format that Meshferry reads"),
        (b"\xe4\xf6\xfc" * 9, "not a format that Meshferry reads"),
    ],
)
def test_other_content_is_called_by_its_name(head: bytes, said: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=re.escape(said) + "$" if "reads" in said else re.escape(said)):
        registry.by_content(head, len(head))


def test_formats_by_name_and_extension() -> None:
    assert registry.by_name("timbermesh") is TIMBERMESH
    with pytest.raises(UnsupportedFormatError, match="known are"):
        registry.by_name("obj")
    for extension in (".timbermesh", "timbermesh", ".MESHY"):
        assert registry.by_extension(extension) is TIMBERMESH
    assert registry.by_extension(".obj") is None
    assert registry.by_extension("") is None
