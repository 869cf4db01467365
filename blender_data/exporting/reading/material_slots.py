"""The materials of an object's slots, and the slot of each face."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import bpy
import numpy as np
import numpy.typing as npt

from ... import arrays, names


def materials_of(seen: bpy.types.Object, data: bpy.types.Mesh) -> list[bpy.types.Material | None]:
    """Return the material of each slot of an evaluated object and its mesh, to which modifiers may have added some.

    Materials linked to the object take precedence.
    """
    found: list[bpy.types.Material | None] = list(data.materials)
    for number, slot in enumerate(seen.material_slots):
        if number >= len(found):
            found.append(slot.material)
        elif slot.link == "OBJECT":
            found[number] = slot.material
    return found


def slot_of_faces(data: bpy.types.Mesh) -> npt.NDArray[np.int32]:
    """Return the slot of each face as stored, which may be beyond the last slot."""
    attribute = data.attributes.get("material_index")
    if attribute is not None and attribute.domain == "FACE" and attribute.data_type == "INT":
        return arrays.read(attribute.data, "value", dtype=np.int32)
    return np.zeros(len(data.polygons), np.int32)


def material_names(
    found: list[bpy.types.Material | None], name_of: Callable[[bpy.types.Material], str] = names.name_in_file
) -> list[str]:
    """Return the names of materials in the file, empty for slots without a material.

    An object without slots gives one empty name.
    """
    return [name_of(material.original) if material else "" for material in found] or [""]


def names_in_files(objects: Iterable[bpy.types.Object]) -> dict[str, set[str]]:
    """Return the names that materials of imported meshes have in their files, by name of the format."""
    formats = {made.meshferry.import_id: made.meshferry.file_format for made in bpy.data.collections}
    found: dict[str, set[str]] = {}
    for obj in objects:
        if isinstance(obj.data, bpy.types.Mesh) and obj.meshferry.import_id:
            stored = json.loads(obj.data.meshferry.slot_names or "[]")
            found.setdefault(formats.get(obj.meshferry.import_id, ""), set()).update(filter(None, stored))
    return found


def used_materials(context: bpy.types.Context, obj: bpy.types.Object, *, use_modifiers: bool) -> list[str]:
    """Return the names of the materials of a mesh object's faces in the order of its slots; all slots in edit mode."""
    seen = obj.evaluated_get(context.evaluated_depsgraph_get()) if use_modifiers else obj
    if obj.type != "MESH" or obj.mode == "EDIT":
        return material_names([slot.material for slot in obj.material_slots])
    slots = material_names(materials_of(seen, seen.data))
    counts = np.bincount(np.clip(slot_of_faces(seen.data), 0, len(slots) - 1), minlength=len(slots))
    return [name for name, count in zip(slots, counts.tolist(), strict=True) if count]
