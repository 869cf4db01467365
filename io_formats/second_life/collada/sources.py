"""Arrays of a Collada file, divided into values by their accessors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ...core.errors import FormatError
from ...core.scene import FloatArray
from ...geometry.transforms import Matrix
from . import numbers
from .findings import Findings
from .tree import Tree, taken_text, words_of

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
        offset = numbers.integer(accessor.get("offset")) if accessor is not None else 0
        values = self._array(source, accessor, numbers.exact_floats)[offset:][: 16 * most]
        return values[: len(values) // 16 * 16].reshape(-1, 4, 4).astype(np.float64)

    def words(self, link: str | None) -> tuple[list[str], int, bool]:
        """Return the names in an array, the count that the file states for it, and whether the names are ids."""
        source = self._tree.target(link, "source")
        for element in [] if source is None else list(source):
            if element.tag in NAME_ARRAYS:
                return words_of(element), numbers.integer(element.get("count")), element.tag != "Name_array"
        return [], 0, False

    def _read(self, source: Element, width: int, owner: str) -> tuple[FloatArray, int]:
        accessor = source.find("technique_common/accessor")
        values = self._array(source, accessor)
        offset, stride, columns, stated = 0, width, list(range(width)), 0
        if accessor is not None:
            named = [number for number, param in enumerate(accessor.findall("param")) if param.get("name")]
            stride = numbers.integer(accessor.get("stride")) or (max(named) + 1 if named else width)
            offset, stated = numbers.integer(accessor.get("offset")), numbers.integer(accessor.get("count"))
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

    def _array(
        self, source: Element, accessor: Element | None, parse: Callable[[str], Any] = numbers.floats
    ) -> FloatArray:
        linked = None if accessor is None else self._tree.target(accessor.get("source"), "float_array")
        element = linked if linked is not None else source.find("float_array")
        if element is None:
            return np.empty(0, np.float32)
        if element not in self._arrays:
            self._arrays[element] = parse(taken_text(element))
        return self._arrays[element]
