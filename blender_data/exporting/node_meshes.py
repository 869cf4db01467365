"""Meshes of planned nodes: read the parts, transform them to the node's space and join them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix

from ...io_formats.core.scene import Mesh
from ...io_formats.geometry.vertices import split_mesh
from ...io_formats.passes.join_meshes import join
from . import transforms
from .node_plan import PlannedNode
from .object_selection import Origin, is_of_body
from .reading.mesh_reading import MeshReader, transformed

Matrix4 = npt.NDArray[np.float64]

_UNUSED = 2**31 - 1
"""Value with which Blender fills unused entries of ``persistent_id``. If only one entry is used, the instance is not
nested."""


@dataclass(frozen=True)
class PartLayout:
    """The vertices of a moving part: the index of a mesh corner for each, (V,), and counts for all frames."""

    corner: npt.NDArray[np.intp]
    corners: int
    points: int
    turned: bool
    """Whether the winding was reversed at rest. All frames keep this winding, even if the part is mirrored in some of
    them."""

    def edge_directions(self, mesh: Mesh) -> npt.NDArray[np.float32]:
        """Return, for each vertex, the triangle edge that starts at its corner, (V, 3).

        These are the tangents of a mesh without UVs.
        """
        following = self.corner - self.corner % 3 + (self.corner + 1) % 3
        return mesh.points[mesh.corner_point[following]] - mesh.points[mesh.corner_point[self.corner]]


@dataclass
class NodeMesh:
    """The mesh of a node. Its first ``moving_points`` points belong to the moving parts."""

    mesh: Mesh
    layouts: dict[bpy.types.Object, PartLayout] = field(default_factory=dict)
    """The layout of each part that may move within the node."""
    moving_points: int = 0


class NodeMeshes:
    """Reads the meshes of one export."""

    def __init__(self, reader: MeshReader, depsgraph: bpy.types.Depsgraph, tolerance: float) -> None:
        self.reader = reader
        self.depsgraph = depsgraph
        self.tolerance = tolerance
        self.left_out: Container[bpy.types.Object] = ()
        """Objects whose instances are ignored."""
        self.instances: dict[bpy.types.Object, list[tuple[Mesh, Matrix4]]] = {}
        """Meshes and world matrices of instances, by the object that shows them."""
        self.shown: dict[bpy.types.Object, dict[bpy.types.Object, None]] = {}
        """For each object, the objects of which it shows instances."""
        self.rest_places: dict[bpy.types.Object, list[Matrix4]] = {}
        """Transforms of instances at rest within their node, by the object that shows them."""
        self.origin: Matrix4 | None = None
        """World matrix of the file's origin; None to use the origin of the world."""

    def set_origin(self, origin: Origin) -> None:
        """Set the origin of the file to its current transform, which also applies to all frames of animations."""
        matrix = np.array(origin.matrix or Matrix())
        if origin.obj is not None:
            evaluated = origin.obj.evaluated_get(self.depsgraph)
            transforms.require_size(origin.obj, transforms.world_matrix(evaluated))
            matrix = transforms.channels_of(evaluated, origin.channels)
        self.origin = matrix

    def read_instances(self, instancers: set[bpy.types.Object]) -> None:
        """Read the instances that the given objects show, in world space."""
        for owner, instance in self._instances_of(instancers):
            mesh = self.reader.read(instance.object, is_instance=True)
            if mesh is not None:
                self.instances.setdefault(owner, []).append((mesh, np.array(instance.matrix_world, np.float64)))
                shown: Any = instance.object.original
                self.shown.setdefault(owner, {})[shown] = None

    def _instances_of(
        self, instancers: Container[bpy.types.Object]
    ) -> Iterator[tuple[bpy.types.Object, bpy.types.DepsgraphObjectInstance]]:
        """Yield the current instances with a mesh, each with its instancer."""
        for instance in self.depsgraph.object_instances:
            if not instance.is_instance or instance.parent is None:
                continue
            owner = instance.parent.original
            shown = instance.object.original
            counts = instance.object.type == "MESH" and shown not in self.left_out and not is_of_body(shown)
            if owner in instancers and counts and not is_own_mesh(instance):
                yield owner, instance

    def instance_places(self, nodes: Iterable[PlannedNode]) -> dict[bpy.types.Object, list[Matrix4]]:
        """Return the current matrices of instances within their nodes, by the object that shows them."""
        if not self.instances:
            return {}
        back = {owner: self.from_world(node) for node in nodes for owner in self.owners(node)}
        places: dict[bpy.types.Object, list[Matrix4]] = {owner: [] for owner in self.instances}
        for owner, instance in self._instances_of(self.instances):
            places[owner].append(back[owner] @ np.array(instance.matrix_world, np.float64))
        return places

    def read(self, node: PlannedNode, moving: list[bpy.types.Object]) -> NodeMesh | None:
        """Read and join the meshes of a node, those of ``moving`` objects first; return None without triangles.

        Moving parts get a point for each unique vertex, so that the frames of a vertex animation have one normal and
        one tangent for each point.
        """
        ordered = [*moving, *(part for part in node.parts if part not in moving)]
        meshes: list[Mesh] = []
        layouts: dict[bpy.types.Object, PartLayout] = {}
        moving_points = 0
        for part in ordered:
            mesh = self.part_mesh(node, part)
            if mesh is None:
                continue
            transforms.require_size(part, transforms.world_matrix(part.evaluated_get(self.depsgraph)))
            if part in moving:
                corners, points = len(mesh.corner_point), len(mesh.points)
                mesh, found = split_mesh(mesh, self.tolerance)
                is_mirrored = part is not node.obj and bool(np.linalg.det(self.matrix(node, part)[:3, :3]) < 0)
                layouts[part] = PartLayout(found.vertex_corner, corners, points, is_mirrored)
                moving_points += len(mesh.points)
            meshes.append(mesh)
        for obj in self.owners(node):
            for mesh, matrix in self.instances.get(obj, []):
                self.rest_places.setdefault(obj, []).append(self.from_world(node) @ matrix)
                meshes.append(transformed(mesh, self.rest_places[obj][-1]))
        return NodeMesh(join(meshes), layouts, moving_points) if meshes else None

    def owners(self, node: PlannedNode) -> list[bpy.types.Object]:
        """Return the objects of a node that may show instances."""
        own = [node.obj] if node.obj is not None else []
        return list(dict.fromkeys([*own, *node.parts, *node.instancers]))

    def part_mesh(self, node: PlannedNode, part: bpy.types.Object, layout: PartLayout | None = None) -> Mesh | None:
        """Return the current mesh of a part in its node's space; with a layout, its winding is as at rest."""
        mesh = self.reader.read(part)
        if mesh is None or part is node.obj:
            return mesh
        return transformed(mesh, self.matrix(node, part), turned=layout.turned if layout else None)

    def matrix(self, node: PlannedNode, part: bpy.types.Object) -> Matrix4:
        """Return the matrix from a part's space into its node's."""
        return self.from_world(node) @ transforms.world_matrix(part.evaluated_get(self.depsgraph))

    def local(self, node: PlannedNode) -> transforms.Transform:
        """Return a node's current local transform."""
        if node.obj is None:
            return transforms.IDENTITY
        obj = node.obj.evaluated_get(self.depsgraph)
        if node.above is None and self.origin is not None:
            return transforms.relative_transform(obj, self.origin)
        return transforms.local_transform(
            obj, node.above.evaluated_get(self.depsgraph) if node.above is not None else None
        )

    def from_world(self, node: PlannedNode) -> Matrix4:
        """Return the matrix from world space to a node's; for zero scale, the nearest invertible one."""
        if node.obj is not None:
            matrix = transforms.world_matrix(node.obj.evaluated_get(self.depsgraph))
        elif self.origin is not None:
            matrix = self.origin
        else:
            return np.identity(4)
        back = np.identity(4)
        back[:3, :3] = np.linalg.pinv(matrix[:3, :3])
        back[:3, 3] = -back[:3, :3] @ matrix[:3, 3]
        return back


def is_own_mesh(instance: bpy.types.DepsgraphObjectInstance) -> bool:
    """Return whether an instance is the mesh of a curve or text, which Blender lists as an instance of the object.

    The export reads that mesh with the object itself.
    """
    is_of_owner: bool = instance.object.original == instance.parent.original
    return is_of_owner and tuple(instance.persistent_id)[1] == _UNUSED
