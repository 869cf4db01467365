"""Conversions from and to USD keep the speed of animations and the names of objects."""

import zipfile
from dataclasses import replace

import conversion_models as models
import pytest

HEAD = b'#usda 1.0\n(\n    defaultPrim = "root"\n%s    upAxis = "Z"\n)\n\ndef Xform "root"\n{\n}\n'


@pytest.mark.needs_bpy
@pytest.mark.parametrize(
    ("stated", "rate"),
    [
        (b"", 24),
        (b"    timeCodesPerSecond = 30\n", 30),
        (b"    framesPerSecond = 12\n", 12),
        (b"    framesPerSecond = 12\n    timeCodesPerSecond = 29.97\n", 29.97),
        (b"    timeCodesPerSecond = 0\n", 24),
        (b"    timeCodesPerSecond = -\n", 24),
    ],
)
def test_rate_of_text(tmp_path, stated, rate):
    import bpy
    from meshferry.cli.conversions.blender_exchange import frames_per_second

    require_usd()
    (tmp_path / "a.usda").write_bytes(HEAD % stated)
    assert frames_per_second(tmp_path / "a.usda", bpy) == rate
    with zipfile.ZipFile(tmp_path / "a.usdz", "w") as archive:
        archive.write(tmp_path / "a.usda")
    assert frames_per_second(tmp_path / "a.usdz", bpy) == rate


@pytest.mark.needs_bpy
def test_what_objects_call_alike_is_no_rate(tmp_path):
    import bpy
    from meshferry.cli.conversions.blender_exchange import frames_per_second

    require_usd()
    (tmp_path / "a.usda").write_bytes(HEAD % b"" + b'def Xform "x"\n{\n    timeCodesPerSecond = 60\n}\n')
    assert frames_per_second(tmp_path / "a.usda", bpy) == 24


def require_usd():
    import bpy

    if "usd_export" not in dir(bpy.ops.wm):
        pytest.skip("this Blender is built without USD")


def blend_with_a_moving_tree(path, rate):
    """Save a lamp that turns for a second, and a bulb on it; their meshes have names of others."""
    import bpy
    import numpy as np
    from meshferry.blender_data import animated_blocks
    from meshferry.cli.conversions.blend_files import BlendSession

    with BlendSession() as session:
        session.start_empty()
        scene = bpy.context.scene
        scene.render.fps = rate
        meshes = [bpy.data.meshes.new(name) for name in ("Bulb", "shape")]
        for mesh in meshes:
            mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
        lamp, bulb, twin = (
            bpy.data.objects.new(name, mesh)
            for name, mesh in (("Lamp", meshes[0]), ("Bulb", meshes[1]), ("Twin", meshes[1]))
        )
        for obj in (lamp, bulb, twin):
            scene.collection.objects.link(obj)
        bulb.parent = lamp
        bulb.location = twin.location = (0, 0, 2)
        for frame, angle in ((1, 0), (1 + rate, np.pi / 2)):
            lamp.rotation_euler.z = angle
            lamp.keyframe_insert("rotation_euler", frame=frame)
        assert animated_blocks.action_curves(lamp.animation_data.action, None)
        session.save(path, compress=False)


@pytest.mark.needs_bpy
@pytest.mark.parametrize("kind", ["usd", "usda", "usdz"])
def test_speed_and_names(meshferry, tmp_path, kind):
    import bpy
    from meshferry.cli.conversions.blend_files import BlendSession
    from meshferry.cli.conversions.blender_exchange import frames_per_second

    require_usd()
    blend_with_a_moving_tree(tmp_path / "lamp.blend", 30)
    made = tmp_path / f"lamp.{kind}"
    assert meshferry("convert", tmp_path / "lamp.blend", made).status == 0
    assert frames_per_second(made, bpy) == 30
    done = meshferry("convert", "--json", made, tmp_path / "back.blend")
    assert done.status == 0, done.err
    (clip,) = done.entries[0]["facts"]["clips"]
    assert (clip["frames"], clip["fps"]) == (31, 30)
    with BlendSession() as session:
        session.open(tmp_path / "back.blend")
        found = {obj.name: obj.parent and obj.parent.name for obj in bpy.data.objects}
        assert found == {"Lamp": None, "Bulb": "Lamp", "Twin": None}
        scene = bpy.context.scene
        assert scene.render.fps / scene.render.fps_base == 30
        lamp = bpy.data.objects["Lamp"]
        scene.frame_set(31)
        assert lamp.matrix_world.to_euler().z == pytest.approx(1.5708, abs=1e-3)
        scene.frame_set(16)
        assert lamp.matrix_world.to_euler().z == pytest.approx(0.7854, abs=1e-2)


@pytest.mark.needs_bpy
def test_the_second_of_two_keeps_its_speed(meshferry, tmp_path):
    import bpy
    from meshferry.cli.conversions.blend_files import BlendSession

    require_usd()
    for rate in (30, 60):
        blend_with_a_moving_tree(tmp_path / f"at{rate}.blend", rate)
        assert meshferry("convert", tmp_path / f"at{rate}.blend", tmp_path / f"at{rate}.usd").status == 0
    done = meshferry("convert", tmp_path / "at30.usd", tmp_path / "at60.usd", tmp_path / "both.blend")
    assert done.status == 0, done.err
    with BlendSession() as session:
        session.open(tmp_path / "both.blend")
        scene = bpy.context.scene
        assert scene.render.fps / scene.render.fps_base == 30
        ranges = [tuple(action.frame_range) for action in bpy.data.actions]
        assert ranges == [pytest.approx((1, 31), abs=1e-3)] * 2


@pytest.mark.needs_bpy
def test_damaged_binary_layers_are_no_trouble(meshferry, tmp_path):
    import bpy
    from meshferry.cli.conversions.blender_exchange import frames_per_second

    require_usd()
    blend_with_a_moving_tree(tmp_path / "lamp.blend", 30)
    assert meshferry("convert", tmp_path / "lamp.blend", tmp_path / "lamp.usd").status == 0
    data = (tmp_path / "lamp.usd").read_bytes()
    broken = tmp_path / "broken.usd"
    for length in range(0, len(data), 41):
        broken.write_bytes(data[:length])
        assert frames_per_second(broken, bpy) in (24, 30)
    for at in range(0, len(data), 23):
        broken.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        assert 0.001 <= frames_per_second(broken, bpy) <= 100_000


@pytest.mark.needs_bpy
def test_what_plays_together_is_one_animation(meshferry, tmp_path):
    import bpy
    from meshferry.cli.conversions.blend_files import BlendSession

    require_usd()
    blend_with_a_moving_tree(tmp_path / "lamp.blend", 24)
    with BlendSession() as session:
        session.open(tmp_path / "lamp.blend")
        twin = bpy.data.objects["Twin"]
        for frame, height in ((1, 2), (25, 5)):
            twin.location.z = height
            twin.keyframe_insert("location", frame=frame)
        session.save(tmp_path / "both.blend", compress=False)
        unused = bpy.data.actions[0].copy()
        unused.name = "Spare"
        track = twin.animation_data.nla_tracks.new()
        track.mute = True
        track.strips.new("Spare", 1, unused)
        session.save(tmp_path / "spare.blend", compress=False)
    done = meshferry("convert", "--strict", tmp_path / "both.blend", tmp_path / "both.usd")
    assert (done.status, done.err) == (0, "")
    back = meshferry("convert", tmp_path / "both.usd", tmp_path / "back.blend")
    assert back.status == 0
    with BlendSession() as session:
        session.open(tmp_path / "back.blend")
        bpy.context.scene.frame_set(25)
        assert bpy.data.objects["Twin"].matrix_world.translation.z == pytest.approx(5, abs=1e-4)
        assert bpy.data.objects["Lamp"].matrix_world.to_euler().z == pytest.approx(1.5708, abs=1e-3)
    assert (
        "1 further animation not carried over: 'Spare'"
        in meshferry("convert", tmp_path / "spare.blend", tmp_path / "spare.usd").err
    )


def write_clip(path, frames):
    """Write an animation of two bones that takes these frames of one that moves; return its first bone's places."""
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.scene import Scene

    clip = models.bone_clip()
    tracks = [
        replace(
            track, translation=track.translation[frames], rotation=track.rotation[frames], scale=track.scale[frames]
        )
        for track in clip.transforms
    ]
    clip = replace(clip, frame_count=len(frames), transforms=tracks)
    api.write_scene(Scene("model", [], [models.make_skeleton()], [clip]), path, registry.by_extension(".anim"))
    return tracks[0].translation


@pytest.mark.needs_bpy
@pytest.mark.parametrize("frames", [[0, 1, 2, 3, 4, 4, 4], [2, 2, 2, 3, 4], [1, 1, 2, 2]])
def test_frames_in_which_nothing_changes_stay(meshferry, tmp_path, frames):
    """Blender writes no values for them."""
    from meshferry.io_formats import api

    require_usd()
    places = write_clip(tmp_path / "model.anim", frames)
    assert meshferry("convert", tmp_path / "model.anim", tmp_path / "model.usd").status == 0
    assert meshferry("convert", tmp_path / "model.usd", tmp_path / "back.anim").status == 0
    (clip,) = api.read_scene(tmp_path / "back.anim").clips
    assert clip.frame_count == len(frames)
    assert clip.transforms[0].translation == pytest.approx(places, abs=1e-4)


@pytest.mark.needs_bpy
@pytest.mark.parametrize("frames", [[3], [3, 3, 3]])
def test_poses_that_are_held_are_reported(meshferry, tmp_path, frames):
    require_usd()
    write_clip(tmp_path / "model.anim", frames)
    for more in ((), ("--dry-run",)):
        (entry,) = meshferry("convert", "--json", *more, tmp_path / "model.anim", tmp_path / "model.usd").entries
        assert entry["facts"]["clips"] == []
        assert "1 held pose not carried over as animation: 'model'" in entry["warnings"]
    assert meshferry("convert", "--strict", tmp_path / "model.anim", tmp_path / "strict.usd").status == 1
    (entry,) = meshferry("convert", "--json", tmp_path / "model.anim", tmp_path / "model.glb").entries
    assert [clip["frames"] for clip in entry["facts"]["clips"]] == [len(frames)] and not entry["warnings"]


@pytest.mark.needs_bpy
def test_an_animation_in_which_nothing_moves_comes_back_from_gltf(meshferry, tmp_path):
    from meshferry.io_formats import api
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    scene = models.make_timbermesh()
    (clip,) = scene.clips
    (track,) = clip.transforms
    still = replace(track, **{name: getattr(track, name)[[3] * 7] for name in ("translation", "rotation", "scale")})
    scene.clips = [replace(clip, frame_count=7, transforms=[still], vertices=[])]
    api.write_scene(scene, tmp_path / "model.timbermesh", TIMBERMESH)
    assert meshferry("convert", tmp_path / "model.timbermesh", tmp_path / "model.glb").status == 0
    (entry,) = meshferry("convert", "--json", tmp_path / "model.glb", tmp_path / "back.blend").entries
    (clip,) = entry["facts"]["clips"]
    assert (clip["name"], (clip["frames"] - 1) / clip["fps"]) == ("Move", 6 / 24)
