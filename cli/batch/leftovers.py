"""Removal of temporary files of killed runs from an output folder, at the start of the next run.

All writers write to a temporary file beside the target, with :data:`OWN_MARK` in its name, and rename it
(``atomic_write``, ``file_sets``, ``BlendSession.save``). A file that is being
written is locked; for a .blend file, there is a lock file.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import OWN_MARK, remove_file
from ...io_formats.disk.file_sets import remove_abandoned
from .tasks import SHARDS_FOLDER, STATE_FOLDER

_TEMPORARY = re.compile(rf"(?P<lock>\.(.+\.)?{OWN_MARK}[a-z0-9_]{{8}}\.part)(\.[a-z0-9]+@?)?")
"""Names of temporary files; Blender appends ``@`` to the name of an unfinished file."""
_SHARED_AGE = 3600.0
"""Age in seconds above which no machine is still writing to a temporary file."""


def sweep(output: Path) -> int:
    """Remove temporary files and folders of killed runs below the output folder; return their number.

    The caller holds the lock of the state. If other machines may be running shards, only old files are removed.
    """
    min_age = _SHARED_AGE if any((output / STATE_FOLDER / SHARDS_FOLDER).glob("*.jsonl")) else 0.0
    newest = time.time() - min_age
    removed = 0
    for entry in _leftovers(output):
        with contextlib.suppress(OSError):
            if min_age and entry.stat(follow_symlinks=False).st_mtime > newest:
                continue
            if entry.is_dir(follow_symlinks=False):
                removed += remove_abandoned(Path(entry.path))
            else:
                removed += _remove_unlocked(Path(entry.path))
    return removed


def _leftovers(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """Yield entries with names of temporary files below a folder; links to folders are not followed."""
    folders = [os.fspath(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                found = list(entries)
        except OSError:
            continue  # a run that cannot list this folder did not write there
        for entry in found:
            if _TEMPORARY.fullmatch(entry.name):
                yield entry
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)


def _remove_unlocked(path: Path) -> bool:
    """Remove a temporary file unless a living process has locked it; return whether it was removed."""
    match = _TEMPORARY.fullmatch(path.name)
    lock_path = path.with_name(match["lock"]) if match else path
    held = locks.hold(lock_path)
    if held is None:
        return False
    try:
        if path != lock_path:
            remove_file(path)
    finally:
        locks.remove(lock_path, held)
    return not path.exists()
