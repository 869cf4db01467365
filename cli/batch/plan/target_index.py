"""All names that a plan has given away in a small file, so that whoever names a further file knows whether it is free.

These are the targets, and the sources that lie in the output folder, which nothing may write over.

A source may become several files, and nobody can tell which before it is read. Workers name those, each on its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ....io_formats.disk.atomic_write import replace_file
from ....io_formats.disk.file_names import cautious_key
from ..tasks import STATE_FOLDER

TARGETS_FILE = "targets.u64"
"""Hashes of all these names in ascending order, eight bytes each, little endian."""
_HASH = np.dtype("<u8")


def target_hash(target: str) -> int:
    """Return 64 bits that stand for a path below the output folder: the same ones for names that may be one file."""
    return text_hash(cautious_key(target))


def text_hash(text: str) -> int:
    """Return 64 bits that stand for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def write_index(output: Path, hashes: Iterable[int]) -> None:
    """Write the index of a plan, whose output folder is ``output``, from the :func:`target_hash` of each name."""
    values = np.sort(np.fromiter(hashes, _HASH))
    replace_file(output / STATE_FOLDER / TARGETS_FILE, values.tobytes())


class TargetIndex:
    """The names that a plan has given away; of a folder without a plan there are none."""

    def __init__(self, output: Path) -> None:
        path = output / STATE_FOLDER / TARGETS_FILE
        try:
            # Read where it lies: eight megabytes for a million files, of which a look takes a few pages.
            self._hashes = np.memmap(path, _HASH, "r") if path.stat().st_size else np.zeros(0, _HASH)
        except OSError:
            self._hashes = np.zeros(0, _HASH)

    def __contains__(self, target: object) -> bool:
        if not isinstance(target, str):
            return False
        wanted = np.array(target_hash(target), _HASH)
        place = int(np.searchsorted(self._hashes, wanted))
        return place < len(self._hashes) and bool(self._hashes[place] == wanted)
