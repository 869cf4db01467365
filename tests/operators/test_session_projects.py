"""Reading in a session of Blender: projects stay open, and a cancelled reading thread ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import unigine_bytes
from unigine_projects import guid, material, mesh_node, runtime_path, write_project
from unigine_scene_bytes import nodes

pytestmark = pytest.mark.needs_bpy

MESH = guid(1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    files = {
        runtime_path(MESH, "mesh"): unigine_bytes.ALL["ms12"],
        "oak.mat": material(guid(2), base="mesh_base"),
        "a.node": nodes(mesh_node(MESH, Face=guid(2))),
    }
    return write_project(tmp_path / "data", files) / runtime_path(MESH, "mesh")


def test_an_import_takes_the_materials_of_the_project(clean_blender: Any, path: Path) -> None:
    bpy = clean_blender
    for is_used, names in ((True, ["oak"]), (False, ["Face"])):
        assert bpy.ops.import_scene.unigine(filepath=str(path), use_project_materials=is_used) == {"FINISHED"}
        assert [slot.material.name for slot in bpy.context.object.material_slots] == names


def test_the_preferences_choose_the_project_of_files_outside(clean_blender: Any, path: Path, tmp_path: Path) -> None:
    bpy = clean_blender
    addons = bpy.context.preferences.addons
    addon = addons.new()
    addon.module = "meshferry"
    outside = tmp_path / path.name
    outside.write_bytes(path.read_bytes())
    try:
        addon.preferences.unigine_project = str(path.parents[2])
        assert bpy.ops.import_scene.unigine(filepath=str(outside)) == {"FINISHED"}
    finally:
        addons.remove(addon)
    assert [slot.material.name for slot in bpy.context.object.material_slots] == ["oak"]


def test_cancelling_ends_the_reading_thread(path: Path) -> None:
    from meshferry.io_formats.partner_files import FileSet
    from meshferry.operators.files.session_projects import ReadingCancelledError, reading_steps

    steps = reading_steps(FileSet(path), {})
    job = next(steps).job
    assert job is not None
    steps.close()
    with pytest.raises(ReadingCancelledError):
        job()


def test_the_progress_of_a_reading_thread_is_shown(path: Path) -> None:
    from meshferry.blender_data.steps import scaled
    from meshferry.operators.files.session_projects import project_steps

    seen: list[float] = []

    def work(projects: Any) -> str:
        projects.check(0.5)
        seen.append(step.fraction + step.progress())
        return "done"

    steps = scaled(project_steps("Reading", work), 0.2, 0.4)
    step = next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert (end.value.value, seen) == ("done", [pytest.approx(0.3)])
