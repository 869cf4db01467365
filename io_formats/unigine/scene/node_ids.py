"""Ids of new nodes."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

_LARGEST_ID = 2**31 - 1


class NodeIds:
    """Generates ids that no other element of a file has. The same seeds in the same order give the same ids."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def new(self, seed: str) -> str:
        """Return an id that is derived from the text ``seed``."""
        number = crc32(seed.encode("utf-8", "surrogatepass")) & _LARGEST_ID
        while not number or str(number) in self._taken:
            number = (number + 1) & _LARGEST_ID
        self._taken.add(str(number))
        return str(number)
