"""Input files that the tests of the command line make themselves, and two ways to run it."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boxes import make_box

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 60


@dataclass
class Result:
    """What one run of the command line did."""

    status: int
    out: str
    err: str

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The JSON objects of the output, each as the schema says."""
        found = [json.loads(line) for line in self.out.splitlines()]
        if (validator := schema()) is not None:
            for entry in found:
                validator.validate(entry)
        return found


@functools.cache
def schema() -> Any:
    """Return the schema of the output; None where the library that checks it is absent, as in Blender's own Python."""
    if importlib.util.find_spec("jsonschema") is None:
        return None
    from jsonschema import Draft202012Validator

    content = json.loads((ROOT / "cli" / "json_schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


@pytest.fixture
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``convert`` run Blender's own importers in this process, as it does for one file without ``--json``.

    Each other process takes more than a second. ``test_convert_crashes.py`` overrides this fixture: it requires that
    such a process makes no difference.
    """
    from meshferry.cli import convert_command

    monkeypatch.setattr(convert_command, "_is_isolated", lambda *_: False)


@pytest.fixture
def meshferry(capfd: pytest.CaptureFixture[str], in_one_process: None) -> Callable[..., Result]:
    """Run the command line in this process."""
    from meshferry.cli.main import main

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(status, captured.out, captured.err)

    return run


@pytest.fixture
def run_python() -> Callable[..., Result]:
    """Run this Python in a process of its own, which finds what this one finds."""
    bpy = sys.modules.get("bpy")
    if bpy is not None and bpy.app.binary_path:
        pytest.skip("Blender's own Python has no bpy outside Blender")

    def run(*arguments: object, **environment: str) -> Result:
        command = [sys.executable, *(str(argument) for argument in arguments)]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=120,
            env=os.environ | environment,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def run_script(run_python: Callable[..., Result]) -> Callable[..., Result]:
    """Run ``cli/convert.py`` in a process of its own."""
    return lambda *arguments, **environment: run_python(ROOT / "cli" / "convert.py", *arguments, **environment)


def make_windmill(name: str = "windmill") -> Any:
    """Return a scene of a tower with turning sails: 2 nodes, 24 triangles, 2 materials, 1 animation."""
    from meshferry.io_formats.core.scene import Clip, Node, Scene, TransformTrack

    angles = np.linspace(0, 2 * np.pi, FRAMES, endpoint=False) / 2
    rotation = np.zeros((FRAMES, 4), np.float32)
    rotation[:, 0], rotation[:, 2] = np.cos(angles), np.sin(angles)
    turning = TransformTrack(
        target=1,
        translation=np.tile(np.array([0, -1, 3], np.float32), (FRAMES, 1)),
        rotation=rotation,
        scale=np.ones((FRAMES, 3), np.float32),
    )
    return Scene(
        name=name,
        nodes=[
            Node(name, mesh=make_box(["BaseWood_Brown.Folktails", "Paper.Folktails"])),
            Node("#Sails", parent=0, translation=(0, -1, 3), mesh=make_box(["Paper.Folktails"])),
        ],
        clips=[Clip("Default", 24.0, FRAMES, transforms=[turning])],
    )


@pytest.fixture
def write_windmill(tmp_path: Path) -> Callable[[str], Path]:
    """Write a windmill to a file below the test's folder."""
    pytest.importorskip("google.protobuf")
    from meshferry.io_formats import api
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    def write(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        api.write_scene(make_windmill(api.scene_name(path)), path, TIMBERMESH)
        return path

    return write


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write made bytes to a file below the test's folder."""

    def to(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return to


@pytest.fixture
def windmill(write_windmill: Callable[[str], Path]) -> Path:
    return write_windmill("windmill.timbermesh")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a file that is not a mesh."""
    path = tmp_path / "broken.timbermesh"
    path.write_bytes(b"no mesh at all")
    return path
