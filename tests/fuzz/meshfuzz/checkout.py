"""Where things lie, and the package of this checkout: an installed one must never be what gets tested."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = Path(os.environ.get("MESHFERRY_SAMPLES") or ROOT.parent / "shared" / "samples")
BUILD = ROOT / "build"


def load_package() -> ModuleType:
    """Return the package ``meshferry``; loaded once, since two copies would have two of each exception."""
    known = sys.modules.get("meshferry")
    if known is not None and Path(known.__file__ or "").parent == ROOT:
        return known
    tests = str(ROOT / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    from load_package import load_package as load

    return load()


def leave(status: int) -> NoReturn:
    """End a script's process past Blender's shutting down, which may hang."""
    load_package()
    from load_package import leave as leave_process

    leave_process(status)
