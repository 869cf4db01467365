"""Import and export of UNIGINE files as an artist or a script asks for it."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import unigine_oracle as oracle

pytestmark = pytest.mark.needs_bpy


def _listed(*paths):
    return [{"name": path.name} for path in paths]


def _read(path):
    from meshferry.io_formats.api import read_scene

    return read_scene(path)


def _actions(armature):
    """Return the names of the actions that an armature plays or has stashed."""
    animation = armature.animation_data
    strips = [strip.action.name for track in animation.nla_tracks for strip in track.strips]
    return animation.action.name, strips


def _select(bpy, *objects):
    for obj in bpy.data.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


# -- import -------------------------------------------------------------------------------------------------------


def test_an_animation_chosen_before_its_mesh_moves_it(clean_blender, make_unigine, capfd):
    bpy = clean_blender
    wave, flag = make_unigine("a_wave.anim", frames=5), make_unigine("flag.mesh")
    assert bpy.ops.import_scene.unigine(directory=str(flag.parent), files=_listed(wave, flag)) == {"FINISHED"}
    (armature,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    (mesh,) = [obj for obj in bpy.data.objects if obj.type == "MESH"]
    assert mesh.find_armature() == armature
    assert bpy.context.object == mesh
    assert armature.animation_data.action.name == "a_wave"
    heights = []
    for frame in (1, 5):
        bpy.context.scene.frame_set(frame)
        heights.append(armature.pose.bones["Tip"].matrix.translation.z)
    assert heights == pytest.approx([1, 2], abs=1e-5)
    assert "Imported 2 files: 1 object, 3 triangles, 2 bones, 1 action" in capfd.readouterr().out


def test_many_animations_are_actions_of_one_armature(clean_blender, make_unigine):
    bpy = clean_blender
    paths = [make_unigine(f"{name}.anim", frames=frames) for name, frames in (("idle", 3), ("run", 4), ("jump", 5))]
    bpy.ops.import_scene.unigine(directory=str(paths[0].parent), files=_listed(*paths))
    (armature,) = bpy.data.objects
    assert {action.name for action in bpy.data.actions} == {"idle", "run", "jump"}
    active, stashed = _actions(armature)
    assert {active, *stashed} == {"idle", "run", "jump"}
    assert len(bpy.data.collections) == 1


def test_an_animation_goes_onto_the_active_armature(clean_blender, make_unigine):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh")))
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("wave.anim", frames=5)))
    assert len([obj for obj in bpy.data.objects if obj.type == "ARMATURE"]) == 1
    assert len(bpy.data.collections) == 1
    assert bpy.context.collection.name == "flag"


@pytest.mark.parametrize(
    ("bones", "said"),
    [
        (("Base", "End"), "none of its 2 bones are in 'flag Armature'; made a new armature"),
        (("Root", "Middle", "End"), "only 1 of its 3 bones is in 'flag Armature'; made a new armature"),
    ],
)
def test_an_animation_of_other_bones_says_why_it_has_an_armature_of_its_own(
    clean_blender, make_unigine, tmp_path, capfd, bones, said
):
    from meshferry.io_formats.core import scene as sc
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    bpy = clean_blender
    joints = [sc.Joint(name, number - 1) for number, name in enumerate(bones)]
    other = sc.Scene("other", skeletons=[sc.Skeleton("other", joints)], clips=[sc.Clip("other", 0.0, 0)])
    path = tmp_path / "other.anim"
    path.write_bytes(UNIGINE_ANIMATION.write(UNIGINE_ANIMATION.from_scene(other)))
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh")))
    bpy.ops.import_scene.unigine(filepath=str(path))
    assert f"other.anim: {len(bones)} bones, 1 warning: {said}" in capfd.readouterr().out


def test_an_armature_for_each_file_when_asked(clean_blender, make_unigine):
    bpy = clean_blender
    flag, wave = make_unigine("flag.mesh"), make_unigine("wave.anim", frames=5)
    bpy.ops.import_scene.unigine(directory=str(flag.parent), files=_listed(flag, wave), armature="NEW")
    assert len([obj for obj in bpy.data.objects if obj.type == "ARMATURE"]) == 2


def test_no_armature_when_not_asked(clean_blender, make_unigine):
    bpy = clean_blender
    flag, wave = make_unigine("flag.mesh"), make_unigine("wave.anim", frames=5)
    bpy.ops.import_scene.unigine(directory=str(flag.parent), files=_listed(flag, wave), armature="NONE")
    assert [obj.type for obj in bpy.data.objects] == ["MESH"]
    assert not bpy.data.actions


def test_surfaces_are_listed_on_the_object(clean_blender, make_unigine):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh", bones=False)))
    (flag,) = bpy.data.objects
    assert [surface.name for surface in flag.meshferry.surfaces] == ["Cloth", "Cloth", "Pole"]
    assert len(flag.material_slots) == 3
    bpy.ops.object.meshferry_surfaces_match()
    assert [surface.name for surface in flag.meshferry.surfaces] == ["Cloth", "Cloth", "Pole"]


def test_vertices_of_unigine_files_are_not_welded(clean_blender, make_unigine):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh", bones=False)))
    assert len(bpy.data.meshes["flag"].vertices) == 9  # three triangles, each of a surface of its own


def test_either_operator_takes_the_others_files(clean_blender, make_unigine, make_file):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_file("mill.timbermesh", "#Blade")))
    assert "#Blade" in bpy.data.objects
    bpy.ops.import_scene.timbermesh(filepath=str(make_unigine("flag.mesh")))
    assert "flag" in bpy.data.meshes


def test_a_broken_file_does_not_stop_the_rest(clean_blender, make_unigine):
    bpy = clean_blender
    flag, broken = make_unigine("flag.mesh"), make_unigine("broken.mesh")
    broken.write_bytes(broken.read_bytes()[:50])
    result = bpy.ops.import_scene.unigine(directory=str(flag.parent), files=_listed(broken, flag))
    assert result == {"FINISHED"}
    assert [collection.name for collection in bpy.data.collections] == ["flag"]


def test_the_robot_and_its_animation_in_one_go(clean_blender, samples):
    bpy = clean_blender
    files = [{"name": "an10_robot_idle.anim"}, {"name": "ms12_robot_12bones.mesh"}]
    assert bpy.ops.import_scene.unigine(directory=str(samples / "unigine"), files=files) == {"FINISHED"}
    (armature,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    (robot,) = [obj for obj in bpy.data.objects if obj.type == "MESH"]
    assert robot.find_armature() == armature
    assert len(armature.data.bones) == 12
    assert len(robot.data.polygons) == 11_390
    action = armature.animation_data.action
    assert action.meshferry.clip_name == "robot_idle"
    assert action.frame_range[1] - action.frame_range[0] == pytest.approx(119)


# -- export -------------------------------------------------------------------------------------------------------


@pytest.fixture
def flags(clean_blender, make_unigine):
    """Return two imported flags, both selected, without bones."""
    bpy = clean_blender
    paths = [make_unigine(name, bones=False) for name in ("red.mesh", "green.mesh")]
    bpy.ops.import_scene.unigine(directory=str(paths[0].parent), files=_listed(*paths))
    return [bpy.data.objects["red"], bpy.data.objects["green"]]


def test_one_object_goes_to_the_chosen_path(clean_blender, flags, tmp_path):
    bpy = clean_blender
    _select(bpy, flags[0])
    out = tmp_path / "out"
    out.mkdir()
    assert bpy.ops.export_scene.unigine_mesh(filepath=str(out / "banner.mesh")) == {"FINISHED"}
    assert [path.name for path in out.iterdir()] == ["banner.mesh"]
    assert _read(out / "banner.mesh").triangle_count == 3


def test_several_objects_become_files_named_after_them(clean_blender, flags, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    assert clean_blender.ops.export_scene.unigine_mesh(filepath=str(out / "any.mesh")) == {"FINISHED"}
    assert {path.name for path in out.iterdir()} == {"red.mesh", "green.mesh"}


def test_several_objects_joined_go_to_the_chosen_path(clean_blender, flags, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    clean_blender.ops.export_scene.unigine_mesh(filepath=str(out / "both.mesh"), mesh_files="JOINED")
    assert [path.name for path in out.iterdir()] == ["both.mesh"]
    assert _read(out / "both.mesh").triangle_count == 6


def test_files_that_nobody_was_asked_about_stay_unless_replaced(clean_blender, flags, tmp_path, capfd):
    bpy = clean_blender
    out = tmp_path / "out"
    out.mkdir()
    (out / "red.mesh").write_bytes(b"old")
    assert bpy.ops.export_scene.unigine_mesh(filepath=str(out / "any.mesh")) == {"FINISHED"}
    assert (out / "red.mesh").read_bytes() == b"old"
    assert _read(out / "green.mesh").triangle_count == 3
    assert "red.mesh: 'red.mesh' exists already" in capfd.readouterr().out
    bpy.ops.export_scene.unigine_mesh(filepath=str(out / "any.mesh"), use_replace=True)
    assert _read(out / "red.mesh").triangle_count == 3
    assert "2 objects, 6 triangles, 2 files replaced" in capfd.readouterr().out


def test_what_concerns_no_file_in_particular_is_said_once(clean_blender, flags, tmp_path, capfd):
    bpy = clean_blender
    sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    bpy.context.scene.collection.objects.link(sun)
    sun.select_set(True)
    capfd.readouterr()
    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "any.mesh"), use_replace=True, scope="SELECTION")
    lines = capfd.readouterr().out.splitlines()
    assert lines.count("Warning: 'Sun': lights cannot be exported") == 1
    assert not [line for line in lines if "red.mesh" in line and "Sun" in line]


def test_names_that_differ_in_case_only_become_different_files(clean_blender, flags, tmp_path):
    flags[0].name, flags[1].name = "Flag:1", "flag/1"
    out = tmp_path / "out"
    out.mkdir()
    clean_blender.ops.export_scene.unigine_mesh(filepath=str(out / "any.mesh"))
    assert len({path.name.lower() for path in out.iterdir()}) == 2


def test_the_names_shown_are_those_that_are_written(clean_blender, flags, tmp_path):
    from types import SimpleNamespace

    from bpy.types import EXPORT_SCENE_OT_unigine_mesh as operator
    from meshferry.io_formats.api import file_names
    from meshferry.io_formats.core.scene import Scene

    bpy = clean_blender
    flags[0].name = "Flag:1"
    flags[1].meshferry.source_name, flags[1].meshferry.given_name = "Flag?1", flags[1].name
    out = tmp_path / "out"
    out.mkdir()

    def shown(**values):
        given = {
            "collection": "",
            "scope": "SELECTION",
            "use_hidden": False,
            "use_instances": True,
            "mesh_files": "EACH",
        } | values
        asked = SimpleNamespace(filename_ext=".mesh", name_suffix="", **given)
        source, _name = operator.source(asked, bpy.context, "")
        names = operator.names(asked, bpy.context, source)
        return {f"{name}.mesh" for name in file_names([Scene(name) for name in names])}

    bpy.ops.export_scene.unigine_mesh(filepath=str(out / "any.mesh"))
    assert {path.name for path in out.iterdir()} == shown()
    assert len(shown(mesh_files="JOINED")) == 1
    flags[1].hide_set(True)
    assert shown(scope="SCENE") == {"Flag_1.mesh"}
    flags[1].hide_set(False)
    flags[1].meshferry.lod_of = flags[0]
    assert shown() == {"Flag_1.mesh"}


def test_the_exporter_of_a_collection_names_the_files_of_that_collection(clean_blender, flags):
    from types import SimpleNamespace
    from unittest.mock import MagicMock

    from bpy.types import EXPORT_SCENE_OT_unigine_mesh as operator

    bpy = clean_blender
    both = bpy.data.collections.new("Both")
    bpy.context.scene.collection.children.link(both)
    for flag in flags:
        both.objects.link(flag)
        flag.select_set(False)
    layout = MagicMock()
    body = layout.panel.return_value[1]
    layout.panel.return_value = (MagicMock(), body)
    panel = SimpleNamespace(
        layout=layout, panel_prefix="X", filename_ext=".mesh", use_hidden=False, use_instances=True, mesh_files="EACH"
    )
    panel.shown_source = lambda context: operator.shown_source(panel, context)
    panel.names = lambda context, source: operator.names(panel, context, source)
    panel.shown_files = lambda context: operator.shown_files(panel, context)
    panel.files_title = lambda count: operator.files_title(panel, count)
    panel.draw_notes = lambda *_: None
    context = SimpleNamespace(
        space_data=SimpleNamespace(type="PROPERTIES"),
        collection=both,
        view_layer=bpy.context.view_layer,
        scene=bpy.context.scene,
        object=None,
    )
    operator.draw_files(panel, context)
    labels = body.column.return_value.row.return_value.label.call_args_list
    assert {call.kwargs["text"] for call in labels} == {"red.mesh", "green.mesh"}
    body.prop.assert_called_once_with(panel, "use_replace")


@pytest.fixture
def waving(clean_blender, make_unigine):
    """Return the armature of an imported flag with the actions ``wave`` and ``fall``."""
    bpy = clean_blender
    paths = [make_unigine("flag.mesh"), make_unigine("wave.anim", frames=5), make_unigine("fall.anim", frames=3)]
    bpy.ops.import_scene.unigine(directory=str(paths[0].parent), files=_listed(*paths))
    (armature,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    return armature


@pytest.mark.parametrize("active", ["ARMATURE", "MESH"])
def test_the_animation_of_the_active_objects_armature(clean_blender, waving, tmp_path, active):
    bpy = clean_blender
    (obj,) = [obj for obj in bpy.data.objects if obj.type == active]
    _select(bpy, obj)
    path = tmp_path / "out.anim"
    assert bpy.ops.export_scene.unigine_anim(filepath=str(path)) == {"FINISHED"}
    scene = _read(path)
    assert [joint.name for joint in scene.skeletons[0].joints] == ["Root", "Tip"]
    assert scene.clips[0].frame_count == waving.animation_data.action.meshferry.frame_count


def test_every_action_becomes_a_file_named_after_it(clean_blender, waving, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    clean_blender.ops.export_scene.unigine_anim(filepath=str(out / "any.anim"), clips="ACTIONS")
    assert {path.name: _read(path).clips[0].frame_count for path in out.iterdir()} == {"wave.anim": 5, "fall.anim": 3}


def test_an_animation_needs_an_armature(clean_blender, flags, tmp_path):
    with pytest.raises(RuntimeError, match="no armature"):
        clean_blender.ops.export_scene.unigine_anim(filepath=str(tmp_path / "out.anim"))


def test_animations_go_into_a_mesh_only_when_asked(clean_blender, waving, tmp_path, capfd):
    bpy = clean_blender
    plain, filled = tmp_path / "plain.mesh", tmp_path / "filled.mesh"
    bpy.ops.export_scene.unigine_mesh(filepath=str(plain), mesh_version="MS12")
    assert not _read(plain).clips
    said = capfd.readouterr().out.split("plain.mesh:")[-1]
    assert "1 object, 3 triangles, 2 bones" in said
    assert "animation" not in said.lower()
    bpy.ops.export_scene.unigine_mesh(filepath=str(filled), mesh_version="MS12", use_embedded_animation=True)
    assert [clip.frame_count for clip in _read(filled).clips]


def test_a_version_that_cannot_hold_it_is_refused_before_writing(clean_blender, waving, tmp_path):
    path = tmp_path / "static.mesh"
    with pytest.raises(RuntimeError, match="ms15"):
        clean_blender.ops.export_scene.unigine_mesh(filepath=str(path), mesh_version="MS15")
    assert not path.exists()


def test_the_exporter_of_a_collection(clean_blender, flags, tmp_path):
    bpy = clean_blender
    collection = flags[0].users_collection[0]
    layer = bpy.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children[collection.name]
    bpy.ops.collection.exporter_add(name="IO_FH_unigine")
    path = tmp_path / "exported.mesh"
    exporter = collection.exporters[0]
    if hasattr(exporter, "filepath"):
        exporter.filepath = str(path)
    else:
        exporter.export_properties.filepath = str(path)
    bpy.ops.collection.export_all()
    assert _read(path).triangle_count == 3


def test_actions_are_chosen_from_a_list_in_the_dialog(clean_blender, make_unigine, tmp_path):
    """All, none, and one by one; the names that a script gives still hold."""
    bpy = clean_blender
    from meshferry.blender_data.exporting.joint_sampling import actions_of_armatures
    from meshferry.operators.files import clip_export

    paths = [make_unigine(f"{name}.anim", frames=frames) for name, frames in (("idle", 3), ("run", 4), ("jump", 5))]
    bpy.ops.import_scene.unigine(directory=str(paths[0].parent), files=_listed(*paths))
    bpy.data.actions.new("of something else")
    out = tmp_path / "out"
    out.mkdir()

    def exported(**options):
        bpy.ops.export_scene.unigine_anim(filepath=str(out / "one.anim"), clips="ACTIONS", use_replace=True, **options)
        found = sorted(path.stem for path in out.iterdir())
        for path in out.iterdir():
            path.unlink()
        return found

    def press(text):
        class Names(list):
            def add(self):
                self.append(SimpleNamespace(name=""))
                return self[-1]

        owner = SimpleNamespace(listed_actions=Names(), active_listed_action=0)
        clip_export.fill_clip_list(owner, actions_of_armatures(list(bpy.data.objects)))
        assert [listed.name for listed in owner.listed_actions] == ["idle", "jump", "run"]
        buttons = {}
        layout = MagicMock()
        layout.column().row().operator.side_effect = lambda _name, text, **_: buttons.setdefault(
            text, SimpleNamespace()
        )
        clip_export.draw_actions_list(layout, owner)
        assert bpy.ops.action.meshferry_choose(**vars(buttons[text])) == {"FINISHED"}

    assert exported() == ["idle", "jump", "run"]
    press("None")
    with pytest.raises(RuntimeError, match="no animation to export"):
        exported()
    for name in ("run", "idle"):
        bpy.data.actions[name].meshferry.use_export = True
    assert exported() == ["idle", "run"]
    assert exported(clip_names="r*") == ["one"]
    press("All")
    assert exported() == ["idle", "jump", "run"]


@pytest.mark.parametrize(("length", "hidden"), [(0.05, []), (7.0, ["Control", "Handle"])])
def test_bones_longer_than_the_model_that_deform_nothing_are_hidden_but_exported(
    clean_blender, make_unigine, tmp_path, length, hidden
):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh", helpers=length)))
    (data,) = bpy.data.armatures
    collections = [group for group in data.collections if not group.is_visible]
    assert [sorted(bone.name for bone in group.bones) for group in collections] == ([hidden] if hidden else [])
    path = tmp_path / "again.mesh"
    bpy.ops.export_scene.unigine_mesh(filepath=str(path))
    assert [bone for bone, _ in oracle.decode(path.read_bytes()).bones] == ["Root", "Tip", "Control", "Handle"]


def _hidden(data):
    return sorted(bone.name for group in data.collections if not group.is_visible for bone in group.bones)


@pytest.mark.parametrize(("scale", "hidden"), [(1.0, []), (1000.0, ["Control", "Handle"])])
def test_bones_that_an_animation_makes_longer_than_the_model_are_hidden(clean_blender, make_unigine, scale, hidden):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh", helpers=0.05)))
    (data,) = bpy.data.armatures
    assert not _hidden(data)
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("wave.anim", frames=3, helpers=0.05, scale=scale)))
    assert _hidden(data) == hidden


def test_an_animation_hides_no_bones_of_an_armature_with_collections_of_the_user(clean_blender, make_unigine):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh", helpers=0.05)))
    (data,) = bpy.data.armatures
    data.collections.new("Mine").assign(data.bones["Control"])
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("wave.anim", frames=3, helpers=0.05, scale=1000.0)))
    assert not _hidden(data)


def test_a_hidden_bone_that_a_second_mesh_uses_is_shown(clean_blender, make_unigine):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh", helpers=7.0)))
    (armature,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    assert _hidden(armature.data) == ["Control", "Handle"]
    bpy.context.view_layer.objects.active = armature
    second = make_unigine("second.mesh", helpers=7.0, joint=3)
    bpy.ops.import_scene.unigine(filepath=str(second), armature="ACTIVE")
    assert _hidden(armature.data) == ["Control"]


@pytest.mark.slow
def test_helper_bones_of_a_real_cat_are_hidden_but_exported(clean_blender, samples, tmp_path):
    bpy = clean_blender
    source = samples / "unigine" / "ms13_cat_289bones.mesh"
    bpy.ops.import_scene.unigine(filepath=str(source))
    (data,) = bpy.data.armatures
    (hidden,) = [group for group in data.collections if not group.is_visible]
    assert {"tweak_spine", "MCH-ROT-head"} < {bone.name for bone in hidden.bones}
    (cat,) = [obj for obj in bpy.data.objects if obj.type == "MESH"]
    assert not _weighted(cat) & {bone.name for bone in hidden.bones}
    corners = np.array(cat.bound_box)
    margin = 0.1 * max(cat.dimensions)
    low, high = corners.min(axis=0) - margin, corners.max(axis=0) + margin
    shown = [bone for bone in data.bones if bone.name not in _weighted(cat) and bone.name not in hidden.bones]
    assert len(shown) > 100
    for bone in shown:
        ends = np.array([bone.head_local, bone.tail_local])
        assert (ends > low).all() and (ends < high).all(), bone.name
    bpy.ops.import_scene.unigine(filepath=str(samples / "unigine" / "an11_cat_289bones.anim"))
    bpy.context.view_layer.update()
    pose = cat.find_armature().pose.bones  # the animation scales some by a million
    assert {bone.name for bone in pose if bone.name not in hidden.bones} == _weighted(cat)
    path = tmp_path / "cat.mesh"
    bpy.context.view_layer.objects.active = cat
    bpy.ops.export_scene.unigine_mesh(filepath=str(path))
    assert oracle.decode(path.read_bytes()).bones == oracle.decode(source.read_bytes()).bones


def _weighted(obj):
    names = [group.name for group in obj.vertex_groups]
    return {names[entry.group] for vertex in obj.data.vertices for entry in vertex.groups if entry.weight > 0}


@pytest.mark.parametrize("together", [True, False])
def test_models_of_several_files_stand_side_by_side_when_asked(clean_blender, make_unigine, together):
    bpy = clean_blender
    paths = [make_unigine(f"{name}.mesh", bones=bones) for name, bones in (("a", True), ("b", False), ("c", True))]
    paths.append(make_unigine("d.anim", frames=3))
    bpy.ops.import_scene.unigine(directory=str(paths[0].parent), files=_listed(*paths), use_side_by_side=together)
    bpy.context.view_layer.update()
    flags = sorted((obj for obj in bpy.data.objects if obj.type == "MESH"), key=lambda obj: obj.name)
    starts = [min((obj.matrix_world @ vertex.co).x for vertex in obj.data.vertices) for obj in flags]
    assert starts == pytest.approx([0.0, 1.1, 2.2] if together else [0.0] * 3, abs=1e-5)
    for obj in flags:
        assert obj.parent is None or obj.delta_location.length == 0
