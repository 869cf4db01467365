"""UNIGINE's meshes and animations to and from .blend files."""

from pathlib import Path

import pytest
import rigs
from outputs import names_in, opened

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.needs_bpy


def scene_of(path):
    from meshferry.io_formats import api

    return api.read_scene(path)


@pytest.fixture
def crane(tmp_path):
    return rigs.write_mesh(tmp_path / "in" / "crane.mesh")


@pytest.fixture
def moves(tmp_path):
    return [
        rigs.write_animation(tmp_path / "in" / f"{name}.anim", frames) for name, frames in (("lift", 4), ("swing", 7))
    ]


@pytest.fixture
def blend(meshferry, crane, moves, tmp_path):
    """A .blend file of a mesh with its two animations; the animations were named first."""
    path = tmp_path / "crane.blend"
    done = meshferry("convert", *moves, crane, path)
    assert (done.status, done.err) == (0, "")
    return path


def test_animations_go_onto_the_armature_of_the_mesh(meshferry, crane, moves, tmp_path):
    path = tmp_path / "crane.blend"
    done = meshferry("convert", *moves, crane, path, "--json")
    assert done.status == 0, done.err
    assert [entry["input"] for entry in done.entries] == [str(source) for source in (*moves, crane)]
    assert [entry["facts"]["nodes"] for entry in done.entries] == [0, 0, 1]
    bpy = opened(path)
    (rig,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    assert {bone.name for bone in rig.data.bones} == set(rigs.BONES)
    assert {action.name for action in bpy.data.actions} == {"lift", "swing"}
    assert [one.name for one in bpy.context.scene.collection.children] == ["crane"]


def test_an_animation_of_other_bones_is_reported(meshferry, crane, tmp_path):
    other = rigs.write_animation(tmp_path / "in" / "other.anim", 4, bones=("Base", "Tip"))
    done = meshferry("convert", crane, other, tmp_path / "crane.blend")
    assert done.status == 0
    assert "none of its 2 bones are in 'crane Armature'; made a new armature" in done.err
    assert meshferry("convert", crane, other, tmp_path / "new.blend", "--armature", "new").err == ""


def test_new_names_are_those_of_actions(meshferry, crane, moves, tmp_path):
    path = tmp_path / "crane.blend"
    assert meshferry("convert", crane, *moves, path, "--rename-clip", "lift=Raise").status == 0
    assert {action.name for action in opened(path).data.actions} == {"Raise", "swing"}
    path.unlink()
    done = meshferry("convert", crane, *moves, path, "--rename-clip", "wave=Raise")
    assert done.status == 1
    assert not path.exists()


def test_each_file_its_own_armature_where_asked_for(meshferry, crane, moves, tmp_path):
    path = tmp_path / "crane.blend"
    assert meshferry("convert", crane, *moves, path, "--armature", "new").status == 0
    assert sum(obj.type == "ARMATURE" for obj in opened(path).data.objects) == 3


def test_a_folder_gives_a_mesh_and_the_animation_of_its_name_one_file(meshferry, crane, moves, tmp_path):
    moves[0].rename(crane.with_suffix(".anim"))
    done = meshferry("convert", tmp_path / "in", "--to", "blend", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert names_in(tmp_path / "out") == ["crane.blend", "swing.blend"]
    bpy = opened(tmp_path / "out" / "crane.blend")
    assert [action.name for action in bpy.data.actions] == ["crane"]
    assert any(obj.type == "MESH" for obj in bpy.data.objects)


def test_back_to_a_mesh(meshferry, blend, crane, tmp_path):
    target = tmp_path / "back.mesh"
    done = meshferry("convert", blend, target, "--clips", "none", "--strict")
    assert done.status == 0, done.err
    assert done.out.startswith(
        f"{blend} (collection 'crane') -> {target}: 1 object, 12 triangles, 2 materials, 2 bones\n"
    )
    assert target.read_bytes()[:4] == b"ms13"
    before, after = scene_of(crane), scene_of(target)
    assert (before.nodes[0].mesh.points == after.nodes[0].mesh.points).all()
    assert before.skeletons[0].joints == after.skeletons[0].joints


def test_back_to_animations(meshferry, blend, tmp_path):
    done = meshferry("convert", blend, tmp_path / "one.anim", "--clips", "actions")
    assert done.status == 1
    assert "2 animations (" in done.err
    assert "cannot become one file" in done.err
    to_folder = ["--to", "anim", "-o", tmp_path / "out", "--clips", "actions", "--rename-clip", "lift=Raise"]
    done = meshferry("convert", blend, *to_folder)
    assert (done.status, done.err) == (0, "")
    names = [f"{blend.stem}.{clip}.anim" for clip in ("Raise", "swing")]
    assert names_in(tmp_path / "out") == names
    assert scene_of(tmp_path / "out" / names[1]).clips[0].frame_count == 7
    assert scene_of(tmp_path / "out" / names[0]).clips[0].transforms[-1].translation[-1, 2] == pytest.approx(3)


def test_a_wrong_name_of_an_animation_is_an_error_before_anything_is_written(meshferry, blend, tmp_path):
    renaming = ["--clips", "actions", "--rename-clip", "wave=turn"]
    done = meshferry("convert", blend, "--to", "anim", "-o", tmp_path / "out", *renaming)
    assert done.status == 1 and f"{blend}: --rename-clip: there is no animation 'wave'" in done.err
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize("version", ["an11", "an13"])
def test_a_frame_rate_that_came_from_a_file_is_lost_with_a_warning(meshferry, tmp_path, version):
    """Only an13 holds a rate: one of an11 is the scene's, whose loss is not worth a warning."""
    example = ROOT / "examples" / "lamp_nod.anim"
    source, blend = tmp_path / "nod.anim", tmp_path / "nod.blend"
    options = ("--animation-version", version, "--skeleton", rigs.SKELETON)
    assert meshferry("convert", example, source, *options).status == 0
    assert meshferry("convert", source, blend).status == 0
    done = meshferry("convert", blend, tmp_path / "back.anim", "--animation-version", "an11")
    assert ("frames a second, which an11 cannot store" in done.err) == (version == "an13")


def test_the_only_animation_has_the_name_of_its_source(meshferry, blend, tmp_path):
    to_folder = ["--to", "anim", "-o", tmp_path / "out"]
    assert meshferry("convert", blend, *to_folder).status == 0
    assert names_in(tmp_path / "out") == [f"{blend.stem}.anim"]
    chosen = ["--clips", "actions", "--clip-names", "swing"]
    assert meshferry("convert", blend, *to_folder, *chosen).status == 0
    assert names_in(tmp_path / "out") == [f"{blend.stem}.anim"]


def test_back_into_one_mesh_with_its_animations(meshferry, blend, tmp_path):
    target = tmp_path / "back.mesh"
    inside = ["--clips", "actions", "--mesh-version", "ms12", "--embedded-animation"]
    done = meshferry("convert", blend, target, *inside)
    assert done.status == 0, done.err
    assert sorted((clip.name, clip.frame_count) for clip in scene_of(target).clips) == [("lift", 4), ("swing", 7)]


def test_animations_into_a_mesh_of_another_format(meshferry, tmp_path):
    model, mesh = tmp_path / "crane.glb", rigs.write_mesh(tmp_path / "crane.mesh", [rigs.make_clip("lift", 3)])
    assert meshferry("convert", mesh, model).status == 0
    walk, target = rigs.write_animation(tmp_path / "walk.anim", 9), tmp_path / "out.mesh"
    into = [target, "--mesh-version", "ms12", "--embedded-animation"]
    done = meshferry("convert", model, walk, *into, "--rename-clip", "walk=run")
    assert done.status == 0, done.err
    clips = {clip.name: clip for clip in scene_of(target).clips}
    assert clips["run"].frame_count == 9
    assert round(float(clips["run"].transforms[-1].translation[-1, 2]), 3) == 8
    target.unlink()
    stranger = rigs.write_animation(tmp_path / "swim.anim", 5, ("Fin", "Tail"))
    done = meshferry("convert", "--strict", model, stranger, *into)
    assert done.status == 1
    assert "has no bone of 'swim'" in done.err
    assert not target.exists()


def test_several_objects_become_several_files_or_one_joined(meshferry, tmp_path):
    import bpy

    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    for name, place in (("Wall", 0), ("Roof", 5)):
        bpy.ops.mesh.primitive_cube_add(location=(0, 0, place))
        bpy.context.object.name = name
    source = tmp_path / "house.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(source), check_existing=False)
    done = meshferry("convert", source, tmp_path / "house.mesh")
    assert done.status == 1
    assert "cannot become one file; use --mesh-files joined to join them, or --to mesh -o FOLDER" in done.err
    assert meshferry("convert", source, "--to", "mesh", "-o", tmp_path / "out").status == 0
    assert names_in(tmp_path / "out") == ["house.Roof.mesh", "house.Wall.mesh"]
    joined = ["--mesh-files", "joined", "--space", "world"]
    assert meshferry("convert", source, tmp_path / "house.mesh", *joined).status == 0
    (node,) = scene_of(tmp_path / "house.mesh").nodes
    assert node.mesh.triangle_count == 24
    assert node.mesh.points[:, 2].max() == 6


def test_options_of_files_that_are_not_there_are_pointed_out(meshferry, crane, tmp_path):
    done = meshferry("convert", crane, tmp_path / "out.blend", "--weld", "--turn", "--lod-objects")
    assert done.status == 0
    assert done.err == "convert: warning: --weld has no effect when writing .blend files\n"
