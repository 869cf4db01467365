"""What killed runs leave in an output folder, taken away at the start of the next: files that were being written.

Every writer of Meshferry writes under a name of its own kind beside the target and renames that (``replacing``,
``file_sets``, ``BlendSession.save``), so what bears such a name and belongs to no living process is of no use.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ...io_formats.file_sets import remove_abandoned
from .work import SHARDS_FOLDER, STATE_FOLDER

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.part")
_TEMPORARY_BLEND = re.compile(r"\..+\.[0-9a-f]{8}\.part\.[a-z0-9]+@?")
"""``@``: Blender's own name for what it has not finished."""
_LONGEST_NAME = 50
"""Of the name of the target inside that of a temporary file; what is longer is cut."""
_SHARED_AGE = 3600.0
"""Seconds; no file takes so long to write, so what is older belongs to nobody on another machine either."""


def sweep(output: Path) -> int:
    """Remove what killed runs left below the output folder; return how many files and folders that was.

    Who calls it holds the journal. Where parts of the plan may be under way on other machines, only what is old goes.
    """
    younger_stay = _SHARED_AGE if any((output / STATE_FOLDER / SHARDS_FOLDER).glob("*.jsonl")) else 0.0
    newest = time.time() - younger_stay
    removed = 0
    for entry in _leftovers(output):
        with contextlib.suppress(OSError):
            if younger_stay and entry.stat(follow_symlinks=False).st_mtime > newest:
                continue
            if entry.is_dir(follow_symlinks=False):
                removed += remove_abandoned(Path(entry.path))
            else:
                os.unlink(entry.path)
                removed += 1
    return removed


def _leftovers(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """Yield what bears the name of something unfinished, below a folder; links to folders are not followed."""
    folders = [os.fspath(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                found = list(entries)
        except OSError:
            continue  # whoever cannot look there did not write there
        for entry in found:
            if entry.name.startswith(".") and _is_unfinished(entry.name):
                yield entry
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)


def _is_unfinished(name: str) -> bool:
    if _TEMPORARY_BLEND.fullmatch(name):
        return True
    match = _TEMPORARY.fullmatch(name)
    # Other programs end the names of what they are at with .part, too: what is ours has an extension before that.
    return match is not None and ("." in match["name"] or len(match["name"]) == _LONGEST_NAME)
