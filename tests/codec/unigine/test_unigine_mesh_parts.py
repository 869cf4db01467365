"""The small encodings below UNIGINE's meshes: compact integers, strings, LZ4 blocks, records, bone tables."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.encodings import lz4_block
from meshferry.io_formats.encodings.byte_reader import ByteStream
from meshferry.io_formats.encodings.records import record_starts
from meshferry.io_formats.unigine import bones, space
from meshferry.io_formats.unigine import values as unigine_values
from python_steps import python_steps

EDGES = [
    (0, "00"),
    (24, "18"),
    (62, "3e"),
    (63, "bf00"),  # one byte more than needed, as the engine does
    (64, "8001"),
    (126, "be01"),
    (8190, "be7f"),
    (8191, "bfff00"),
    (8192, "808001"),
    (56376, "b8f006"),
    (1048574, "beff7f"),
    (1048575, "bfffff00"),
    (134217726, "beffff7f"),
    (134217727, "bfffffff00"),
    (2147483647, "bfffffff0f"),
    (-1, "41"),
    (-62, "7e"),
    (-63, "ff00"),
]


@pytest.mark.parametrize(("value", "stored"), EDGES)
def test_compact_integers_have_the_engines_length(value: int, stored: str) -> None:
    data = bytes.fromhex(stored)
    assert unigine_values.encode_integer(value) == data
    stream = ByteStream(data + b"\x99")
    assert unigine_values.read_integer(stream, "n") == value
    assert stream.position == len(data)


@pytest.mark.parametrize(("value", "stored"), [(63, "3f"), (8191, "bf7f"), (1048575, "bfff7f"), (0, "8000"), (0, "40")])
def test_short_and_long_forms_are_read_too(value: int, stored: str) -> None:
    data = bytes.fromhex(stored)
    assert unigine_values.read_integer(ByteStream(data), "n") == value
    assert unigine_values.read_integers(ByteStream(data * 3), 3, "n").tolist() == [value] * 3


def test_many_compact_integers_are_those_of_one_by_one() -> None:
    values = [value for value, _ in EDGES] * 7
    data = b"".join(bytes.fromhex(stored) for _, stored in EDGES) * 7
    assert unigine_values.encode_integers(values) == data
    stream = ByteStream(b"?" + data + b"\xff")
    stream.position = 1
    decoded = unigine_values.read_integers(stream, len(values), "n")
    assert decoded.dtype == np.int32
    assert decoded.tolist() == values
    assert stream.remaining == 1


@pytest.mark.parametrize("stored", ["80", "bfffffff", "8080808080", "808080808000", "bfffffff10", "80808080ff01"])
def test_broken_compact_integers_are_refused(stored: str) -> None:
    data = bytes.fromhex(stored)
    with pytest.raises(FormatError):
        unigine_values.read_integer(ByteStream(data), "n")
    with pytest.raises(FormatError):
        unigine_values.read_integers(ByteStream(data), 1, "n")


def test_numbers_beyond_the_range_are_not_written() -> None:
    with pytest.raises(ExportError):
        unigine_values.encode_integer(2**31)


def test_counts_are_compared_with_the_bytes_left() -> None:
    with pytest.raises(FormatError, match="2,147,483,647 things, which do not fit into the 3 bytes"):
        unigine_values.read_count(ByteStream(bytes.fromhex("bfffffff0f") + b"abc"), "things", size=1)
    with pytest.raises(FormatError, match="claims -1 things"):
        unigine_values.read_count(ByteStream(b"\x41abc"), "things", size=1)


def test_strings() -> None:
    assert unigine_values.encode_string("") == b"\x01\0"
    assert unigine_values.encode_string("Кот") == b"\x07\xd0\x9a\xd0\xbe\xd1\x82\0"
    assert unigine_values.read_string(ByteStream(b"\x07\xd0\x9a\xd0\xbe\xd1\x82\0"), "it") == "Кот"
    assert unigine_values.read_string(ByteStream(b"\x00rest"), "it") == ""
    assert unigine_values.encode_long_string("ab") == b"\x03\0\0\0ab\0"
    assert unigine_values.read_long_string(ByteStream(b"\x03\0\0\0ab\0"), "it") == "ab"
    stream = ByteStream(b"\x04\xcf\xf0z\0")
    assert unigine_values.read_string(stream, "the name") == "\\xcf\\xf0z"
    assert "not UTF-8" in stream.report.messages[0]


@pytest.mark.parametrize("data", [b"\x03abc", b"\x03a\0\0", b"\x05abc\0", b"\x41", b"\xc1\x40" + bytes(4097), b""])
def test_broken_strings_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        unigine_values.read_string(ByteStream(data), "the name")


def test_strings_that_no_reader_takes_are_not_written() -> None:
    for text in ("a\0b", "x" * 4096):
        with pytest.raises(ExportError):
            unigine_values.encode_string(text)


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (b"\x50hello", b"hello"),
        (b"\x00", b""),
        (b"\xf0\x05" + b"x" * 20, b"x" * 20),  # 15 + 5 literals
        (b"\xf0\xff\x00" + b"y" * 270, b"y" * 270),  # 15 + 255 + 0
        (b"\x32abc\x03\x00\x10!", b"abcabcabc!"),  # 6 bytes from 3 back: they overlap
        (b"\x1fz\x01\x00\x03\x10.", b"z" * 23 + b"."),  # a run: 15 + 3 + 4 from 1 back
        (b"\x1fz\x01\x00\xff\x00\x00", b"z" * 275),  # 15 + 255 + 0 + 4
        (b"\x60abcdef\x04\x00\x10#", b"abcdefcdef#"),  # 4 from 4 back: just not overlapping
    ],
)
def test_lz4_blocks(block: bytes, content: bytes) -> None:
    assert lz4_block.decode(block, len(content)) == content
    for size in (len(content) - 1, len(content) + 1):
        if size >= 0:
            with pytest.raises(FormatError, match="compressed data is damaged"):
                lz4_block.decode(block, size)


@pytest.mark.parametrize(
    "block",
    [
        b"",  # nothing comes out
        b"\x50hell",  # literals beyond the end
        b"\xf0",  # the length of the literals is cut off
        b"\xf0\xff",
        b"\x10a\x01",  # the distance is cut off
        b"\x1fa\x01\x00",  # the length of the copy is cut off
        b"\x10a\x00\x00",  # distance 0
        b"\x10a\x02\x00",  # from before the start
        b"\x0f\x01\x00\x00",
    ],
)
def test_broken_lz4_blocks_are_refused(block: bytes) -> None:
    with pytest.raises(FormatError, match="compressed data is damaged"):
        lz4_block.decode(block, 5)


def test_lz4_blocks_of_small_sequences_decode_fast_enough() -> None:
    """Sequences of 8 literals and a copy of 20: 11 bytes become 28."""
    count = 100_000
    block = (b"\x8fabcdefgh\x08\x00\x01") * count + b"\x00"
    assert len(lz4_block.decode(block, 28 * count)) == 28 * count
    assert python_steps(lambda: lz4_block.decode(block, 28 * count)) < 35 * count


def one_by_one(data: bytes, count: int, sizes: list[int]) -> tuple[list[int], int]:
    place, starts = 0, []
    for _ in range(count):
        starts.append(place)
        place += sizes[data[place]]
    return starts, place


@pytest.mark.parametrize("seed", range(12))
def test_records_are_found_as_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 42, 256)
    if seed % 3 == 0:  # chains that never meet: every record 12 long, and then some 6 long
        sizes[:] = 12
        sizes[128:] = 6 if seed % 2 else 12
    if seed % 3 == 1:
        sizes = 1 + 4 * (np.arange(256) % 5)
    data = random.integers(0, 256, 300_000).astype(np.uint8)
    if seed % 4 == 3:  # long runs between the mixed ones
        data[50_000:200_000] = 7
    count = len(data) // int(sizes.max()) - 1
    starts, end = record_starts(data, count, sizes)
    assert (starts.tolist(), end) == one_by_one(data.tobytes(), count, sizes.tolist())


def test_few_records_are_found_as_one_by_one() -> None:
    random = np.random.default_rng(1)
    for count in (*range(1, 40), 200, 700):
        sizes = random.integers(1, 42, 256)
        data = random.integers(0, 256, 42 * count).astype(np.uint8)
        starts, end = record_starts(data, count, sizes)
        assert (starts.tolist(), end) == one_by_one(data.tobytes(), count, sizes.tolist())
        with pytest.raises(FormatError, match="cut off or damaged"):
            record_starts(data[: end - (1 if sizes[data[starts[-1]]] > 1 else 2)], count, sizes)


def test_records_that_never_meet_are_followed_from_every_entry() -> None:
    """Bytes 3 and 5 alternate so that an even entry always stays even and an odd one odd."""
    data = np.full(100_000, 4, np.uint8)
    data[1::2] = 2
    sizes = np.arange(256)
    starts, end = record_starts(data, 24_000, sizes)
    assert end == 96_000
    assert (starts == 4 * np.arange(24_000)).all()
    mixed = np.concatenate((np.array([3], np.uint8), np.array([9, 9], np.uint8), data[1:]))
    starts, end = record_starts(mixed, 40_000, sizes)
    assert (starts.tolist(), end) == one_by_one(mixed.tobytes(), 40_000, sizes.tolist())


def test_records_beyond_the_end_and_unknown_ones_are_refused() -> None:
    sizes = np.zeros(256, np.intp)
    sizes[:5] = 1 + 4 * np.arange(5)
    data = np.frombuffer(b"\x01abcd\x00\x05abcd", np.uint8)
    assert record_starts(data, 2, sizes)[1] == 6
    with pytest.raises(FormatError, match="number 3 of 3 things starts with 5") as refusal:
        record_starts(data, 3, sizes, what="things")
    assert refusal.value.offset == 6
    with pytest.raises(FormatError, match="0 of 2 things are whole"):
        record_starts(data[:3], 2, sizes, what="things")
    with pytest.raises(FormatError, match="0 of 1 things are whole"):
        record_starts(data[:3], 1, sizes, what="things")
    with pytest.raises(FormatError, match="do not fit"):
        record_starts(data, 10**15, sizes)
    with pytest.raises(FormatError, match="cut off"):
        record_starts(np.full(10_000, 4, np.uint8), 9_999, sizes)
    assert record_starts(data[:0], 0, sizes)[1] == 0


def table(*rows: tuple[str, int]) -> list[bones.Bone]:
    return [bones.Bone(name, parent) for name, parent in rows]


def test_bone_tables_may_have_children_first_and_several_roots() -> None:
    wanted = table(("hand", 1), ("arm", 3), ("prop", -1), ("body", -1))
    data = b"\x05hand\0\x01\0\x04arm\0\x03\0\x05prop\0\xff\xff\x05body\0\xff\xff"
    assert bones.encode_table(wanted) == data
    assert bones.read_table(ByteStream(data), 4) == wanted


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", 0)], "'a' is its own ancestor"),
        ([("a", -1), ("b", 2), ("c", 1)], "its own ancestor"),
        ([("a", 1), ("b", 2), ("c", 0)], "its own ancestor"),
        ([("a", 1)], "parent of bone 'a' is bone 1, but only bones 0 to 0"),
        ([("a", -2)], "parent of bone 'a' is bone -2"),
    ],
)
def test_parents_that_form_no_trees_are_refused(rows: list[tuple[str, int]], said: str) -> None:
    data = b"".join(unigine_values.encode_string(name) + struct.pack("<h", parent) for name, parent in rows)
    with pytest.raises(FormatError, match=said):
        bones.read_table(ByteStream(data), len(rows))
    with pytest.raises(ExportError, match=said):
        bones.encode_table(table(*rows))


def test_long_chains_of_bones_are_quickly_checked() -> None:
    rows = [bones.Bone("", parent) for parent in range(1, 32767)] + [bones.Bone("", -1)]
    assert bones.read_table(ByteStream(bones.encode_table(rows)), len(rows)) == rows


def test_oddities_of_bones_are_told_once() -> None:
    rest = np.array([[0, 0, 0, 0, 0, 0, 1, 1, 1, 1]] * 3, np.float32)
    report = Report()
    bones.report_oddities(table(("a", -1), ("b", 0), ("c", 0)), rest, report)
    assert report.messages == []
    rest[1, 6] = 0.5
    bones.report_oddities(table(("a", -1), ("b", 0), ("a", 0)), rest, report)
    assert len(report.messages) == 2
    assert "'a'" in report.messages[0]
    assert "'b'" in report.messages[1]
    rest[2, 0] = np.nan
    with pytest.raises(FormatError, match="bone 'a' holds a number that is not finite") as refusal:
        bones.read_transforms(ByteStream(rest.tobytes()), table(("x", -1), ("b", 0), ("a", 0)))
    assert refusal.value.offset == 80


def test_bounds_have_the_farthest_vertex_as_radius() -> None:
    points = np.array([[0, 0, 0], [4, 0, 0], [2, 3, 0], [0, 2, 0]], np.float32)
    # Centre (2, 1.5, 0); from there the corners at y = 0 are the farthest: 2.5 (half the diagonal is 2.5, too).
    assert space.of_points(points).tolist() == [0, 0, 0, 4, 3, 0, 2, 1.5, 0, 2.5]
    cross = np.array([[0, 1, 0], [2, 1, 0], [1, 0, 0], [1, 2, 0]], np.float32)
    assert space.of_points(cross)[9] == 1  # half the diagonal would be 1.41
    empty = space.of_points(points[:0])
    assert empty.tolist() == space.empty_bounds().tolist() == [1e9] * 3 + [-1e9] * 3 + [0, 0, 0, -1]
    both = space.union_of_bounds([space.of_points(points), empty, space.of_points(cross - np.float32(3))])
    assert both[:6].tolist() == [-3, -3, -3, 4, 3, 0]
    every = np.concatenate((points, cross - np.float32(3)))
    assert np.linalg.norm(every - both[6:9], axis=1).max() <= both[9] * (1 + 1e-6)
    assert space.union_of_bounds([]).tolist() == empty.tolist()


def test_the_cursor_never_reads_past_the_end() -> None:
    stream = ByteStream(b"\x01\x02\x03\x04\x05", item="thing")
    assert stream.array(np.uint16, 2, "numbers").tolist() == [0x0201, 0x0403]
    with pytest.raises(FormatError, match=r"thing: .*it ends within numbers \(at byte 4\)"):
        stream.i16("numbers")
    with pytest.raises(FormatError, match="8,000,000,000,000 bytes"):
        stream.array(np.float64, (10**6, 10**6), "numbers")
    with pytest.raises(FormatError, match="negative"):
        stream.array(np.uint8, -1, "numbers")
    assert stream.array(np.float32, (0, 3), "numbers").shape == (0, 3)
    with pytest.raises(FormatError, match="1 bytes follow"):
        stream.expect_end()
    assert stream.u8("last") == 5
    stream.expect_end()
    assert not ByteStream(bytearray(8)).array(np.uint8, 8, "x").flags.writeable
