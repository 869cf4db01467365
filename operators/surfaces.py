"""Keep the list of an object's surfaces in step with its material slots."""

from typing import Any

import bpy
from bpy.app.translations import pgettext_rpt as rpt_

from ..blender_data.names import file_name
from ..blender_data.surfaces import matched
from .reporting import counted

NEW_SURFACE = "surface"
"""Name of a surface without material."""


class _OfMesh:
    """What the operators have in common: an active mesh object of this file."""

    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a mesh object that can be changed."""
        item = context.object
        if item is None or item.type != "MESH":
            cls.poll_message_set("Choose a mesh object")
            return False
        if not item.is_editable or not item.data.is_editable:
            cls.poll_message_set("The object is linked from another file")
            return False
        return True


class OBJECT_OT_meshferry_surfaces_match(_OfMesh, bpy.types.Operator):
    """Make one surface a slot."""

    bl_idname = "object.meshferry_surfaces_match"
    bl_label = "Match Material Slots"
    bl_description = (
        "List a surface for each material slot, in the order of the slots: those that are there keep their settings, "
        "missing ones are added, those without a slot are removed"
    )

    def execute(self, context: Any) -> set[str]:
        """Add, remove and sort."""
        item = context.object
        before = len(item.meshferry.surfaces)
        added = match_slots(item)
        removed = before + added - len(item.meshferry.surfaces)
        said = [
            counted(added, "{} surface added", "{} surfaces added") if added else "",
            counted(removed, "{} surface removed", "{} surfaces removed") if removed else "",
        ]
        text = ", ".join(part for part in said if part) or rpt_("Every material slot has its surface")
        self.report({"INFO"}, text)
        return {"FINISHED"}


class OBJECT_OT_meshferry_surface_add(_OfMesh, bpy.types.Operator):
    """Add a surface."""

    bl_idname = "object.meshferry_surface_add"
    bl_label = "Add Surface"
    bl_description = "Add a surface for the first material slot that has none, or with a new slot"

    def execute(self, context: Any) -> set[str]:
        """Add it and make it active."""
        item = context.object
        kept = matched(item)
        slot = next((place for place, entry in enumerate(kept) if entry is None), len(kept))
        if slot == len(kept):
            item.data.materials.append(None)
        add_surface(item, slot)
        item.meshferry.active_surface = len(item.meshferry.surfaces) - 1
        item.active_material_index = slot
        return {"FINISHED"}


class OBJECT_OT_meshferry_surface_remove(_OfMesh, bpy.types.Operator):
    """Remove a surface."""

    bl_idname = "object.meshferry_surface_remove"
    bl_label = "Remove Surface"
    bl_description = (
        "Remove the settings of this surface. Its material slot stays, and is exported as a surface named after "
        "its material"
    )

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a surface."""
        return super().poll(context) and len(context.object.meshferry.surfaces) > 0

    def execute(self, context: Any) -> set[str]:
        """Remove the active one."""
        kept = context.object.meshferry
        place = min(kept.active_surface, len(kept.surfaces) - 1)
        kept.surfaces.remove(place)
        kept.active_surface = max(0, min(place, len(kept.surfaces) - 1))
        return {"FINISHED"}


def match_slots(item: Any) -> int:
    """Give an object a surface for each material slot, in their order, and no others; return how many were added."""
    surfaces = item.meshferry.surfaces
    pointers = [entry.as_pointer() for entry in surfaces]
    wanted = [None if entry is None else pointers.index(entry.as_pointer()) for entry in matched(item)]
    added = 0
    for slot, place in enumerate(wanted):
        if place is None:
            add_surface(item, slot)
            wanted[slot] = len(surfaces) - 1
            added += 1
    places = list(range(len(surfaces)))  # where each entry of the list stood before it was sorted
    for slot, place in enumerate(wanted):
        now = places.index(place)
        surfaces.move(now, slot)
        places.insert(slot, places.pop(now))
    for place in reversed(range(len(wanted), len(surfaces))):
        surfaces.remove(place)
    item.meshferry.active_surface = min(item.meshferry.active_surface, max(0, len(surfaces) - 1))
    return added


def add_surface(item: Any, slot: int) -> Any:
    """Add a surface with default settings for a material slot, named after its material."""
    material = item.material_slots[slot].material
    entry = item.meshferry.surfaces.add()
    entry.material = material
    entry.given_name = material.name if material is not None else ""
    entry.name = file_name(material) if material is not None else NEW_SURFACE
    return entry


CLASSES = (
    OBJECT_OT_meshferry_surfaces_match,
    OBJECT_OT_meshferry_surface_add,
    OBJECT_OT_meshferry_surface_remove,
)

register, unregister = bpy.utils.register_classes_factory(CLASSES)
