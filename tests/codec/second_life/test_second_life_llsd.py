"""Binary LLSD against the ``llsd`` library, and against bytes written out by hand where that cannot go."""

from __future__ import annotations

import math
import struct
import tracemalloc
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.second_life.models import llsd, llsd_arrays
from meshferry.io_formats.second_life.models.llsd import URI, Allowance, Date, RawString
from second_life_bytes import binary, plain

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=12)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False),
    st.uuids(),
    st.binary(max_size=20),
    TEXT,
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)


def typed(value: Any) -> Any:
    """Return a value in which 1, 1.0 and True differ, and so do maps in another order."""
    if isinstance(value, dict):
        return [(key, typed(inner)) for key, inner in value.items()]
    return [typed(inner) for inner in value] if isinstance(value, list) else (type(value).__name__, value)


@given(VALUES)
def test_written_as_the_library_writes(value: Any) -> None:
    assert llsd.write(value) == binary(value)


@given(VALUES, st.binary(max_size=5), st.binary(max_size=5))
def test_read_as_the_library_reads(value: Any, before: bytes, behind: bytes) -> None:
    content = binary(value)
    found, end = llsd.read(before + content + behind, start=len(before))
    assert typed(found) == typed(plain(content)) == typed(value)
    assert end == len(before) + len(content)


@settings(max_examples=400)
@given(VALUES, st.data())
def test_damaged_bytes_are_refused_or_read_alike(value: Any, data: st.DataObject) -> None:
    content = bytearray(binary(value))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from(b"!10irubsld[]{}k'\"\0\xff\\"))
    try:
        found, _ = llsd.read(bytes(content))
    except FormatError:
        return
    try:
        theirs = plain(bytes(content))
    except Exception:  # the library refuses strings that are not UTF-8 and dates beyond its calendar
        assert has(found, (RawString, Date)) or r"\udc" in repr(found)
        return
    if not has(found, (Date, URI, RawString)) and repr(found).find("nan") < 0 and b"\\" not in content:
        assert typed(found) == typed(theirs)


def has(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, dict):
        return any(has(inner, kinds) for inner in value.values())
    return any(has(inner, kinds) for inner in value) if isinstance(value, list) else isinstance(value, kinds)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"d" + struct.pack("<d", 1e9), Date(1e9)),
        (b"l\0\0\0\x03a:b", URI("a:b")),
        (b"s\0\0\0\x02\xda\x78", RawString(b"\xda\x78")),
        (b"b\0\0\0\x02\xda\x78", b"\xda\x78"),
        (b"u" + bytes(range(16)), uuid.UUID(bytes=bytes(range(16)))),
        (b"i\xff\xff\xff\xfe", -2),
        (b"r\x3f\xe0" + bytes(6), 0.5),
        (b"{\0\0\0\x01k\0\0\0\x02\xc3\x28!}", {"\udcc3(": None}),
    ],
)
def test_bytes_written_out_by_hand(content: bytes, wanted: Any) -> None:
    found, end = llsd.read(content)
    assert (type(found), found, end) == (type(wanted), wanted, len(content))
    assert llsd.write(found) == content


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"'plain'", "plain"),
        (b'"it\'s"', "it's"),
        (rb"'it\'s'", "it's"),
        (rb"'a\\'", "a\\"),
        (rb"'tab\tx'", "tab\tx"),
        (rb"'\x41\x7e'", "A~"),
        (b"{\0\0\0\x02'a'i\0\0\0\x01\"b\"'c'}", {"a": 1, "b": "c"}),
    ],
)
def test_strings_of_old_servers(content: bytes, wanted: Any) -> None:
    assert llsd.read(content + b"'") == (wanted, len(content))
    assert plain(content) == wanted


@pytest.mark.parametrize("content", [b"'open", b"'open\\", rb"'\x4", rb"'\xgg'", b"\"other'", rb"'\'"])
def test_broken_strings_of_old_servers(content: bytes) -> None:
    with pytest.raises(FormatError, match="damaged"):
        llsd.read(content)


def test_no_number_is_a_number_like_others() -> None:
    payload = b"r\x7f\xf8\0\0\0\0\x12\x34"
    value, _ = llsd.read(payload)
    assert math.isnan(value)
    assert llsd.write(value) == payload


def test_the_order_of_a_map_is_kept_and_can_be_sorted() -> None:
    value = {"b": 1, "a": 2, "\u00e9": 3, "Z": 4}
    assert list(llsd.read(llsd.write(value))[0]) == list(value)
    assert list(llsd.sorted_map(value)) == ["Z", "a", "b", "\u00e9"]


def test_the_last_of_two_equal_keys_counts() -> None:
    assert llsd.read(b"{\0\0\0\x02k\0\0\0\x01a0k\0\0\0\x01a1}")[0] == {"a": True}


@pytest.mark.parametrize("opening", [b"[\0\0\0\x01", b"{\0\0\0\x01k\0\0\0\0"])
def test_96_levels_are_the_most(opening: bytes) -> None:
    closing = b"]" if opening[:1] == b"[" else b"}"
    llsd.read(opening * 96 + b"!" + closing * 96)
    with pytest.raises(FormatError, match="96 levels"):
        llsd.read(opening * 97 + b"!" + closing * 97)
    value: Any = None
    for _ in range(97):
        value = [value]
    llsd.write(value[0])
    with pytest.raises(ExportError, match="96 levels"):
        llsd.write(value)


@pytest.mark.parametrize("marker", ["[", "{", "b", "s", "l", "{k"])
@pytest.mark.parametrize("length", [20, 2**28, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_length_that_lies_takes_no_memory(marker: str, length: int) -> None:
    content = b"{\0\0\0\x01k" if marker == "{k" else marker.encode()
    content = (content + struct.pack(">I", length)).ljust(20, b"!")
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="damaged.*do not fit" if marker in "[{" else "damaged"):
            llsd.read(content)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_too_many_values_are_refused() -> None:
    content = b"[" + struct.pack(">I", 100_000) + b"!" * 100_000 + b"]"
    with pytest.raises(FormatError, match="too many values"):
        llsd.read(content)
    shared = Allowance(100_001)
    assert len(llsd.read(content, allowance=shared)[0]) == 100_000
    with pytest.raises(FormatError, match="too many values"):
        llsd.read(b"!", allowance=shared)


def test_the_beginning_of_a_map_says_what_is_whole() -> None:
    content = binary({"a": 1, "b": [1, 2], "c": "text"})
    assert llsd.first_pairs(content) == ({"a": 1, "b": [1, 2], "c": "text"}, None)
    cut = content.rindex(b"text") + 2
    assert llsd.first_pairs(content[:cut]) == ({"a": 1, "b": [1, 2]}, ("c", "s"))
    assert llsd.first_pairs(content[: content.index(b"[") + 7]) == ({"a": 1}, ("b", "["))
    assert llsd.first_pairs(b"[") == ({}, None)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, {1, 2}, object()])
def test_what_cannot_be_stored_is_refused(value: Any) -> None:
    with pytest.raises(ExportError):
        llsd.write([value])


def test_half_characters_do_not_stop_the_writer() -> None:
    assert llsd.write("a\ud83d") == b"s\0\0\0\x02a?"


def test_reals_are_widened_from_single_precision() -> None:
    assert llsd_arrays.singles([0.1, 1.0]) == [float(np.float32(0.1)), 1.0]
    assert llsd.write(np.float64(0.5)) == b"r\x3f\xe0" + bytes(6)
    assert llsd.write(np.int32(7)) == b"i\0\0\0\x07"
