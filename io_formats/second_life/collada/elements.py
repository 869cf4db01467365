"""The elements of a Collada file, found by their ids, and the numbers and arrays in their texts.

A text is parsed in pieces of some hundred kilobytes, which bounds the memory. NumPy parses numbers fast, but does not
notice an invalid one in every version, so that a piece is checked first. A piece that has one is parsed word by word.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Report
from ...core.scene import FloatArray, IntArray
from ...encodings.xml_files import parse_xml
from ...geometry.transforms import Matrix
from .document import Findings

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
    """Parse a piece of a list of numbers; words that are not numbers become NaN, or -1 for integers."""
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


_DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*\?>")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Tree:
    """The elements of a file, with their namespaces removed. Links refer to the first element with an id."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._ids: dict[tuple[str, str], Element] = {}
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
            name = element.get("id")
            if name is not None:
                self._ids.setdefault((element.tag, name), element)
        for (tag, name), element in list(self._ids.items()):
            self._ids.setdefault((tag, name.replace(" ", "_")), element)

    def target(self, link: str | None, *tags: str) -> Element | None:
        """Return the element with one of these tags that a link (with or without ``#``) refers to, or None."""
        name = (link or "").strip().removeprefix("#")
        for spelling in (name, name.replace(" ", "_"), unquote(name)):
            for tag in tags:
                found = self._ids.get((tag, spelling))
                if found is not None:
                    return found
        return None


def parse_tree(data: bytes, report: Report) -> Tree:
    """Parse a file.

    Raises
    ------
    FormatError
        The file is empty, is not well-formed XML, has a document type, or its root element is not COLLADA.
    """
    if not data.strip():
        raise FormatError("The file is empty")
    try:
        root = parse_xml(data)
    except FormatError:
        decoded = _decoded(data)
        if decoded is None:
            raise
        text, encoding = decoded
        root = parse_xml(text)
        report.note("encoding-repaired", "The text cannot be decoded as stated; read as {}", encoding)
    tree = Tree(root)
    if root.tag != "COLLADA":
        raise UnsupportedFormatError("This is not a Collada file: its root element is '{}'", root.tag)
    return tree


def _decoded(data: bytes) -> tuple[bytes, str] | None:
    """Convert a file in another encoding to UTF-8, and remove its XML declaration.

    Return the bytes and the name of the original encoding, or None if the file is already UTF-8.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        encoding = "UTF-16" if data.startswith(_UTF_16) else "Windows-1252"
        return _DECLARATION.sub(b"", data.decode(encoding, "replace").encode()), encoding
    return None


def name_of(element: Element) -> str:
    """Return the name of an element, or else its id."""
    return element.get("name", "").strip() or element.get("id", "").strip()


def text_of(element: Element | None) -> str:
    """Return the text of an element, without blanks at its ends."""
    return ((element.text if element is not None else None) or "").strip()


def words_of(element: Element | None) -> list[str]:
    """Return the words in an element, which XML's four blanks separate; a no-break space is part of a word."""
    return re.findall(r"[^ \t\r\n]+", text_of(element))


def taken_text(element: Element | None) -> str:
    """Return the text of an element and remove it from the element.

    The text takes more memory than the numbers in it.
    """
    text, element_text = "", element.text if element is not None else None
    if element is not None and element_text:
        text, element.text = element_text, None
    return text


def inputs_of(element: Element) -> Iterator[tuple[str, Element]]:
    """Yield the inputs of an element with their semantics."""
    for given in element.findall("input"):
        yield given.get("semantic", ""), given


NAME_ARRAYS = ("Name_array", "IDREF_array", "SIDREF_array")
"""Elements that list names, or ids of nodes."""
_NO_VALUES = np.empty((0, 0), np.float32)


class Sources:
    """Parses each array once, and shares the values of inputs that have one source.

    Parameters
    ----------
    tree, findings:
        Elements and findings of the file.
    most_values:
        Maximum number of values of all sources; it protects against small files that use one long array many times.
    """

    def __init__(self, tree: Tree, findings: Findings, most_values: int) -> None:
        self._most_values = most_values
        self._count = 0
        self._tree = tree
        self._findings = findings
        self._arrays: dict[Element, FloatArray] = {}
        self._rows: dict[tuple[Element, int], tuple[FloatArray, int]] = {}

    def rows(self, link: str | None, width: int, owner: str) -> tuple[FloatArray, int]:
        """Return the values of a linked source, (N, width) float32, and the number of components of each in the file.

        Parameters
        ----------
        link:
            Id of the source.
        width:
            Numbers in each value. Missing numbers become 0, a missing alpha becomes 1.
        owner:
            Name of the geometry or skin, for messages.
        """
        source = self._tree.target(link, "source")
        if source is None:
            self._findings.add("link-missing", owner)
            return _NO_VALUES.reshape(0, width), 0
        key = (source, width)
        if key not in self._rows:
            self._rows[key] = self._read(source, width, owner)
        return self._rows[key]

    def matrices(self, link: str | None, most: int) -> Matrix:
        """Return the matrices of a linked source, at most ``most`` of them, (N, 4, 4) float64."""
        source = self._tree.target(link, "source")
        if source is None:
            return np.empty((0, 4, 4))
        accessor = source.find("technique_common/accessor")
        offset = integer(accessor.get("offset")) if accessor is not None else 0
        values = self._array(source, accessor, exact_floats)[offset:][: 16 * most]
        return values[: len(values) // 16 * 16].reshape(-1, 4, 4).astype(np.float64)

    def words(self, link: str | None) -> tuple[list[str], int, bool]:
        """Return the names in an array, the count that the file states for it, and whether the names are ids."""
        source = self._tree.target(link, "source")
        for element in [] if source is None else list(source):
            if element.tag in NAME_ARRAYS:
                return words_of(element), integer(element.get("count")), element.tag != "Name_array"
        return [], 0, False

    def _read(self, source: Element, width: int, owner: str) -> tuple[FloatArray, int]:
        """Return the rows of a source, (n, ``width``), that are in its array, and the stride of its accessor."""
        accessor = source.find("technique_common/accessor")
        values = self._array(source, accessor)
        offset, stride, columns, stated = 0, width, list(range(width)), 0
        if accessor is not None:
            named = [number for number, param in enumerate(accessor.findall("param")) if param.get("name")]
            stride = integer(accessor.get("stride")) or (max(named) + 1 if named else width)
            offset, stated = integer(accessor.get("offset")), integer(accessor.get("count"))
            columns = [column for column in named or range(min(stride, width)) if column < stride][:width]
        last = offset + max(columns, default=0)
        available = max(0, (len(values) - last - 1) // stride + 1) if len(values) > last else 0
        self._findings.add("values-fewer-than-stated", owner, stated > available)
        count = min(stated or available, available)
        self._count += count
        if self._count > self._most_values:
            raise FormatError("The file uses more than {:,} values", self._most_values)
        if offset == 0 and stride == width and columns == list(range(width)):
            return values[: count * stride].reshape(-1, stride), stride
        found = np.zeros((count, width), np.float32)
        found[:, 3:] = 1.0  # colours without alpha are opaque
        for place, column in enumerate(columns):
            found[:, place] = values[offset + column :: stride][:count]
        return found, stride

    def _array(self, source: Element, accessor: Element | None, parse: Callable[[str], Any] = floats) -> FloatArray:
        linked = None if accessor is None else self._tree.target(accessor.get("source"), "float_array")
        element = linked if linked is not None else source.find("float_array")
        if element is None:
            return np.empty(0, np.float32)
        if element not in self._arrays:
            self._arrays[element] = parse(taken_text(element))
        return self._arrays[element]
