"""How many processes can work at once here."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_cores(control_groups: Path = _CONTROL_GROUPS) -> int:
    """Return the cores that this process may use, fewer where a container or a job gives only a share of the machine.

    Parameters
    ----------
    control_groups:
        Where Linux shows the share of a container.
    """
    if sys.platform != "win32" and hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    share = _share(control_groups)
    return max(1, min(cores, math.ceil(share)) if share else cores)


def _share(control_groups: Path) -> float:
    """Return how many cores' time the group of this process gets; 0: no limit is known."""
    try:
        quota, period = (control_groups / "cpu.max").read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass  # "max", or the older kind of groups
    try:
        folder = control_groups / "cpu"
        quota, period = ((folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii") for name in ("quota", "period"))
        return max(0.0, int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0.0
