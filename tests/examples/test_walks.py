"""The modules of the product that a file passes, printed in the order of their first call.

make test PYTEST_ARGS="-n0 -s tests/examples/test_walks.py"
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from translation_template import ROOT

LAYERS = ("operators", "blender_data", "io_formats")
MOST = {"import": 90, "export": 92, "upload set": 112}
"""Largest number of modules of each walk. Lower it with each merge of modules; raise it for no change."""


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
        assert run() == {"FINISHED"}
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for name in found if name.startswith(LAYERS)]


def purpose(name: str) -> str:
    """Return the first sentence of a module's docstring."""
    return (ast.get_docstring(ast.parse((ROOT / name).read_text("utf-8"))) or "").partition("\n")[0]


@pytest.mark.slow
@pytest.mark.needs_bpy
def test_walks_do_not_grow(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    lamp, tunic = str(ROOT / "examples" / "lamp.mesh"), str(ROOT / "examples" / "tunic.llmesh")
    mesh, upload = str(tmp_path / "lamp.mesh"), str(tmp_path / "tunic.dae")
    walks = {"import": called_by(lambda: bpy.ops.import_scene.unigine(filepath=lamp))}
    walks["export"] = called_by(lambda: bpy.ops.export_scene.unigine_mesh(filepath=mesh))
    bpy.ops.import_scene.second_life(filepath=tunic)
    walks["upload set"] = called_by(lambda: bpy.ops.export_scene.second_life_upload(filepath=upload))
    for name, walk in walks.items():
        print(f"\n{name}: {len(walk)} modules", *(f"  {module}: {purpose(module)}" for module in walk), sep="\n")
        assert {module.partition("/")[0] for module in walk} == set(LAYERS)
        assert len(walk) <= MOST[name]
