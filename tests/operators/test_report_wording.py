"""Reports of exports: each sentence once, with the name of the file that was written."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def cube(clean_blender: Any) -> Any:
    clean_blender.ops.mesh.primitive_cube_add()
    return clean_blender.context.object


def test_the_name_with_the_appended_extension_is_reported(cube: Any, tmp_path: Any, capfd: Any) -> None:
    import bpy

    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "x.fbx"), scope="SELECTION")
    assert (tmp_path / "x.fbx.mesh").exists()
    assert [line for line in capfd.readouterr().out.splitlines() if line.startswith("Info: x.fbx.mesh: ")]


@pytest.mark.parametrize("given", ["", "{folder}"])
def test_an_empty_name(cube: Any, tmp_path: Any, given: str) -> None:
    import bpy

    with pytest.raises(RuntimeError, match=r"^Error: No file name given$"):
        bpy.ops.export_scene.unigine_mesh(filepath=given.format(folder=tmp_path), scope="SELECTION")


def test_a_missing_folder(cube: Any, tmp_path: Any) -> None:
    import bpy

    with pytest.raises(RuntimeError, match=r"^Error: a.mesh: the folder does not exist: .*nowhere$"):
        bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "nowhere" / "a.mesh"), scope="SELECTION")


def test_a_single_warning_is_reported_once(cube: Any, tmp_path: Any, capfd: Any) -> None:
    import bpy

    cube.data.uv_layers.remove(cube.data.uv_layers[0])
    bpy.ops.export_scene.second_life_mesh(filepath=str(tmp_path / "a.llmesh"), scope="SELECTION")
    assert capfd.readouterr().out.count("no UV map") == 1
