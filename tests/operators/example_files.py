"""Examples of each family, imported from a copy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FORMATS = [
    ("lamp.mesh", "unigine"),
    ("windmill.timbermesh", "timbermesh"),
    ("tunic.llmesh", "second_life"),
    ("vase.data", "mesh_serializer"),
]


def imported(bpy: Any, folder: Path, name: str = "lamp.mesh", operator: str = "unigine", **options: Any) -> Path:
    """Import a copy of an example; return the copy."""
    path = Path(shutil.copy(EXAMPLES / name, folder))
    assert getattr(bpy.ops.import_scene, operator)(filepath=str(path), **options) == {"FINISHED"}
    return path
