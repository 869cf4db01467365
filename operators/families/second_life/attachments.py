"""Attachment points of the avatar: add their bones, attach rigid objects, and the offsets that the viewer shows."""

from typing import Any

import bpy
import numpy as np
from bpy.props import EnumProperty, StringProperty
from mathutils import Matrix, Vector

from ....blender_data import operator_calls
from ....blender_data.armature_modifiers import armature_of
from ....blender_data.importing import armatures
from ....blender_data.names import name_in_file
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import body_shapes
from ....io_formats.core.messages import counted, listed
from ....io_formats.second_life.avatar import joints, skeletons
from ....io_formats.second_life.models import space
from ...layouts import button, requires
from ...reports import inform, refuse
from ...selection import leave_edit_mode
from ...translations import iface_
from .avatar import HAS_AVATAR, NeedsAvatar, chosen_avatar, known_bones


class OBJECT_OT_second_life_add_attachment_points(NeedsAvatar, bpy.types.Operator):
    """Add the bones of attachment points that an avatar lacks."""

    bl_idname = "object.second_life_add_attachment_points"
    bl_label = "Add Attachment Points"
    bl_description = "Add the points to which worn objects are attached, as bones without weights"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the bones, with the parents that the avatar has."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        known = {joint: name for name, joint in known_bones(avatar).items()}
        skeleton = skeletons.avatar_skeleton(with_attachments=True)
        heads = {joint: np.array(avatar.data.bones[name].head_local) for joint, name in known.items()}
        turn = (joints.facing_of(heads).T @ space.TO_AVATAR)[:3, :3]
        vectors = armatures.bone_vectors(skeleton.joints, armatures.parents_of(skeleton))
        added = []
        with operator_calls.edit_mode(context, avatar):
            for joint, vector in zip(skeleton.joints, vectors, strict=True):
                above = skeleton.joints[joint.parent].name if joint.parent >= 0 else ""
                is_missing = joint.group == skeletons.ATTACHMENT_GROUP and joint.name not in known
                if not is_missing or vector is None or (above and above not in known):
                    continue
                head = heads.get(above, np.zeros(3)) + turn @ np.array(joint.translation)
                bone = avatar.data.edit_bones.new(joint.name)
                up = None if joint.up is None else (turn @ np.array(joint.up)).tolist()
                armatures.draw_bone(bone, head, turn @ vector, up)
                bone.parent = avatar.data.edit_bones.get(known.get(above, ""))
                bone.inherit_scale, bone.use_deform = "NONE", False
                added.append(bone.name)
        if not added:
            inform(self, "'{}' has all attachment points", avatar.name)
            return {"CANCELLED"}
        collections = avatar.data.collections
        group = collections.get(skeletons.ATTACHMENT_GROUP) or collections.new(skeletons.ATTACHMENT_GROUP)
        for name in added:
            group.assign(avatar.data.bones[name])
        inform(self, "{}: {} added", avatar.name, counted(len(added), "attachment point"))
        return {"FINISHED"}


def points_of(avatar: Any) -> dict[str, str]:
    """Return the bones of an avatar's attachment points, by the names of the points."""
    table = joints.table()
    return {joint: name for name, joint in known_bones(avatar).items() if table[joint].kind == "attachment"}


_items: list[tuple[str, str, str]] = []
"""The items of the last menu: Blender needs a reference to them."""


def point_items(_operator: Any, context: bpy.types.Context | None) -> list[tuple[str, str, str]]:
    """Return the attachment points of the chosen avatar as items of a menu."""
    avatar = chosen_avatar(context) if context is not None else None
    _items[:] = [(joint, joint, "") for joint in sorted(points_of(avatar))] if avatar is not None else []
    return _items


class OBJECT_OT_second_life_attach(bpy.types.Operator):
    """Attach the selected objects to an attachment point."""

    bl_idname = "object.second_life_attach"
    bl_label = "Attach Here"
    bl_description = (
        "Parent the selected objects to an attachment point of the avatar, where they are. They then follow its pose "
        "and shape, and the panel shows their offsets for the viewer"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(
        HAS_AVATAR,
        (
            lambda context: any(obj.type != "ARMATURE" for obj in context.view_layer.objects.selected),
            "Select an object",
        ),
    )

    point: EnumProperty(name="Attachment Point", description="Point to attach to", items=point_items)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Parent the objects, without moving them."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        bone = points_of(avatar).get(self.point)
        if bone is None:
            return refuse(self, "'{}' has no attachment point '{}'", avatar.name, self.point)
        chosen = [obj for obj in context.view_layer.objects.selected if obj.type != "ARMATURE"]
        bound = [obj.name for obj in chosen if armature_of(obj) is not None]
        if bound:
            return refuse(self, "{}: an armature deforms it; attach objects without weights", listed(bound, 3))
        roots = [obj for obj in chosen if obj.parent not in chosen]
        context.view_layer.update()
        places = [obj.matrix_world.copy() for obj in roots]
        for obj in roots:
            obj.parent, obj.parent_type, obj.parent_bone = avatar, "BONE", bone
            obj.matrix_parent_inverse = Matrix()
        context.view_layer.update()
        for obj, place in zip(roots, places, strict=True):
            # the inverse of the parent also keeps shear, which location, rotation and scale cannot have
            back = obj.matrix_basis.inverted_safe()
            obj.matrix_parent_inverse = (obj.matrix_world @ back).inverted_safe() @ place @ back
        context.view_layer.update()
        inform(self, "{}: attached to '{}'", listed([obj.name for obj in roots], 3), self.point)
        return {"FINISHED"}


def point_of(obj: Any) -> str:
    """Return the attachment point that an object hangs on, as the table has it; empty for none."""
    if obj is None or not body_shapes.is_attached(obj):
        return ""
    return joints.canonical(name_in_file(obj.parent.data.bones[obj.parent_bone])) or ""


def offset_of(obj: Any) -> tuple[Vector, Vector]:
    """Return the offset of an attached object as the viewer shows it: position in metres, rotation in degrees.

    The position is the centre of its box in the axes of the point. The rotation is about Z, then Y, then X.
    """
    avatar, bone = obj.parent, obj.parent.pose.bones[obj.parent_bone]
    heads = {joint: np.array(avatar.data.bones[name].head_local) for name, joint in known_bones(avatar).items()}
    at_rest = joints.facing_of(heads)[:3, :3].T @ joints.table()[point_of(obj)].axes
    posed = bone.matrix.to_3x3().normalized() @ bone.bone.matrix_local.to_3x3().inverted_safe()
    axes = avatar.matrix_world.to_3x3().normalized() @ posed @ Matrix(at_rest.tolist())
    centre = sum((Vector(corner) for corner in obj.bound_box), Vector()) / 8
    away = obj.matrix_world @ centre - avatar.matrix_world @ bone.head
    back = axes.inverted_safe()
    turn = back @ obj.matrix_world.to_3x3().normalized()
    return back @ away, Vector(np.degrees(turn.to_euler("ZYX")).tolist())


class WM_OT_second_life_copy_text(bpy.types.Operator):
    """Copy a text to the clipboard."""

    bl_idname = "wm.second_life_copy_text"
    bl_label = "Copy"
    bl_description = "Copy these numbers to the clipboard"
    bl_options = {"INTERNAL"}

    text: StringProperty(name="Text", description="What is copied", options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Copy it."""
        context.window_manager.clipboard = self.text
        inform(self, "Copied {}", self.text)
        return {"FINISHED"}


def draw_attachments(layout: Any, context: bpy.types.Context, avatar: Any) -> None:
    """Draw the buttons, and the offset of the active object."""
    header, body = layout.panel("SECOND_LIFE_attachments", default_closed=True)
    header.label(text="Attachments", text_ctxt=CONTEXT)
    if body is None:
        return
    column = body.column(align=True)
    if points_of(avatar):
        column.operator_menu_enum(OBJECT_OT_second_life_attach.bl_idname, "point", text_ctxt=CONTEXT, icon="LINKED")
    else:
        button(column, OBJECT_OT_second_life_add_attachment_points, text="Add Attachment Points", icon="BONE_DATA")
    obj = context.object
    if point := point_of(obj):
        body.label(text=iface_("'{}' on {}").format(obj.name, point), translate=False)
        position, rotation = offset_of(obj)
        column = body.column(align=True)
        for label, values, digits in (("Position", position, 5), ("Rotation", rotation, 2)):
            text = ", ".join(f"{round(value, digits) + 0.0:.{digits}f}" for value in values)  # without -0
            row = column.row(align=True)
            row.label(text=f"{iface_(label)}: {text}", translate=False)
            row.operator(WM_OT_second_life_copy_text.bl_idname, text="", icon="COPYDOWN").text = f"<{text}>"
