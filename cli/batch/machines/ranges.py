"""Which lines of a plan: the notation of range expressions of Open Job Description, ``1-10``, ``1-9:2``, ``1,5,7-9``.

Section 3.4.1.1.1 of its template schemas [version 2023-09]. Schedulers hand out such text (``5-5`` for a single line,
where chunks have to be contiguous), and people can type it.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Iterable, Iterator

from ....io_formats.core.errors import MeshferryError

_ELEMENT = re.compile(r"\s*(-?\d+)\s*(?:-\s*(-?\d+)\s*(?::\s*(-?\d+)\s*)?)?")
_DIGITS = 18
"""More are no line of any plan, and Python takes long over numbers of many thousand digits."""


def parse(text: str, count: int) -> list[range]:
    """Return the numbers that a range expression stands for.

    Parameters
    ----------
    text:
        The expression, of numbers from 1.
    count:
        The highest number there is.

    Returns
    -------
    list of range
        Ascending ranges, none of them empty; :func:`numbers` goes through them in order.

    Raises
    ------
    MeshferryError
        It is no range expression, or goes past the highest number.
    """
    found = []
    for part in text.split(","):
        match = _ELEMENT.fullmatch(part)
        if match is None or any(len(number or "") > _DIGITS for number in match.groups()):
            raise MeshferryError(f"'{text}' is not a range: write numbers from 1, such as 1-10, 1-9:2 or 1,5,7-9")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        step = 1 if match[3] is None else int(match[3])
        if step == 0:
            raise MeshferryError(f"'{text}' is not a range: the step must not be 0")
        # The first number is always among them, also where the last lies on its other side.
        values = range(first, last + (1 if step > 0 else -1), step) or range(first, first + 1)
        found.append(values if step > 0 else values[::-1])
    if any(values[0] < 1 or values[-1] > count for values in found):
        raise MeshferryError(f"'{text}' goes past the plan, whose lines are 1-{count}")
    return found


def numbers(ranges: Iterable[range]) -> Iterator[int]:
    """Yield all numbers of some ascending ranges in order, each once."""
    return (number for number, _same in itertools.groupby(heapq.merge(*ranges)))


def spelt(values: Iterable[int]) -> str:
    """Return the expression of ascending numbers, as short as neighbours allow: ``3,5,9-20``."""
    parts: list[list[int]] = []
    for value in values:
        if parts and value == parts[-1][1] + 1:
            parts[-1][1] = value
        else:
            parts.append([value, value])
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in parts)
