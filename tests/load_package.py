"""Load the repository root as the module ``meshferry``, in pytest and in a Blender that has no pytest."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent

SAMPLES = Path(os.environ.get("MESHFERRY_SAMPLES") or ROOT.parent / "shared" / "samples")
"""The folder of real files."""


def load_package() -> ModuleType:
    """Return the package under its fixed name, whatever the checkout folder is called and whatever pip has installed.

    ``MESHFERRY_SITE`` may name a folder with the modules that Blender's own Python lacks.
    """
    if site := os.environ.get("MESHFERRY_SITE"):
        sys.path.insert(0, site)
    spec = importlib.util.spec_from_file_location(
        "meshferry", ROOT / "__init__.py", submodule_search_locations=[str(ROOT)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["meshferry"] = module
    spec.loader.exec_module(module)
    return module


def leave(status: int) -> NoReturn:
    """End a script's process past Blender's shutting down, which may hang; see ``cli.environment.leave``."""
    package = sys.modules.get("meshferry") or load_package()
    environment = importlib.import_module(f"{package.__name__}.cli.environment")
    environment.leave(status)
    raise AssertionError("the process goes on")
