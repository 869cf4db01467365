"""Other files in an output folder: the catalogs of an asset library, and temporary files of killed runs.

They are in the text file ``blender_assets.cats.txt`` in the output folder, which Blender reads with the library. Lines
that the file has already stay as they are, so the user may rename catalogs in Blender: an entry is found by its UUID,
which follows from the folder's path alone. Worker processes and other machines therefore need not read the file.

All writers write to a temporary file beside the target, with :data:`OWN_MARK` in its name, and rename it
(``atomic_write``, ``file_sets``, ``BlendSession.save``). A file that is being
written is locked; for a .blend file, there is a lock file.
"""

import contextlib
import math
import os
import posixpath
import re
import stat
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from ...io_formats.core.errors import MeshferryError, refusal
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import OWN_TEMPORARY, remove_file, replace_file
from ...io_formats.disk.file_sets import remove_abandoned
from ...io_formats.disk.special_files import open_regular
from ..inputs import walk
from .tasks import SHARDS_FOLDER, STATE_FOLDER

FILE = "blender_assets.cats.txt"
_NAMESPACE = uuid.UUID("5a3a4f6e-0d0c-4d6b-9f62-0f3b6f1f6a5e")
"""Namespace of the UUIDs of catalogs. It must not change: assets of earlier batches would not be in their catalogs."""
_HEAD = """\
# This is an Asset Catalog Definition file for Blender.
#
# Empty lines and lines starting with `#` will be ignored.
# The first non-ignored line should be the version indicator.
# Other lines are of the format "UUID:catalog/path/for/assets:simple catalog name"

VERSION 1

"""
_LONGEST_NAME = 63
"""Bytes of a simple name in Blender."""


def catalog_id(target: str) -> str:
    """Return the UUID of the catalog of a file, given by its path below the output folder; empty at the top."""
    folder = posixpath.dirname(target)
    return str(uuid.uuid5(_NAMESPACE, _as_text(folder))) if folder else ""


def write_catalogs(output: Path, targets: Iterable[str]) -> None:
    """Add the catalogs of files, given by their paths below the output folder, to the library's catalog file.

    Raises
    ------
    MeshferryError
        The file cannot be read or written.
    """
    path = output / FILE
    try:
        with os.fdopen(open_regular(path, follows_links=True), encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except FileNotFoundError:
        text = _HEAD
    except OSError as problem:
        raise MeshferryError("{}: the catalogs cannot be read: {}", path, refusal(problem)) from None
    known = {line.partition(":")[0].strip().lower() for line in text.splitlines()}
    folders = {catalog_id(target): posixpath.dirname(target) for target in targets}
    added = [f"{key}:{_entry(folder)}\n" for key, folder in folders.items() if key and key not in known]
    if added:
        ended = text if text.endswith("\n") else text + "\n"
        replace_file(path, (ended + "".join(added)).encode("utf-8", "surrogateescape"), within=output)


def _as_text(name: str) -> str:
    """Return a file name with question marks for bytes that are not UTF-8."""
    return name.encode("utf-8", "replace").decode()


def _entry(folder: str) -> str:
    """Return path and simple name of a catalog; colons, which separate the parts of a line, become hyphens."""
    cleaned = _as_text("".join("-" if letter == ":" or not letter.isprintable() else letter for letter in folder))
    simple = cleaned.replace("/", "-").encode()[-_LONGEST_NAME:].decode("utf-8", "ignore")
    return f"{cleaned}:{simple}"


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
