"""Results that several processes compute only once, as JSON files in a folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import locks
from .atomic_write import replace_file
from .special_files import open_regular

LONGEST_AGE = 3600.0
"""Age in seconds up to which a result is used; an older one may come from an earlier run."""
_PATIENCE = 600.0
"""Seconds to wait for another process that computes the same result."""
_POLL = 0.05


class SharedResults:
    """Results by key, stored in a folder that is created if necessary.

    Parameters
    ----------
    folder:
        The folder. If files cannot be written there, each process computes its own results.
    check:
        Called while waiting for another process; it raises an exception to cancel.
    """

    def __init__(self, folder: Path, check: Callable[[], object]) -> None:
        self._folder = folder
        self._check = check

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the result of ``make``, which another process may have computed already.

        It must be preserved by JSON.
        """
        name = hashlib.sha1(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        path = self._folder / f"{name}.json"
        lock = self._folder / f"{name}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            held = self._wait(lock, path)
        except OSError:
            return make()
        try:
            found = _read(path)
            if found is None:
                found = [make()]
                if held is not None:
                    with contextlib.suppress(OSError, ValueError):
                        replace_file(path, json.dumps(found).encode("ascii"))
            return found[0]
        finally:
            if held is not None:
                locks.remove(lock, held)

    def _wait(self, lock: Path, path: Path) -> Any:
        """Return the held lock, or None if the result exists or another process takes too long."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if _is_recent(path):
                return None
            held = locks.hold(lock)
            if held is not None:
                return held
            self._check()
            time.sleep(_POLL)
        return None


def _is_recent(path: Path) -> bool:
    try:
        return 0 <= time.time() - os.stat(path).st_mtime < LONGEST_AGE
    except OSError:
        return False


def _read(path: Path) -> list[Any] | None:
    """Return the stored result in a list, or None if there is no recent one."""
    if not _is_recent(path):
        return None
    try:
        with os.fdopen(open_regular(path), "rb") as stream:
            found = json.loads(stream.read())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and len(found) == 1 else None
