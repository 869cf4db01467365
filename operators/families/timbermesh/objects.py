"""Add and mark the objects that Timberborn finds by name: attachment points, slots, separate nodes."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from mathutils import Matrix

from ....blender_data.names import MARK, set_own_node
from ....io_formats.timbermesh.game_names import SLOT_KEYWORDS
from ...layouts import IN_OBJECT_MODE, property_column, requires
from ...reports import inform, refuse, warn
from ...selection import select_only

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
