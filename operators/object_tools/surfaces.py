"""Synchronise the list of an object's surfaces with its material slots."""

from typing import Any

import bpy

from ...blender_data.mesh_data.surfaces import matched, slotless, written
from ...blender_data.names import name_in_file
from ...io_formats.core.messages import Text, counted, joined
from ..layouts import IS_EDITABLE, IS_MESH, requires
from ..reports import inform

NEW_SURFACE = "surface"
"""Name of a surface without material."""


class _MeshOperator:
    """Mixin for operators that need an active, editable mesh object."""

    bl_options = {"REGISTER", "UNDO"}
    poll = requires(IS_MESH, IS_EDITABLE)


class OBJECT_OT_meshferry_surfaces_match(_MeshOperator, bpy.types.Operator):
    """Create one surface for each slot."""

    bl_idname = "object.meshferry_surfaces_match"
    bl_label = "Match Material Slots"
    bl_description = (
        "Give each material slot its own settings, under the exported name: existing ones are kept, missing "
        "ones are added, those without a slot are removed"
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add, rename, remove and sort surfaces."""
        added, renamed, removed = match_slots(context.object)
        parts = (
            counted(added, "surface added", "surfaces added") if added else "",
            counted(renamed, "surface renamed", "surfaces renamed") if renamed else "",
            counted(removed, "surface removed", "surfaces removed") if removed else "",
        )
        inform(self, joined(filter(None, parts)) or Text("Every material slot has its surface"))
        return {"FINISHED"}


class OBJECT_OT_meshferry_surface_add(_MeshOperator, bpy.types.Operator):
    """Add settings for a surface."""

    bl_idname = "object.meshferry_surface_add"
    bl_label = "Add Surface"
    bl_description = (
        "Add settings for the active material slot, or else for the first slot without settings, or else for a new slot"
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the settings and activate their slot."""
        obj: Any = context.object
        entries = matched(obj)
        free = [slot for slot, entry in enumerate(entries) if entry is None]
        slot = obj.active_material_index if obj.active_material_index in free else next(iter(free), len(entries))
        if slot == len(entries):
            obj.data.materials.append(None)
        add_surface(obj, slot)
        obj.active_material_index = slot
        return {"FINISHED"}


class OBJECT_OT_meshferry_surface_remove(_MeshOperator, bpy.types.Operator):
    """Remove the settings of a surface."""

    bl_idname = "object.meshferry_surface_remove"
    bl_label = "Remove Surface"
    bl_description = (
        "Remove the settings of this surface. Its material slot stays, and is exported as a surface named after "
        "its material"
    )

    poll = requires(
        IS_MESH, IS_EDITABLE, (lambda context: active_entry(context.object) is not None, "The slot has no settings")
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Remove the settings of the active slot."""
        stored = context.object.meshferry.surfaces
        stored.remove(index_in(stored, active_entry(context.object)))
        return {"FINISHED"}


def active_entry(obj: Any) -> Any | None:
    """Return the surface settings of the active material slot. An object without slots has one entry of its own."""
    listed = written(obj)
    active = obj.active_material_index if len(obj.material_slots) else 0
    return listed[active].entry if active < len(listed) else None


def index_in(stored: Any, entry: Any) -> int:
    """Return the index of an entry of a collection property."""
    return [other.as_pointer() for other in stored].index(entry.as_pointer())


def match_slots(obj: Any) -> tuple[int, int, int]:
    """Make the list of an object's settings have one entry for each material slot, in order and named as exported.

    Return the numbers of added, renamed and removed settings.
    """
    stored = obj.meshferry.surfaces
    before = len(stored)
    if not len(obj.material_slots) and slotless(obj) is not None:
        return 0, 0, 0
    wanted = []
    renamed = 0
    for surface, slot in zip(written(obj), obj.material_slots, strict=False):
        wanted.append(None if surface.entry is None else index_in(stored, surface.entry))
        if surface.entry is not None:
            renamed += surface.entry.name != surface.name
            assign_surface(surface.entry, surface.name, slot.material)
    added = wanted.count(None)
    for slot, index in enumerate(wanted):
        if index is None:
            add_surface(obj, slot)
            wanted[slot] = len(stored) - 1
    places = list(range(len(stored)))  # index of each entry before sorting
    for slot, index in enumerate(wanted):
        now = places.index(index)
        stored.move(now, slot)
        places.insert(slot, places.pop(now))
    for index in reversed(range(len(wanted), len(stored))):
        stored.remove(index)
    return added, renamed, before + added - len(stored)


def add_surface(obj: Any, slot: int) -> Any:
    """Add a surface with default settings for a material slot, named after its material."""
    material = obj.material_slots[slot].material
    entry = obj.meshferry.surfaces.add()
    assign_surface(entry, name_in_file(material) if material is not None else NEW_SURFACE, material)
    return entry


def assign_surface(entry: Any, name: str, material: Any) -> None:
    """Assign settings to a material; exports use ``name`` until the material is renamed."""
    entry.name = name
    entry.material = material
    entry.given_name = material.name if material is not None else ""
