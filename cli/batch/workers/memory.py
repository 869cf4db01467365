"""How much memory this process takes."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    import resource


def peak_memory() -> int:
    """Return the most memory that this process has had at once, in bytes; 0 where that takes more to learn: Windows."""
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
