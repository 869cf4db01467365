"""Meshes of the objects of a model, each in the space of its object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import Mesh
from ....io_formats.passes.join_meshes import join
from ... import arrays
from ...armature_modifiers import MESHABLE, armature_of
from ...mesh_data import surfaces
from ...mesh_data.element_selection import Triangulation
from ...rigging import joint_poses
from ...rigging.armature_reading import ReadSkeleton
from ..node_meshes import NodeMeshes
from ..reading.mesh_reading import transformed
from ..real_instances import Copies
from .model_objects import ModelIndex
from .object_spaces import ObjectSpaces

Matrix4 = npt.NDArray[np.float64]


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
