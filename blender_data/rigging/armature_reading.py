"""Armatures -> skeletons: imported joints of unchanged bones, and joints computed from the other bones.

A joint of a file may have a scale, and a bone may point in any direction; Blender's rest matrices have neither. So each
imported bone stores its joint's bind transform and the rest matrix that Blender made of it. While the rest matrix is
unchanged, the joint is exported exactly; the joint of a moved bone moves along: W_new = N_new N_old^-1 W_old, with W
the joint's world matrix and N Blender's rest matrix.
"""

from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from ...io_formats.core.messages import Report
from ...io_formats.core.scene import Joint, Skeleton
from ...io_formats.geometry import hierarchy
from .. import file_records, names
from ..properties import stored_fields
from . import joint_poses
from .bones import are_unmoved, kept_matrices, rest_matrices
from .joint_poses import Array

_SHEAR = 1e-4
"""Cosine between the axes of a joint above which the dropped shear is reported."""

_SAME_ROTATION = 1e-5
"""Relative tolerance for recognising a single-precision matrix as a rotation with uniform scale."""


@dataclass
class ReadSkeleton:
    """A skeleton of the scene, and how its joints relate to the bones of its armature."""

    obj: bpy.types.Object
    skeleton: Skeleton
    bones: list[str]
    """Name of each joint's bone, (J)."""
    local: Array
    """(J, 4, 4) bind transforms relative to the parents', in the space of the armature object."""
    rest: Array
    """(J, 4, 4) Blender's rest matrices, in the space of the armature object."""
    parents: list[int]
    """Index of each joint's parent, or -1."""

    @property
    def joint_of(self) -> dict[str, int]:
        """Index of the joint for each bone name."""
        return {name: number for number, name in enumerate(self.bones)}


def read_skeleton(obj: bpy.types.Object, *, deform_only: bool = False, report: Report | None = None) -> ReadSkeleton:
    """Read the bones of an armature object as a skeleton, in the space of the object.

    Joints keep the order of their file; bones that are new follow, parents before their children. Control bones are
    left out.

    Parameters
    ----------
    deform_only:
        Leave out bones whose Deform is off, unless they have a deforming descendant.
    report:
        Gets a message about each change that the skeleton needed.
    """
    joint_bones = [bone for bone in obj.data.bones if not bone.meshferry.is_control]
    bones = _ordered([bone for bone in joint_bones if not deform_only or _deforms(bone)])
    place = {bone.name: number for number, bone in enumerate(bones)}
    exported = ((place[above.name] for above in bone.parent_recursive if above.name in place) for bone in bones)
    parents = [next(ancestors, -1) for ancestors in exported]
    rest = rest_matrices(bones)
    binds = _Binds(bones, parents, rest)
    joints, sheared = binds.joints()
    if sheared and report is not None:
        report.change(
            "sheared-joints",
            "{} bones (such as '{}') have parent joints of unequal scale, which would shear them; the nearest joints "
            "without shear were exported",
            len(sheared),
            sheared[0],
            item=obj.name,
        )
    for number, (bone, joint) in enumerate(zip(bones, joints, strict=True)):
        joint.deforms = bone.use_deform
        joint.is_as_imported = binds.exact(number)
        joint.target_joint = bone.meshferry.target_joint if obj.meshferry.use_bone_table else ""
    stored = stored_fields(obj.meshferry, Skeleton)
    skeleton = Skeleton(names.name_in_file(obj), joints, choices=file_records.read_choices(obj), **stored)
    return ReadSkeleton(obj, skeleton, [bone.name for bone in bones], _local_matrices(joints), rest, parents)


def _deforms(bone: bpy.types.Bone) -> bool:
    return bone.use_deform or any(child.use_deform for child in bone.children_recursive)


def _ordered(bones: list[bpy.types.Bone]) -> list[bpy.types.Bone]:
    """Put imported bones in their file's order; new ones follow as Blender has them, parents first.

    A duplicated bone has the order number of the original, too. The copy is recognised by the longer name that Blender
    gave it.
    """
    imported: dict[int, bpy.types.Bone] = {}
    for bone in bones:
        order = bone.meshferry.order
        if order >= 0 and (order not in imported or _likeness(bone) < _likeness(imported[order])):
            imported[order] = bone
    first = [imported[order] for order in sorted(imported)]
    known = {bone.name for bone in first}
    return first + [bone for bone in bones if bone.name not in known]


def _likeness(bone: bpy.types.Bone) -> tuple[bool, int]:
    given = bone.meshferry.given_name
    return (bool(given) and given != bone.name, len(bone.name))


class _Binds:
    """The bind transforms of an armature's joints: stored ones that are still valid, others computed from the bones."""

    def __init__(self, bones: list[bpy.types.Bone], parents: list[int], rest: Array) -> None:
        self.bones = bones
        self.parents = parents
        self.rest = rest
        self.kept = [bone.meshferry.order >= 0 for bone in bones]
        self.kept_rest = kept_matrices(bones, "rest_matrix")
        self.kept_local = _local_matrices([_kept_joint(bone, -1) for bone in bones])
        self.same_parent = [self._has_same_parent(number) for number in range(len(bones))]
        self.order = hierarchy.parents_first(parents)
        self.old_world = self._old_worlds()
        still = are_unmoved(self.rest, self.kept_rest)
        self.unmoved = [old is not None and bool(still[number]) for number, old in enumerate(self.old_world)]
        self.world = self._worlds()

    def _has_same_parent(self, number: int) -> bool:
        """Return whether an imported bone still has the same parent, even if the parent was renamed."""
        kept, parent = self.bones[number].meshferry, self.parents[number]
        if parent < 0:
            return bool(kept.parent_order < 0)
        return self.kept[parent] and bool(self.bones[parent].meshferry.order == kept.parent_order)

    def _old_worlds(self) -> list[Array | None]:
        """Return the world matrices of joints at the time of import; None for new bones.

        They are products of the stored local transforms. If the parents of a joint were changed, its stored world
        matrix is used, which has single precision only.
        """
        kept_world = kept_matrices(self.bones, "bind_matrix")
        worlds: list[Array | None] = [None] * len(self.bones)
        for number in self.order:
            parent = self.parents[number]
            above = None if parent < 0 else worlds[parent]
            if not self.kept[number]:
                continue
            if self.same_parent[number] and parent < 0:
                worlds[number] = self.kept_local[number]
            elif self.same_parent[number] and above is not None:
                worlds[number] = above @ self.kept_local[number]
            elif kept_world[number].any():
                worlds[number] = kept_world[number]
        return worlds

    def _worlds(self) -> Array:
        """Return the current world matrices of joints, computed from their bones."""
        worlds = self.rest.copy()
        for number in self.order:
            old = self.old_world[number]
            if old is None:
                continue
            parent = self.parents[number]
            if self.exact(number):
                # Multiply the exported local transforms, since the parent may have moved.
                worlds[number] = self.kept_local[number] if parent < 0 else worlds[parent] @ self.kept_local[number]
            elif self.unmoved[number]:
                worlds[number] = old
            else:
                worlds[number] = self.rest[number] @ np.linalg.inv(self.kept_rest[number]) @ old
        return worlds

    def exact(self, number: int) -> bool:
        """Return whether the stored transform of a joint is valid: neither its bone nor the parent bone was moved."""
        parent = self.parents[number]
        return self.unmoved[number] and self.same_parent[number] and (parent < 0 or self.unmoved[parent])

    def joints(self) -> tuple[list[Joint], list[str]]:
        """Return the joints, and the names of the bones whose shear had to be dropped."""
        above = np.array([np.identity(4) if p < 0 else self.world[p] for p in self.parents]).reshape(-1, 4, 4)
        local = joint_poses.inverse(above) @ self.world
        translation, rotation, scale, shear = joint_poses.decompose(local)
        joints, sheared = [], []
        for number, bone in enumerate(self.bones):
            if self.exact(number):
                joints.append(_kept_joint(bone, self.parents[number]))
                continue
            if shear[number] > _SHEAR:
                sheared.append(bone.name)
            name = names.name_in_file(bone)
            joints.append(
                rounded_joint(name, self.parents[number], translation[number], rotation[number], scale[number])
            )
        return joints, sheared


def rounded_joint(name: str, parent: int, translation: Array, rotation: Array, scale: Array) -> Joint:
    """Return a joint with values in single precision; a scale of nearly 1 becomes 1."""
    scale = np.where(np.abs(scale - 1.0) < 1e-6, 1.0, scale)
    return Joint(name, parent, rounded(translation), rounded(rotation), rounded(scale))


def rounded(values: Array) -> Any:
    """Round numbers to single precision, and negative zeros to zero."""
    return tuple((values.astype(np.float32) + np.float32(0)).tolist())


def _kept_joint(bone: bpy.types.Bone, parent: int) -> Joint:
    kept = bone.meshferry
    return Joint(
        names.name_in_file(bone), parent, tuple(kept.bind_location), tuple(kept.bind_rotation), tuple(kept.bind_scale)
    )


def _local_matrices(joints: list[Joint]) -> Array:
    """Return the bind transforms of joints as matrices, (J, 4, 4) float64."""
    return joint_poses.matrices(
        np.array([joint.translation for joint in joints], np.float64).reshape(-1, 3),
        np.array([joint.rotation for joint in joints], np.float64).reshape(-1, 4),
        np.array([joint.scale for joint in joints], np.float64).reshape(-1, 3),
    )


# ---------------------------------------------------------------------------------- the space of the file


@dataclass(frozen=True)
class SkeletonSpace:
    """The space of a file's joints: ``matrix`` (4, 4), relative to the armature object.

    A uniform scale is applied to the positions of the joints, so that joints have no scale; a non-uniform scale is
    applied to the root joints.
    """

    matrix: Array

    @property
    def is_identity(self) -> bool:
        return np.array_equal(self.matrix, np.identity(4))

    def parts(self) -> tuple[float, Array]:
        """Return the uniform scale for the positions of all joints, and the remaining matrix for the root joints."""
        linear = self.matrix[:3, :3]
        size = float(np.cbrt(max(0.0, np.linalg.det(linear))))
        before = self.matrix.copy()
        if size > 0 and np.allclose(linear.T @ linear, np.identity(3) * size**2, atol=_SAME_ROTATION * size**2, rtol=0):
            u, _, v = np.linalg.svd(linear)
            before[:3, :3] = u @ v
            return size, before
        return 1.0, before

    def moved(self, read: ReadSkeleton, report: Report | None = None) -> Skeleton:
        """Return the skeleton in the space of the file."""
        if self.is_identity:
            return read.skeleton
        size, before = self.parts()
        joints = []
        sheared = False
        for joint in read.skeleton.joints:
            translation = np.asarray([joint.translation], np.float64) * size
            rotation, scale = np.asarray([joint.rotation], np.float64), np.asarray([joint.scale], np.float64)
            if joint.parent < 0:
                whole = before @ joint_poses.matrices(translation, rotation, scale)
                translation, rotation, scale, shear = joint_poses.decompose(whole)
                sheared |= bool(shear[0] > _SHEAR)
            place, turn, extent = (rounded(values[0]) for values in (translation, rotation, scale))
            joints.append(replace(joint, translation=place, rotation=turn, scale=extent))
        if sheared and report is not None:
            report.change(
                "sheared-armature",
                "the armature is scaled unequally, which shears its bones; apply its scale (Ctrl A). The nearest "
                "without shear was exported",
                item=read.obj.name,
            )
        return replace(read.skeleton, joints=joints)
