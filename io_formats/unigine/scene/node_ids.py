"""Numbers of new nodes."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

_LARGEST = 2**31 - 1


class NodeIds:
    """Ids that no other element of a file has; the same texts in the same order give the same ids."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def new(self, seed: str) -> str:
        """Return an id that is made from a text."""
        number = crc32(seed.encode("utf-8", "surrogatepass")) & _LARGEST
        while not number or str(number) in self._taken:
            number = (number + 1) & _LARGEST
        self._taken.add(str(number))
        return str(number)
