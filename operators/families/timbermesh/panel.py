"""Panels in the sidebar of the 3D view for models of the game Timberborn, and objects that it finds by name."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from mathutils import Matrix

from ....blender_data.names import MARK, set_own_node
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.timbermesh.game_files import find_example_models
from ....io_formats.timbermesh.game_names import SLOT_KEYWORDS
from ....io_formats.timbermesh.model.format import GAME, TIMBERMESH
from ...findings.finding_list import draw_findings
from ...findings.mesh_tools import has_free_normals
from ...layouts import IN_OBJECT_MODE, button, property_column, requires, sidebar_panel
from ...preferences import PACKAGE, preferences, preferred_path
from ...reports import inform, refuse, warn
from ...selection import select_only
from ...sidebar import actions_of, concerns, draw_actions, is_renamed
from . import buildings, material_names
from .blueprints import main_collection


@sidebar_panel("TIMBERMESH_PT_sidebar", TIMBERMESH.label, lambda context: concerns(context, "timbermesh"), parent="")
def main_panel(layout: Any, _context: bpy.types.Context) -> None:
    """Draw buttons that add objects with names that the game recognises."""
    column = layout.column(align=True)
    button(column, "object.timbermesh_attachment_add", text="Add Attachment Point…", icon="EMPTY_ARROWS")
    column.operator_menu_enum("object.timbermesh_slot_add", "keyword", text="Add Slot", text_ctxt=CONTEXT, icon="USER")


@sidebar_panel("TIMBERMESH_PT_object", "Object", lambda context: context.object is not None)
def object_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the name of the active object in the file and whether it becomes a node."""
    obj = context.object
    layout.prop(obj, "name", text="", icon="OBJECT_DATA")
    is_own = obj.name.startswith(MARK)
    layout.operator(
        "object.timbermesh_own_node",
        text="Node of Its Own (#)",
        text_ctxt=CONTEXT,
        icon="CHECKBOX_HLT" if is_own else "CHECKBOX_DEHLT",
        depress=is_own,
    )
    layout.prop(obj.meshferry, "is_root")
    if obj.type == "MESH" and has_free_normals(obj.data):
        layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")


def has_file_data(context: bpy.types.Context) -> bool:
    """Return whether the active object has data stored from its file."""
    obj = context.object
    return obj is not None and (is_renamed(obj) or obj.meshferry.has_rest or bool(custom_layers_of(obj)))


@sidebar_panel("TIMBERMESH_PT_kept", "File Data", has_file_data, parent="object", is_closed=True)
def file_data_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw data that the next export writes again: name, rest transform, and layers that are attributes."""
    column = property_column(layout)
    obj = context.object
    kept = obj.meshferry
    if is_renamed(obj):
        column.prop(kept, "source_name")
    if kept.has_rest:
        for name in ("has_rest", "rest_location", "rest_rotation", "rest_scale"):
            column.prop(kept, name)
    for layer in custom_layers_of(obj):
        column.prop(layer, "name", text=layer.attribute, translate=False)


def has_materials(context: bpy.types.Context) -> bool:
    """Return whether the active object can have material slots."""
    return context.object is not None and hasattr(context.object.data, "materials")


@sidebar_panel("TIMBERMESH_PT_materials", "Materials", has_materials, is_closed=True)
def materials_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the slots, the choice of names, and the button for the example models or the preferences."""
    obj = context.object
    layout.template_list("MATERIAL_UL_matslots", "", obj, "material_slots", obj, "active_material_index", rows=3)
    row = layout.row(align=True)
    button(row, material_names.OBJECT_OT_timbermesh_material_choose, text="Choose Name…", icon="VIEWZOOM")
    row.menu(material_names.TIMBERMESH_MT_materials.bl_idname, text="By Collection", text_ctxt=CONTEXT)
    folder = preferred_path(GAME)
    if folder and find_example_models(folder) is not None:
        button(
            layout, material_names.OBJECT_OT_timbermesh_materials_append, text="Append Materials", icon="APPEND_BLEND"
        )
    elif not folder and preferences() is not None:
        button(layout, "preferences.addon_show", text="Set the Game's Folder…", icon="FILE_FOLDER", module=PACKAGE)


@sidebar_panel(
    "TIMBERMESH_PT_clip", "Clip", lambda context: context.object is not None and bool(actions_of(context.object))
)
def clip_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the name of each action, its rate and whether it is exported."""
    draw_actions(property_column(layout), actions_of(context.object))


@sidebar_panel("TIMBERMESH_PT_collection", "Collection", lambda _context: True)
def collection_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the active collection: merging, the imported file, and the buttons to check and export it."""
    column = property_column(layout)
    collection = context.collection
    column.label(text=collection.name, icon="OUTLINER_COLLECTION", translate=False)
    settings = collection.meshferry
    if collection != context.scene.collection:
        column.prop(settings, "merging")
        if settings.from_file:
            column.prop(settings, "source_path")
    row = layout.row(align=True)
    button(row, "export_scene.timbermesh_check", text="Check", icon="CHECKMARK")
    if main_collection(context) is not None:
        button(row, "export_scene.timbermesh_batch", text="Export Model…", icon="EXPORT", parts="OBJECTS")
    else:
        button(row, "export_scene.timbermesh", text="Export…", icon="EXPORT", collection=collection.name)
        buildings.draw_buttons(layout.column(align=True), context)
    draw_findings(layout, context, TIMBERMESH, collection.name)


def custom_layers_of(obj: Any) -> list[Any]:
    """Return the custom layers of an object's mesh, which have no equivalent in Blender."""
    return list(obj.data.meshferry.custom_layers) if obj.type == "MESH" else []


PANELS = (object_panel, file_data_panel, materials_panel, clip_panel, collection_panel)


EMPTY_SIZE = 0.25
"""Display size of empties in metres; a tile of the game is 1 m wide."""

_SLOT_USES = {
    "Entrance": "Where beavers go in and out; a workplace without one crashes the game when it is placed",
    "Bot": "Where a bot stands at work; numbered when there are several",
    "Seat": "Where a beaver sits; numbered when there are several",
}
SLOTS = tuple((keyword, keyword, _SLOT_USES.get(keyword, "")) for keyword in SLOT_KEYWORDS)

PLACES = (
    ("CURSOR", "3D Cursor", "Put it where the 3D cursor is"),
    ("OBJECT", "Active Object", "Put it at the origin of the active object, with its rotation"),
)


class _AddEmpty:
    """Mixin for adding an attachment point or a slot."""

    bl_options = {"REGISTER", "UNDO"}

    place: EnumProperty(name="Place", description="Where to put it", items=PLACES, default="CURSOR")
    use_parent: BoolProperty(
        name="Parent to Active Object",
        description="Let it follow the active object, for points on moving parts",
        default=False,
    )

    poll = requires(
        IN_OBJECT_MODE,
        (lambda context: home_collection(context).is_editable, "The active collection is linked from another file"),
    )

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options: name, location and parent."""
        column = property_column(self.layout)
        for name in (self.named_by, "place", "use_parent"):
            column.prop(self, name)

    def add(self, context: bpy.types.Context, name: str) -> set[str]:
        """Add the empty, select only it, and report its name."""
        active = context.object
        if active is None and (self.place == "OBJECT" or self.use_parent):
            warn(self, "There is no active object; the 3D cursor was used")
        at_object = self.place == "OBJECT" and active is not None
        location, rotation, _scale = (active.matrix_world if at_object else context.scene.cursor.matrix).decompose()
        empty = add_empty(
            context, name, Matrix.LocRotScale(location, rotation, None), active if self.use_parent else None
        )
        inform(self, "Added '{}' to '{}'", empty.name, empty.users_collection[0].name)
        return {"FINISHED"}


class OBJECT_OT_timbermesh_attachment_add(_AddEmpty, bpy.types.Operator):
    """Add an attachment point."""

    bl_idname = "object.timbermesh_attachment_add"
    bl_label = "Add Timbermesh Attachment Point"
    bl_description = "Add an empty that the game attaches something to, found by its name"

    named_by = "point_name"

    point_name: StringProperty(
        name="Name",
        description=f"Name that the building's blueprint looks for; {MARK} is put in front of it",
        default="Attachment",
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Ask for the name."""
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, title="Add Attachment Point", confirm_text="Add")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the empty."""
        name = self.point_name.strip().lstrip(MARK)
        if not name:
            return refuse(self, "An attachment point needs a name")
        return self.add(context, MARK + name)


class OBJECT_OT_timbermesh_slot_add(_AddEmpty, bpy.types.Operator):
    """Add a slot."""

    bl_idname = "object.timbermesh_slot_add"
    bl_label = "Add Timbermesh Slot"
    bl_description = "Add an empty that marks a place for beavers or bots"

    named_by = "keyword"

    keyword: EnumProperty(name="Slot", description="What the place is for", items=SLOTS, default="Entrance")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the empty, numbered if there are others of its kind."""
        return self.add(context, free_slot_name(self.keyword, {obj.name for obj in context.blend_data.objects}))


class OBJECT_OT_timbermesh_own_node(bpy.types.Operator):
    """Add # before the names of objects or remove it."""

    bl_idname = "object.timbermesh_own_node"
    bl_label = "Switch Timbermesh Own Node"
    bl_description = (
        "Switch the selected objects between separate nodes, which the game can move, hide or find by name "
        "(# before the name), and parts that are merged into their parent's node"
    )
    bl_options = {"REGISTER", "UNDO"}

    poll = requires(
        (lambda context: context.object is not None and context.object.is_editable, "Select an object of this file")
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Switch the selected objects to the opposite of the active object's current state."""
        is_own = not context.object.name.startswith(MARK)
        chosen = [obj for obj in dict.fromkeys([context.object, *context.selected_objects]) if obj.is_editable]
        changed = [obj for obj in chosen if obj.name.startswith(MARK) != is_own]
        for obj in changed:
            set_own_node(obj, is_own)
        names = ", ".join(obj.name for obj in changed[:5]) + (" …" if len(changed) > 5 else "")
        inform(self, "Own nodes: {}" if is_own else "Merged into their parents: {}", names)
        return {"FINISHED"}


def free_slot_name(keyword: str, taken: set[str]) -> str:
    """Return the first free name of a slot: ``#Slot#`` and the keyword, then the same with 1, 2 and so on."""
    name = first = f"{MARK}Slot{MARK}{keyword}"
    number = 0
    while name in taken:
        number += 1
        name = f"{first}{number}"
    return name


def home_collection(context: bpy.types.Context) -> Any:
    """Return the collection for a new object: the active one, unless it is the scene's own and an object is active."""
    active = context.collection
    if active == context.scene.collection and context.object is not None and context.object.users_collection:
        return context.object.users_collection[0]
    return active


def add_empty(context: bpy.types.Context, name: str, matrix: Matrix, parent: Any = None) -> Any:
    """Add an empty at a world matrix, with its name shown, and select only it."""
    empty = context.blend_data.objects.new(name, None)
    empty.empty_display_type = "ARROWS"
    empty.empty_display_size = EMPTY_SIZE
    empty.show_name = True
    if parent is not None:
        empty.parent = parent
        empty.matrix_parent_inverse = parent.matrix_world.inverted_safe()
    empty.matrix_basis = matrix
    home_collection(context).objects.link(empty)
    select_only(context, [empty])
    return empty
