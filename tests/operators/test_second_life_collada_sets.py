"""Sets of Collada files in Blender: levels and physics from partner files, and the way back to the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_files import EXAMPLES
from load_package import SAMPLES
from meshfuzz import collada_seeds as seeds

pytestmark = pytest.mark.needs_bpy

TUNIC = ["tunic.dae", "tunic_LOD0.dae", "tunic_LOD1.dae", "tunic_LOD2.dae", "tunic_PHYS.dae"]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def exported(bpy: Any, folder: Path, name: str) -> dict[str, bytes]:
    folder.mkdir()
    assert bpy.ops.export_scene.second_life_upload(filepath=str(folder / name), scope="SCENE") == {"FINISHED"}
    return content(folder)


def imported(bpy: Any, *paths: Path, **options: Any) -> list[str]:
    """Import files into an empty scene; return the names of all meshes' objects."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    given: dict[str, Any] = {"filepath": str(paths[0])}
    if len(paths) > 1:
        given |= {"directory": str(paths[0].parent), "files": [{"name": path.name} for path in paths]}
    assert bpy.ops.import_scene.second_life(**given, **options) == {"FINISHED"}
    return sorted(obj.name for obj in bpy.data.objects if obj.type == "MESH")


def move_there_and_back(bpy: Any) -> None:
    for obj in bpy.data.objects:
        if obj.type == "MESH":
            vertex = obj.data.vertices[0]
            before = vertex.co.copy()
            vertex.co.x += 1
            obj.data.update()
            bpy.context.view_layer.update()
            vertex.co = before
            obj.data.update()


def material(bpy: Any, name: str, color: tuple[float, float, float], image: Any = None) -> Any:
    from meshferry.blender_data import compat

    made = bpy.data.materials.new(name)
    compat.enable_nodes(made)
    tree = made.node_tree
    base = tree.nodes["Principled BSDF"].inputs["Base Color"]
    base.default_value = (*color, 1)
    if image is not None:
        node = tree.nodes.new("ShaderNodeTexImage")
        node.image = image
        tree.links.new(node.outputs["Color"], base)
    return made


def add(bpy: Any, name: str, shape: Any, materials: list[Any], **channels: Any) -> Any:
    """Add an object: a primitive whose faces have the materials in turn, or one with the mesh data of another."""
    if callable(shape):
        shape()
        made = bpy.context.object
        made.name = made.data.name = name
        for one in materials:
            made.data.materials.append(one)
        count = len(made.data.polygons)
        slots = np.arange(count) * max(len(materials), 1) // count
        made.data.polygons.foreach_set("material_index", slots.astype(np.int32))
    else:
        made = bpy.data.objects.new(name, shape)
        bpy.context.scene.collection.objects.link(made)
    for channel, value in channels.items():
        setattr(made, channel, value)
    return made


def make_house(bpy: Any, folder: Path) -> None:
    """Make objects with textures, odd names, all kinds of transforms, a level that lacks a material, and physics."""
    image = bpy.data.images.new("Bricks", 4, 4)
    image.filepath_raw, image.file_format = str(folder / "bricks one.png"), "PNG"
    image.save()
    wood, bricks = material(bpy, "Wood dark", (0.3, 0.2, 0.1)), material(bpy, "brick", (1, 1, 1), image)
    moss, apple = material(bpy, "Äther", (0.1, 0.7, 0.3)), material(bpy, "apple", (0.9, 0.1, 0.1))
    mesh = bpy.ops.mesh
    turned = {"location": (1.2345, -3.3, 0.7), "rotation_euler": (0.3, 1.1, -2.2), "scale": (1.3, 0.7, 2.1)}
    roof = add(
        bpy, "Roof.001", lambda: mesh.primitive_uv_sphere_add(segments=16, ring_count=8), [wood, moss, bricks], **turned
    )
    roof.data.polygons.foreach_set("use_smooth", np.ones(len(roof.data.polygons), bool))
    add(bpy, "Roof.001_LOD1", mesh.primitive_cube_add, [wood, bricks], **turned)
    add(bpy, "Roof.001_PHYS", mesh.primitive_cube_add, [], **turned)
    add(bpy, "Wall A", mesh.primitive_torus_add, [bricks, apple], location=(-5.1, 0.2, 10.3), scale=(1, -1, 1))
    add(bpy, "wall", roof.data, [], rotation_euler=(0, 0.7, 0), scale=(2, 2, 2))
    add(bpy, "zz none", lambda: mesh.primitive_ico_sphere_add(subdivisions=2), [], rotation_euler=(0, 0, 1))


@pytest.mark.parametrize("is_made", [True, False])
def test_a_rigged_set_comes_back_byte_by_byte(clean_blender, tmp_path, is_made):
    bpy = clean_blender
    first = tmp_path / "first"
    if is_made:
        bpy.ops.import_scene.second_life(filepath=str(EXAMPLES / "tunic.llmesh"))
        before = exported(bpy, first, "tunic.dae")
    else:
        if not (SAMPLES / "collada").is_dir():
            pytest.skip("no samples of Collada files")
        shutil.copytree(SAMPLES / "collada" / "meshferry_set", first)
        before = content(first)
    assert list(before) == TUNIC
    names = imported(bpy, first / "tunic.dae")
    assert names == [Path(name).stem for name in TUNIC]
    levels = {obj.name: (obj.meshferry.role, obj.meshferry.lod, obj.visible_get()) for obj in bpy.data.objects}
    assert levels["tunic"] == ("RENDER", 0, True)
    assert levels["tunic_LOD1"] == ("RENDER", 2, False)
    assert levels["tunic_PHYS"] == ("PHYSICS", 0, False)
    assert len([obj for obj in bpy.data.objects if obj.type == "ARMATURE"]) == 1
    assert exported(bpy, tmp_path / "second", "tunic.dae") == before
    move_there_and_back(bpy)
    assert exported(bpy, tmp_path / "third", "tunic.dae") == before


def test_a_set_of_placed_objects_with_textures_comes_back_byte_by_byte(clean_blender, tmp_path):
    bpy = clean_blender
    make_house(bpy, tmp_path)
    before = exported(bpy, tmp_path / "first", "house.dae")
    assert len(before) == 6
    imported(bpy, tmp_path / "first" / "house.dae")
    move_there_and_back(bpy)
    assert exported(bpy, tmp_path / "second", "house.dae") == before
    bpy.data.objects["zz_none"].location.x += 1
    moved = exported(bpy, tmp_path / "third", "house.dae")
    assert [name for name in before if moved[name] != before[name]] == [name for name in before if ".dae" in name][:4]


def test_an_import_goes_back_to_all_its_files(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    make_house(bpy, tmp_path)
    before = exported(bpy, tmp_path / "set", "house.dae")
    imported(bpy, tmp_path / "set" / "house.dae")
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "house.dae: nothing changed" in capfd.readouterr().out
    after = content(tmp_path / "set")
    assert {name: after[name] for name in before} == before
    assert set(after) == set(before), "files of exports need no backups"
    bpy.data.objects["Roof.001_LOD1"].data.vertices[0].co.z += 0.25
    bpy.ops.export_scene.meshferry_again()
    assert "nothing changed" not in capfd.readouterr().out


def test_partners_are_imported_once_and_on_demand(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    bpy.ops.import_scene.second_life(filepath=str(EXAMPLES / "tunic.llmesh"))
    folder = tmp_path / "set"
    exported(bpy, folder, "tunic.dae")
    names = [Path(name).stem for name in TUNIC]
    assert imported(bpy, *sorted(folder.iterdir(), reverse=True)) == names
    assert imported(bpy, folder / "tunic_LOD1.dae") == ["tunic"]
    assert imported(bpy, folder / "tunic.dae", use_partner_files=False) == ["tunic"]
    (folder / "tunic_LOD1.dae").write_bytes((folder / "tunic_LOD1.dae").read_bytes()[:900])
    capfd.readouterr()
    assert imported(bpy, folder / "tunic.dae") == [name for name in names if name != "tunic_LOD1"]
    assert "tunic_LOD1.dae: The file was not read: " in capfd.readouterr().out


def test_the_report_counts_the_triangles_of_polygons(clean_blender, tmp_path, capfd):
    (tmp_path / "box.dae").write_bytes(seeds.files()["static"])
    assert imported(clean_blender, tmp_path / "box.dae") == ["my box"]
    assert "box.dae: 1 object, 12 triangles" in capfd.readouterr().out


def test_files_of_any_names_become_levels_by_their_triangles(clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.import_scene.second_life(filepath=str(EXAMPLES / "tunic.llmesh"))
    folder = tmp_path / "set"
    exported(bpy, folder, "tunic.dae")
    new = {"": "c", "_LOD2": "a", "_LOD1": "b", "_LOD0": "d", "_PHYS": "x_PHYS"}
    for suffix, name in new.items():
        (folder / f"tunic{suffix}.dae").rename(folder / f"{name}.dae")
    paths = [folder / f"{name}.dae" for name in sorted(new.values())]
    assert imported(bpy, *paths, use_files_as_levels=True) == [Path(name).stem for name in TUNIC]
    counts = {obj.name: len(obj.data.polygons) for obj in bpy.data.objects if obj.type == "MESH"}
    assert counts["tunic"] > counts["tunic_LOD2"] > counts["tunic_LOD1"] > counts["tunic_LOD0"]
    finest = bpy.data.objects["tunic"]
    assert Path(finest.users_collection[0].meshferry.source_path or folder / "c.dae").name == "c.dae"
    bpy.context.view_layer.objects.active = finest
    bpy.data.objects["tunic_LOD1"].data.vertices[0].co.x += 1
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert {obj.name: len(obj.data.polygons) for obj in bpy.data.objects if obj.type == "MESH"} == counts


def test_a_reload_reads_the_partners_again(clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.import_scene.second_life(filepath=str(EXAMPLES / "tunic.llmesh"))
    folder = tmp_path / "set"
    exported(bpy, folder, "tunic.dae")
    imported(bpy, folder / "tunic.dae")
    shutil.copyfile(folder / "tunic_LOD0.dae", folder / "tunic_LOD1.dae")
    bpy.context.view_layer.objects.active = bpy.data.objects["tunic"]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    counts = {obj.name: len(obj.data.polygons) for obj in bpy.data.objects if obj.type == "MESH"}
    assert counts["tunic_LOD1"] == counts["tunic_LOD0"] < counts["tunic_LOD2"]


def test_notes_name_their_files(clean_blender, tmp_path, capfd):
    for name in ("a.dae", "b.dae"):
        (tmp_path / name).write_bytes(seeds.files()["shapes"])
    imported(clean_blender, tmp_path / "a.dae", tmp_path / "b.dae")
    assert "a.dae, b.dae: 1 hole in polygons left out: 'box'" in capfd.readouterr().out
