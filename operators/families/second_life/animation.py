"""The section "Animation" of the sidebar: how the viewer plays the active action, and priorities of bones."""

import json
from typing import Any

import bpy
from bpy.props import EnumProperty

from ....blender_data.animated_blocks import action_curves
from ....blender_data.animation import clean_actions, cycles, playback, pose_curves
from ....blender_data.animation.scene_time import SceneTime
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.core.messages import counted
from ....io_formats.second_life.animation import format as anim_format
from ...files.clip_export import active_action, rig_of
from ...findings.finding_list import draw_findings
from ...layouts import button, draw_rest, property_column, requires
from ...reports import inform, warn
from ...sidebar import draw_wrapped
from ...translations import iface_
from .avatar import chosen_avatar
from .loop_check import draw_loop_check

PALETTES = ("THEME04", "THEME07", "THEME03", "THEME09", "THEME02", "THEME01", "THEME06")
"""Colour set of a bone for each priority, from blue to red."""
PRIORITY_ITEMS = (
    ("ACTION", "As the Animation", "The priority of the whole animation"),
    *((str(number), str(number), f"Priority {number}") for number in range(7)),
)
HAND_ITEMS = tuple((str(number), label, "Shape of both hands") for number, label in enumerate(anim_format.HAND_POSES))
EMOTE_ITEMS = tuple((name or "NONE", label, "Face expression") for name, label in anim_format.EMOTES.items())
MOST_BONES = 12
"""Largest number of bones with a priority of their own that are listed."""


def has_editable_action(context: bpy.types.Context) -> bool:
    """Return whether the armature has an active action of this file."""
    action = active_action(context)
    return action is not None and action.is_editable


class NeedsAction:
    """Mixin of operators for the active action of an armature."""

    bl_options = {"REGISTER", "UNDO"}
    poll = requires((has_editable_action, "Choose an armature with an action of this file"))


def settings_of(context: bpy.types.Context, action: Any) -> Any:
    """Return the settings of an action. If it has none, store the values that an export would use by default."""
    kept = action.meshferry.playback
    if not kept.is_known:
        start, end = action.frame_range
        time = SceneTime.of(context.scene)
        loop = playback.loop_of(action, time)
        kept.is_known = True
        curves = [curve for curve in action_curves(action, None) if not curve.mute]
        repeats = cycles.without_repetition(curves, end - start) == []
        kept.use_loop = loop is not None or (action.use_frame_range and action.use_cyclic) or repeats
        kept.loop_in, kept.loop_out = loop or (0.0, (end - start) / time.key_rate)
    return kept


class OBJECT_OT_second_life_clean_action(NeedsAction, bpy.types.Operator):
    """Remove keys that hold a shape."""

    bl_idname = "object.second_life_clean_action"
    bl_label = "Clean Action"
    bl_description = (
        "Remove the keys of scales and of constant locations, except those of the pelvis, from the active action. "
        "Keying whole characters makes them: they hold the shape of that time, so that the sliders have no effect"
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Remove the keys and report the number of bones."""
        rig = rig_of(context.object)
        count = clean_actions.clean(rig)
        if not count:
            inform(self, "'{}' has no keys that hold a shape", active_action(context).name)
            return {"CANCELLED"}
        inform(self, "'{}': keys removed from {}", active_action(context).name, counted(count, "bone"))
        return {"FINISHED"}


class ACTION_OT_second_life_playback_add(NeedsAction, bpy.types.Operator):
    """Store settings for Second Life with the action."""

    bl_idname = "action.second_life_playback_add"
    bl_label = "Add Settings"
    bl_description = "Store loop, ease, priority, hand pose and expression with the action"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Store the settings that an export would use by default."""
        settings_of(context, active_action(context))
        return {"FINISHED"}


class ACTION_OT_second_life_loop_point(NeedsAction, bpy.types.Operator):
    """Set a point of the loop."""

    bl_idname = "action.second_life_loop_point"
    bl_label = "Set Loop Point"

    point: EnumProperty(
        name="Point",
        description="Which end of the loop is set",
        items=(
            ("IN", "Loop In", "Repeat from the current frame on"),
            ("OUT", "Loop Out", "Repeat up to the current frame"),
            ("ALL", "Whole Action", "Repeat the whole action"),
        ),
    )

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: Any) -> str:
        """Return the description of the point."""
        return cls.bl_rna.properties["point"].enum_items[properties.point].description

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Set the point to the current frame, and the marker, if there is one."""
        action = active_action(context)
        start, end = action.frame_range
        current = min(max(context.scene.frame_current_final, start), end)
        kept = settings_of(context, action)
        kept.use_loop = True
        points = ("IN", "loop_in", playback.LOOP_IN, start), ("OUT", "loop_out", playback.LOOP_OUT, end)
        for point, field, name, whole in points:
            if self.point in {point, "ALL"}:
                frame = whole if self.point == "ALL" else current
                setattr(kept, field, (frame - start) / SceneTime.of(context.scene).key_rate)
                marker = action.pose_markers.get(name)
                if marker is not None:
                    marker.frame = round(frame)
        return {"FINISHED"}


class ACTION_OT_second_life_hand_pose(NeedsAction, bpy.types.Operator):
    """Set the hand pose of the animation."""

    bl_idname = "action.second_life_hand_pose"
    bl_label = "Hand Pose"
    bl_description = "Shape of the hands of the classic avatar; mesh bodies ignore it"

    hand_pose: EnumProperty(name="Hand Pose", description="Shape of the hands", items=HAND_ITEMS, default="1")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Store the number."""
        settings_of(context, active_action(context)).hand_pose = int(self.hand_pose)
        return {"FINISHED"}


class ACTION_OT_second_life_emote(NeedsAction, bpy.types.Operator):
    """Set the face expression of the animation."""

    bl_idname = "action.second_life_emote"
    bl_label = "Expression"
    bl_description = "Face expression of the classic avatar that starts with the animation"

    emote: EnumProperty(name="Expression", description="Face expression", items=EMOTE_ITEMS, default="NONE")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Store the name."""
        settings_of(context, active_action(context)).emote = "" if self.emote == "NONE" else self.emote
        return {"FINISHED"}


class POSE_OT_second_life_priority(NeedsAction, bpy.types.Operator):
    """Set the priority of the selected bones."""

    bl_idname = "pose.second_life_priority"
    bl_label = "Priority of Selected Bones"
    bl_description = "Priority of the selected bones in the active action"

    priority: EnumProperty(name="Priority", description="Priority of the bones", items=PRIORITY_ITEMS)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Store an entry for each selected bone, or remove it."""
        bones = [bone.name for bone in context.selected_pose_bones or ()]
        if not bones:
            warn(self, "Select bones in pose mode")
            return {"CANCELLED"}
        entries = settings_of(context, active_action(context)).joint_priorities
        for name in bones:
            index = entries.find(name)
            if self.priority == "ACTION":
                if index >= 0:
                    entries.remove(index)
                continue
            entry = entries[index] if index >= 0 else entries.add()
            entry.name, entry.priority = name, int(self.priority)
        rig = rig_of(context.object)
        if rig.meshferry.bone_palettes:
            show_priorities(rig)
        return {"FINISHED"}


def has_colors(context: bpy.types.Context) -> bool:
    """Return whether there are colours to restore, or an action whose priorities can be shown."""
    rig = rig_of(context.object)
    return rig is not None and rig.is_editable and bool(rig.meshferry.bone_palettes or active_action(context))


class POSE_OT_second_life_priority_colors(bpy.types.Operator):
    """Show the priorities of bones as their colours, or give the former colours back."""

    bl_idname = "pose.second_life_priority_colors"
    bl_label = "Priority Colors"
    bl_description = (
        "Show the priorities of the animated bones as bone colors, from blue (0) to red (5) and purple (6). Press it "
        "again to give the bones their own colors back"
    )
    bl_options = {"REGISTER", "UNDO"}

    poll = requires((has_colors, "Choose an armature of this file with an action"))

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Colour the bones, or restore their colours."""
        rig = rig_of(context.object)
        if rig.meshferry.bone_palettes:
            hide_priorities(rig)
        else:
            rig.meshferry.bone_palettes = json.dumps({bone.name: bone.color.palette for bone in rig.pose.bones})
            show_priorities(rig)
        return {"FINISHED"}


def show_priorities(rig: Any) -> None:
    """Give each animated bone the colour of its priority, and the others their own."""
    data = rig.animation_data
    kept = data.action.meshferry.playback
    own = {entry.name: entry.priority for entry in kept.joint_priorities}
    slot = data.action_slot
    keyed = {bone for bone, _channel in pose_curves.keyed_channels(data.action, slot)}
    palettes = json.loads(rig.meshferry.bone_palettes)
    for bone in rig.pose.bones:
        priority = own.get(bone.name, kept.priority)
        if bone.name in keyed or bone.name in own:
            bone.color.palette = PALETTES[min(max(kept.priority if priority < 0 else priority, 0), 6)]
        else:
            bone.color.palette = palettes.get(bone.name, "DEFAULT")


def hide_priorities(rig: Any) -> None:
    """Give the bones the colours that they had before."""
    palettes = json.loads(rig.meshferry.bone_palettes)
    for bone in rig.pose.bones:
        bone.color.palette = palettes.get(bone.name, "DEFAULT")
    rig.meshferry.bone_palettes = ""


def draw_animation(layout: Any, context: bpy.types.Context, _models: Any) -> None:
    """Draw the settings of the active action, the loop check, the checks and the export."""
    rig, action = rig_of(context.object), active_action(context)
    if action is None:
        layout.label(text="The armature has no action", text_ctxt=CONTEXT, icon="INFO")
        if rig.meshferry.bone_palettes:
            draw_colors(layout, rig)
    else:
        layout.label(text=action.name, icon="ACTION", translate=False)
        if pose_curves.is_for_other_axes(action, rig.animation_data.action_slot, rig):
            draw_wrapped(layout, context, iface_("Made for bones with other axes, so poses differ"), "ERROR")
        kept = action.meshferry.playback
        if not kept.is_known:
            button(layout, ACTION_OT_second_life_playback_add, text="Add Settings")
        else:
            draw_playback(layout, context, action, kept)
            draw_priorities(layout, context, rig, kept)
        draw_loop_check(layout, context, rig)
        if chosen_avatar(context) is not None:
            button(layout, OBJECT_OT_second_life_clean_action, text="Clean Action", icon="BRUSH_DATA")
        button(layout, "export_scene.second_life_anim_check", text="Check", icon="CHECKMARK")
        draw_findings(layout, context, anim_format.SECOND_LIFE_ANIMATION, rig.name)
    row = layout.row(align=True)
    row.scale_y = 1.5
    row.enabled = action is not None
    for text, operator in (("Export .anim", "second_life_anim"), ("Export .bvh", "second_life_bvh")):
        button(row, f"export_scene.{operator}", text=text, icon="EXPORT", scope="ACTIVE", clips="ACTIVE")
    button(layout, "export_scene.second_life_anim", text="Export Static Pose", scope="ACTIVE", clips="POSE")


def draw_playback(layout: Any, context: bpy.types.Context, action: Any, kept: Any) -> None:
    """Draw how the viewer plays the action."""
    column = property_column(layout)
    column.prop(kept, "use_loop", text_ctxt=CONTEXT)
    loop = column.column(align=True)
    loop.active = kept.use_loop
    for field, point in (("loop_in", "IN"), ("loop_out", "OUT")):
        row = loop.row(align=True)
        row.prop(kept, field, text_ctxt=CONTEXT)
        row.operator(ACTION_OT_second_life_loop_point.bl_idname, text="", icon="TIME").point = point
    real = playback.loop_of(action, SceneTime.of(context.scene))
    if kept.use_loop and real is not None and real != (kept.loop_in, kept.loop_out):
        text = iface_("The markers of the action apply: {:.2f} s to {:.2f} s").format(*real)
        draw_wrapped(loop, context, text, "MARKER")
    ease = column.column(align=True)
    ease.prop(kept, "ease_in", text_ctxt=CONTEXT)
    ease.prop(kept, "ease_out", text_ctxt=CONTEXT)
    column.prop(kept, "priority", text_ctxt=CONTEXT)
    for label, operator, value, shown in (
        ("Hand Pose", "second_life_hand_pose", "hand_pose", anim_format.hand_pose_label(kept.hand_pose)),
        ("Expression", "second_life_emote", "emote", anim_format.emote_label(kept.emote)),
    ):
        split = column.split(factor=0.4)
        split.alignment = "RIGHT"
        split.label(text=label, text_ctxt=CONTEXT)
        split.operator_menu_enum(f"action.{operator}", value, text=iface_(shown), translate=False)


def draw_priorities(layout: Any, context: bpy.types.Context, rig: Any, kept: Any) -> None:
    """Draw the bones with a priority of their own, and the buttons that set and show priorities."""
    header, body = layout.panel("SECOND_LIFE_bone_priorities", default_closed=True)
    header.label(text="Bone Priorities", text_ctxt=CONTEXT)
    if body is None:
        return
    row = body.row(align=True)
    row.enabled = context.mode == "POSE"
    row.operator_menu_enum(POSE_OT_second_life_priority.bl_idname, "priority", text="Selected Bones", text_ctxt=CONTEXT)
    draw_colors(body, rig)
    column = body.column(align=True)
    for entry in kept.joint_priorities[:MOST_BONES]:
        column.prop(entry, "priority", text=entry.name, translate=False)
    draw_rest(column, kept.joint_priorities, MOST_BONES)


def draw_colors(layout: Any, rig: Any) -> None:
    """Draw the button that shows priorities as bone colours, or the own colours of the bones."""
    is_on = bool(rig.meshferry.bone_palettes)
    layout.operator(
        POSE_OT_second_life_priority_colors.bl_idname,
        text="Show Own Colors" if is_on else "Show as Colors",
        text_ctxt=CONTEXT,
        icon="COLOR",
        depress=is_on,
    )
