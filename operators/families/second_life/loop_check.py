"""Loop Check: the jump of each joint from the end of a loop to its start; checks of the animation."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, FloatProperty, IntProperty, StringProperty

from ....blender_data.animation.scene_time import SceneTime
from ....blender_data.export_options import CLIPS, DEFORM_BONES
from ....blender_data.exporting import object_selection
from ....blender_data.mesh_data import element_selection
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Elements, Message, Text
from ....io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from ...files.check_operators import CheckScene
from ...files.clip_export import active_action, rig_of
from ...files.export_base import read_files
from ...layouts import Condition, button, draw_rest, requires
from ...option_properties import chosen_options, export_table, last_values, to_export_options
from ...reports import Messages, conclude
from ...selection import enter_pose_mode, leave_edit_mode

EXPORT_OPERATOR = "export_scene.second_life_anim"
MOST_JOINTS = 10
"""Largest number of joints that are listed."""


class MeshferryLoopJoint(bpy.types.PropertyGroup):
    """The jump of one joint."""

    name: StringProperty(name="Bone", description="Name of the bone")
    degrees: FloatProperty(name="Degrees", description="Angle between loop out and loop in")
    millimetres: FloatProperty(name="Millimetres", description="Distance between loop out and loop in")
    is_closed: BoolProperty(name="Closed", description="The jump is too small to be seen")


class MeshferryLoopCheck(bpy.types.PropertyGroup):
    """The last loop check."""

    action: StringProperty(name="Action", description="Name of the checked action")
    frame_in: FloatProperty(name="Loop In", description="Frame of the start of the loop")
    frame_out: FloatProperty(name="Loop Out", description="Frame of the end of the loop")
    joints: CollectionProperty(type=MeshferryLoopJoint, name="Joints", description="Joints, the largest jump first")


def last_export_values(context: bpy.types.Context) -> dict[str, Any]:
    """Return the last export options or the dialog's defaults, with the active action as the only clip."""
    values = last_values(context, EXPORT_OPERATOR, export_table(SECOND_LIFE_ANIMATION))
    return {**values, CLIPS.name: "ACTIVE"}


def bones_of_joints(context: bpy.types.Context, rig: Any) -> dict[str, str]:
    """Return the bone of an armature for each joint of the avatar that it has."""
    from ....blender_data.rigging.armature_reading import read_skeleton
    from ....io_formats.second_life.avatar.other_rigs import rig_joints

    read = read_skeleton(rig, deform_only=bool(last_export_values(context).get(DEFORM_BONES.name)))
    return {joint: read.bones[number] for joint, number in rig_joints(read.skeleton, fit=False).bones.items()}


HAS_ACTION: Condition = (lambda context: active_action(context) is not None, "Choose an armature with an action")


class ACTION_OT_second_life_loop_check(bpy.types.Operator):
    """Measure the jump of a loop."""

    bl_idname = "action.second_life_loop_check"
    bl_label = "Loop Check"
    bl_description = "Measure how far each joint jumps from loop out to loop in, as the viewer will play the file"
    poll = requires(HAS_ACTION)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Store the jumps for the sidebar and report the largest."""
        from ....blender_data.exporting.joint_sampling import clips_by_armature
        from ....io_formats.second_life.animation import keys

        rig: Any = rig_of(context.object)
        action = rig.animation_data.action
        messages = Messages()
        parts: tuple[str, ...] = ()
        with messages.outcome("", action.name):
            document = self.document(context, rig)
            bones = bones_of_joints(context, rig)
            found = keys.loop_jumps(document)
            shown = context.window_manager.meshferry_loop_check
            ((clip,),) = clips_by_armature(context.scene, [rig], to_export_options(last_export_values(context)))
            time = SceneTime.of(context.scene)
            ends = (clip.start + seconds * time.key_rate for seconds in (document.loop_in, document.loop_out))
            shown.action = action.name
            shown.frame_in, shown.frame_out = map(time.scene_frame, ends)
            shown.joints.clear()
            for jump in found:
                entry = shown.joints.add()
                entry.name, entry.is_closed = bones.get(jump.joint, jump.joint), jump.is_closed
                entry.degrees, entry.millimetres = jump.degrees, jump.millimetres
            opened = [jump for jump in found if not jump.is_closed]
            text = Text("the loop is closed: no bone jumps from its end to its start")
            if opened:
                bone = bones.get(opened[0].joint, opened[0].joint)
                text = Text("{} jumps by {:.1f}° and {:.1f} mm", bone, opened[0].degrees, opened[0].millimetres)
            parts = (text,)
        return conclude(self, messages, parts, "Checked")

    def document(self, context: bpy.types.Context, rig: Any) -> Any:
        """Return the animation that an export would write, looped.

        Raises
        ------
        MeshferryError
            The animation cannot be exported.
        """
        values = last_export_values(context)
        source = object_selection.Source("OBJECTS", objects=(rig,))
        parts = read_files(context, source, rig.name, SECOND_LIFE_ANIMATION, values).parts
        if len(parts) != 1:
            raise ExportError("There is no animation to export; give the armature an action")
        options = chosen_options(SECOND_LIFE_ANIMATION.export_options, values)
        return replace(SECOND_LIFE_ANIMATION.from_scene(parts[0], options), loop=1)


class ACTION_OT_second_life_loop_preview(bpy.types.Operator):
    """Play only the loop, or everything again."""

    bl_idname = "action.second_life_loop_preview"
    bl_label = "Preview Loop"
    bl_description = (
        "Set the preview range of the timeline to the checked loop, which Blender then plays again and again"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(
        HAS_ACTION,
        (
            lambda context: active_action(context).name == context.window_manager.meshferry_loop_check.action,
            "Check the loop of the action first",
        ),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch the preview range on or off."""
        scene, shown = context.scene, context.window_manager.meshferry_loop_check
        if is_previewed(scene, shown):
            scene.use_preview_range = False
            return {"FINISHED"}
        scene.use_preview_range = True
        scene.frame_preview_start, scene.frame_preview_end = preview_range(shown)
        scene.frame_set(scene.frame_preview_start)
        return {"FINISHED"}


class POSE_OT_second_life_jump_select(bpy.types.Operator):
    """Select the bone of a jump."""

    bl_idname = "pose.second_life_jump_select"
    bl_label = "Select Bone"
    bl_description = "Select the bone of this joint, and go to the end of the loop"
    bl_options = {"INTERNAL", "UNDO"}
    poll = requires(HAS_ACTION)

    index: IntProperty(name="Joint", description="Number of the joint in the list", min=0)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Select the bone in pose mode."""
        shown, rig = context.window_manager.meshferry_loop_check, rig_of(context.object)
        if self.index >= len(shown.joints):
            return {"CANCELLED"}
        context.view_layer.objects.active = rig
        leave_edit_mode(context)
        enter_pose_mode()
        element_selection.select_bones(rig, [shown.joints[self.index].name])
        context.scene.frame_set(round(shown.frame_out))
        return {"FINISHED"}


class Check(CheckScene, bpy.types.Operator):
    """Check the active action against the rules of the viewer's uploader, without writing a file."""

    bl_idname = "export_scene.second_life_anim_check"
    bl_label = "Check Second Life Animation"
    bl_description = "Check the active action against the rules of the viewer's uploader, without writing a file"
    poll = requires(HAS_ACTION)
    format = SECOND_LIFE_ANIMATION
    export_operator = EXPORT_OPERATOR
    option_table = export_table(SECOND_LIFE_ANIMATION)

    def subject(self, context: bpy.types.Context) -> str:
        """Return the name of the armature."""
        return str(rig_of(context.object).name)

    def source(self, context: bpy.types.Context) -> tuple[Any, str]:
        """Return the armature."""
        rig = rig_of(context.object)
        return object_selection.Source("OBJECTS", objects=(rig,)), str(rig.name)

    def last_values(self, context: bpy.types.Context) -> dict[str, Any]:
        """Return the last export options or the dialog's defaults, with the active action as the only clip."""
        return last_export_values(context)

    def find(self, context: bpy.types.Context, findings: list[Message]) -> None:
        """Apply the rules; findings about joints select the bones of the armature."""
        try:
            super().find(context, findings)
        except ExportError as problem:
            problem.findings = tuple(self.located(context, problem.findings))
            raise
        findings[:] = self.located(context, findings)

    def located(self, context: bpy.types.Context, findings: Iterable[Message]) -> list[Message]:
        """Return findings with the name of the armature as their item, and with names of bones instead of joints."""
        rig = rig_of(context.object)
        bones = bones_of_joints(context, rig)
        found = []
        for finding in findings:
            about = finding.elements
            if about is not None and not about.node:
                members = about.members
                if about.kind == "bones":
                    members = tuple(bones.get(str(joint), str(joint)) for joint in members)
                about = Elements(about.kind, rig.name, members)
            found.append(replace(finding, elements=about))
        return found


def is_checked(rig: Any, action: str) -> bool:
    """Return whether the last loop check was about the active action of an armature."""
    active = rig.animation_data.action
    return active is not None and active.name == action


def is_previewed(scene: Any, shown: MeshferryLoopCheck) -> bool:
    """Return whether the preview range equals the range of the checked loop."""
    ends = (scene.frame_preview_start, scene.frame_preview_end)
    return bool(scene.use_preview_range and ends == preview_range(shown))


def preview_range(shown: MeshferryLoopCheck) -> tuple[int, int]:
    """Return the frames of the checked loop, without the last one, at which the viewer is at the first again."""
    start = round(shown.frame_in)
    return start, max(start, round(shown.frame_out) - 1)


def draw_loop_check(layout: Any, context: bpy.types.Context, rig: Any) -> None:
    """Draw the button of the check and the joints with the largest jumps."""
    shown = context.window_manager.meshferry_loop_check
    row = layout.row(align=True)
    button(row, ACTION_OT_second_life_loop_check, text="Loop Check", icon="FILE_REFRESH")
    if not is_checked(rig, shown.action):
        return
    is_on = is_previewed(context.scene, shown)
    row.operator(ACTION_OT_second_life_loop_preview.bl_idname, text="", icon="PREVIEW_RANGE", depress=is_on)
    opened = [number for number, joint in enumerate(shown.joints) if not joint.is_closed]
    if not opened:
        layout.label(text="The loop closes", text_ctxt=CONTEXT, icon="CHECKMARK")
        return
    column = layout.box().column(align=True)
    for number in opened[:MOST_JOINTS]:
        joint = shown.joints[number]
        split = column.split(factor=0.55)
        select = POSE_OT_second_life_jump_select.bl_idname
        split.operator(select, text=joint.name, icon="BONE_DATA", translate=False).index = number
        split.label(text=f"{joint.degrees:.1f}°  {joint.millimetres:.1f} mm", translate=False)
    draw_rest(column, opened, MOST_JOINTS)


WINDOW_STATE = {"meshferry_loop_check": MeshferryLoopCheck}
