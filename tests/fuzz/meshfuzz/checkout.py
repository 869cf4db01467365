"""The package of this checkout, under its one name.

An installed Meshferry of another version must never be what gets tested, so the root is loaded by its path, as the
tests' ``conftest.py`` does.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = Path(os.environ.get("MESHFERRY_SAMPLES") or ROOT.parent / "shared" / "samples")
BUILD = ROOT / "build"


def load_package() -> ModuleType:
    """Return the package ``meshferry`` of this checkout, loading it at the first call."""
    known = sys.modules.get("meshferry")
    if known is not None and Path(known.__file__ or "").parent == ROOT:
        return known
    spec = importlib.util.spec_from_file_location(
        "meshferry", ROOT / "__init__.py", submodule_search_locations=[str(ROOT)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["meshferry"] = module
    spec.loader.exec_module(module)
    return module
