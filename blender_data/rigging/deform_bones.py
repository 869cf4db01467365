"""The property *Deform* of bones, which decides about automatic weights and about deformation in Blender."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import bpy
import numpy as np

from ...io_formats.core.capabilities import Capabilities
from .. import names
from ..mesh_data import vertex_weights


def weighted_groups(obj: bpy.types.Object) -> list[str]:
    """Return the names of the vertex groups of a mesh object in which a vertex has a weight above 0."""
    _counts, groups, weights = vertex_weights.read(obj.data)
    used = np.unique(groups[weights > 0]).tolist()
    return [obj.vertex_groups[number].name for number in used if number < len(obj.vertex_groups)]


def switch_on(armature: bpy.types.Object, bones: Iterable[str]) -> list[str]:
    """Switch Deform on for the named bones of an armature object; return those for which it was off."""
    found = [armature.data.bones[name] for name in bones if name in armature.data.bones]
    changed = [bone for bone in found if not bone.use_deform]
    for bone in changed:
        bone.use_deform = True
    return [bone.name for bone in changed]


def switch_on_weighted(obj: bpy.types.Object, armature: bpy.types.Object) -> list[str]:
    """Switch Deform on for all bones with weights of a mesh object, so that a pose in Blender moves the mesh.

    Return the names of the bones for which it was off.
    """
    return switch_on(armature, weighted_groups(obj))


def set_deforming(armature: bpy.types.Object, bones: Collection[str], among: Iterable[str]) -> None:
    """Switch Deform on for ``bones`` of an armature object, and off for the others ``among`` them."""
    for name in among:
        bone = armature.data.bones[name]
        if bone.use_deform != (name in bones):
            bone.use_deform = name in bones


def exported_bones(armature: bpy.types.Object, capabilities: Capabilities) -> set[str]:
    """Return the names of the bones of which a format stores weights.

    If the format ignores *Deform*, these are the bones whose joints the target program knows by name.
    """
    knows = capabilities.knows_joint
    return {
        bone.name
        for bone in armature.data.bones
        if bone.use_deform or (knows is not None and knows(names.name_in_file(bone)))
    }
