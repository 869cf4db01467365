"""Materials of the game: choice of a name for a material slot, and materials of the example models."""

import functools
from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty

from ....blender_data import file_records
from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.names import name_in_file
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Text, counted, joined
from ....io_formats.timbermesh.game_files import EXAMPLE_MODELS, find_example_models
from ....io_formats.timbermesh.game_names import MaterialNames, material_names
from ....io_formats.timbermesh.model.format import GAME
from ...findings.finding_fixes import rename_material
from ...layouts import IS_EDITABLE, requires
from ...preferences import preferred_path
from ...reports import inform, refuse
from ...sidebar import homes_of

_COLLECTION = "timbermesh_collection"
"""Name in the context by which a menu passes the collection to its submenu."""

_Items = list[tuple[str, str, str]]


def names_for(context: bpy.types.Context) -> MaterialNames:
    """Return the material names of the game, and of the mod to which the active object or the .blend file belongs."""
    obj = context.object
    owners = [obj, *homes_of(obj)] if obj is not None else [context.collection]
    return material_names(preferred_path(GAME), file_records.path_of(owners))


@functools.lru_cache(16)
def _items(groups: tuple[tuple[str, tuple[str, ...]], ...]) -> _Items:
    """Return the items of a list. They are cached because Blender does not copy the texts of dynamic lists."""
    collections: dict[str, list[str]] = {}
    for collection, names in groups:
        for name in names:
            collections.setdefault(name, []).append(collection)
    return [(name, name, ", ".join(found)) for name, found in collections.items()]


def _choices(_operator: Any, context: bpy.types.Context) -> _Items:
    return _items(tuple(names_for(context or bpy.context).collections.items()))


class OBJECT_OT_timbermesh_material_choose(bpy.types.Operator):
    """Give the active material slot a material of the game."""

    bl_idname = "object.timbermesh_material_choose"
    bl_label = "Choose Timbermesh Material"
    bl_description = (
        "Give the active material slot a material of the game: the material of that name in this file, or else the "
        "slot's own material under that name"
    )
    bl_options = {"REGISTER", "UNDO"}
    bl_property = "found"

    material_name: StringProperty(name="Material", description="Name of the material", options={"SKIP_SAVE"})
    found: EnumProperty(
        name="Found", description="Name chosen in the search", items=_choices, options={"HIDDEN", "SKIP_SAVE"}
    )

    poll = requires(
        (
            lambda context: context.object is not None and hasattr(context.object.data, "materials"),
            "Choose an object with materials",
        ),
        IS_EDITABLE,
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open a search of the names, unless a menu or script gave one."""
        if self.material_name:
            return self.execute(context)
        context.window_manager.invoke_search_popup(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Assign, rename or add a material."""
        if not self.material_name and self.properties.is_property_set("found"):
            self.material_name = self.found
        name = self.material_name.strip()
        if not name:
            return refuse(self, "No name given")
        slot, material = assign_name(context.object, name, names_for(context))
        text = Text("Renamed '{}' to '{}'", material, name) if material else Text("Assigned '{}'", name)
        inform(self, text)
        context.object.active_material_index = slot
        return {"FINISHED"}


def assign_name(obj: Any, name: str, known: MaterialNames) -> tuple[int, str]:
    """Give the active slot of an object the material with a name of the game.

    An existing material of that name is assigned. Otherwise the slot's own material is renamed, unless it is linked or
    is another material of the game. Otherwise a new material is made.

    Returns
    -------
    tuple
        Index of the slot, and the old name if the material was renamed.
    """
    from ....blender_data.importing.materials import MaterialFinder

    if not len(obj.material_slots):
        obj.data.materials.append(None)
    slot = obj.material_slots[obj.active_material_index]
    old = slot.material
    has_name = any(name_in_file(material) == name for material in bpy.data.materials)
    if not has_name and old is not None and old.is_editable and not known.is_known(name_in_file(old)):
        old_name = str(old.name)
        rename_material(old, name)
        return slot.slot_index, old_name
    slot.material = MaterialFinder(ImportOptions.of()).find(name)
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

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Append the materials and report their number."""
        from ....blender_data.importing.appended_materials import append_materials

        folder = preferred_path(GAME)
        path = find_example_models(folder) if folder else None
        if path is None:
            return refuse(self, "There is no {} in the game's folder", EXAMPLE_MODELS)
        try:
            done = append_materials(path, names_for(context).is_known)
        except MeshferryError as problem:
            return refuse(self, problem.sentence())
        parts = (
            counted(len(done.added), "material added", "materials added") if done.added else "",
            counted(len(done.replaced), "material replaced", "materials replaced") if done.replaced else "",
            counted(len(done.kept), "material kept", "materials kept") if done.kept else "",
        )
        inform(self, joined(filter(None, parts)))
        return {"FINISHED"} if done.added or done.replaced else {"CANCELLED"}


class TIMBERMESH_MT_materials(bpy.types.Menu):
    """Menu of the collections of materials, such as factions."""

    bl_idname = "TIMBERMESH_MT_materials"
    bl_label = "Materials by Collection"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw a submenu for each collection."""
        for collection in names_for(context).collections:
            row = self.layout.row()
            row.context_string_set(_COLLECTION, collection)
            row.menu(TIMBERMESH_MT_collection.bl_idname, text=collection, translate=False)


class TIMBERMESH_MT_collection(bpy.types.Menu):
    """Menu of the materials of one collection."""

    bl_idname = "TIMBERMESH_MT_collection"
    bl_label = "Materials"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw an entry for each name of the collection that the parent menu set."""
        for name in names_for(context).collections.get(getattr(context, _COLLECTION, ""), ()):
            choose = OBJECT_OT_timbermesh_material_choose.bl_idname
            self.layout.operator(choose, text=name, translate=False, icon="MATERIAL").material_name = name
