"""Where things lie, and the package of this checkout: an installed one must never be what gets tested."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

_TESTS = Path(__file__).resolve().parents[2]
if str(_TESTS) not in sys.path:
    sys.path.append(str(_TESTS))

from load_package import ROOT
from load_package import load_package as _load

SAMPLES = Path(os.environ.get("MESHFERRY_SAMPLES") or ROOT.parent / "shared" / "samples")
BUILD = ROOT / "build"


def load_package() -> ModuleType:
    """Return the package ``meshferry``; loaded once, since two copies would have two of each exception."""
    known = sys.modules.get("meshferry")
    return known if known is not None and Path(known.__file__ or "").parent == ROOT else _load()
