"""Add > Armature > Second Life Avatar, and the joints of its armature."""

import functools
from typing import Any

import bpy
import numpy as np
from bpy.props import BoolProperty, EnumProperty

from ....blender_data.armature_modifiers import MESHABLE, armature_of, deformed_meshes
from ....blender_data.importing import armatures
from ....blender_data.names import name_in_file
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import bones as rigging_bones
from ....blender_data.scene_state import update_worlds
from ....io_formats.core.messages import Text, counted
from ....io_formats.core.scene import Joint, Skeleton
from ....io_formats.second_life.avatar import joints, skeletons
from ....io_formats.second_life.avatar.avatar_fit import joint_ends
from ....io_formats.second_life.avatar.joints import BODY, CHOICES, facing, is_chosen
from ....io_formats.second_life.models.space import TO_AVATAR
from ...layouts import IN_EDITABLE_SCENE, Condition, button, requires
from ...preferences import drawn_for
from ...registration import MenuEntry
from ...reports import inform, refuse
from ...selection import leave_edit_mode
from ...translations import iface_

_STILL = 1e-6
"""Distance in metres below which a joint counts as snapped; single precision near the head of the avatar."""
_LEAST_VOLUME = 1e-18

WEIGHTED_ITEMS = tuple((choice.key, choice.label, choice.description) for choice in CHOICES)
WEIGHTED_LABEL = "Bones for Automatic Weights"
WEIGHTED_DESCRIPTION = "Bones that take part in automatic weights: those with Deform on"


def chosen_avatar(context: bpy.types.Context) -> Any | None:
    """Return the avatar's armature: the active or a selected one, the armature of the active mesh, or the only one."""
    layer = context.view_layer.objects
    obj = layer.active
    of_mesh = armature_of(obj) if obj is not None and obj.type in MESHABLE else None
    for candidate in (obj, *layer.selected, of_mesh):
        if candidate is not None and is_avatar(candidate):
            return candidate
    avatars = [other for other in layer if is_avatar(other)]
    return avatars[0] if len(avatars) == 1 else None


def is_avatar(obj: Any) -> bool:
    """Return whether an object is an armature with a bone that is a joint of the avatar."""
    is_own = obj.type == "ARMATURE" and not obj.meshferry.is_binding
    return is_own and any(joints.canonical(name_in_file(bone)) for bone in obj.data.bones)


def known_bones(armature: Any) -> dict[str, str]:
    """Return the names of the bones of an armature object that are joints of the avatar, with the table's names."""
    found = {bone.name: joints.canonical(name_in_file(bone)) for bone in armature.data.bones}
    return {name: known for name, known in found.items() if known is not None}


def bone_lines(armature: Any) -> dict[str, Any]:
    """Return the head and the end of each bone of a joint at rest, (2, 3) in world space, by the bone's name.

    The ends are those of the joints, since bones may be drawn in other directions.
    """
    known = known_bones(armature)
    heads = {name: np.array(armature.data.bones[name].head_local, np.float64) for name in known}
    ends = joint_ends({joint: heads[name] for name, joint in reversed(known.items())})
    place = np.array(armature.matrix_world, np.float64)
    return {
        name: np.array((heads[name], ends[joint])) @ place[:3, :3].T + place[:3, 3] for name, joint in known.items()
    }


@functools.cache
def chosen_joints(choice: str) -> frozenset[str]:
    """Return the table's names of the joints of a choice."""
    return frozenset(name for name, joint in joints.table().items() if is_chosen(joint, choice))


def choice_label(armature: Any) -> str:
    """Return the label of the largest choice of which Deform is on for all bones, and the number of further bones."""
    known = known_bones(armature)
    on = {joint for name, joint in known.items() if armature.data.bones[name].use_deform}
    wanted = {choice.label: chosen_joints(choice.key) & set(known.values()) for choice in CHOICES}
    full = [label for label, joints in wanted.items() if joints and joints <= on]
    if not full:
        return iface_("Custom")
    largest = max(full, key=lambda label: len(wanted[label]))
    more = len(on - wanted[largest])
    if not more:
        return iface_(largest)
    return iface_(Text("{} and {} more bones" if more > 1 else "{} and {} more bone", Text(largest), more))


HAS_AVATAR: Condition = (
    lambda context: chosen_avatar(context) is not None,
    "Select the avatar's armature, too; Add > Armature > Second Life Avatar adds one",
)


class NeedsAvatar:
    """Mixin of operators that change the joints of an avatar's armature."""

    bl_options = {"REGISTER", "UNDO"}
    poll = requires(
        HAS_AVATAR,
        (lambda context: chosen_avatar(context).data.is_editable, "The armature is linked from another file"),
    )


class OBJECT_OT_second_life_automatic_weights(NeedsAvatar, bpy.types.Operator):
    """Choose the bones of an avatar that take part in automatic weights."""

    bl_idname = "object.second_life_automatic_weights"
    bl_label = "Set Bones for Automatic Weights"
    bl_description = "Choose which bones of the avatar take part in automatic weights, by their setting Deform"

    weighted: EnumProperty(name=WEIGHTED_LABEL, description=WEIGHTED_DESCRIPTION, items=WEIGHTED_ITEMS, default=BODY)
    use_weighted: BoolProperty(
        name="Bones with Weights",
        description="Also keep Deform on for bones that already have weights of a mesh, which they would no longer "
        "move in Blender",
        default=True,
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch Deform on or off for each joint of the avatar; other bones stay as they are."""
        leave_edit_mode(context)
        armature = chosen_avatar(context)
        known = known_bones(armature)
        wanted = {name for name, joint in known.items() if joint in chosen_joints(self.weighted)}
        if self.use_weighted:
            meshes = deformed_meshes(armature)
            wanted.update(name for obj in meshes for name in rigging_bones.weighted_groups(obj) if name in known)
        rigging_bones.set_deforming(armature, wanted, known)
        bones = counted(len(wanted), "bone takes", "bones take")
        inform(self, "{}: {} part in automatic weights", armature.name, bones)
        return {"FINISHED"}


class OBJECT_OT_second_life_snap_joints(NeedsAvatar, bpy.types.Operator):
    """Move the joints of an armature to the positions of the avatar."""

    bl_idname = "object.second_life_snap_joints"
    bl_label = "Snap Joints to Avatar"
    bl_description = (
        "Move the armature's bones, in its rest pose, to where the standard avatar has its joints. Meshes stay where "
        "they are, and so do joints that the file of a bound mesh moves"
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Move the joints; report how many, and the largest distance."""
        from ....io_formats.second_life.avatar import joint_positions

        leave_edit_mode(context)
        armature: Any = chosen_avatar(context)
        update_worlds(context, [armature])
        space = np.array(armature.matrix_world, np.float64)
        space[:3, 3] = 0.0
        if abs(np.linalg.det(space)) < _LEAST_VOLUME:
            return refuse(self, "{}: its scale is 0", armature.name)
        bones = {joint: name for name, joint in reversed(known_bones(armature).items())}
        before = {joint: _head(armature, name, space) for joint, name in bones.items()}
        turn = facing(Skeleton("", [Joint(name, translation=_three(head)) for name, head in before.items()]))
        heads = {joint: turn[:3, :3] @ head for joint, head in before.items()}
        wanted = joint_positions.snapped(heads, set().union(*map(moved_by_file, deformed_meshes(armature))))
        away = {joint: float(np.linalg.norm(wanted[joint] - heads[joint])) for joint in heads}
        moved = {joint: distance for joint, distance in away.items() if distance > _STILL}
        if not moved:
            inform(self, "All joints are where the avatar has them")
            return {"CANCELLED"}
        back = np.linalg.inv(turn @ space)[:3, :3]
        rigging_bones.move_heads(context, armature, {bones[joint]: back @ wanted[joint] for joint in wanted})
        most = joint_positions.millimetres(max(moved.values()))
        inform(self, "{}: {} moved by up to {}", armature.name, counted(len(moved), "joint"), most)
        return {"FINISHED"}


def _head(armature: Any, bone: str, space: Any) -> Any:
    """Return the head of a bone in the axes of the world, (3,), relative to the armature's origin."""
    return space[:3, :3] @ np.array(armature.data.bones[bone].head_local, np.float64)


def _three(values: Any) -> tuple[float, float, float]:
    x, y, z = values.tolist()
    return (x, y, z)


def moved_by_file(obj: Any) -> set[str]:
    """Return the table's names of joints that the file of a mesh object moves."""
    from ....io_formats.second_life.avatar import joint_positions

    table = joints.table()
    found: set[str] = set()
    if not obj.meshferry.skin.has_positions:
        return found
    for joint in obj.meshferry.skin.joints:
        known = joints.canonical(joint.name)
        place = TO_AVATAR[:3, :3] @ np.array(joint.position, np.float64)
        if known is not None and np.linalg.norm(place - table[known].position) > joint_positions.MOVED:
            found.add(known)
    return found


def draw_weighted_bones(layout: Any, armature: Any) -> None:
    """Draw the choice of bones for automatic weights."""
    column = layout.column(align=True)
    column.label(text=WEIGHTED_LABEL, text_ctxt=CONTEXT)
    column.operator_menu_enum(
        OBJECT_OT_second_life_automatic_weights.bl_idname, "weighted", text=choice_label(armature), translate=False
    )


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
