"""A format outside the package works everywhere once ``MESHFERRY_FORMATS`` names its module; no other code knows it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

TOY = b"TOY 1\nv 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 0 2 1\nf 0 1 3\nf 0 3 2\nf 1 2 3\n"
TESTS = Path(__file__).resolve().parents[1]
PROGRAM = """
import json, sys
sys.path.insert(0, {tests!r})
from load_package import leave, load_package
load_package()
import bpy, meshferry
from meshferry.cli.main import main
meshferry.register()
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.import_scene.toy(filepath="in.toy", toy_scale=2.0)
size = list(bpy.context.object.dimensions)
check = bpy.ops.export_scene.toy_check()
bpy.ops.export_scene.toy(filepath="out.toy")
handler = bpy.types.IO_FH_toy
panels = [name for name in dir(bpy.types) if name.startswith("TOY_PT_")]
found = dict(size=size, check=list(check), handler=[handler.bl_file_extensions, handler.bl_export_operator])
meshferry.unregister()
found["panels"] = panels
print("FOUND " + json.dumps(found), flush=True)
leave(0)
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in.toy").write_bytes(TOY)
    monkeypatch.setenv("MESHFERRY_FORMATS", "toy_format")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.needs_bpy
@pytest.mark.needs_workers
def test_blender_imports_checks_and_exports_an_external_format(toy: Path, run_python: Any) -> None:
    done = run_python("-c", PROGRAM.format(tests=str(TESTS)))
    assert done.status == 0, done.err
    found = json.loads(done.out.rpartition("FOUND ")[2].splitlines()[0])
    assert found["size"] == [2.0, 4.0, 6.0]
    assert found["check"] == ["FINISHED"]
    assert found["handler"] == [".toy", "export_scene.toy"]
    assert found["panels"] == ["TOY_PT_sidebar", "TOY_PT_sidebar_own"]
    assert sorted((toy / "out.toy").read_text().splitlines()[1:5]) == ["v 0 0 0", "v 0 0 6", "v 0 4 0", "v 2 0 0"]


@pytest.mark.slow
@pytest.mark.needs_bpy
@pytest.mark.needs_workers
def test_the_command_line_converts_and_batches_an_external_format(toy: Path, run_python: Any) -> None:
    for number, arguments in enumerate(
        (("inspect", "in.toy"), ("convert", "in.toy", "out.data"), ("batch", "in.toy", "--to", "blend", "-o", "done"))
    ):
        done = run_python("-m", "meshferry", *arguments)
        assert done.status == 0, (number, done.out, done.err)
    assert struct.unpack_from("<HH", (toy / "out.data").read_bytes())[1] == 4
    assert (toy / "done" / "in.blend").is_file()
