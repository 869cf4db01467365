"""Where in a journal the last line of each target stands: 16 bytes a target, however long the lines are."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..plan.target_index import target_hash
from .journal_entry import target_of

HEADER_START = b'{"journal":'


@dataclass(frozen=True)
class Index:
    """The lines of a journal that count."""

    keys: NDArray[np.uint64]
    """(n,) :func:`target_hash` of the targets, ascending, each once."""
    offsets: NDArray[np.int64]
    """(n,) where the line begins, in bytes from the start of the file."""
    superseded: int
    """Lines that later ones replace, or that tell of nothing."""
    end: int
    """Of the last whole line, in bytes; what follows was cut off by the end of its process."""
    header: bytes
    """The last line that tells of options, not of a target; empty: there is none."""

    @classmethod
    def of_nothing(cls) -> Index:
        """Return the index of a journal that is not there."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), 0, 0, b"")

    @classmethod
    def read(cls, path: Path) -> Index:
        """Go through a journal, line by line; one that is not there is empty.

        Raises
        ------
        OSError
            The file cannot be read.
        """
        keys, offsets = array("Q"), array("q")
        end = idle = 0
        header = b""
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            return cls.of_nothing()
        with stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                target = target_of(line)
                if target is not None:
                    keys.append(target_hash(target))
                    offsets.append(end)
                elif line.startswith(HEADER_START):
                    header = line
                else:
                    idle += 1
                end += len(line)
        unique, kept = _last_of_each(np.frombuffer(keys, np.uint64), np.frombuffer(offsets, np.int64))
        return cls(unique, kept, len(keys) - len(unique) + idle, end, header)

    def find(self, target: str) -> int:
        """Return the offset of a target's line; -1: there is none."""
        if not len(self.keys):
            return -1
        key = np.uint64(target_hash(target))
        place = int(self.keys.searchsorted(key))
        return int(self.offsets[place]) if place < len(self.keys) and self.keys[place] == key else -1

    def in_order(self) -> Iterator[int]:
        """Return the offsets of the lines that count, in the order of the file."""
        for offset in np.sort(self.offsets):
            yield int(offset)

    def __len__(self) -> int:
        return len(self.keys)


def _last_of_each(keys: NDArray[np.uint64], offsets: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the keys ascending, each once, with the last of its offsets."""
    order = np.argsort(keys, kind="stable")
    keys, offsets = keys[order], offsets[order]
    is_last = np.append(keys[1:] != keys[:-1], True)[: len(keys)]
    return keys[is_last], offsets[is_last]
