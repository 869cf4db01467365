"""A dance in a Blender window: dropped, played, edited, checked as a loop, exported, and imported again beside."""

from typing import Any

import bpy
from window import DRAW, FOLDER, Steps, check, drop, file_dialog, in_view3d, picture, show_sidebar, wait_for, window

EDITED = "mElbowLeft"


def dance() -> Steps:
    """The example of the guide, from the drop to a second avatar that dances the same."""
    collections = set(bpy.data.collections)
    yield from drop(FOLDER / "dance", "second-life-dance")
    avatar = bpy.context.object
    check(avatar is not None and avatar.type == "ARMATURE", "an avatar dances")
    if avatar is None or avatar.type != "ARMATURE":
        return
    action = avatar.animation_data.action
    check(action.use_cyclic and action.meshferry.playback.use_loop, "the action is a loop")
    scene = bpy.context.scene
    check((scene.frame_start, scene.frame_end) == tuple(action.frame_range), "the scene plays the action")
    yield from play()
    yield from show_sidebar("Second Life")
    yield from loop_check(action)
    yield from export_and_compare(avatar)
    with in_view3d():
        made = set(bpy.data.collections) - collections
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.armatures, *bpy.data.actions, *made])
        bpy.ops.ed.undo_push(message="Remove the dancers")
    yield DRAW


def play() -> Steps:
    """Blender plays the action."""
    scene = bpy.context.scene
    scene.frame_set(1)
    with bpy.context.temp_override(window=window()):
        bpy.ops.screen.animation_play()
    yield from wait_for(lambda: scene.frame_current > 3, "the animation to play")
    with bpy.context.temp_override(window=window()):
        bpy.ops.screen.animation_cancel(restore_frame=False)
    yield DRAW


def loop_check(action: Any) -> Steps:
    """The loop closes as it came; after an edit of its end, one joint is listed as a jump and selected."""
    found = bpy.context.window_manager.meshferry_loop_check
    with in_view3d():
        bpy.ops.action.second_life_loop_check()
    check(len(found.joints) > 0 and all(joint.is_closed for joint in found.joints), "the loop of the dance closes")
    from meshferry.blender_data import animated_blocks  # loaded by drive.py

    for curve in animated_blocks.action_curves(action, None):
        if EDITED in curve.data_path and curve.array_index == 3:
            curve.keyframe_points[-1].co.y += 0.4
            curve.update()
    with in_view3d():
        bpy.ops.action.second_life_loop_check()
        opened = [number for number, joint in enumerate(found.joints) if not joint.is_closed]
        check([found.joints[number].name for number in opened] == [EDITED], "the edited joint alone jumps")
        bpy.ops.pose.second_life_jump_select(index=opened[0])
        bpy.ops.action.second_life_loop_preview()
    check(bpy.context.active_pose_bone.name == EDITED, "its bone is selected")
    check(bpy.context.scene.use_preview_range, "the preview plays the loop")
    yield from picture("second-life-loop-check")
    with in_view3d():
        bpy.ops.action.second_life_loop_preview()
        bpy.ops.object.mode_set(mode="OBJECT")


def export_and_compare(avatar: Any) -> Steps:
    """The exported file moves a second avatar like the first."""
    out = FOLDER / "dance_out"
    out.mkdir()
    path = out / "edited.anim"
    yield from file_dialog(
        lambda: bpy.ops.export_scene.second_life_anim("INVOKE_DEFAULT", filepath=str(path)), "second-life-anim-export"
    )
    with in_view3d():
        bpy.ops.export_scene.second_life_anim(filepath=str(path), scope="ACTIVE", clips="ACTIVE")
        bpy.ops.import_scene.second_life(filepath=str(path), armature="NEW")
    other = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE" and obj != avatar)
    other.location.x = 1.5
    scene = bpy.context.scene
    for frame in (1, 20, 45, int(avatar.animation_data.action.frame_range[1])):
        scene.frame_set(frame)
        apart = [(bone.head - other.pose.bones[bone.name].head).length for bone in avatar.pose.bones]
        # Unchanged keys are those of the file; the edited one is rounded to the steps of the file.
        check(max(apart) < 0.0001, f"in frame {frame} both avatars are within {max(apart) * 1000:.2f} mm")
    scene.frame_set(45)
    with in_view3d():
        bpy.ops.view3d.view_axis(type="FRONT")
        bpy.ops.view3d.view_all()
    yield from picture("second-life-dance-beside")
