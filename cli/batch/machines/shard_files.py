"""Journals of shards: parts of a plan that are done elsewhere, each in a file of its own until the driver has it.

A shard is known by its lines: whoever does the same lines again goes on in the same file. Where that is being written,
by a machine that was thought lost say, it takes the next name; both do the same, and what both did counts once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from ....io_formats.disk import locks
from ....io_formats.disk.atomic_write import remove_file
from ..journal.journal import LOCK_SUFFIX
from ..tasks import SHARDS_FOLDER, STATE_FOLDER

MOST_AT_ONCE = 9
"""Processes that may do the same shard at the same time."""


def shard_journals(output: Path, text: str) -> list[Path]:
    """Return the places for journals of a shard, the first to be used first.

    Parameters
    ----------
    text:
        Its lines of the plan as :func:`.ranges.spelt` gives them.
    """
    name = text
    if "," in text:
        digest = hashlib.blake2b(text.encode("ascii"), digest_size=4).hexdigest()
        name = f"{text.partition(',')[0]}_{digest}"
    folder = output / STATE_FOLDER / SHARDS_FOLDER
    return [folder / f"{name}.jsonl", *(folder / f"{name}~{copy}.jsonl" for copy in range(2, MOST_AT_ONCE + 1))]


def lock_of(path: Path) -> Path:
    """Return the file that whoever writes to a journal holds."""
    return path.with_name(path.name + LOCK_SUFFIX)


def lines(output: Path, text: str) -> Iterator[bytes]:
    """Return the whole lines in all journals of a shard."""
    for path in shard_journals(output, text):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
            yield from (line for line in stream if line.endswith(b"\n"))


def remove(output: Path, text: str) -> None:
    """Remove the journals of a shard that somebody has taken in; those that are being written stay."""
    for path in shard_journals(output, text):
        if not path.exists():
            continue
        lock_path = lock_of(path)
        with contextlib.suppress(OSError):
            held = locks.hold(lock_path)
            if held is not None:
                with contextlib.suppress(FileNotFoundError):
                    remove_file(path)
                locks.remove(lock_path, held)
