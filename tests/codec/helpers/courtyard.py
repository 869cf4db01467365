"""The example project, made anew: see ``examples/make_project.py`` for what it holds."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from types import ModuleType

import example_scripts


def script() -> ModuleType:
    """Return the script as a module."""
    return example_scripts.script("make_project")


@functools.cache
def content() -> dict[str, bytes]:
    """Return the files of the project by their path below ``data``. Drawing them takes half a second."""
    with tempfile.TemporaryDirectory() as folder:
        script().main(Path(folder))
        data = Path(folder, "data")
        return {path.relative_to(data).as_posix(): path.read_bytes() for path in data.rglob("*") if path.is_file()}


def make(folder: Path) -> Path:
    """Write the project below a folder; return its ``data`` folder, which the test may change."""
    for name, data in content().items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "data"


def material(name: str) -> str:
    """Return the GUID of a material."""
    return str(script().guid(f"materials/{name}.mat"))


def runtime(asset: str, alias: str) -> str:
    """Return the path of a runtime below ``data``."""
    guid = script().guid(f"{asset}/{alias}")
    return f".runtimes/{guid[:2]}/{guid}{Path(alias).suffix}"


def mesh(name: str) -> str:
    """Return the path of a mesh below ``data``."""
    return "models/lamp_post.mesh" if name == "lamp_post" else runtime(f"models/{name}.fbx", f"{name}.mesh")


def texture(name: str) -> str:
    """Return the path of a .texture below ``data``."""
    return runtime(f"textures/{name}.png", f"{name}.texture")
