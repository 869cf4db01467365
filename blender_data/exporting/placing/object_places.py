"""Matrices of objects in double precision, computed from the objects' channels if these determine them.

World matrices of Blender are in single precision: a chain of scaled parents loses digits, and far from the origin the
error can be millimetres.
"""

from __future__ import annotations

import bpy
import numpy as np
from mathutils import Matrix as BlenderMatrix

from ....io_formats.core.placement import Matrix
from ... import animated_blocks
from .. import transforms

_TRANSFORMS = ("location", "rotation_", "scale", "delta_")
"""Beginnings of the data paths of properties that form an object's transform."""
_CARRIERS = frozenset({"OBJECT", "ARMATURE", "LATTICE"})
"""Types of parenting in which a child follows the transform of the parent object."""


def local_matrix(obj: bpy.types.Object) -> Matrix:
    """Return the matrix (4, 4) of an object relative to its parent, with parent inverse and delta transforms.

    Children of bones are relative to the armature object, with the bone at rest.
    """
    basis = np.array(obj.matrix_basis, np.float64)
    if obj.parent is None:
        return basis
    return _carrier(obj) @ np.array(obj.matrix_parent_inverse, np.float64) @ basis


def is_driven(obj: bpy.types.Object) -> bool:
    """Return whether constraints, drivers, keys, or a parent bone, vertex, lattice determine an object's transform."""
    return (obj.parent is not None and obj.parent_type not in {"OBJECT", "ARMATURE"}) or is_animated(obj)


def is_animated(obj: bpy.types.Object) -> bool:
    """Return whether constraints, drivers or keys determine an object's transform."""
    if any(not constraint.mute for constraint in obj.constraints):
        return True
    animation = obj.animation_data
    if animation is None:
        return False
    curves = list(animation.drivers)
    for holder in animated_blocks.action_holders(obj):
        curves += animated_blocks.action_curves(holder.action, holder.action_slot)
    return any(curve.data_path.startswith(_TRANSFORMS) for curve in curves)


class ObjectPlaces:
    """Matrices of the objects of one export.

    Objects whose channels do not determine their matrix are evaluated by Blender.
    """

    def __init__(self, depsgraph: bpy.types.Depsgraph) -> None:
        self.depsgraph = depsgraph

    def world(self, obj: bpy.types.Object) -> Matrix:
        """Return the matrix (4, 4) from the space of an object to the world."""
        return self.relative(obj, None)

    def relative(self, obj: bpy.types.Object, frame: bpy.types.Object | None) -> Matrix:
        """Return the matrix (4, 4) from the space of an object to the space of ``frame``, or to the world for None."""
        matrix = np.identity(4)
        at: bpy.types.Object | None = obj
        while at is not None and at != frame:
            if _is_evaluated(at):
                matrix, at = transforms.world_matrix(at.evaluated_get(self.depsgraph)) @ matrix, None
            else:
                matrix, at = local_matrix(at) @ matrix, at.parent
        return matrix if at == frame or frame is None else self.seen_from(frame, matrix)

    def seen_from(self, frame: bpy.types.Object, world: Matrix) -> Matrix:
        """Return a world matrix (4, 4) relative to an object; the object's transform must be invertible."""
        matrix: Matrix = np.linalg.solve(self.world(frame), world)
        matrix[3] = 0.0, 0.0, 0.0, 1.0  # exactly, without rounding errors
        return matrix


def _carrier(obj: bpy.types.Object) -> Matrix:
    """Return the matrix of the frame of a child relative to the parent object.

    It is that of the bone at rest for a child of a bone, otherwise the identity.
    """
    bone = obj.parent.data.bones.get(obj.parent_bone) if obj.parent_type == "BONE" else None
    if bone is None or bone.use_relative_parent:
        return np.identity(4)
    end = BlenderMatrix.Translation((0.0, bone.length, 0.0))
    return np.array(bone.matrix_local, np.float64) @ np.array(end, np.float64)


def _is_evaluated(obj: bpy.types.Object) -> bool:
    """Return whether the matrix of an object must be evaluated by Blender, since its channels do not determine it."""
    parent = obj.parent
    if parent is not None:
        on_path = parent.type == "CURVE" and parent.data.use_path
        if on_path or obj.parent_type not in {*_CARRIERS, "BONE"}:
            return True
    return is_animated(obj) or (obj.rigid_body is not None and obj.rigid_body.type == "ACTIVE")
