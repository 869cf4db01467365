"""Packed varints against protobuf's own parser and serialiser."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.timbermesh.model import wire

INT32 = st.integers(-(2**31), 2**31 - 1)
NEAR_LIMITS = st.sampled_from([2 ** (7 * n) + d for n in range(1, 5) for d in (-1, 0, 1)] + [0, 1, 2**31 - 1])
INDICES = st.one_of(st.integers(0, 255), NEAR_LIMITS, st.integers(0, 2**31 - 1))


def theirs(content: bytes) -> list[int] | None:
    """Return protobuf's reading of a packed run; None where it refuses."""
    try:
        return list(oracle.parse(oracle.chunk(1, content), "Mesh").indices)
    except Exception:
        return None


@given(st.lists(INDICES))
def test_written_as_protobuf_writes(values: list[int]) -> None:
    content = wire.encode_varints(np.array(values, np.int32))
    message = oracle.message_class("Mesh")(indices=values)
    assert message.SerializeToString() == (oracle.chunk(1, content) if values else b"")
    assert wire.decode_varints(content).tolist() == values


@given(st.lists(st.one_of(INT32, INDICES)))
def test_negative_numbers_are_read(values: list[int]) -> None:
    decoded = wire.decode_varints(oracle.packed(values))
    assert decoded.dtype == np.int32
    assert decoded.tolist() == values == (theirs(oracle.packed(values)) or [])


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 10))))
def test_padded_and_long_numbers(values: list[tuple[int, int]]) -> None:
    content = b"".join(oracle.varint(value, width) for value, width in values)
    assert wire.decode_varints(content).tolist() == theirs(content)


@settings(max_examples=500)
@given(st.binary(max_size=40))
def test_any_bytes(content: bytes) -> None:
    expected = theirs(content)
    try:
        found = wire.decode_varints(content).tolist()
    except FormatError:
        assert expected is None
    else:
        # protobuf may refuse what overflows 64 bits; nothing else may be read that it does not read
        assert found == expected or (expected is None and _has_overflow(content))


def _has_overflow(content: bytes) -> bool:
    run = 0
    for byte in content:
        run += 1
        if byte < 128:
            if run == 10 and byte > 1:
                return True
            run = 0
    return False


@pytest.mark.parametrize("length", [11, 12, 30])
def test_numbers_of_more_than_ten_bytes(length: int) -> None:
    with pytest.raises(FormatError, match="more than 10 bytes"):
        wire.decode_varints(b"\x80" * (length - 1) + b"\x01")


@pytest.mark.parametrize("cut", [1, 2, 9, 10, 11])
def test_cut_numbers(cut: int) -> None:
    with pytest.raises(FormatError, match="cut off"):
        wire.decode_varints(b"\x05" + b"\x80" * cut)


def test_more_values_than_a_block() -> None:
    """The passes go block by block; runs across the borders come out whole, in both directions."""
    source = np.random.default_rng(3)
    for count in (wire._BLOCK - 1, wire._BLOCK, wire._BLOCK + 1, 2 * wire._BLOCK + 17):
        values = source.integers(0, 2**31 - 1, count, dtype=np.int32) >> source.integers(0, 31, count, dtype=np.int32)
        content = wire.encode_varints(values)
        assert content == oracle.message_class("Mesh")(indices=values.tolist()).SerializeToString()[-len(content) :]
        np.testing.assert_array_equal(wire.decode_varints(content), values)
    small = np.full(wire._BLOCK + 5, 7, np.int32)
    assert wire.encode_varints(small) == b"\x07" * len(small)
    np.testing.assert_array_equal(wire.decode_varints(b"\x07" * len(small)), small)


def test_nothing() -> None:
    assert wire.decode_varints(b"").tolist() == []
    assert wire.decode_varints(b"").dtype == np.int32
    assert wire.encode_varints(np.empty(0, np.int32)) == b""
