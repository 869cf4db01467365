"""Retarget Names: copies of a Rigify, Mixamo or other rig and its meshes with the joints of the avatar."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from bpy.props import EnumProperty, StringProperty
from bpy_extras.io_utils import ExportHelper, ImportHelper
from mathutils import Matrix

from ....blender_data import file_records
from ....blender_data.armature_modifiers import MESHABLE, armature_of
from ....blender_data.exporting.models.model_objects import ModelIndex
from ....blender_data.importing import armatures
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import body_shapes, rig_copies
from ....blender_data.rigging import bones as rigging_bones
from ....blender_data.scene_state import update_worlds
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.format import OutputFile
from ....io_formats.core.messages import Report, Text, counted
from ....io_formats.core.scene import Skeleton
from ....io_formats.disk.special_files import read_bytes
from ....io_formats.second_life.avatar import avatar_fit, other_rigs, skeletons
from ....io_formats.second_life.avatar import joints as avatar_joints
from ....io_formats.second_life.avatar.joints import BODY
from ....io_formats.second_life.avatar.other_rigs import BoneTable
from ....io_formats.second_life.models.space import TO_AVATAR
from ...layouts import Condition, Rows, button, requires
from ...reports import Messages, conclude, inform, warn
from ...selection import leave_edit_mode, select_only
from .avatar import chosen_avatar, known_bones

PREFIX = "SL "
PROPORTIONS = (
    ("FIT", "Fit to Avatar", "Use the standard avatar and move the vertices from the bones to its joints"),
    ("KEEP", "Keep Proportions", "Keep the shape and place the joints at the bones; upload with joint positions"),
)


class SECOND_LIFE_UL_bones(Rows, bpy.types.UIList):
    """List of the deforming bones of an armature, each with its joint."""

    @staticmethod
    def draw_row(layout: Any, item: Any) -> None:
        """Draw one bone."""
        split = layout.split(factor=0.45)
        split.label(text=item.name, translate=False)
        row = split.row(align=True)
        row.prop(item.meshferry, "target_joint", text="")
        button(row, OBJECT_OT_second_life_bone_joint, text="", icon="VIEWZOOM", bone=item.name)

    def filter_items(self, context: bpy.types.Context, data: Any, property_name: str) -> tuple[list[int], list[int]]:
        """Show the deforming bones whose names contain the text of the search field."""
        bones = getattr(data, property_name)
        helper = bpy.types.UI_UL_list
        flags = helper.filter_items_by_name(self.filter_name, self.bitflag_filter_item, bones)
        flags = flags or [self.bitflag_filter_item] * len(bones)
        shown = [flag if bone.use_deform else 0 for flag, bone in zip(flags, bones, strict=True)]
        return shown, helper.sort_items_by_name(bones) if self.use_filter_sort_alpha else []


def chosen_rig(context: bpy.types.Context) -> Any | None:
    """Return the active armature, that of the active mesh, or else the chosen avatar, if it is not as imported avatars.

    The avatar lacks some of its deforming bones, or the bones do not have the avatar's axes.
    """
    obj = context.object
    rig = armature_of(obj) if obj is not None and obj.type in MESHABLE else obj
    if rig is None or rig.type != "ARMATURE":
        rig = chosen_avatar(context)
    if rig is None:
        return None
    is_other = any(avatar_joints.canonical(name) is None for name in deforming(rig))
    return rig if is_other or body_shapes.unfit_bones(rig) else None


def deforming(rig: Any) -> list[str]:
    """Return the names of the bones with Deform on."""
    return [bone.name for bone in rig.data.bones if bone.use_deform]


def table_of(rig: Any) -> BoneTable | None:
    """Return the table that the user made for an armature, or else that of its names."""
    if rig.meshferry.use_bone_table:
        chosen = {bone.name: bone.meshferry.target_joint for bone in rig.data.bones}
        return other_rigs.checked_bone_table({bone: joint for bone, joint in chosen.items() if joint}, rig.name)
    return found_table(rig)


def found_table(rig: Any) -> BoneTable | None:
    """Return the table of an armature that has the avatar's names, or else the best of the bundled ones."""
    own = known_bones(rig)
    if avatar_joints.ROOT in own.values():
        return BoneTable("Second Life", own)
    return other_rigs.best_table(deforming(rig))


def fill(rig: Any, table: BoneTable | None) -> int:
    """Store the joints of the deforming bones of an armature; return the number of bones with a joint."""
    rig.meshferry.use_bone_table, rig.meshferry.active_bone = True, 0
    for bone in rig.data.bones:
        joint = (table and table.joint_of(bone.name)) or avatar_joints.canonical(bone.name)
        bone.meshferry.target_joint = (joint or "") if bone.use_deform else ""
    return sum(bool(bone.meshferry.target_joint) for bone in rig.data.bones)


HAS_RIG: Condition = (
    lambda context: chosen_rig(context) is not None,
    "Choose an armature whose bones have other names or axes than the avatar's, or a mesh that it deforms",
)
HAS_EDITABLE_RIG: Condition = (
    lambda context: chosen_rig(context).is_editable and chosen_rig(context).data.is_editable,
    "The armature is linked from another file; make it local to store a bone table",
)


class OBJECT_OT_second_life_bone_table_fill(bpy.types.Operator):
    """List the bones of the armature."""

    bl_idname = "object.second_life_bone_table_fill"
    bl_label = "List Bones"
    bl_description = "List the deforming bones of the armature, with the joints that the best bundled table gives them"
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_RIG, HAS_EDITABLE_RIG)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Fill the list."""
        rig = chosen_rig(context)
        found = found_table(rig)
        number = fill(rig, found)
        if found is None:
            warn(self, "'{}' is neither a Rigify nor a Mixamo rig; choose the joints in the list", rig.name)
        else:
            inform(self, "{}: {} of {} bones found", found.name, number, len(deforming(rig)))
        return {"FINISHED"}


class OBJECT_OT_second_life_bone_joint(bpy.types.Operator):
    """Choose the joint of a bone from the names of all joints."""

    bl_idname = "object.second_life_bone_joint"
    bl_label = "Choose Joint"
    bl_description = "Search the joints of the avatar for the one of this bone"
    bl_options = {"INTERNAL", "UNDO"}
    bl_property = "joint"
    poll = requires(HAS_RIG, HAS_EDITABLE_RIG)

    bone: StringProperty(name="Bone", description="Bone of the armature", options={"SKIP_SAVE"})
    joint: EnumProperty(
        name="Joint",
        description="Joint of the avatar",
        items=[(name, name, "Joint of the avatar") for name in avatar_joints.table()],
        options={"SKIP_SAVE"},
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the search."""
        context.window_manager.invoke_search_popup(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Store the joint."""
        bone = chosen_rig(context).data.bones.get(self.bone)
        if bone is None:
            return {"CANCELLED"}
        bone.meshferry.target_joint = self.joint
        return {"FINISHED"}


class OBJECT_OT_second_life_bone_table_load(bpy.types.Operator, ImportHelper):
    """Fill the list from a bone table."""

    bl_idname = "object.second_life_bone_table_load"
    bl_label = "Load Bone Table"
    bl_description = "Give the bones of the armature the joints of a bone table (.csv with the columns bone and joint)"
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_RIG, HAS_EDITABLE_RIG)

    filename_ext = ".csv"
    filter_glob: StringProperty(default="*.csv", options={"HIDDEN"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Fill the list; a file with an error changes nothing."""
        messages, path, number = Messages(), Path(self.filepath), 0
        rig = chosen_rig(context)
        with messages.outcome(self.filepath):
            number = fill(rig, other_rigs.parse_bone_table(read_bytes(path), path.name))
        parts = (Text("{} of {} bones found", number, len(deforming(rig))),)
        return conclude(self, messages, parts, "Imported")


class OBJECT_OT_second_life_bone_table_save(bpy.types.Operator, ExportHelper):
    """Save the list as a bone table."""

    bl_idname = "object.second_life_bone_table_save"
    bl_label = "Save Bone Table"
    bl_description = "Save the listed bones with a joint as a bone table (.csv) for other armatures and users"
    poll = requires(HAS_RIG)

    filename_ext = ".csv"
    filter_glob: StringProperty(default="*.csv", options={"HIDDEN"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Write the file."""
        messages, table = Messages(), None
        with messages.outcome(self.filepath):
            table = table_of(chosen_rig(context))
            if table is None or not table.joints:
                raise MeshferryError("No bone has a joint")
            path, text = Path(self.filepath), other_rigs.bone_table_text(table.joints)
            file_records.write_files(path, [OutputFile(path.name, text.encode("utf-8"))])
        return conclude(self, messages, (counted(len(table.joints), "bone") if table else "",), "Exported")


class OBJECT_OT_second_life_retarget(bpy.types.Operator):
    """Copy a rig and its meshes for the avatar."""

    bl_idname = "object.second_life_retarget"
    bl_label = "Retarget Names"
    bl_description = (
        "Copy the armature and its meshes with the joints and axes of the avatar in place of those of its bones. "
        "Weights of bones with the same joint are added. The originals are hidden"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_RIG)

    proportions: EnumProperty(name="Proportions", description="Shape of the copies", items=PROPORTIONS, default="FIT")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Make the copies; after a failure none remains."""
        leave_edit_mode(context)
        rig = chosen_rig(context)
        messages = Messages()
        parts: tuple[str, ...] = ()
        with messages.outcome("", rig.name):
            table = table_of(rig)
            if table is None:
                raise MeshferryError("It is neither a Rigify nor a Mixamo rig: list its bones and choose their joints")
            bound = rig_copies.bound_meshes(context, rig)
            if not bound:
                raise MeshferryError("It deforms no mesh")
            index = ModelIndex(context.scene.objects)
            models = [index.model(finest) for finest in dict.fromkeys(map(index.finest_of, bound))]
            parts_of_models = [part for model in models for part in model.parts() if part.type == "MESH"]
            meshes = list(dict.fromkeys([*bound, *parts_of_models]))
            update_worlds(context, meshes)
            joints, warnings = retarget(context, rig, table, meshes, keeps=self.proportions == "KEEP")
            report = Report()
            rig_copies.report_left_behind(rig, meshes, report)
            messages.warn(rig.name, [*warnings, *report.messages])
            parts = (counted(len(meshes), "mesh", "meshes"), counted(joints, "joint"))
        return conclude(self, messages, parts, "Retargeted")


def joint_heads(rig: Any, first: Mapping[str, int]) -> tuple[Any, dict[str, Any]]:
    """Return the matrix of the avatar, and in its space the positions of joints, given the bone of each of them."""
    bones = list(rig.data.bones)
    matrix = np.array(rig.matrix_world, np.float64)
    turn = np.array(rig.matrix_world.to_quaternion().to_matrix(), np.float64)
    linear = turn.T @ matrix[:3, :3]
    heads = {joint: linear @ np.array(bones[number].head_local, np.float64) for joint, number in first.items()}
    axes = avatar_fit.avatar_axes(heads)
    matrix[:3, :3] = turn @ axes
    return matrix, {joint: axes.T @ head for joint, head in heads.items()}


def retarget(
    context: bpy.types.Context, rig: Any, table: BoneTable, meshes: list[Any], *, keeps: bool
) -> tuple[int, list[str]]:
    """Make the copies, link them and hide the originals; return the number of joints, and the warnings.

    With ``keeps``, the joints of the avatar are placed at the bones; otherwise the copies get the shape of the avatar.
    """
    bones = list(rig.data.bones)
    names = [bone.name for bone in bones]
    number_of = {name: number for number, name in enumerate(names)}
    parents = [number_of[bone.parent.name] if bone.parent else -1 for bone in bones]
    joints, unmapped = other_rigs.joints_of(names, parents, table)
    first = other_rigs.first_bones(names, parents, [bone.use_deform for bone in bones], table)
    matrix, heads = joint_heads(rig, first)
    made: list[Any] = []

    def keep(block: Any) -> Any:
        made.append(block)
        return block

    layer = context.view_layer
    before = [obj for obj in (layer.objects.active, *layer.objects.selected) if obj is not None]
    matrices = {} if keeps else avatar_fit.fit_matrices(heads)
    try:
        avatar = keep(armatures.add_skeleton(context, avatar_skeleton(heads, keeps=keeps), name=PREFIX + rig.name))
        keep(avatar.data)
        avatar.matrix_world = Matrix(matrix.tolist())
        layer.update()
        copies = {obj: rig_copies.copy_bound(obj, rig, avatar, joints, PREFIX, keep) for obj in meshes}
        for copy in copies.values():
            if matrices:
                rig_copies.deform(copy, matrices, matrices[avatar_joints.ROOT])
                copy.meshferry.property_unset("skin")  # The file's binding does not hold for the new shape.
            rigging_bones.switch_on_weighted(copy, avatar)
        if matrices:  # Meshes in the shape of the avatar turn with it to face -Y.
            avatar.rotation_quaternion.identity()
        rig_copies.relate_copies(copies)
        rig_copies.link_beside(context, copies)
    except BaseException:
        bpy.data.batch_remove(made)
        select_only(context, before)
        raise
    weighted = {name for obj in meshes for name in rigging_bones.weighted_groups(obj)}
    lost = other_rigs.unmapped_text([bone for bone in unmapped if bone in weighted])
    turned = avatar_fit.pose_text(heads) if keeps else ""
    rig_copies.hide(context, [*meshes, rig])
    select_only(context, [avatar])
    return len(heads), [text for text in (lost, turned) if text]


def avatar_skeleton(heads: Mapping[str, Any], *, keeps: bool) -> Skeleton:
    """Return the skeleton of the standard avatar, or with the joints at these positions."""
    rests = {}
    for joint, head in heads.items() if keeps else ():
        rests[joint] = avatar_joints.rest_matrices()[joint].copy()
        rests[joint][:3, 3] = TO_AVATAR[:3, :3] @ head
    names = [name for name, joint in avatar_joints.table().items() if joint.is_bone or name in heads]
    return skeletons.skeleton_of(skeletons.NAME, names, rests, weighted=BODY, used=heads)


def draw_retarget(layout: Any, rig: Any) -> None:
    """Draw the bone table and the buttons."""
    row = layout.row(align=True)
    button(row, OBJECT_OT_second_life_bone_table_fill, text="List Bones")
    row.operator(OBJECT_OT_second_life_bone_table_load.bl_idname, text="", icon="IMPORT")
    row.operator(OBJECT_OT_second_life_bone_table_save.bl_idname, text="", icon="EXPORT")
    layout.prop(rig.meshferry, "use_bone_table", text_ctxt=CONTEXT)
    if rig.meshferry.use_bone_table:
        layout.template_list("SECOND_LIFE_UL_bones", "", rig.data, "bones", rig.meshferry, "active_bone", rows=6)
    layout.operator_menu_enum(
        OBJECT_OT_second_life_retarget.bl_idname, "proportions", text="Retarget Names", text_ctxt=CONTEXT
    )
