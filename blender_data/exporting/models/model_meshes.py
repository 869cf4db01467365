"""Meshes and skeletons of the objects of a model, each in the space of its object or its armature."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import Mesh, Skeleton
from ....io_formats.geometry import hierarchy
from ....io_formats.geometry.transforms import unmirrored
from ....io_formats.passes.join_meshes import join
from ... import arrays
from ...armature_modifiers import MESHABLE, armature_of
from ...mesh_data import surfaces
from ...mesh_data.element_selection import Triangulation
from ...rigging import joint_poses
from ...rigging.armature_reading import ReadSkeleton, rounded, rounded_joint
from .. import node_plan
from ..node_plan import NodeMeshes, Transform
from ..reading.mesh_reading import transformed
from ..reading.rest_meshes import RestMeshes
from ..real_instances import Copies
from .model_objects import ModelIndex, linked_duplicates

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
        return node_plan.world_matrix(self.evaluated(obj))

    def of_armature(self, armature: bpy.types.Object) -> ArmatureSpace:
        if armature not in self._armatures:
            world = self.world(armature)
            node_plan.require_size(armature, world)
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
        if node_plan.has_plain_channels(seen, above):
            return matrix_of(node_plan.local_transform(seen, above))
        world = node_plan.world_matrix(seen)
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
        if is_plain and node_plan.has_plain_channels(seen, above):
            found = node_plan.local_transform(seen, above)
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


class LodModelMeshes:
    """Reads the meshes of objects, of their hulls and of the instances that they show."""

    def __init__(self, spaces: ObjectSpaces, tolerance: float) -> None:
        self.spaces = spaces
        self.meshes = spaces.meshes
        self.copies: Copies = {}
        """The temporary copies of the objects in skinned collection instances."""
        self._instances = NodeMeshes(self.meshes.reader, self.meshes.reader.depsgraph, tolerance)
        self._read: dict[tuple[bpy.types.Object, bpy.types.Object | None], Mesh | None] = {}

    def read_instances(self, finest: Iterable[bpy.types.Object]) -> None:
        """Read the instances that the finest objects of the models show."""
        self._instances.depsgraph = self.meshes.reader.depsgraph
        shown = {copy for members in self.copies.values() for copy in members}
        # An instanced collection also contains the levels and shapes of its models, which would overlap the finest
        # objects.
        self._instances.left_out = ModelIndex(bpy.data.objects).parts
        self._instances.read_instances((set(finest) - set(self.copies)) | shown)

    def has_instances(self, obj: bpy.types.Object) -> bool:
        """Return whether the mesh of an object contains instances that it shows."""
        return bool(obj in self.copies or self._instances.instances.get(obj))

    def mesh_of(self, obj: bpy.types.Object, read: ReadSkeleton | None) -> Mesh | None:
        """Return the mesh of an object and of the instances that it shows, in its own space."""
        key = (obj, read.obj if read else None)
        if key not in self._read:
            seen = self.spaces.stand_in(obj)
            messages = self.meshes.report.messages
            before = len(messages)
            own = self.meshes.read(seen, read) if obj.type in MESHABLE else None
            if seen is not obj:
                messages[before:] = [
                    replace(message, item=obj.name, names=(obj.name,) if message.names else ())
                    for message in messages[before:]
                ]
            meshes = [own] if own is not None else []
            shown = self._instances.instances.get(obj, [])
            for member in self.copies.get(obj, ()):
                shown = [*shown, *self._instances.instances.get(member, []), *self._member_mesh(member, read)]
            if shown:
                back = joint_poses.inverse(self.spaces.world(obj))
                meshes += [transformed(mesh, back @ matrix) for mesh, matrix in shown]
            self._read[key] = join(meshes) if meshes else None
        return self._read[key]

    def _member_mesh(self, member: bpy.types.Object, read: ReadSkeleton | None) -> list[tuple[Mesh, Matrix4]]:
        """Return the mesh of an instanced object with its world matrix; an empty list if it has no mesh."""
        if member.type not in MESHABLE:
            return []
        mesh = self.meshes.read(member, read if read is not None and armature_of(member) == read.obj else None)
        return [] if mesh is None else [(mesh, self.spaces.world(member))]

    def hull_of(self, obj: bpy.types.Object) -> Mesh:
        """Return the mesh of a hull: all its points in order, and its faces if it has any."""
        seen = self.spaces.stand_in(obj)
        if not self.meshes.is_plain(seen):
            seen = seen.evaluated_get(self.meshes.reader.depsgraph)
        with arrays.mesh_of(seen) as data:
            if data is None:
                return Mesh(np.empty((0, 3), np.float32), np.empty(0, np.int32), np.empty(0, np.int32))
            corners = Triangulation.of(data).corner_point if len(data.polygons) else np.empty(0, np.int32)
            mesh = Mesh(arrays.points_of(data), corners, np.zeros(len(corners) // 3, np.int32), [""])
            mesh.surfaces = surfaces.read(obj, [], [])[:1]
            return mesh


def lod_model_skeleton(read: ReadSkeleton, space: Matrix4) -> Skeleton:
    """Return the joints of an armature transformed by ``space`` (4, 4), each exactly at its bone's head.

    Joints have no rotation or scale, since the direction of a Blender bone is arbitrary. Only imported joints without
    children keep the rotation and scale of the file.
    """
    world = space @ hierarchy.world_matrices(read.local, read.parents)
    bones = read.obj.data.bones
    tails = np.array([bones[name].tail_local - bones[name].head_local for name in read.bones], np.float64)
    is_parent = set(read.parents)
    for number, name in enumerate(read.bones):
        if bones[name].meshferry.order < 0 or number in is_parent:
            world[number, :3, :3] = np.identity(3)
    parents = np.array([np.identity(4) if parent < 0 else world[parent] for parent in read.parents]).reshape(-1, 4, 4)
    translation, rotation, scale, _ = joint_poses.decompose(joint_poses.inverse(parents) @ world)
    joints = [
        replace(
            rounded_joint(joint.name, joint.parent, translation[number], rotation[number], scale[number]),
            tail=rounded(space[:3, :3] @ tails[number]),
            is_as_imported=joint.is_as_imported,
        )
        for number, joint in enumerate(read.skeleton.joints)
    ]
    return replace(read.skeleton, joints=joints, choices=())
