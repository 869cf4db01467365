"""Second Life's files to and from .blend files through the shell."""

from __future__ import annotations

import glb_oracle
import numpy as np
import pytest
import second_life_judge as judge
import second_life_made as made
import second_life_oracle as oracle
from outputs import names_in

pytestmark = pytest.mark.needs_bpy

MEMBERS = ["body.dae", "body_LOD0.dae", "body_LOD1.dae", "body_LOD2.dae"]


@pytest.fixture
def scene(tmp_path):
    """Return a function that calls ``fill(bpy)`` on an empty scene and saves it."""

    def save(fill, name="body.blend"):
        import bpy

        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        fill(bpy)
        path = tmp_path / name
        bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        return path

    return save


def ball(bpy, name="Ball", materials=("wood", "iron"), location=(0.0, 0.0, 0.0), **more):
    """Add a ball of 16 by 12 segments and half a metre across, its halves of two materials."""
    bpy.ops.mesh.primitive_uv_sphere_add(segments=16, ring_count=12, radius=0.25, location=location, **more)
    obj = bpy.context.object
    obj.name = obj.data.name = name
    for material in materials:
        obj.data.materials.append(bpy.data.materials.get(material) or bpy.data.materials.new(material))
    for number, polygon in enumerate(obj.data.polygons):
        polygon.material_index = number * max(len(materials), 1) // len(obj.data.polygons)
    return obj


@pytest.mark.parametrize("name", ["crate", "torso"])
def test_an_asset_comes_back_from_a_blend_file_as_it_was(name, meshferry, write, tmp_path):
    before = {"crate": made.crate, "torso": made.torso}[name]()
    source = write(f"{name}.llmesh", before)
    blend, again = tmp_path / f"{name}.blend", tmp_path / "again" / f"{name}.llmesh"
    there = meshferry("convert", "--json", source, blend)
    assert there.status == 0, there.err
    assert there.entries[0]["facts"]["triangles"] == 12
    back = meshferry("convert", "--json", blend, "--to", "llmesh", "-o", tmp_path / "again", "--as-imported")
    assert back.status == 0, back.err
    assert names_in(tmp_path / "again") == [f"{name}.llmesh"]
    exact = name == "crate"
    judge.same_asset(
        oracle.decode(before),
        oracle.decode(again.read_bytes()),
        normals=judge.EXACT if exact else judge.EDITABLE,
        except_doubtful=not exact,
    )


def test_a_blend_file_becomes_a_set_with_everything_made(meshferry, scene, tmp_path):
    blend = scene(ball)
    done = meshferry("convert", "--json", blend, "--to", "dae", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    (entry,) = done.entries
    assert names_in(tmp_path / "out") == MEMBERS
    assert sorted(entry["files"]) == [str(tmp_path / "out" / name) for name in MEMBERS]
    assert (entry["facts"]["nodes"], entry["facts"]["materials"]) == (1, 2)
    assert entry["facts"]["triangles"] == 16 * 2 + 16 * 10 * 2


def dressed(bpy):
    """Add an avatar with a body and a worn ball in a collection of its own."""
    bpy.ops.object.second_life_add_mannequin()
    avatar = bpy.context.object
    worn = ball(bpy)
    clothes = bpy.data.collections.new("Clothes")
    bpy.context.scene.collection.children.link(clothes)
    clothes.objects.link(worn)
    bpy.context.scene.collection.objects.unlink(worn)
    worn.select_set(True)
    avatar.select_set(True)
    bpy.ops.object.second_life_bind()


@pytest.mark.parametrize("command", ["convert", pytest.param("batch", marks=pytest.mark.slow)])
def test_bodies_to_fit_clothes_on_are_left_out(meshferry, scene, tmp_path, command):
    scene(dressed)
    done = meshferry(command, tmp_path / "body.blend", "--to", "llmesh", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    (path,) = (tmp_path / "out").rglob("*.llmesh")
    skin = oracle.decode(path.read_bytes()).skin
    assert skin is not None and "mHead" not in skin.joints


def test_an_imported_kit_that_is_a_body_does_not_take_the_place_of_clothes(meshferry, scene, tmp_path):
    def fill(bpy):
        dressed(bpy)
        bpy.data.collections["Mannequin"].meshferry.from_file = True

    done = meshferry("convert", scene(fill), tmp_path / "one.glb")
    assert done.status == 0, done.err
    content, _ = glb_oracle.read_glb((tmp_path / "one.glb").read_bytes())
    assert [mesh["name"] for mesh in content["meshes"]] == ["Ball"]
    assert len(content["skins"]) == 1


def test_the_physics_file_of_an_earlier_set_is_removed(meshferry, scene, tmp_path):
    blend = scene(ball)
    target = tmp_path / "out" / "body.dae"
    target.parent.mkdir()
    done = meshferry("convert", "--json", blend, target, "--physics-shape", "cube")
    assert names_in(target.parent) == [*MEMBERS, "body_PHYS.dae"]
    done = meshferry("convert", "--json", blend, target)
    assert done.status == 0, done.err
    assert names_in(target.parent) == MEMBERS
    assert any(text.startswith("body_PHYS.dae: removed") for text in done.entries[0]["warnings"])


def test_what_is_made_is_no_loss(meshferry, scene, tmp_path):
    blend = scene(ball)
    done = meshferry("convert", "--json", "--strict", blend, tmp_path / "body.llmesh", "--physics-shape", "parts")
    assert done.status == 0, done.err
    assert any("Levels of detail made" in text for text in done.entries[0]["warnings"])
    assert any("Physics shapes made" in text for text in done.entries[0]["warnings"])


def test_a_blend_file_becomes_an_asset_with_everything_made(meshferry, scene, tmp_path):
    blend = scene(lambda bpy: ball(bpy, location=(5, 6, 7), scale=(1, 2, 1)))
    done = meshferry("convert", "--json", blend, tmp_path / "body.llmesh", "--medium-ratio", 0.5)
    assert done.status == 0, done.err
    asset = oracle.decode((tmp_path / "body.llmesh").read_bytes())
    counts = [sum(len(face.triangles) for face in asset.levels[level]) for level in oracle.LEVELS]
    assert counts[0] == 352
    assert 150 < counts[1] <= 176
    assert counts[1] > counts[2] > counts[3] > 0
    assert all(len(faces) == 2 for faces in asset.levels.values())
    assert asset.scale == pytest.approx((0.5, 1.0, 0.5), abs=1e-5)
    assert asset.hulls is not None
    assert asset.hulls.base is not None
    assert 8 <= len(asset.hulls.base) <= 256
    points = np.concatenate([face.positions for face in asset.levels["high_lod"]])
    np.testing.assert_allclose([points.min(axis=0), points.max(axis=0)], [[-0.5] * 3, [0.5] * 3], atol=1e-4)


def test_several_objects_are_one_bundle_and_several_assets(meshferry, scene, tmp_path):
    def fill(bpy):
        ball(bpy, "One")
        ball(bpy, "Two", location=(3, 0, 0))

    blend = scene(fill)
    done = meshferry("convert", "--json", blend, tmp_path / "body.slm")
    assert done.status == 0, done.err
    found = oracle.decode_bundle((tmp_path / "body.slm").read_bytes())
    assert {instance.label: instance.transform[3, :3].round(5).tolist() for instance in found.instances} == {
        "One": [0, 0, 0],
        "Two": [3, 0, 0],
    }
    done = meshferry("convert", "--json", blend, tmp_path / "body.llmesh")
    assert done.status == 1
    assert "--to llmesh -o FOLDER" in done.err
    assert "--mesh-files" not in done.err
    done = meshferry("convert", "--json", blend, "--to", "llmesh", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert names_in(tmp_path / "out") == [f"{blend.stem}.One.llmesh", f"{blend.stem}.Two.llmesh"]


def test_errors_of_the_rules_stop_a_set_and_write_nothing(meshferry, scene, tmp_path):
    def fill(bpy):
        obj = ball(bpy, "Body")
        bpy.ops.object.armature_add()
        rig = bpy.context.object
        rig.data.bones[0].name = "wing"
        group = obj.vertex_groups.new(name="wing")
        group.add(range(len(obj.data.vertices)), 1.0, "REPLACE")
        obj.modifiers.new("Armature", "ARMATURE").object = rig
        obj.parent = rig

    blend = scene(fill)
    (tmp_path / "out").mkdir()
    old = tmp_path / "out" / "body.dae"
    old.write_text("old")
    done = meshferry("convert", "--json", blend, "--to", "dae", "-o", tmp_path / "out")
    assert done.status == 1
    assert "wing" in done.entries[0]["error"]
    assert names_in(tmp_path / "out") == ["body.dae"]
    assert old.read_text() == "old"


def test_a_mesh_without_extension_becomes_a_blend_file(meshferry, write, tmp_path):
    source = write("98a6e63e-12e2-481a-93db-93e6fa4f8b6d", made.torso())
    done = meshferry("convert", "--json", source, tmp_path / "torso.blend", "--skeleton-joints", "used")
    assert (done.status, done.err) == (0, "")
    assert done.entries[0]["facts"]["bones"] == 7, "three that move something, and those they hang on"


def test_pbr_materials_of_a_blend_file(scene, meshferry, tmp_path):
    """Each goes to a file beside the set, and standard output contains nothing but JSON."""

    def fill(bpy):
        from meshferry.blender_data import compat

        ball(bpy)
        compat.enable_nodes(bpy.data.materials["iron"])
        bpy.data.materials["iron"].node_tree.nodes["Principled BSDF"].inputs["Metallic"].default_value = 1

    blend = scene(fill)
    for folder in ("out", "plain"):
        (tmp_path / folder).mkdir()
    done = meshferry("convert", "--json", blend, tmp_path / "out" / "body.dae")
    assert done.status == 0, done.err
    assert names_in(tmp_path / "out") == [*MEMBERS, "body_iron.glb"]
    assert glb_oracle.read_glb((tmp_path / "out" / "body_iron.glb").read_bytes())[0]["materials"][0]["name"] == "iron"
    assert "face 0 'iron' → body_iron.glb" in done.entries[0]["warnings"]
    done = meshferry("convert", "--json", blend, tmp_path / "plain" / "body.dae", "--no-pbr-materials")
    assert done.status == 0 and names_in(tmp_path / "plain") == MEMBERS
