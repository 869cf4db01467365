"""Animations that bear one name, and armatures that are none of theirs."""

from __future__ import annotations

import pytest
from flag_scene import flag_scene

pytestmark = pytest.mark.needs_bpy


def _run_import(bpy, *paths, **options):
    files = [{"name": path.name} for path in paths]
    return bpy.ops.import_scene.unigine(directory=str(paths[0].parent), files=files, **options)


def _armature(bpy):
    (found,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    bpy.context.view_layer.objects.active = found
    return found


def _as_played(path):
    from meshferry.io_formats.api import read_scene

    return read_scene(path).clips[0].frame_count


@pytest.fixture
def takes(make_unigine, tmp_path):
    """Return a mesh and three animations of other lengths that all call themselves ``Take 001``, as exporters do."""
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    paths = [make_unigine("flag.mesh")]
    for name, frames in (("walk", 3), ("run", 4), ("jump", 5)):
        scene = flag_scene(name, frames=frames, clip="Take 001")
        paths.append(tmp_path / f"{name}.anim")
        document = UNIGINE_ANIMATION.from_scene(scene, {"animation_version": "AN10"})
        paths[-1].write_bytes(UNIGINE_ANIMATION.write(document))
    return paths


@pytest.mark.parametrize("clips", ["ACTIONS", "NLA"])
def test_animations_of_one_name_all_come_back(clean_blender, takes, tmp_path, clips):
    bpy = clean_blender
    _run_import(bpy, *takes)
    armature = _armature(bpy)
    if clips == "NLA":  # what still plays, too
        animation = armature.animation_data
        animation.nla_tracks.new().strips.new("last", 1, animation.action)
    out = tmp_path / "out"
    out.mkdir()
    bpy.ops.export_scene.unigine_anim(filepath=str(out / "any.anim"), clips=clips)
    assert sorted(_as_played(path) for path in out.iterdir()) == [3, 4, 5]


def test_an_animation_imported_twice_is_two_actions(clean_blender, make_unigine, tmp_path):
    bpy = clean_blender
    wave = make_unigine("wave.anim", frames=5)
    _run_import(bpy, make_unigine("flag.mesh"), wave)
    _armature(bpy)
    _run_import(bpy, wave)
    assert sorted(action.name for action in bpy.data.actions) == ["wave", "wave.001"]
    out = tmp_path / "out"
    out.mkdir()
    bpy.ops.export_scene.unigine_anim(filepath=str(out / "any.anim"), clips="ACTIONS")
    assert sorted(path.name for path in out.iterdir()) == ["wave.001.anim", "wave.anim"]


def test_an_armature_of_other_bones_is_refused(clean_blender, make_unigine):
    bpy = clean_blender
    _run_import(bpy, make_unigine("flag.mesh"))
    armature = _armature(bpy)
    for bone in armature.data.bones:
        bone.name = f"other {bone.name}"
    before = {len(bpy.data.actions), len(bpy.data.objects)}
    with pytest.raises(RuntimeError, match="has none of the bones of 'wave'; select the armature that has them"):
        _run_import(bpy, make_unigine("wave.anim", frames=5), armature="ACTIVE")
    assert {len(bpy.data.actions), len(bpy.data.objects)} == before
    assert armature.animation_data is None


def test_animations_inside_a_mesh_are_summed_up(clean_blender, takes, tmp_path, capfd):
    bpy = clean_blender
    _run_import(bpy, *takes)
    _armature(bpy)
    bpy.data.objects["flag"].select_set(True)
    capfd.readouterr()
    bpy.ops.export_scene.unigine_mesh(
        filepath=str(tmp_path / "in.mesh"), mesh_version="MS12", use_embedded_animation=True, clips="ACTIONS"
    )
    assert "1 object, 3 triangles, 2 bones, 3 animations" in capfd.readouterr().out


def test_of_a_file_imported_twice_each_armature_has_its_own_animation(clean_blender, make_unigine, tmp_path):
    bpy = clean_blender
    paths = [make_unigine("flag.mesh"), make_unigine("wave.anim", frames=5)]
    for _ in range(2):
        _run_import(bpy, *paths)
    armatures = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    assert len(armatures) == 2
    for number, armature in enumerate(armatures):
        bpy.context.view_layer.objects.active = armature
        out = tmp_path / str(number)
        out.mkdir()
        bpy.ops.export_scene.unigine_anim(filepath=str(out / "any.anim"), clips="ACTIONS")
        assert [path.name for path in out.iterdir()] == ["any.anim"]


@pytest.mark.parametrize("clips", ["ACTIONS", "NLA"])
def test_while_a_strip_is_edited_only_what_plays_is_exported(clean_blender, make_unigine, tmp_path, clips):
    bpy = clean_blender
    _run_import(bpy, make_unigine("flag.mesh"), make_unigine("wave.anim", frames=5))
    armature = _armature(bpy)
    animation = armature.animation_data
    track = animation.nla_tracks.new()
    strip = track.strips.new("wave", 1, animation.action)
    animation.action = None
    track.select = strip.select = True
    animation.use_tweak_mode = True
    path = tmp_path / "out.anim"
    with pytest.raises(RuntimeError, match=r"is being edited in the NLA \(tweak mode\); leave that"):
        bpy.ops.export_scene.unigine_anim(filepath=str(path), clips=clips)
    assert not path.exists()
    assert animation.use_tweak_mode
    bpy.ops.export_scene.unigine_anim(filepath=str(path))
    assert _as_played(path) == 5


@pytest.mark.parametrize("mode", ["XYZ", "AXIS_ANGLE", "QUATERNION"])
@pytest.mark.parametrize("stashed", [True, False])
def test_keys_that_an_import_puts_out_of_action_are_told(clean_blender, make_unigine, capfd, mode, stashed):
    bpy = clean_blender
    _run_import(bpy, make_unigine("flag.mesh"))
    armature = _armature(bpy)
    bone = armature.pose.bones["Tip"]
    bone.rotation_mode = mode
    channel = {"XYZ": "rotation_euler", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_quaternion")
    bone.keyframe_insert(channel, frame=1)
    bone.keyframe_insert(channel, frame=9)
    if stashed:
        animation = armature.animation_data
        animation.nla_tracks.new().strips.new("mine", 1, animation.action)
        animation.action = None
    capfd.readouterr()
    _run_import(bpy, make_unigine("wave.anim", frames=5))
    told = "quaternions turn bone 'Tip' now; Euler angles or axes in its other actions have no effect"
    assert (told in capfd.readouterr().out) == (mode != "QUATERNION")
