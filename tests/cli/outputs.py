"""Files that the command line wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def names_in(folder: Path) -> list[str]:
    """Return the paths of all files below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def opened(path: Path) -> Any:
    """Open a .blend file and return Blender."""
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    return bpy
