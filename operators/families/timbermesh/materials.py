"""Materials of the game: choice of a name for a material slot, and materials of the example models."""

import functools
from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty

from ....blender_data import file_records
from ....blender_data.appended_materials import append_materials
from ....blender_data.importing.materials import MaterialFinder
from ....blender_data.names import file_name
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import counted
from ....io_formats.timbermesh.game_folder import EXAMPLE_MODELS, find_example_models
from ....io_formats.timbermesh.material_names import MaterialNames, material_names
from ....io_formats.timbermesh.options import GAME
from ...finding_fixes import rename_material
from ...preferences import PACKAGE, preferences, preferred_path
from ...sidebar import Sidebar, homes_of
from ...translations import CONTEXT, classes_factory, rpt_

_Items = list[tuple[str, str, str]]


def names_for(context: Any) -> MaterialNames:
    """Return the names of the game, and those of the mod that the active object or the .blend file belongs to."""
    item = context.object
    owners = [item, *homes_of(item)] if item is not None else [context.collection]
    return material_names(preferred_path(GAME), file_records.path_of(owners))


@functools.lru_cache(16)
def _items(groups: tuple[tuple[str, tuple[str, ...]], ...]) -> _Items:
    """Return the items of a list. They are cached because Blender does not copy the texts of dynamic lists."""
    collections: dict[str, list[str]] = {}
    for collection, names in groups:
        for name in names:
            collections.setdefault(name, []).append(collection)
    return [(name, name, ", ".join(found)) for name, found in collections.items()]


def _choices(owner: Any, context: Any) -> _Items:
    """Return the items of all collections, or of the one that a menu set."""
    found = names_for(context or bpy.context).collections
    groups = {owner.collection: found[owner.collection]} if owner.collection in found else found
    return _items(tuple(groups.items()))


class OBJECT_OT_timbermesh_material_choose(bpy.types.Operator):
    """Give the active material slot a material of the game."""

    bl_idname = "object.timbermesh_material_choose"
    bl_label = "Choose Timbermesh Material"
    bl_description = (
        "Give the active material slot a material of the game: the material of that name in this file, or else the "
        "slot's own material under that name"
    )
    bl_options = {"REGISTER", "UNDO"}
    bl_property = "material_name"

    collection: StringProperty(
        name="Collection", description="Collection of the listed names; empty: all", options={"HIDDEN", "SKIP_SAVE"}
    )
    material_name: EnumProperty(name="Material", description="Name of a material of the game", items=_choices)

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Require an editable object with material slots."""
        item = context.object
        if item is None or not hasattr(item.data, "materials"):
            cls.poll_message_set("Choose an object with materials")
            return False
        if not item.is_editable or not item.data.is_editable:
            cls.poll_message_set("The object is linked from another file")
            return False
        return True

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Open a search of the names."""
        context.window_manager.invoke_search_popup(self)
        return {"FINISHED"}

    def execute(self, context: Any) -> set[str]:
        """Assign, rename or add a material."""
        name = self.material_name
        slot, material = assign_name(context.object, name, names_for(context))
        text = rpt_("Renamed '{}' to '{}'").format(material, name) if material else rpt_("Assigned '{}'").format(name)
        self.report({"INFO"}, text)
        context.object.active_material_index = slot
        return {"FINISHED"}


def assign_name(item: Any, name: str, known: MaterialNames) -> tuple[int, str]:
    """Give the active slot of an object the material with a name of the game.

    An existing material of that name is assigned. Otherwise the slot's own material is renamed, unless it is linked or
    is another material of the game. Otherwise a new material is made.

    Returns
    -------
    tuple
        Index of the slot, and the old name if the material was renamed.
    """
    if not len(item.material_slots):
        item.data.materials.append(None)
    slot = item.material_slots[item.active_material_index]
    old = slot.material
    has_name = any(file_name(material) == name for material in bpy.data.materials)
    if not has_name and old is not None and old.is_editable and not known.is_known(file_name(old)):
        old_name = str(old.name)
        rename_material(old, name)
        return slot.slot_index, old_name
    slot.material = MaterialFinder(use_existing=True, library="").find(name, "")
    return slot.slot_index, ""


class OBJECT_OT_timbermesh_materials_append(bpy.types.Operator):
    """Append the materials of the game's example models."""

    bl_idname = "object.timbermesh_materials_append"
    bl_label = "Append Timbermesh Materials"
    bl_description = (
        f"Copy the game's materials from its {EXAMPLE_MODELS} into this file. Materials of the same names without "
        "textures are replaced"
    )
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: Any) -> set[str]:
        """Append the materials and report their number."""
        folder = preferred_path(GAME)
        path = find_example_models(folder) if folder else None
        if path is None:
            self.report({"ERROR"}, rpt_("There is no {} in the game's folder").format(EXAMPLE_MODELS))
            return {"CANCELLED"}
        try:
            done = append_materials(path, names_for(context).is_known)
        except MeshferryError as problem:
            self.report({"ERROR"}, rpt_(str(problem)))
            return {"CANCELLED"}
        parts = (
            counted(len(done.added), "material added", "materials added") if done.added else "",
            counted(len(done.replaced), "material replaced", "materials replaced") if done.replaced else "",
            counted(len(done.kept), "material kept", "materials kept") if done.kept else "",
        )
        self.report({"INFO"}, ", ".join(rpt_(part) for part in parts if part))
        return {"FINISHED"} if done.added or done.replaced else {"CANCELLED"}


class TIMBERMESH_MT_materials(bpy.types.Menu):
    """Menu with a list of names for each collection, such as a faction."""

    bl_idname = "TIMBERMESH_MT_materials"
    bl_label = "Materials by Collection"

    def draw(self, context: Any) -> None:
        """Draw a submenu for each collection."""
        for collection in names_for(context).collections:
            entry = self.layout.operator_menu_enum(
                OBJECT_OT_timbermesh_material_choose.bl_idname, "material_name", text=collection, translate=False
            )
            entry.collection = collection


class TIMBERMESH_PT_materials(Sidebar, bpy.types.Panel):
    """Panel with the material slots of the active object and the names of the game."""

    bl_parent_id = "TIMBERMESH_PT_sidebar"
    bl_label = "Materials"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Require an object with material slots."""
        return context.object is not None and hasattr(context.object.data, "materials")

    def draw(self, context: Any) -> None:
        """Draw the slots, the choice of names, and the button for the example models or the preferences."""
        layout = self.layout
        item = context.object
        layout.template_list("MATERIAL_UL_matslots", "", item, "material_slots", item, "active_material_index", rows=3)
        row = layout.row(align=True)
        row.operator(
            OBJECT_OT_timbermesh_material_choose.bl_idname, text="Choose Name…", text_ctxt=CONTEXT, icon="VIEWZOOM"
        )
        row.menu(TIMBERMESH_MT_materials.bl_idname, text="By Collection", text_ctxt=CONTEXT)
        folder = preferred_path(GAME)
        if folder and find_example_models(folder) is not None:
            layout.operator(
                OBJECT_OT_timbermesh_materials_append.bl_idname,
                text="Append Materials",
                text_ctxt=CONTEXT,
                icon="APPEND_BLEND",
            )
        elif not folder and preferences() is not None:
            button = layout.operator(
                "preferences.addon_show", text="Set the Game's Folder…", text_ctxt=CONTEXT, icon="FILE_FOLDER"
            )
            button.module = PACKAGE


PANELS = (TIMBERMESH_PT_materials,)

register, unregister = classes_factory(
    (OBJECT_OT_timbermesh_material_choose, OBJECT_OT_timbermesh_materials_append, TIMBERMESH_MT_materials)
)
