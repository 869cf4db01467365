"""Removal of temporary files of killed runs from an output folder, at the start of the next run.

All writers write to a temporary file beside the target, with :data:`OWN_MARK` in its name, and rename it
(``atomic_write``, ``file_sets``, ``BlendSession.save``). A file that is being
written is locked; for a .blend file, there is a lock file.
"""

from __future__ import annotations

import contextlib
import math
import re
import stat
import time
from pathlib import Path

from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import OWN_TEMPORARY, remove_file
from ...io_formats.disk.file_sets import remove_abandoned
from ..inputs import walk
from .tasks import SHARDS_FOLDER, STATE_FOLDER

_TEMPORARY = re.compile(rf"(?P<lock>{OWN_TEMPORARY})(\.[a-z0-9]+@?)?")
"""Names of temporary files; Blender appends ``@`` to the name of an unfinished file."""
_SHARED_AGE = 3600.0
"""Age in seconds above which no machine is still writing to a temporary file."""


def remove_leftovers(output: Path) -> None:
    """Remove temporary files and folders of killed runs below the output folder.

    The caller holds the lock of the state. If other machines may be running shards, only old files are removed.
    """
    is_shared = any((output / STATE_FOLDER / SHARDS_FOLDER).glob("*.jsonl"))
    newest = time.time() - _SHARED_AGE if is_shared else math.inf
    for folder, folders, files in walk(str(output), lambda _problem: None):  # nothing was written to unreadable folders
        for name in [*folders, *files]:
            if match := _TEMPORARY.fullmatch(name):
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    info = path.lstat()
                    if info.st_mtime > newest:
                        continue
                    if stat.S_ISDIR(info.st_mode):
                        remove_abandoned(path)
                    elif stat.S_ISREG(info.st_mode):  # links and FIFOs with such a name belong to another program
                        _remove_unlocked(path, path.with_name(match["lock"]))


def _remove_unlocked(path: Path, lock_path: Path) -> None:
    """Remove a temporary file and its lock file unless a living process has locked it."""
    held = locks.hold(lock_path)
    if held is not None:
        try:
            if path != lock_path:
                remove_file(path)
        finally:
            locks.remove(lock_path, held)
