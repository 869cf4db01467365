"""Projects of target programs: folders whose files complete each other; results that several processes share.

A session of Blender or a batch keeps one :class:`Projects`, so that the files of each project are listed only once.
Each format defines its own kind of project.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from .disk import locks
from .disk.atomic_write import make_folders, replace_file
from .disk.special_files import open_regular

if TYPE_CHECKING:
    from .core.addon_files import SourceFile
    from .disk.reach import Reach


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
            make_folders(self._folder)
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


ProjectT = TypeVar("ProjectT", bound="OpenProject")
SourceT = TypeVar("SourceT", bound="SourceFile")
_CHECK_INTERVAL = 2.0
"""Seconds for which an open project counts as unchanged."""
_MOST_SOURCE_BYTES = 2**28
"""Total size of source files above which the content of imported ones is discarded. The content takes several times
as much memory.
"""


class OpenProject(Protocol):
    """A project that :class:`Projects` keeps open; its list of files may become outdated."""

    def is_current(self) -> bool:
        """Return whether the project still has the files that were listed."""
        ...


class _Caller(threading.local):
    """The function that observes work in the current thread, see :meth:`Projects.watched_by`."""

    check: Callable[[float], object] = staticmethod(lambda _fraction: None)


class Projects:
    """The projects that are open. Several threads may use them.

    Parameters
    ----------
    is_fixed:
        Whether projects stay as they were when they were opened. Otherwise, changed ones are opened again.
    store:
        Folder for results about projects that several processes share; None for a single process.
    has_mounts:
        Whether projects include folders elsewhere on this machine that their files name.
    reach_of:
        Function that returns the reach of a file outside of projects; None if it may bring in any file.
    """

    def __init__(
        self,
        *,
        is_fixed: bool = False,
        store: Path | None = None,
        has_mounts: bool = True,
        reach_of: Callable[[Path], Reach] | None = None,
    ) -> None:
        self.has_mounts = has_mounts
        self.reach_of = reach_of
        self._is_fixed = is_fixed
        self._store = SharedResults(store, self.check) if store is not None else None
        self._caller = _Caller()
        self._open: dict[Path, tuple[Any, float]] = {}
        self._roots: dict[Path, tuple[Path | None, float]] = {}
        self._sources: dict[Path, tuple[tuple[int, int], Any]] = {}

    @contextlib.contextmanager
    def watched_by(self, check: Callable[[float], object]) -> Iterator[None]:
        """Let a function observe and cancel work in projects, in the current thread and ``with`` block.

        It is called with the fraction of the current work that is done, and raises an exception to cancel.
        """
        before = self._caller.check
        self._caller.check = check
        try:
            yield
        finally:
            self._caller.check = before

    def check(self, fraction: float = 0.0) -> None:
        """Report the share of the current work that is done (0 if unknown); may raise an exception to cancel.

        The code that reads projects calls it repeatedly.
        """
        self._caller.check(fraction)

    def shared(self, root: Path, kind: str, make: Callable[[], Any]) -> Any:
        """Return a result about a project, which is computed once for all processes with the same store.

        Parameters
        ----------
        root:
            Folder of the project.
        kind:
            Name of the result.
        make:
            Function that computes it; the result must be the same after encoding to JSON and decoding.
        """
        return self._store.get(f"{root}|{kind}", make) if self._store is not None else make()

    def open(self, root: Path, make: Callable[[], ProjectT]) -> ProjectT:
        """Return the project of a folder, which ``make`` opens if it is not open or has changed."""
        project, checked = self._open.get(root, (None, 0.0))
        now = time.monotonic()
        if project is not None and not self._is_fixed and now - checked > _CHECK_INTERVAL:
            project, checked = (project, now) if project.is_current() else (None, 0.0)
        if project is None:
            project, checked = make(), time.monotonic()
        self._open[root] = (project, checked)
        return cast(ProjectT, project)

    def expire(self) -> None:
        """Let the next use of each open project look for changes, since files were written into one."""
        self._open = {root: (project, -math.inf) for root, (project, _checked) in self._open.items()}

    def source(self, path: Path, make: Callable[[], SourceT]) -> SourceT:
        """Return the source file at a path, which ``make`` returns if it is not known or has changed.

        Raises
        ------
        OSError
            The file cannot be found.
        """
        info = os.stat(path)
        stamp = (info.st_size, info.st_mtime_ns)
        known, source = self._sources.get(path, (None, None))
        if known != stamp:
            if sum(size for (size, _), _ in self._sources.values()) > _MOST_SOURCE_BYTES:
                self._sources.clear()
            source = make()
            self._sources[path] = (stamp, source)
        return cast(SourceT, source)

    def root_of(self, folder: Path, find: Callable[[], Path | None]) -> Path | None:
        """Return the project's folder for files in a folder, which ``find`` looks for if it is not known."""
        root, found = self._roots.get(folder, (None, float("-inf")))
        now = time.monotonic()
        if folder not in self._roots or (not self._is_fixed and now - found > _CHECK_INTERVAL):
            root = find()
            self._roots[folder] = (root, now)
        return root
