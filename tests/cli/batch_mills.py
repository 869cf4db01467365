"""Small libraries of models that batches convert without Blender, and what became of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from boxes import make_box

ROOT = Path(__file__).resolve().parents[2]
TO = "mesh"
"""What the mills become, and are: in this format they need neither Blender nor a library, wherever the workers run."""


def write_library(folder: Path, count: int) -> list[str]:
    """Write UNIGINE meshes of different sizes into some folders; return their paths below ``folder``."""
    from meshferry.io_formats import api
    from meshferry.io_formats.core.scene import Node, Scene
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    names = [f"part{number % 3}/mill{number:03}.mesh" for number in range(count)]
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        box = make_box(["Wood"])
        box.points *= 1 + number  # no two files have the same content
        api.write_scene(Scene(name="mill", nodes=[Node("mill", mesh=box)]), path, UNIGINE_MESH)
    return names


def written(output: Path) -> dict[str, bytes]:
    """Return all files of an output folder, including leftovers, without the batch's own files."""
    found = {path.relative_to(output).as_posix(): path for path in output.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("meshferry-batch/")}


def journal_lines(output: Path, name: str = "journal.jsonl") -> list[dict[str, Any]]:
    """Return the lines of a journal that tell of files."""
    lines = (output / "meshferry-batch" / name).read_text(encoding="ascii").splitlines()
    return [line for line in map(json.loads, lines) if "target" in line]


def shard_journals(output: Path) -> list[str]:
    """Return the names of all files that shards left."""
    folder = output / "meshferry-batch" / "shards"
    return sorted(os.listdir(folder)) if folder.exists() else []


def command(*arguments: object) -> list[str]:
    """Return the arguments that start the command line in a separate process."""
    bpy = sys.modules.get("bpy")
    if bpy is not None and bpy.app.binary_path:
        pytest.skip("Blender's own Python cannot run as a separate interpreter")
    return [sys.executable, str(ROOT / "cli" / "convert.py"), *(str(argument) for argument in arguments)]


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        command(*arguments),
        check=False,
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=120,
        env=os.environ | environment,
    )
