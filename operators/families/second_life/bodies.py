"""Bodies of the avatar, on which clothes are fitted: any bound mesh, or the classic avatar of an installed viewer."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender_data.armature_modifiers import armature_of
from ....blender_data.importing import import_options, importer
from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.operator_calls import Selection
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import bodies, body_shapes
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import counted, listed
from ....io_formats.core.scene import Scene
from ....io_formats.second_life.avatar import classic_body
from ....io_formats.second_life.options import VIEWER_FOLDER
from ...layouts import IN_EDITABLE_SCENE, button, path_property, requires
from ...preferences import preferences, preferred_path
from ...reports import Messages, conclude, inform, refuse, warn
from ...selection import leave_edit_mode
from .avatar_joints import HAS_AVATAR, chosen_avatar
from .fit import OBJECT_OT_second_life_check_fit


class OBJECT_OT_second_life_use_as_body(bpy.types.Operator):
    """Make the selected meshes the body on which clothes are fitted."""

    bl_idname = "object.second_life_use_as_body"
    bl_label = "Use as Body"
    bl_description = (
        "Make the selected meshes one body of the avatar, on which clothes are fitted: exports leave it out, clicks in "
        "the 3D view do not select it, and Transfer Weights takes the weights from it"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Mark the meshes that the avatar deforms."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        meshes = [obj for obj in context.view_layer.objects.selected if obj.type == "MESH"]
        bound = [obj for obj in meshes if armature_of(obj) == avatar]
        if not bound:
            return refuse(self, "Select a mesh that is bound to '{}'", avatar.name)
        linked = [obj.name for obj in bound if not obj.is_editable]
        if linked:
            return refuse(self, "{}: linked from another file; make it the body there", listed(linked, 3))
        bodies.make_body(avatar, bound, bodies.free_name(avatar, bound))
        context.view_layer.objects.active = avatar
        left = [obj.name for obj in meshes if obj not in bound]
        if left:
            warn(self, "{}: not bound to '{}', left out", listed(left, 3), avatar.name)
        inform(self, "{}: body of '{}'", listed([obj.name for obj in bound], 3), avatar.name)
        return {"FINISHED"}


class ForBody:
    """Mixin of operators for a body of the avatar."""

    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR)

    body: StringProperty(name="Body", description="Name of the body", options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Find the body, and change it."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        found = bodies.bodies_of(avatar, context.view_layer.objects).get(self.body)
        if not found:
            return refuse(self, "'{}' has no body '{}'", avatar.name, self.body)
        linked = [obj.name for obj in found if not obj.is_editable]
        if linked:
            return refuse(self, "{}: linked from another file; make a library override of it", listed(linked, 3))
        self.change(avatar, found)
        return {"FINISHED"}

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Change the body."""
        raise NotImplementedError


class OBJECT_OT_second_life_activate_body(ForBody, bpy.types.Operator):
    """Choose the body on which clothes are fitted now."""

    bl_idname = "object.second_life_activate_body"
    bl_label = "Fit on This Body"
    bl_description = "Fit clothes on this body: show it, hide the avatar's other bodies, and take weights from it"

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Make it the active one and show it alone."""
        avatar.meshferry.active_body = self.body
        for others in bodies.bodies_of(avatar, bpy.context.view_layer.objects).values():
            for obj in others:
                show(obj, is_shown=obj in objects)


class OBJECT_OT_second_life_show_body(ForBody, bpy.types.Operator):
    """Show or hide a body."""

    bl_idname = "object.second_life_show_body"
    bl_label = "Show or Hide Body"
    bl_description = "Show or hide the body"

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Hide all of its meshes if one is visible."""
        is_shown = not bodies.is_shown(objects)
        for obj in objects:
            show(obj, is_shown=is_shown)


def show(obj: Any, *, is_shown: bool) -> None:
    """Show an object, also if it is disabled in viewports, or hide it."""
    if is_shown:
        obj.hide_viewport = False
    obj.hide_set(not is_shown)


class OBJECT_OT_second_life_release_body(ForBody, bpy.types.Operator):
    """Make a body ordinary meshes again."""

    bl_idname = "object.second_life_release_body"
    bl_label = "Release Body"
    bl_description = "Make the body an ordinary mesh again, which can be selected and exported"

    def change(self, avatar: Any, objects: Sequence[Any]) -> None:
        """Remove the marks."""
        bodies.release(objects)


class OBJECT_OT_second_life_load_body(bpy.types.Operator):
    """Load the classic avatar of an installed viewer."""

    bl_idname = "object.second_life_load_body"
    bl_label = "Load Body from Viewer"
    bl_description = (
        "Load the classic avatar from the folder 'character' of an installed viewer, with shape keys that follow the "
        "sliders. The folder is kept in the preferences"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(IN_EDITABLE_SCENE)

    directory: path_property("Folder", "Folder 'character' of an installed viewer", "DIR_PATH", {"HIDDEN", "SKIP_SAVE"})
    filter_folder: BoolProperty(default=True, options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Take the folder of the preferences if the files are there; otherwise ask for it."""
        known = preferred_path(VIEWER_FOLDER)
        if known:
            try:
                classic_body.folder_in(Path(known))
            except MeshferryError:
                pass
            else:
                self.directory = known
                return self.execute(context)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Import the meshes onto the avatar, or with a new one."""
        leave_edit_mode(context)
        folder = bpy.path.abspath(self.directory) or preferred_path(VIEWER_FOLDER)
        done = add_body(self, context, folder, classic_body.NAME, lambda: classic_body.read(Path(folder)))
        if done == {"FINISHED"} and preferences() is not None:
            setattr(preferences(), VIEWER_FOLDER.preference, folder)
        return done


class OBJECT_OT_second_life_add_mannequin(bpy.types.Operator):
    """Add an abstract figure as the avatar's body."""

    bl_idname = "object.second_life_add_mannequin"
    bl_label = "Add Mannequin"
    bl_description = "Add an abstract figure as the avatar's body, on which clothes are fitted. It follows the sliders"
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(IN_EDITABLE_SCENE)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the figure to the avatar, or with a new one."""
        leave_edit_mode(context)
        return add_body(self, context, "", classic_body.MANNEQUIN, classic_body.mannequin)


def add_body(
    operator: bpy.types.Operator, context: bpy.types.Context, path: str, name: str, read: Callable[[], Scene]
) -> set[str]:
    """Import meshes as a body of the chosen avatar, or of a new one; report the result, and return the operator's."""
    avatar: Any = chosen_avatar(context)
    if avatar is not None and name in bodies.bodies_of(avatar, context.view_layer.objects):
        return refuse(operator, "'{}' has this body already", avatar.name)
    messages, parts = Messages(), []
    before = Selection(context)
    with messages.outcome(path, name):
        scene = read()
        made = importer.import_scene(
            import_options.ImportRequest(context, scene, ImportOptions.of({}), armature=avatar)
        )
        made.collection.meshferry.property_unset("from_file")  # conversions of .blend files prefer imported collections
        avatar = next(iter(made.armatures))
        meshes = [obj for obj in made.objects if obj.type == "MESH"]
        for obj, node in zip(meshes, scene.nodes, strict=True):
            obj.meshferry.body_part = node.name
        bodies.make_body(avatar, meshes, name)
        body_shapes.set_keys(avatar)
        avatar.select_set(True)
        context.view_layer.objects.active = avatar
        messages.warn(name, scene.warnings)
        parts = [counted(len(meshes), "mesh", "meshes")]
    if not messages.done:
        before.restore()
    return conclude(operator, messages, parts, "Loaded")


def draw_bodies(layout: Any, context: bpy.types.Context, _models: Any) -> None:
    """Draw the bodies of the avatar, and the buttons that add one."""
    avatar: Any = chosen_avatar(context)
    found = bodies.bodies_of(avatar, context.view_layer.objects)
    active = bodies.active_body(avatar, found)
    column = layout.column(align=True)
    for name, objects in found.items():
        row = column.row(align=True)
        icon = "RADIOBUT_ON" if name == active else "RADIOBUT_OFF"
        chosen = row.operator(OBJECT_OT_second_life_activate_body.bl_idname, text=name, translate=False, icon=icon)
        eye = "HIDE_OFF" if bodies.is_shown(objects) else "HIDE_ON"
        shown = row.operator(OBJECT_OT_second_life_show_body.bl_idname, text="", icon=eye)
        released = row.operator(OBJECT_OT_second_life_release_body.bl_idname, text="", icon="X")
        for operator in (chosen, shown, released):
            operator.body = name
    if not found:
        column.label(text="No body to fit clothes on", text_ctxt=CONTEXT, icon="INFO")
    button(column, OBJECT_OT_second_life_use_as_body, text="Use as Body", icon="MOD_CLOTH")
    if classic_body.MANNEQUIN not in found:
        button(column, OBJECT_OT_second_life_add_mannequin, text="Add Mannequin", icon="ARMATURE_DATA")
    if classic_body.NAME not in found:
        button(column, OBJECT_OT_second_life_load_body, text="Load Body from Viewer…", icon="OUTLINER_OB_ARMATURE")
    if found:
        button(layout, OBJECT_OT_second_life_check_fit, text="Check Fit", icon="CHECKMARK")
