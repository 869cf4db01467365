"""Tools for mesh objects: editable normals, applied scale, surfaces in the order of material slots.

Exact ("free") normals are an attribute ``custom_normal`` of vectors in object space, which does not follow edits or
deformation of the mesh. Editable normals are stored relative to the surface and follow them.
"""

from typing import Any

import bpy
import numpy as np

from ...blender_data import compat
from ...blender_data.mesh_data.surfaces import matched, slotless, written
from ...blender_data.names import name_in_file
from ...io_formats.core.messages import Text, counted, joined
from ..layouts import IN_OBJECT_MODE, IS_EDITABLE, IS_MESH, requires
from ..reports import inform, warn

FREE_NORMALS = "custom_normal"


class MESH_OT_meshferry_editable_normals(bpy.types.Operator):
    """Convert free normals to tangent-space normals."""

    bl_idname = "mesh.meshferry_editable_normals"
    bl_label = "Make Normals Editable"
    bl_description = (
        "Convert exact normals of the selected meshes to normals that follow editing, mirroring and deformation. "
        "On nearly all corners they look the same"
    )
    bl_options = {"REGISTER", "UNDO"}

    poll = requires(
        IN_OBJECT_MODE,
        (
            lambda context: any(has_free_normals(obj.data) for obj in _meshes(context)),
            "No selected mesh has exact normals",
        ),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Convert each mesh once, even if several objects share it."""
        meshes = dict.fromkeys(obj.data for obj in _meshes(context) if has_free_normals(obj.data))
        editable = [mesh for mesh in meshes if mesh.is_editable]
        for mesh in editable:
            make_normals_editable(mesh)
        if len(editable) < len(meshes):
            warn(self, "{} linked meshes were not changed", len(meshes) - len(editable))
        inform(self, "Normals of {} are editable", counted(len(editable), "mesh", "meshes"))
        return {"FINISHED"} if editable else {"CANCELLED"}


def has_free_normals(mesh: Any) -> bool:
    """Return whether a mesh has free normals, which Blender stores as vectors of corners or points."""
    attribute = mesh.attributes.get(FREE_NORMALS)
    return attribute is not None and attribute.data_type == "FLOAT_VECTOR" and attribute.domain in {"CORNER", "POINT"}


def make_normals_editable(mesh: Any) -> None:
    """Replace free normals, on corners or points, by tangent-space normals with nearly the same directions."""
    attribute = mesh.attributes[FREE_NORMALS]
    normals = np.empty(len(attribute.data) * 3, np.float32)
    attribute.data.foreach_get("vector", normals)
    normals = normals.reshape(-1, 3)
    setter = compat.set_point_normals if attribute.domain == "POINT" else compat.set_corner_normals
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    # Blender replaces a zero vector by its own normal, so use zero for NaN and infinite values.
    usable = np.isfinite(lengths) & (lengths > 0)
    normals = np.where(usable, normals / np.where(usable, lengths, 1), 0).astype(np.float32)
    mesh.attributes.remove(attribute)
    setter(mesh, normals)
    mesh.update()


def _meshes(context: bpy.types.Context) -> list[Any]:
    chosen = [*context.selected_objects, *([context.object] if context.object else [])]
    return [obj for obj in dict.fromkeys(chosen) if obj.type == "MESH"]


_EVEN = 1e-3
"""Share of the largest factor by which the factors of an even scale may differ."""


def has_even_scale(scale: Any) -> bool:
    """Return whether a scale is positive and the same along all axes."""
    factors = np.array(scale, np.float64)
    return bool((factors > 0).all() and np.ptp(factors) <= _EVEN * factors.max())


def scale_refusal(obj: Any) -> Text | None:
    """Return why applying the scale of a mesh object would change more than its mesh, or None."""
    if obj.data.users - obj.data.use_fake_user > 1:
        return Text("its mesh is shared with other objects; make it a single user first")
    keys = obj.data.shape_keys
    if obj.animation_data is not None or (keys is not None and keys.animation_data is not None):
        return Text("it is animated; apply the scale by hand")
    if obj.children or len(obj.constraints) or not _is_free(obj):
        return Text("it has a parent, children or constraints; apply the scale by hand")
    if any(modifier.type != "ARMATURE" for modifier in obj.modifiers):
        return Text("its modifiers depend on the scale; apply the scale by hand")
    return None


def _is_free(obj: Any) -> bool:
    """Return whether an object has no parent, or an armature that does not scale it unevenly."""
    if obj.parent is None:
        return True
    if obj.parent.type != "ARMATURE" or obj.parent_type not in {"OBJECT", "ARMATURE"}:
        return False
    above = obj.parent.matrix_world @ obj.matrix_parent_inverse
    return has_even_scale(above.to_scale()) and above.determinant() > 0


def apply_scale(obj: Any) -> None:
    """Apply the scale so that faces keep their front side; Blender before 5 flips the faces of mirrored objects."""
    scale = np.array(obj.scale)
    data = obj.data
    before = _first_normal(data) * np.sign(scale)
    context = {"object": obj, "active_object": obj, "selected_objects": [obj], "selected_editable_objects": [obj]}
    with bpy.context.temp_override(**context):
        bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    if scale.prod() < 0 and float(before @ _first_normal(data)) < 0:
        data.flip_normals()


def _first_normal(data: Any) -> Any:
    return np.array(data.polygons[0].normal) if len(data.polygons) else np.zeros(3)


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
