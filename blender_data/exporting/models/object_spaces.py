"""The transforms of exported objects: in the world, or relative to the armatures that deform them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.geometry.transforms import unmirrored
from ...rigging import joint_poses
from .. import transforms
from ..reading.rest_meshes import RestMeshes
from ..transforms import Transform
from .model_objects import linked_duplicates

Matrix4 = npt.NDArray[np.float64]

_ALIGNED = 1e-7
"""Tolerance for matrices that count as equal, relative to their size."""

_ROUNDING = 5e-7
"""Rounding error of world matrices relative to their entries; each parent adds some steps of single precision."""

_SHEAR = 1e-4
"""Cosine between the axes of a transform above which its shear is reported."""

_SAME = 1e-5
"""Tolerance for comparing the axes of two transforms, relative to their largest entry."""


@dataclass(frozen=True)
class ArmatureSpace:
    """The transform of an armature object."""

    space: Matrix4
    """(4, 4) its rotation and scale in the world."""
    inverse: Matrix4
    """(4, 4) from the world to the armature object's own space."""


class ObjectSpaces:
    """Transforms of the objects of one export."""

    def __init__(self, meshes: RestMeshes) -> None:
        self.meshes = meshes
        self.stand_ins: dict[bpy.types.Object, bpy.types.Object] = {}
        """Temporary copies, which Blender evaluates, of objects that it does not evaluate."""
        self._armatures: dict[bpy.types.Object, ArmatureSpace] = {}
        self._duplicates: dict[tuple[bpy.types.ID | None, bpy.types.Object], list[bpy.types.Object]] = {}
        """Objects that share their data and a part, by that data and part."""

    def stand_in(self, obj: bpy.types.Object) -> bpy.types.Object:
        return self.stand_ins.get(obj, obj)

    def evaluated(self, obj: bpy.types.Object) -> bpy.types.Object:
        return self.stand_in(obj).evaluated_get(self.meshes.reader.depsgraph)

    def world(self, obj: bpy.types.Object) -> Matrix4:
        return transforms.world_matrix(self.evaluated(obj))

    def of_armature(self, armature: bpy.types.Object) -> ArmatureSpace:
        if armature not in self._armatures:
            world = self.world(armature)
            transforms.require_size(armature, world)
            space = world.copy()
            space[:3, 3] = 0
            self._armatures[armature] = ArmatureSpace(snap_matrix(space), joint_poses.inverse(world))
        return self._armatures[armature]

    def relative(self, obj: bpy.types.Object, armature: bpy.types.Object | None) -> Matrix4:
        """Return the matrix from an object's own space to the world's or an armature object's.

        It is computed from the object's own channels if possible, since these keep full precision far from the origin.
        """
        seen = self.evaluated(obj)
        above = self.evaluated(armature) if armature is not None else None
        if transforms.has_plain_channels(seen, above):
            return matrix_of(transforms.local_transform(seen, above))
        world = transforms.world_matrix(seen)
        return world if armature is None else snap_matrix(self.of_armature(armature).inverse @ world)

    def place(self, obj: bpy.types.Object, armature: bpy.types.Object | None) -> Matrix4:
        """Return the matrix from an object's own space to the world, or relative to an armature."""
        relative = self.relative(obj, armature)
        return relative if armature is None else self.of_armature(armature).space @ relative

    def is_of_duplicate(self, part: bpy.types.Object, owner: bpy.types.Object, place: Matrix4, finest: Matrix4) -> bool:
        """Return whether a part belongs to a linked duplicate of its owner, judging by its rotation and scale.

        Duplicating an object copies its references to levels and physics shapes, but not these objects.

        Parameters
        ----------
        place, finest:
            (4, 4) transforms of the part and of its owner.
        """
        if _same_axes(place, finest):
            return False
        if (owner.data, part) not in self._duplicates:
            self._duplicates[owner.data, part] = linked_duplicates(owner, part)
        return any(_same_axes(self.world(other), place) for other in self._duplicates[owner.data, part])

    def transform(self, obj: bpy.types.Object, armature: bpy.types.Object | None, place: Matrix4) -> Transform:
        """Return the transform of a model's nodes, without mirroring; ``place`` is the matrix of the finest object."""
        seen = self.evaluated(obj)
        above = self.evaluated(armature) if armature is not None else None
        is_plain = armature is None or np.array_equal(self.of_armature(armature).space, np.identity(4))
        if is_plain and transforms.has_plain_channels(seen, above):
            found = transforms.local_transform(seen, above)
        else:
            translation, rotation, scale, shear = joint_poses.decompose(place[None])
            found = Transform(_tuple(translation[0]), _tuple(rotation[0]), _tuple(scale[0]))
            if shear[0] > _SHEAR:
                text = "its transform is sheared; the shear was applied to the points"
                self.meshes.report.change("shear-applied", text, item=obj.name)
        rotation, scale, _ = unmirrored(found.rotation, found.scale)
        return replace(found, rotation=rotation, scale=scale)


def _same_axes(a: Matrix4, b: Matrix4) -> bool:
    """Return whether two transforms have the same rotation and scale."""
    return bool(np.allclose(a[:3, :3], b[:3, :3], rtol=0, atol=_SAME * max(np.abs(b[:3, :3]).max(), 1e-12)))


def _tuple(values: Matrix4) -> Any:
    return tuple(values.tolist())


def matrix_of(transform: Transform) -> Matrix4:
    """Return a transform as a matrix, (4, 4)."""
    return joint_poses.matrices(transform.translation, transform.rotation, transform.scale)


def snap_matrix(matrix: Matrix4) -> Matrix4:
    """Round the entries of a matrix that are nearly whole numbers."""
    whole = np.rint(matrix)
    size = max(1.0, float(np.abs(matrix[:3, :3]).max()))
    near = np.abs(matrix - whole) < _ALIGNED * size
    return np.where(near, whole, matrix)


def exact_product(into: Matrix4, place: Matrix4) -> Matrix4:
    """Return ``into @ place`` without the rounding errors of ``place``, which Blender stores in single precision.

    So linked duplicates with parents get equal points, even with non-uniform scales.
    """
    matrix = snap_matrix(into @ place)
    linear = matrix[:3, :3]
    whole = np.rint(linear)
    rounding = _ROUNDING * (np.abs(into[:3, :3]) @ np.abs(place[:3, :3]))
    matrix[:3, :3] = np.where(np.abs(linear - whole) < rounding, whole, linear)
    return matrix
