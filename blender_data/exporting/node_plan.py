"""Plan the nodes of an export: which objects become nodes or are merged into others, their meshes and transforms."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Quaternion, Vector

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Text, error
from ...io_formats.core.scene import Mesh
from ...io_formats.geometry.vertices import split_mesh
from ...io_formats.passes.join_meshes import join
from .. import arrays, names
from ..armature_modifiers import MESHABLE
from .object_selection import Origin, is_of_body
from .reading.mesh_reading import MeshReader, transformed


@dataclass
class PlannedNode:
    """A planned node: its object (None for a generated root), the index of its parent, and its parts."""

    name: str
    obj: bpy.types.Object | None
    parent: int = -1
    above: bpy.types.Object | None = None
    """The object of the parent node, or None."""
    parts: list[bpy.types.Object] = field(default_factory=list)
    """Objects whose meshes belong to the node."""
    instancers: list[bpy.types.Object] = field(default_factory=list)
    """Objects without a mesh that are merged into the node because of the instances that they show."""


def plan(objects: list[bpy.types.Object], root_name: str, *, merge: bool) -> list[PlannedNode]:
    """Plan the nodes of an export; ``objects`` has parents before children.

    An object is a root if it is marked as one and has no exported parent. If there is no root, one named ``root_name``
    without transform is added. With ``merge``, objects not named ``#…`` are merged into their nearest ancestor that is
    a node.
    """
    exported = set(objects)
    marked = [obj for obj in objects if obj.meshferry.is_root and _nearest(obj, exported) is None]
    if merge and len(marked) > 1:
        marked = []
    nodes: list[PlannedNode] = [] if marked else [PlannedNode(root_name, None)]
    place: dict[bpy.types.Object, int] = {}
    # Nodes without parent become children of the root, if there is exactly one.
    default_parent = 0 if len(marked) < 2 else -1
    if len(marked) == 1:
        objects = [marked[0], *(obj for obj in objects if obj is not marked[0])]
    for obj in objects:
        nearest = _nearest(obj, place)
        parent = default_parent if nearest is None else place[nearest]
        if obj in marked:
            parent = -1
        is_own = not merge or obj in marked or obj.name.startswith(names.MARK)
        if is_own:
            place[obj] = len(nodes)
            above = nodes[parent].obj if parent >= 0 else None
            nodes.append(PlannedNode(names.name_in_file(obj), obj, parent, above))
        if obj.type in MESHABLE:
            nodes[place[obj] if is_own else max(parent, 0)].parts.append(obj)
        elif not is_own:
            nodes[max(parent, 0)].instancers.append(obj)
    return nodes


def _nearest(obj: bpy.types.Object, among: Container[bpy.types.Object]) -> bpy.types.Object | None:
    """Return the nearest ancestor that is one of the given objects."""
    above = obj.parent
    while above is not None and above not in among:
        above = above.parent
    return above


Matrix4 = npt.NDArray[np.float64]

_FLAT = 1e-12


@dataclass(frozen=True)
class Transform:
    """Translation, rotation (w, x, y, z) and scale, and whether a shear had to be dropped."""

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    sheared: bool = False


IDENTITY = Transform()


def world_matrix(obj: bpy.types.Object) -> Matrix4:
    """Return the world matrix of an evaluated object, (4, 4) float64."""
    return np.array(obj.matrix_world, np.float64)


class SingularTransformError(ExportError):
    """An object of zero scale, or whose transform is NaN or infinite."""


def require_size(obj: bpy.types.Object, matrix: Matrix4) -> None:
    """Raise an error that names the object if its transform is singular, so that it cannot be inverted."""
    problem = _singularity(obj, matrix)
    if problem:
        raise SingularTransformError(problem)


def all_singular(
    context: bpy.types.Context, objects: Iterable[bpy.types.Object], first: SingularTransformError
) -> ExportError:
    """Return one error that names all objects with a singular transform.

    ``first`` is the error that the export raised for one of them.
    """
    depsgraph = context.evaluated_depsgraph_get()
    shown = [obj for obj in objects if obj.type != "EMPTY" and obj.visible_get(view_layer=context.view_layer)]
    found = [first.message, *(_singularity(obj, world_matrix(obj.evaluated_get(depsgraph))) for obj in shown)]
    problems = [problem for problem in dict.fromkeys(found) if problem]
    return ExportError.of(*(error("singular-transform", "{}", problem) for problem in problems))


def _singularity(obj: bpy.types.Object, matrix: Matrix4) -> Text:
    """Return the reason why a transform cannot be inverted, or an empty string."""
    if not np.isfinite(matrix).all():
        return Text("'{}' has a transform with NaN or infinite values", obj.name)
    lengths = np.linalg.norm(matrix[:3, :3], axis=0)
    if (lengths < _FLAT).any() or abs(np.linalg.det(matrix[:3, :3])) < _FLAT * max(1e-9, lengths.max()) ** 3:
        axis = "XYZ"[int(lengths.argmin())]
        return Text("'{}' has zero scale on {}; give it a size, or leave it out", obj.name, axis)
    return Text("")


def local_transform(obj: bpy.types.Object, above: bpy.types.Object | None) -> Transform:
    """Return an evaluated object's transform relative to the evaluated object of the node above it."""
    if has_plain_channels(obj, above):
        return _from_channels(obj)
    matrix = Matrix(obj.matrix_world)
    if above is not None:
        # Use double precision, since nested scales of 0.01 lose digits in single precision.
        matrix = Matrix(np.linalg.pinv(world_matrix(above)) @ world_matrix(obj))
    return decompose(matrix)


def relative_transform(obj: bpy.types.Object, origin: Matrix4) -> Transform:
    """Return an evaluated object's transform relative to an invertible world matrix."""
    return decompose(Matrix(np.linalg.inv(origin) @ world_matrix(obj)))


def channels_of(obj: bpy.types.Object, channels: str) -> Matrix4:
    """Return the world matrix of an evaluated object, reduced to some channels; see ``Origin.channels``."""
    if channels == "ALL":
        return world_matrix(obj)
    location, rotation, _scale = obj.matrix_world.decompose()
    return np.array(
        Matrix.LocRotScale(location, rotation if channels == "LOCATION_ROTATION" else None, None), np.float64
    )


def has_plain_channels(obj: bpy.types.Object, above: bpy.types.Object | None) -> bool:
    """Return whether location, rotation and scale of an object are its whole transform relative to ``above``."""
    parent = obj.parent
    if (parent.original if parent else None) != (above.original if above else None):
        return False
    return (
        (parent is None or (hangs_on_object(obj) and obj.matrix_parent_inverse == Matrix.Identity(4)))
        and all(constraint.mute for constraint in obj.constraints)
        and obj.rigid_body is None
        and obj.delta_location == Vector((0, 0, 0))
        and obj.delta_scale == Vector((1, 1, 1))
        and _no_delta_rotation(obj)
    )


def hangs_on_object(obj: bpy.types.Object) -> bool:
    """Return whether a child follows its parent object itself, and not a bone, a vertex or a curve path."""
    parent = obj.parent
    return obj.parent_type == "OBJECT" and not (parent.type == "CURVE" and parent.data.use_path)


def _no_delta_rotation(obj: bpy.types.Object) -> bool:
    if obj.rotation_mode in {"QUATERNION", "AXIS_ANGLE"}:
        return obj.delta_rotation_quaternion == Quaternion((1, 0, 0, 0))
    return tuple(obj.delta_rotation_euler) == (0, 0, 0)


def _from_channels(obj: bpy.types.Object) -> Transform:
    mode = obj.rotation_mode
    if mode == "QUATERNION":
        rotation = obj.rotation_quaternion.normalized()
    elif mode == "AXIS_ANGLE":
        channel: tuple[float, ...] = tuple(obj.rotation_axis_angle)
        rotation = Quaternion(channel[1:], channel[0]) if any(channel[1:]) else Quaternion()
    else:
        rotation = obj.rotation_euler.to_quaternion()
    return Transform(tuple(obj.location), tuple(rotation), tuple(obj.scale))


def decompose(matrix: Matrix) -> Transform:
    """Decompose a matrix; shear is dropped with a warning."""
    translation, rotation, scale = matrix.decompose()
    again = np.array(Matrix.LocRotScale(translation, rotation, scale), np.float64)
    given = np.array(matrix, np.float64)
    size = max(1e-9, float(np.abs(given[:3, :3]).max()))
    sheared = bool(np.abs(again - given)[:3, :3].max() > 1e-4 * size)
    return Transform(tuple(translation), tuple(rotation.normalized()), tuple(scale), sheared)


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
            require_size(origin.obj, world_matrix(evaluated))
            matrix = channels_of(evaluated, origin.channels)
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

    def changed_instances(
        self, nodes: Iterable[PlannedNode], deforming: Container[bpy.types.Object]
    ) -> list[bpy.types.Object]:
        """Return the objects whose instances are not as at rest: others, moved within their node, or deformed.

        Only the points of ``deforming`` objects are compared.
        """
        if not self.instances:
            return []
        back = {owner: self.from_world(node) for node in nodes for owner in self.owners(node)}
        places: dict[bpy.types.Object, list[Matrix4]] = {owner: [] for owner in self.instances}
        deformed: set[bpy.types.Object] = set()
        compared: set[tuple[int, int]] = set()
        for owner, instance in self._instances_of(self.instances):
            data = instance.object.data
            if not len(data.polygons):
                continue
            number = len(places[owner])
            places[owner].append(back[owner] @ np.array(instance.matrix_world, np.float64))
            rest = self.instances[owner][number][0].points if number < len(self.instances[owner]) else None
            if instance.object.original in deforming and rest is not None:
                pair = (data.as_pointer(), id(rest))
                if pair not in compared and _are_apart(arrays.points_of(data), rest):
                    deformed.add(owner)
                compared.add(pair)
        return [
            owner
            for owner, rest in self.rest_places.items()
            if owner in deformed or _are_apart(np.array(places[owner]), np.array(rest))
        ]

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
            require_size(part, world_matrix(part.evaluated_get(self.depsgraph)))
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
        return self.from_world(node) @ world_matrix(part.evaluated_get(self.depsgraph))

    def is_plain(self, node: PlannedNode) -> bool:
        """Return whether location, rotation and scale of a node's object are its local transform in the file."""
        is_from_origin = node.above is None and self.origin is not None
        return node.obj is not None and not is_from_origin and has_plain_channels(node.obj, node.above)

    def local(self, node: PlannedNode) -> Transform:
        """Return a node's current local transform."""
        if node.obj is None:
            return IDENTITY
        obj = node.obj.evaluated_get(self.depsgraph)
        if node.above is None and self.origin is not None:
            return relative_transform(obj, self.origin)
        return local_transform(obj, node.above.evaluated_get(self.depsgraph) if node.above is not None else None)

    def from_world(self, node: PlannedNode) -> Matrix4:
        """Return the matrix from world space to a node's; for zero scale, the nearest invertible one."""
        if node.obj is not None:
            matrix = world_matrix(node.obj.evaluated_get(self.depsgraph))
        elif self.origin is not None:
            matrix = self.origin
        else:
            return np.identity(4)
        back = np.identity(4)
        back[:3, :3] = np.linalg.pinv(matrix[:3, :3])
        back[:3, 3] = -back[:3, :3] @ matrix[:3, 3]
        return back


def _are_apart(values: npt.NDArray[Any], rest: npt.NDArray[Any]) -> bool:
    size = 1e-5 * max(1.0, float(np.abs(rest).max(initial=0)))
    return values.shape != rest.shape or bool(np.abs(values - rest).max(initial=0) > size)


def is_own_mesh(instance: bpy.types.DepsgraphObjectInstance) -> bool:
    """Return whether an instance is the mesh of a curve or text, which Blender lists as an instance of the object.

    The export reads that mesh with the object itself.
    """
    is_of_owner: bool = instance.object.original == instance.parent.original
    return is_of_owner and tuple(instance.persistent_id)[1] == _UNUSED
