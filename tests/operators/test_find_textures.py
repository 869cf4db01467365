"""Find Missing Textures: materials that are completed by another folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import courtyard
import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return courtyard.make(tmp_path_factory.mktemp("courtyard"))


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    """Return a project without the textures of the barrel, and of the normals of bricks only the meta."""
    data = shutil.copytree(whole, tmp_path / "data")
    for name in ("barrel_alb", "barrel_n", "brick_n"):
        (data / courtyard.texture(name)).unlink()
        Path(f"{data / courtyard.texture(name)}.meta").unlink()
    (data / "textures" / "brick_n.png").unlink()
    return data


def imported(bpy: Any, data: Path, name: str, material: str) -> Any:
    assert bpy.ops.import_scene.unigine(filepath=str(data / courtyard.mesh(name))) == {"FINISHED"}
    return bpy.data.materials[material]


def images(material: Any) -> set[str]:
    return {node.image.name for node in material.node_tree.nodes if node.type == "TEX_IMAGE"}


def missing(material: Any) -> list[str]:
    return [entry.value for entry in material.meshferry.file_properties if entry.name.startswith("Missing Texture")]


def test_missing_textures_are_named_in_one_warning(clean_blender: Any, data: Path, capfd: Any) -> None:
    wall = imported(clean_blender, data, "wall", "brick")
    assert missing(wall) == ["guid://" + Path(courtyard.texture("brick_n")).stem]
    assert "1 texture missing in the project: 'brick_n.png (normal of brick)'" in capfd.readouterr().out


@pytest.mark.parametrize("place", ["PROJECT", "LOOSE"])
def test_textures_of_another_folder_complete_the_nodes(
    clean_blender: Any, whole: Path, data: Path, tmp_path: Path, place: str, capfd: Any
) -> None:
    """By their GUID, in another project or anywhere in a folder."""
    bpy = clean_blender
    barrel = imported(bpy, data, "bucket", "barrel")
    assert images(barrel) == {"barrel_ao"} and len(missing(barrel)) == 2
    folder = whole
    if place == "LOOSE":
        folder = tmp_path / "loose"
        folder.mkdir()
        for name in ("barrel_alb", "barrel_n"):
            shutil.copy(whole / courtyard.texture(name), folder)
    assert bpy.ops.material.meshferry_find_textures(directory=str(folder)) == {"FINISHED"}
    names = {"barrel_alb", "barrel_n"}
    if place == "LOOSE":  # their names are known from the metas alone, which are missing
        names = {Path(courtyard.texture(name)).stem for name in names}
    assert images(barrel) == {"barrel_ao", *names} and missing(barrel) == []
    assert all(image.packed_file is not None for image in bpy.data.images)
    assert barrel.meshferry.identity == courtyard.material("barrel")
    assert "2 textures, 1 material completed" in capfd.readouterr().out
    assert not bpy.ops.material.meshferry_find_textures.poll()


def test_a_source_is_found_by_the_name_that_its_meta_states(
    clean_blender: Any, whole: Path, data: Path, tmp_path: Path
) -> None:
    """Its green points up, which only the meta file of the project says."""
    bpy = clean_blender
    wall = imported(bpy, whole, "wall", "brick")
    kinds = sorted(node.bl_idname for node in wall.node_tree.nodes)
    bpy.data.materials.remove(wall)
    bpy.data.images.remove(bpy.data.images["brick_alb"])
    wall = imported(bpy, data, "wall", "brick")
    assert images(wall) == {"brick_alb"}
    folder = tmp_path / "pictures"
    folder.mkdir()
    shutil.copy(whole / "textures" / "brick_n.png", folder)
    bpy.ops.material.meshferry_find_textures(directory=str(folder))
    assert {name.partition(".")[0] for name in images(wall)} == {"brick_alb", "brick_n"}
    assert sorted(node.bl_idname for node in wall.node_tree.nodes) == kinds, "no node turns green over"


def test_what_is_not_found_stays(clean_blender: Any, data: Path, tmp_path: Path, capfd: Any) -> None:
    bpy = clean_blender
    barrel = imported(bpy, data, "bucket", "barrel")
    before = [node.name for node in barrel.node_tree.nodes]
    (tmp_path / "empty").mkdir()
    bpy.ops.material.meshferry_find_textures(directory=str(tmp_path / "empty"))
    assert [node.name for node in barrel.node_tree.nodes] == before and len(missing(barrel)) == 2
    assert "2 textures still missing" in capfd.readouterr().out
    shutil.rmtree(data)
    bpy.ops.material.meshferry_find_textures(directory=str(tmp_path / "empty"))
    assert "1 material not found in the project" in capfd.readouterr().out and len(missing(barrel)) == 2
