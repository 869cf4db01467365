"""A process that ends with the one that started it, however that ended."""

from __future__ import annotations

import os
import sys
import threading
import time

_LOOK_EVERY = 0.5
ORPHANED = 75
"""Exit status of a process whose parent is gone: sysexits' EX_TEMPFAIL, somebody will do it again."""


def end_with_parent() -> None:
    """End this process, at once and without a word, when its parent ends.

    Its own worker processes end with it in the same way; files are written whole or not at all.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), name="lifeline", daemon=True).start()


def _watch(parent: int) -> None:
    if sys.platform == "win32":
        import _winapi

        handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
    os._exit(ORPHANED)
