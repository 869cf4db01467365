"""The walks of a file in docs/developers/architecture.md are those of the code."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from translation_template import ROOT

LAST = {"operators/reporting.py", "io_formats/core/capabilities.py"}
"""Modules that others ask before, too."""


def walk(heading: str) -> tuple[list[str], list[str]]:
    """Return the modules of a table, and those that they use by the same rows."""
    text = (ROOT / "docs" / "developers" / "architecture.md").read_text("utf-8").partition(heading)[2]
    rows = text[text.index("| `") :].partition("\n\n")[0].splitlines()
    modules, used = [], []
    for row in rows:
        first, *others = re.findall(r"`([\w/]+\.py)`", row)
        modules.append(first)
        used += [str(PurePosixPath(first).parent / name) for name in others]
    return modules, used


def called_by(run: Callable[[], Any]) -> list[str]:
    """Return the modules of the product in the order of their first call."""
    found: dict[str, None] = {}

    def note(frame: Any, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED  # not a module that is imported
        if event == "call" and is_function and path.startswith(str(ROOT)):
            found[Path(path).relative_to(ROOT).as_posix()] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


@pytest.mark.needs_bpy
def test_walks_are_those_of_the_code(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    lamp, written = str(ROOT / "examples" / "lamp.mesh"), str(tmp_path / "lamp.mesh")
    runs = {
        "An imported file": lambda: bpy.ops.import_scene.unigine(filepath=lamp),
        "An exported file": lambda: bpy.ops.export_scene.unigine_mesh(filepath=written),
    }
    for heading, run in runs.items():
        modules, used = walk(heading)
        called = called_by(run)
        assert len(modules) > 10
        assert len({*modules, *used}) == len(modules) + len(used)
        assert not {*modules, *used} - {*called}
        in_order = [module for module in modules if module not in LAST]
        assert in_order == sorted(in_order, key=called.index)
