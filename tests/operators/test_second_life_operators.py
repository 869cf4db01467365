"""Import and export of Second Life files as an artist or a script asks for it."""

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest
import second_life_oracle
from second_life_models import write_crate

pytestmark = pytest.mark.needs_bpy

LEVELS = ("", "_LOD2", "_LOD1", "_LOD0")


def _files(folder):
    return sorted(path.name for path in folder.iterdir())


def _names(stem):
    return sorted([f"{stem}{suffix}.dae" for suffix in LEVELS])


def _mesh(bpy, name, *, faces=((0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (1, 5, 6, 2), (2, 6, 7, 3), (3, 7, 4, 0))):
    mesh = bpy.data.meshes.new(name)
    points = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (0, 1), (1, 1), (1, 0))]
    mesh.from_pydata(points, [], faces)
    mesh.materials.append(bpy.data.materials.get("Wood") or bpy.data.materials.new("Wood"))
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


def _select(bpy, *objects):
    bpy.context.view_layer.update()
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


def _metal(bpy, name):
    """Return a material that is written as a PBR material."""
    from meshferry.blender_data import compat

    material = bpy.data.materials.new(name)
    compat.enable_nodes(material)
    material.node_tree.nodes["Principled BSDF"].inputs["Metallic"].default_value = 1
    return material


@pytest.fixture
def box(clean_blender):
    """Return a selected box."""
    obj = _mesh(clean_blender, "box")
    _select(clean_blender, obj)
    return obj


def _geometries(path):
    """Return names and triangles of the geometries of a Collada file."""
    space = {"c": "http://www.collada.org/2005/11/COLLADASchema"}
    return {
        geometry.get("name"): sum(int(part.get("count")) for part in geometry.iterfind(".//c:triangles", space))
        for geometry in ET.parse(path).iterfind(".//c:geometry", space)
    }


# -- import -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["crate.llmesh", "crate.mesh", "0a1b2c3d-0000-1111-2222-333344445555", "note.txt"])
def test_an_asset_is_known_by_its_content(clean_blender, tmp_path, name):
    bpy = clean_blender
    assert bpy.ops.import_scene.second_life(filepath=str(write_crate(tmp_path / name))) == {"FINISHED"}
    shown = [obj for obj in bpy.data.objects if obj.visible_get()]
    assert [tuple(obj.dimensions) for obj in shown] == [pytest.approx((2, 1, 0.5), abs=1e-5)]
    assert bpy.context.object == shown[0]


def test_several_assets_come_at_once_and_a_broken_one_alone_is_missing(clean_blender, tmp_path):
    bpy = clean_blender
    files = [{"name": write_crate(tmp_path / name).name} for name in ("one.llmesh", "two", "three.llmesh")]
    (tmp_path / "two").write_bytes((tmp_path / "two").read_bytes()[:60])
    assert bpy.ops.import_scene.second_life(directory=str(tmp_path), files=files) == {"FINISHED"}
    assert {"one", "three"} <= set(bpy.data.objects.keys())
    assert "two" not in bpy.data.objects


def test_the_importer_of_mesh_files_takes_an_asset(clean_blender, tmp_path):
    bpy = clean_blender
    assert bpy.ops.import_scene.unigine(filepath=str(write_crate(tmp_path / "crate.mesh"))) == {"FINISHED"}
    assert bpy.data.objects["crate"].meshferry.lowest_level is not None


def test_a_size_is_assumed_where_the_asset_says_none(clean_blender, samples):
    bpy = clean_blender
    path = samples / "secondlife" / "elfears_98a6e63e.llmesh"
    bpy.ops.import_scene.second_life(filepath=str(path), assumed_size=3.0)
    assert tuple(bpy.context.object.scale) == pytest.approx((3, 3, 3))


# -- the upload set -----------------------------------------------------------------------------------------------


def test_a_set_is_five_files_with_a_partner_in_each(clean_blender, box, tmp_path):
    result = clean_blender.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"))
    assert result == {"FINISHED"}
    assert _files(tmp_path) == _names("any")
    counts = [_geometries(tmp_path / f"any{suffix}.dae") for suffix in LEVELS]
    assert [list(count) for count in counts] == [["box"]] * 4
    triangles = [count["box"] for count in counts]
    assert triangles == [12] * 4, "a box costs nothing at any distance, and less would be none"


@pytest.mark.parametrize("chosen", ["box_LOD1", "box_PHYS"])
def test_a_part_stands_for_its_model(clean_blender, box, tmp_path, chosen):
    bpy = clean_blender
    parts = {name: _mesh(bpy, name, faces=((0, 1, 2, 3), (4, 7, 6, 5))) for name in ("box_LOD1", "box_PHYS")}
    _select(bpy, parts[chosen])
    box.hide_set(True)  # as while another level is looked at
    bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"))
    assert _geometries(tmp_path / "any.dae") == {"box": 12}
    assert _geometries(tmp_path / "any_LOD1.dae") == {"box": 4}


def test_an_armature_stands_for_what_it_deforms(clean_blender, box, tmp_path):
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    box.modifiers.new("Armature", "ARMATURE").object = avatar
    box.vertex_groups.new(name="mChest").add(range(8), 1.0, "REPLACE")
    other = _mesh(bpy, "other")
    _select(bpy, avatar)
    bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"))
    assert list(_geometries(tmp_path / "any.dae")) == ["box"]
    _select(bpy, avatar, other)
    bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"), scope="SELECTION")
    assert sorted(_geometries(tmp_path / "any.dae")) == ["box", "other"]


def test_nothing_selected_is_said(clean_blender, box, tmp_path):
    bpy = clean_blender
    box.select_set(False)
    bpy.context.view_layer.objects.active = None
    with pytest.raises(RuntimeError, match="No mesh is selected"):
        bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"), scope="SELECTION")


def test_files_beside_a_new_one_stay_unless_told_otherwise(clean_blender, box, tmp_path):
    export = clean_blender.ops.export_scene.second_life_upload
    (tmp_path / "any_LOD1.dae").write_text("mine")
    with pytest.raises(RuntimeError, match=r"'any_LOD1\.dae' exists already; choose Replace Files"):
        export(filepath=str(tmp_path / "any.dae"))
    assert _files(tmp_path) == ["any_LOD1.dae"]
    assert (tmp_path / "any_LOD1.dae").read_text() == "mine"
    (tmp_path / "any_LOD0.dae").write_text("mine")
    with pytest.raises(RuntimeError, match=r"' and 1 more exists already; choose Replace Files"):
        export(filepath=str(tmp_path / "any.dae"))
    (tmp_path / "any_LOD0.dae").unlink()
    export(filepath=str(tmp_path / "any.dae"), use_replace=True)
    assert _geometries(tmp_path / "any_LOD1.dae") == {"box": 12}


def test_a_set_is_replaced_as_a_whole_where_its_chosen_file_is(clean_blender, box, tmp_path):
    export = clean_blender.ops.export_scene.second_life_upload
    export(filepath=str(tmp_path / "any.dae"))
    before = (tmp_path / "any_LOD0.dae").read_bytes()
    box.data.vertices[0].co.x = -0.5
    export(filepath=str(tmp_path / "any.dae"))  # the file browser asked about the one that was chosen
    assert (tmp_path / "any_LOD0.dae").read_bytes() != before
    assert _files(tmp_path) == _names("any")


def test_an_error_stops_the_set_a_warning_does_not(clean_blender, box, tmp_path):
    bpy = clean_blender
    level = _mesh(bpy, "box_LOD1")
    level.data.materials[0] = bpy.data.materials.new("Steel")  # which the highest level does not have
    with pytest.raises(RuntimeError, match="Steel"):
        bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"))
    assert _files(tmp_path) == []
    level.data.materials[0] = box.data.materials[0]
    box.scale = (-1, 2, 3)
    assert bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae")) == {"FINISHED"}


def test_a_folder_is_known_while_it_exists(clean_blender, box, tmp_path):
    from meshferry.operators.families.second_life.exporters import known_folder

    bpy = clean_blender
    last = bpy.context.window_manager.operator_properties_last("export_scene.second_life_upload")
    before = last.filepath
    try:
        last.filepath = ""
        assert known_folder(bpy.context) is None
        last.filepath = str(tmp_path / "gone" / "box.dae")
        assert known_folder(bpy.context) is None
        last.filepath = str(tmp_path / "other.dae")
        assert known_folder(bpy.context) == tmp_path
    finally:
        last.filepath = before


# -- the others ---------------------------------------------------------------------------------------------------


def test_assets_are_one_for_each_object(clean_blender, box, tmp_path):
    bpy = clean_blender
    _select(bpy, box, _mesh(bpy, "Beam"))
    export = bpy.ops.export_scene.second_life_mesh
    assert export(filepath=str(tmp_path / "any.llmesh"), scope="SELECTION") == {"FINISHED"}
    assert _files(tmp_path) == ["Beam.llmesh", "box.llmesh"]
    _select(bpy, box)
    assert export(filepath=str(tmp_path / "any.llmesh"), scope="SELECTION") == {"FINISHED"}
    assert "any.llmesh" in _files(tmp_path)


def test_an_asset_comes_back_as_it_went(clean_blender, box, tmp_path):
    bpy = clean_blender
    box.scale, box.location = (2, 3, 0.5), (5, 6, 7)
    bpy.ops.export_scene.second_life_mesh(filepath=str(tmp_path / "any.llmesh"), scope="SELECTION")
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.ops.import_scene.second_life(filepath=str(tmp_path / "any.llmesh"))
    assert tuple(bpy.context.object.dimensions) == pytest.approx((2, 3, 0.5), abs=1e-4)


def test_a_bundle_comes_with_what_the_viewer_asks_for(clean_blender, box, tmp_path):
    assert clean_blender.ops.export_scene.second_life_bundle(filepath=str(tmp_path / "any.slm"), scope="SELECTION") == {
        "FINISHED"
    }
    assert _files(tmp_path) == ["any.dae", "any.slm"]
    assert (tmp_path / "any.slm").stat().st_mtime - (tmp_path / "any.dae").stat().st_mtime >= 1


def test_a_request_is_two_bodies(clean_blender, box, tmp_path):
    llsd = pytest.importorskip("llsd")
    clean_blender.ops.export_scene.second_life_request(filepath=str(tmp_path / "any.llsd"), scope="SELECTION")
    assert _files(tmp_path) == ["any.fee.llsd", "any.llsd"]
    fee, body = (llsd.parse_xml((tmp_path / name).read_bytes()) for name in _files(tmp_path))
    assert fee["asset_type"] == "mesh"
    assert len(body["mesh_list"]) == 1


def test_the_physics_file_follows_the_choice(clean_blender, box, tmp_path):
    """The viewer finds the physics file of an earlier export by its name, so it must not stay."""
    from meshferry.operators.families.second_life.exporters import obsolete_names

    bpy = clean_blender
    path = str(tmp_path / "any.dae")
    bpy.ops.export_scene.second_life_upload(filepath=path, physics_shape="PARTS")
    assert _geometries(tmp_path / "any_PHYS.dae") == {"box": 12}
    assert _files(tmp_path) == sorted([*_names("any"), "any_PHYS.dae"])
    assert obsolete_names(tmp_path, _names("any")) == ["any_PHYS.dae"]
    (tmp_path / "any.dae").unlink()
    with pytest.raises(RuntimeError, match=r"'any_PHYS\.dae' exists already; choose Replace Files"):
        bpy.ops.export_scene.second_life_upload(filepath=path)
    assert bpy.ops.export_scene.second_life_upload(filepath=path, use_replace=True) == {"FINISHED"}
    assert _files(tmp_path) == _names("any")
    (tmp_path / "any_PHYS.dae").write_bytes(b"of another program")
    assert bpy.ops.export_scene.second_life_upload(filepath=path) == {"FINISHED"}
    assert (tmp_path / "any_PHYS.dae").read_bytes() == b"of another program"


@pytest.mark.parametrize("kind", ["upload", "bundle", "request"])
def test_the_dialog_names_the_files_that_are_written(clean_blender, box, tmp_path, kind):
    from meshferry.blender_data.exporting.models.model_objects import ModelObjects
    from meshferry.operators.format_operators import EXPORTERS

    exporter = EXPORTERS[f"second_life_{kind}"]
    extension = exporter.filename_ext
    for name in ("Gold", "Unused"):
        box.data.materials.append(_metal(clean_blender, name))
    box.data.polygons[0].material_index = 1
    getattr(clean_blender.ops.export_scene, f"second_life_{kind}")(
        filepath=str(tmp_path / f"any{extension}"), scope="SELECTION"
    )
    owner = SimpleNamespace(values=dict, filename_ext=extension)
    named = exporter.set_names(owner, "any", [ModelObjects(box)])
    assert named[0] == f"any{extension}"
    assert ("any_Gold.glb" in named) == (kind == "upload")
    assert sorted(named) == _files(tmp_path)


def test_files_of_pbr_materials_are_only_replaced_on_request(clean_blender, box, tmp_path, capfd):
    box.data.materials[0] = _metal(clean_blender, "Gold")
    (tmp_path / "any_Gold.glb").write_bytes(b"other")
    export = clean_blender.ops.export_scene.second_life_upload
    with pytest.raises(RuntimeError, match=r"'any_Gold\.glb' exists already; choose Replace Files"):
        export(filepath=str(tmp_path / "any.dae"))
    assert _files(tmp_path) == ["any_Gold.glb"]
    capfd.readouterr()
    assert export(filepath=str(tmp_path / "any.dae"), use_replace=True) == {"FINISHED"}
    assert (tmp_path / "any_Gold.glb").read_bytes().startswith(b"glTF")
    assert "Info: face 0 'Gold' → any_Gold.glb\n" in capfd.readouterr().out


# -- the avatar ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "bones"),
    [({}, 133 + 26), ({"use_collision_volumes": False}, 133), ({"use_attachments": True}, 133 + 26 + 47)],
)
def test_the_avatar_is_added_at_the_cursor(clean_blender, options, bones):
    bpy = clean_blender
    bpy.context.scene.cursor.location = (1, 2, 3)
    assert bpy.ops.object.second_life_avatar_add(**options) == {"FINISHED"}
    avatar = bpy.context.object
    assert (avatar.type, len(avatar.data.bones)) == ("ARMATURE", bones)
    assert tuple(avatar.location) == (1, 2, 3)
    assert avatar.select_get()
    assert avatar.data.bones["mPelvis"].head_local.z == pytest.approx(1.067, abs=1e-6)
    hidden = {group.name for group in avatar.data.collections if not group.is_visible}
    volumes = set() if options.get("use_collision_volumes") is False else {"Collision Volumes"}
    assert hidden == {"Wing", "Tail", "Limb"} | volumes


# -- rigs ---------------------------------------------------------------------------------------------------------


def test_the_pelvis_stays_as_high_as_its_file_says_while_joints_are_moved(clean_blender, samples, tmp_path):
    bpy = clean_blender
    given = samples / "secondlife" / "synthetic" / "synth_rig_overrides.llmesh"
    if not given.is_file():
        pytest.skip(f"no sample at {given}")
    bpy.ops.import_scene.second_life(filepath=str(given))
    for choice, expected in (("AUTO", (pytest.approx(0.05), True)), ("NEVER", (None, False))):
        path = tmp_path / f"{choice}.llmesh"
        bpy.ops.export_scene.second_life_mesh(filepath=str(path), scope="SELECTION", joint_positions=choice)
        skin = second_life_oracle.decode(path.read_bytes()).skin
        assert (skin.pelvis_offset, skin.lock_scale) == expected


# -- summaries ----------------------------------------------------------------------------------------------------


def test_what_was_made_is_told_without_a_warning(clean_blender, box, tmp_path, capfd):
    bpy = clean_blender
    box.data.uv_layers.new()
    bpy.ops.export_scene.second_life_mesh(filepath=str(tmp_path / "box.llmesh"), scope="SELECTION")
    said = capfd.readouterr().out.splitlines()
    assert any(line.startswith("Info: Levels of detail made of the next finer one: 'box' (12 →") for line in said)
    assert "Info: box.llmesh: 1 object, 12 triangles" in said
    assert not any(line.startswith("Warning") for line in said)


def test_triangles_of_a_model_in_several_files_are_counted_once(clean_blender, box, tmp_path, capfd):
    bpy = clean_blender
    for number in range(9):
        box.data.materials.append(bpy.data.materials.new(f"M{number}"))
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.subdivide(number_cuts=1)
    bpy.ops.object.mode_set(mode="OBJECT")
    for face in box.data.polygons:
        face.material_index = face.index % 10
    count = len(box.data.polygons) * 2
    bpy.ops.export_scene.second_life_mesh(filepath=str(tmp_path / "box.llmesh"), scope="SELECTION")
    assert _files(tmp_path) == ["box.llmesh", "box_b.llmesh"]
    assert f"2 objects, {count} triangles" in capfd.readouterr().out


def test_a_selected_instance_of_a_rigged_model_is_exported(clean_blender, tmp_path):
    bpy = clean_blender
    armature = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    shirt = bpy.data.objects.new("Shirt", bpy.data.meshes.new("Shirt"))
    shirt.data.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 1)], [], [(0, 1, 2)])
    bpy.context.scene.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones.new("mPelvis").tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    shirt.vertex_groups.new(name="mPelvis").add((0, 1, 2), 1.0, "REPLACE")
    shirt.modifiers.new("Armature", "ARMATURE").object = armature
    library = bpy.data.collections.new("Library")
    for obj in (armature, shirt):
        library.objects.link(obj)
    bpy.context.scene.collection.objects.unlink(armature)
    instance = bpy.data.objects.new("Robot", None)
    instance.instance_type, instance.instance_collection = "COLLECTION", library
    bpy.context.scene.collection.objects.link(instance)
    bpy.context.view_layer.objects.active = instance
    instance.select_set(True)
    assert bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "robot.dae"), scope="SELECTION") == {
        "FINISHED"
    }
    assert "mPelvis" in (tmp_path / "robot.dae").read_text(encoding="utf-8")
    assert [obj.name for obj in bpy.context.scene.objects] == ["Robot"]
