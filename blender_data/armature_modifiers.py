"""Armature modifiers: which armature deforms a mesh object, and which meshes an armature deforms."""

from collections.abc import Mapping

import bpy

MESHABLE = frozenset({"MESH", "CURVE", "SURFACE", "FONT", "META"})
"""Types of objects that have a surface to export."""


def armature_modifiers(obj: bpy.types.Object) -> list[bpy.types.Modifier]:
    """Return the modifiers by which armatures deform an object, the enabled ones first.

    Those that only show how its file binds it are left out; see :mod:`..importing.rigs.shown_bindings`.
    """
    found = [
        modifier
        for modifier in obj.modifiers
        if modifier.type == "ARMATURE" and modifier.object is not None and not is_of_binding(modifier)
    ]
    return sorted(found, key=lambda modifier: not modifier.show_viewport)


def is_of_binding(modifier: bpy.types.Modifier) -> bool:
    """Return whether a modifier only shows how the file of its object binds it to another armature."""
    found = modifier.object if modifier.type == "ARMATURE" else None
    return found is not None and bool(found.meshferry.is_binding)


def armature_of(obj: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature that deforms an object, by a modifier or as its parent."""
    modifiers = armature_modifiers(obj)
    if modifiers:
        return modifiers[0].object
    parent = obj.parent
    deforms = parent is not None and parent.type == "ARMATURE" and obj.type in MESHABLE
    if deforms and (obj.parent_type == "ARMATURE" or (obj.parent_type == "OBJECT" and _names_bones(obj, parent))):
        return parent
    return None


def deforming_parent(obj: bpy.types.Object) -> str:
    """Return the type of the parent that deforms an object without a modifier: ``ARMATURE``, ``LATTICE`` or ``CURVE``.

    The result is empty without such a parent. Blender only has curves as such parents in files of old versions.
    """
    is_moved_only = obj.parent is None or obj.parent_type in {"OBJECT", "VERTEX", "VERTEX_3", "BONE"}
    return "" if is_moved_only else obj.parent.type


def deformed_meshes(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the mesh objects of all scenes that an armature deforms."""
    # Panels ask at each redraw, and Blender finds the users of an armature faster than Python looks at all objects.
    users = bpy.data.user_map(subset=[armature], value_types={"OBJECT"})[armature]
    return [obj for obj in bpy.data.objects if obj in users and obj.type == "MESH" and armature_of(obj) == armature]


def _names_bones(obj: bpy.types.Object, armature: bpy.types.Object) -> bool:
    return any(group.name in armature.data.bones for group in obj.vertex_groups)


def refer_to_copies(owner: bpy.types.bpy_struct, copies: Mapping[bpy.types.Object, bpy.types.Object]) -> None:
    """Make a modifier, a constraint or a property group refer to the copies instead of the original objects."""
    for known in owner.bl_rna.properties:
        if known.type == "POINTER" and not known.is_readonly:
            copy = copies.get(getattr(owner, known.identifier))
            if copy is not None:
                setattr(owner, known.identifier, copy)
