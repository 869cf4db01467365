"""Add > Armature > Second Life Avatar."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty

from ....blender_data.importing import armatures
from ....io_formats.second_life.avatar import skeletons
from ....io_formats.second_life.avatar.joints import BODY
from ...layouts import IN_EDITABLE_SCENE, button, requires
from ...preferences import drawn_for
from ...registration import MenuEntry
from ...selection import leave_edit_mode
from .avatar_joints import WEIGHTED_DESCRIPTION, WEIGHTED_ITEMS, WEIGHTED_LABEL

NAME = "Avatar"


class OBJECT_OT_second_life_avatar_add(bpy.types.Operator):
    """Add the standard avatar armature of Second Life."""

    bl_idname = "object.second_life_avatar_add"
    bl_label = "Add Second Life Avatar"
    bl_description = (
        "Add the avatar's armature at the 3D cursor, in its rest pose. Meshes that are bound to it fit every avatar. "
        "It faces -Y, as characters in Blender do"
    )
    bl_options = {"REGISTER", "UNDO", "PRESET"}

    weighted: EnumProperty(name=WEIGHTED_LABEL, description=WEIGHTED_DESCRIPTION, items=WEIGHTED_ITEMS, default=BODY)
    use_collision_volumes: BoolProperty(
        name="Collision Volumes",
        description="Add the 26 volumes that the body shape sliders move, for meshes that shall follow the wearer's "
        "figure (fitted mesh)",
        default=True,
    )
    use_attachments: BoolProperty(
        name="Attachment Points",
        description="Add the points to which worn objects are attached, as bones",
        default=False,
    )

    poll = requires(IN_EDITABLE_SCENE)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the armature in object mode, selected and active."""
        leave_edit_mode(context)
        skeleton = skeletons.avatar_skeleton(
            with_attachments=self.use_attachments,
            with_collision_volumes=self.use_collision_volumes,
            weighted=self.weighted,
        )
        armatures.add_skeleton(context, skeleton, name=NAME)
        return {"FINISHED"}


@drawn_for("second_life")
def draw_add_entry(self: Any, _context: bpy.types.Context) -> None:
    """Draw the entry in Add > Armature."""
    button(self.layout, OBJECT_OT_second_life_avatar_add, text="Second Life Avatar", icon="OUTLINER_OB_ARMATURE")


ENTRIES = (MenuEntry("VIEW3D_MT_armature_add", draw_add_entry),)
