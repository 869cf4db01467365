"""Long texts of numbers -> arrays.

A text is parsed in pieces of some hundred kilobytes, which bounds the memory. NumPy parses numbers fast, but does not
notice an invalid one in every version, so that a piece is checked first. A piece that has one is parsed word by word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray, IntArray
from ...geometry.transforms import Matrix

_PIECE = 2**18
"""Length of the pieces in characters."""
_SPACE = re.compile(r"[ \t\r\n]")
"""The blanks of XML. Others, such as no-break spaces, are parts of words."""
_NOT_A_NUMBER = re.compile(r"[+-]?\d*\.?#\S*")
"""NaN and infinity as C libraries of Windows write them: ``-1.#IND``."""
_MOST_DIGITS = 18
"""Number of digits up to which every integer fits into 64 bits."""
_POWERS = 10.0 ** np.arange(23)
"""The powers of ten that 64-bit floats hold exactly."""
_INT32 = np.iinfo(np.int32)

_Values = npt.NDArray[Any]


def floats(text: str | None) -> FloatArray:
    """Return the numbers of a text as (N,) float32; a word that is not a number becomes NaN."""
    return np.asarray(_array(text, _decimals, np.float32))


def exact_floats(text: str | None) -> Matrix:
    """Return the numbers of a text as (N,) float64, for matrices; a word that is not a number becomes NaN."""
    return np.asarray(_array(text, lambda _piece: None, np.float64))


def integers(text: str | None) -> IntArray:
    """Return the integers of a text as (N,) int32; a word that is not a number becomes -1."""
    return np.asarray(_array(text, _integers, np.int32))


def integer(text: str | None) -> int:
    """Return a non-negative integer from the text of an attribute; 0 if the text is not one."""
    values = integers(text)
    return max(int(values[0]), 0) if len(values) else 0


def _array(text: str | None, parse: Callable[[bytes], _Values | None], kind: type) -> Any:
    text = text or ""
    arrays, start = [], 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE)
        end = space.start() if space else len(text)
        arrays.append(_piece(text[start:end], parse, kind))
        start = end
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _piece(text: str, parse: Callable[[bytes], _Values | None], kind: type) -> _Values:
    raw = text.encode("ascii", "replace")
    values = parse(raw)
    if values is None:
        values = _by_word(raw)
    with np.errstate(over="ignore"):
        if kind is not np.int32:
            return values.astype(kind)
        finite = np.where(np.isfinite(values), values, -1)
        return np.clip(finite, _INT32.min, _INT32.max).astype(np.int32)


def _by_word(raw: bytes) -> Matrix:
    words = _NOT_A_NUMBER.sub("nan", raw.decode().replace(",", ".")).split()
    try:
        return np.array(list(map(float, words)), np.float64)
    except ValueError:
        return np.array([_number(word) for word in words], np.float64)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan


def _integers(raw: bytes) -> _Values | None:
    """Parse a piece of text that contains only integers; return None if it contains anything else."""
    codes = np.frombuffer(raw, np.uint8)
    digits = (codes - np.uint8(48)) < 10
    spaces = codes <= 32
    if not digits.any():
        return np.empty(0, np.int64) if spaces.all() else None
    others = np.flatnonzero(~(digits | spaces))
    if len(others):
        if others[-1] + 1 == len(codes) or not np.isin(codes[others], (43, 45)).all():
            return None
        if not digits[others + 1].all() or not spaces[others[others > 0] - 1].all():
            return None
    return np.fromstring(raw, np.int64, sep=" ")


def _decimals(raw: bytes) -> _Values | None:
    """Parse a piece of text that contains only plain decimal numbers; return None if it contains anything else.

    With dots and exponents removed, the numbers are integers, which NumPy parses four times as fast as floats. Dividing
    such an integer by a power of ten gives the same value as parsing, for up to 15 digits.
    """
    mantissas = _integers(raw.replace(b".", b"").translate(_EXPONENTS))
    if mantissas is None:
        return None
    codes = np.frombuffer(raw, np.uint8)
    marks = (codes | 32) == 101
    inside = np.ones(len(codes) + 2, np.bool_)
    inside[[0, -1]] = False
    inside[1:-1] = ~((codes <= 32) | marks)
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[::2], edges[1::2]
    dots = np.flatnonzero(codes == 46)
    owners = np.searchsorted(starts, dots, "right") - 1
    if len(starts) != len(mantissas) or (owners[1:] == owners[:-1]).any():
        return None
    is_exact = not len(starts) or (ends - starts).max() <= _MOST_DIGITS
    powers = np.zeros(len(starts), np.int64)
    powers[owners] = dots + 1 - ends[owners]
    values = mantissas.astype(np.float64)
    values[(mantissas == 0) & (codes[starts] == 45)] = -0.0
    exponents = np.flatnonzero(marks)
    if len(exponents):
        after = np.searchsorted(starts, exponents)
        if after[0] == 0 or after[-1] == len(starts) or (powers[after] != 0).any():
            return None
        if (starts[after] != exponents + 1).any() or (ends[after - 1] != exponents).any():
            return None
        powers[after - 1] += mantissas[after]
        values, powers = np.delete(values, after), np.delete(powers, after)
    if not is_exact or np.abs(powers).max(initial=0) >= len(_POWERS):
        return np.fromstring(raw, np.float64, sep=" ")
    return np.where(powers < 0, values / _POWERS[-np.minimum(powers, 0)], values * _POWERS[np.maximum(powers, 0)])


_EXPONENTS = bytes.maketrans(b"eE", b"  ")
