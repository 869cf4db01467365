"""Rigs with scaled joints whose bones were taken away, hung elsewhere, turned or put between others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers_export import active, add, bpy, key
from helpers_models import frame_worlds, joint_worlds, rig, scene_of, skinned
from test_export_skinned import bits, edit, imported_rig, joints_of
from test_import_joint_clips import only_clip
from test_import_skinned import figure, run

pytestmark = pytest.mark.needs_bpy


def remove_root(bones: Any) -> None:
    bones.remove(bones["root"])


def free_arm(bones: Any) -> None:
    bones["arm"].parent = None


def hang_arm_on_other(bones: Any) -> None:
    bones["arm"].parent = bones["other"]


def remove_arm(bones: Any) -> None:
    bones.remove(bones["arm"])


def roll_root(bones: Any) -> None:
    bones["root"].roll += 0.5


def lengthen_root(bones: Any) -> None:
    bones["root"].length *= 1.7


def put_bone_between(bones: Any) -> None:
    made = bones.new("between")
    made.head, made.tail = (0, 0, 1), (0, 1, 1)
    made.parent = bones["root"]
    bones["arm"].parent = made


@pytest.mark.parametrize(
    "change", [remove_root, remove_arm, free_arm, hang_arm_on_other, put_bone_between, roll_root, lengthen_root]
)
def test_joints_below_what_changed_stay_with_their_scale(clean_blender: Any, change: Any) -> None:
    """Where a bone stays, its joint's world matrix does, scale and all: frames below it mean what they did."""
    armature = imported_rig()
    before = joints_of(armature)
    old = joint_worlds(before["tip"][2])
    with edit(armature):
        change(armature.data.edit_bones)
    after = joints_of(armature)
    new = joint_worlds(after["tip"][2])
    for name in set(after) - {"root", "between"}:
        np.testing.assert_allclose(new[after[name][0]], old[before[name][0]], atol=3e-6, err_msg=name)
    below_the_break = {"other", "tip"} - ({"tip"} if change is remove_arm else set())
    for name in below_the_break | ({"root", "arm"} if change is lengthen_root else set()):
        assert bits(after[name][1]) == bits(before[name][1]), name


def test_a_joint_below_a_control_bone_stays_below_the_joint_above(clean_blender: Any) -> None:
    armature = imported_rig()
    before = joints_of(armature)
    with edit(armature):
        put_bone_between(armature.data.edit_bones)
    control = armature.data.bones["between"]
    control.use_deform, control.meshferry.is_control = False, True
    after = joints_of(armature)
    assert set(after) == set(before)
    assert after["arm"][1].parent == after["root"][0]
    assert {name: bits(found[1]) for name, found in after.items()} == {
        name: bits(found[1]) for name, found in before.items()
    }


def test_joints_go_with_an_applied_scale(clean_blender: Any) -> None:
    armature = imported_rig()
    before = joints_of(armature)
    old = joint_worlds(before["tip"][2])
    armature.scale = (2, 2, 2)
    with active(armature):
        bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    after = joints_of(armature)
    new = joint_worlds(after["tip"][2])
    for name, (number, *_) in after.items():
        np.testing.assert_allclose(new[number][:3, 3], 2 * old[before[name][0]][:3, 3], atol=1e-5, err_msg=name)


def test_a_moved_bone_on_another_parent_takes_its_joint_along(clean_blender: Any) -> None:
    armature = imported_rig()
    before = joints_of(armature)
    moved = joint_worlds(before["tip"][2])[before["arm"][0]]
    moved[2, 3] += 0.75
    with edit(armature):
        bone = armature.data.edit_bones["arm"]
        bone.parent = armature.data.edit_bones["other"]
        bone.head.z += 0.75
        bone.tail.z += 0.75
    after = joints_of(armature)
    np.testing.assert_allclose(joint_worlds(after["arm"][2])[after["arm"][0]], moved, atol=3e-6)
    assert bpy.context.mode == "OBJECT"


def remove_the_middle(bones: Any, names: list[str]) -> None:
    bones.remove(bones[names[3]])


def free_the_middle(bones: Any, names: list[str]) -> None:
    bones[names[6]].parent = None


def hang_a_root_on_a_new_bone(bones: Any, names: list[str]) -> None:
    made = bones.new("new")
    made.head, made.tail = (0, 0, 1), (0, 1, 1)
    bones[names[4]].parent = made


@pytest.mark.parametrize("change", [remove_the_middle, free_the_middle, hang_a_root_on_a_new_bone])
def test_animations_move_bones_below_a_broken_chain_as_before(clean_blender: Any, change: Any) -> None:
    """As long as the bone that they hung on, and those above that, do not move."""
    scene, _ = figure()
    scene.clips[0].transforms = [track for track in scene.clips[0].transforms if track.target not in (2, 3)]

    def shown(armature: Any) -> dict[str, Any]:
        bpy.context.scene.frame_set(4)
        return {bone.name: np.array(bone.matrix) for bone in armature.pose.bones}

    whole = run(scene).armatures[0]
    before = shown(whole)
    clips, scene.clips = scene.clips, []
    armature = run(scene).armatures[0]
    names = [bone.name for bone in sorted(armature.data.bones, key=lambda bone: bone.meshferry.order)]
    with edit(armature):
        change(armature.data.edit_bones, names)
    made = run(only_clip(scene, clips=clips), onto=armature)
    assert not [text for text in made.warnings if "bind pose" in text]
    after = shown(armature)
    assert len(after) >= 6
    for name in set(after) - {"new"}:
        size = max(1.0, np.abs(before[name]).max())
        np.testing.assert_allclose(after[name], before[name], atol=2e-5 * size, err_msg=name)


def test_an_armature_that_blender_does_not_evaluate_is_not_sampled(clean_blender: Any) -> None:
    from meshferry.io_formats.core.errors import ExportError

    armature = rig()
    obj = skinned(armature)
    key(armature.pose.bones["Lower"], "location", {1: (0, 0, 0), 5: (0, 1, 0)})
    bone = armature.pose.bones["Upper"]
    bone.constraints.new("COPY_LOCATION").target = add("Target", location=(3, 0, 0))
    armature.hide_viewport = True
    (clip,) = scene_of("UNIGINE_ANIMATION").clips  # the mesh needs it, so Blender evaluates it
    skeleton = scene_of("UNIGINE_ANIMATION").skeletons[0]
    np.testing.assert_allclose(frame_worlds(skeleton, clip, 2)[1][:3, 3], (3, 0, 0), atol=1e-5)
    obj.hide_viewport = True
    with pytest.raises(ExportError, match="'Rig': hidden or disabled, left out"):
        scene_of("UNIGINE_ANIMATION", use_hidden=True)
    with pytest.raises(ExportError, match=r"'Rig' is disabled in viewports or .*; enable it to export 'RigAction'"):
        scene_of("UNIGINE_ANIMATION", source=[armature])
    bone.constraints.remove(bone.constraints[0])
    assert scene_of("UNIGINE_ANIMATION", source=[armature]).clips[0].frame_count == 5


def test_bendy_bones_are_named(clean_blender: Any) -> None:
    armature = rig()
    skinned(armature)
    assert not scene_of().warnings
    armature.data.bones["Upper"].bbone_segments = 4
    assert "Tube: bendy bones are straight in a file: 'Upper'" in scene_of().warnings
