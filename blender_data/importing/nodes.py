"""Nodes of a scene -> objects with their meshes and bindings; all content of a scene in the necessary order."""

import json
from dataclasses import replace

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.messages import counted
from ...io_formats.core.scene import Layer, Mesh, Node, Role, Skin
from ...io_formats.geometry.normals import share_backwards
from ...io_formats.geometry.triangles import with_polygons
from ...io_formats.geometry.vertices import drop_repeated_corners, shares_mirrored_vertices, weld
from .. import arrays, names
from ..mesh_data import file_normals, quantised_values, surfaces
from ..properties import store_fields
from ..rigging import helper_bones
from ..rigging.joint_poses import BoneMap
from ..shading.shaders import MeshLayers
from ..steps import Step, Steps, scaled
from . import meshes, objects
from .armature_matching import build_skeletons, set_sliders, switch_on_weighted
from .clips import ClipBuilder
from .import_context import ImportContext
from .import_options import AUTOMATIC_NORMALS_LIMIT


def store_binding(made: bpy.types.Object, skin: Skin) -> None:
    """Store a node's binding and the current transform of its object, in single precision."""
    kept = made.meshferry.skin
    kept.bind_shape = _row_by_row(skin.bind_shape)
    kept.given_matrix = _row_by_row(np.array(made.matrix_basis, np.float64))
    kept.has_positions = skin.joint_positions is not None
    store_fields(kept, skin)
    others = skin.alt_inverse_bind
    for number, name in enumerate(skin.joint_names):
        joint = kept.joints.add()
        joint.name = names.readable(name)
        joint.inverse_bind = _row_by_row(skin.inverse_bind[number])
        if others is not None:
            joint.alt_inverse_bind = _row_by_row(others[number])
        if skin.joint_positions is not None:
            joint.position = _row_by_row(skin.joint_positions[number])


def _row_by_row(values: npt.ArrayLike) -> list[float]:
    """Return the values as a flat list, row by row. Blender clamps them to the range of single precision."""
    return np.asarray(values, np.float64).reshape(-1).tolist()


class NodeBuilder:
    """Creates the objects of an import."""

    def __init__(self, job: ImportContext) -> None:
        self.job = job
        self.scene = job.scene
        self.options = job.options
        self._shared: dict[int, tuple[Mesh, bpy.types.Mesh]] = {}
        """The Blender mesh of each mesh so far, by the ``id`` of the node's mesh."""

    def build(self, index: int, node: Node) -> bpy.types.Object:
        """Build the object of a node, without its parent."""
        if node.mesh is None:
            return objects.build_object(node, None, self.job.keep)
        bones = self._bones_of(node)
        weights = self._group_weights(node, node.mesh, bones)
        mesh, data = self._mesh_of(index, node, node.mesh, weights)
        if node.role is Role.HULL and not mesh.triangle_count:
            meshes.add_hull_faces(data)
        made = objects.build_object(node, data, self.job.keep)
        if bones is not None:
            objects.hang_on_armature(made, bones.armature, weights.names if weights else ())
            if node.skin is not None and not self._shares_skin_of_finest(node):
                store_binding(made, node.skin)
        shapes = mesh.shape_keys if self.options.use_shape_keys else []
        key_names = meshes.add_file_shapes(made, shapes)
        surfaces.write(made, mesh.surfaces, [layer.name for layer in mesh.uvs], key_names)
        return made

    def _bones_of(self, node: Node) -> BoneMap | None:
        """Return the bones that deform a node; a physics shape uses the armature of its model."""
        skeleton = node.skeleton
        if skeleton is None and node.shape_of is not None:
            skeleton = self.scene.nodes[node.shape_of].skeleton
        return None if skeleton is None else self.job.bones[skeleton]

    def _group_weights(self, node: Node, mesh: Mesh, bones: BoneMap | None) -> meshes.GroupWeights | None:
        if bones is None or node.skeleton is None or node.role is not Role.RENDER:
            return None
        joints = self.scene.skeletons[node.skeleton].joints
        of_joint = [bone or joint.name for bone, joint in zip(bones.bones, joints, strict=True)]
        return meshes.GroupWeights.of(mesh, names.fit_all(of_joint, "Bone"))

    def _shares_skin_of_finest(self, node: Node) -> bool:
        """Return whether the finest level of detail stores the binding for this coarser level, too."""
        return node.lod_of is not None and self.scene.nodes[node.lod_of].skin is node.skin

    def _mesh_of(
        self, index: int, node: Node, mesh: Mesh, weights: meshes.GroupWeights | None
    ) -> tuple[Mesh, bpy.types.Mesh]:
        """Create the mesh of a node.

        If an earlier node has the identical mesh object, return its mesh: a linked duplicate.
        """
        if weights is not None or mesh.shape_keys or index in self.job.tracks or not mesh.triangle_count:
            return self._build_mesh(index, node, mesh, weights)
        if id(mesh) not in self._shared:
            self._shared[id(mesh)] = self._build_mesh(index, node, mesh, None)
        return self._shared[id(mesh)]

    def _build_mesh(
        self, index: int, node: Node, mesh: Mesh, weights: meshes.GroupWeights | None
    ) -> tuple[Mesh, bpy.types.Mesh]:
        """Create the mesh of a node; report data that Blender cannot store."""
        if self.options.use_weld and self.job.capabilities.splits_vertices and node.role is not Role.HULL:
            mesh, first = self._weld(index, mesh)
            if weights is not None:
                weights = replace(weights, groups=weights.groups[first], weights=weights.weights[first])
        report = self.job.report.about(node.name)
        mesh, dropped = drop_repeated_corners(mesh)
        if dropped:
            number = counted(int(dropped), "triangle without area was", "triangles without area were")
            report.loss("repeated-corners", "{} left out (a corner repeated)", number)
        if len(mesh.uvs) > meshes.MOST_UV_LAYERS:
            beyond = len(mesh.uvs) - meshes.MOST_UV_LAYERS
            number = counted(beyond, "UV layer beyond Blender's 8 was", "UV layers beyond Blender's 8 were")
            report.loss("uv-maps-left-out", "{} left out", number)
        uv_names = tuple(layer.name for layer in mesh.uvs[: meshes.MOST_UV_LAYERS])
        layers = MeshLayers(meshes.COLOR_NAME if mesh.colors else "", uv_names)
        # A single slot without a material would be useless to the user.
        materials = mesh.materials if len(mesh.materials) > 1 or any(mesh.materials) else []
        found = [self.job.materials.find(name, layers) for name in materials]
        triangles = mesh
        mesh, sizes = with_polygons(triangles)
        built = meshes.build_mesh(mesh.name or node.name, mesh, found, self.job.keep, weights, sizes)
        built.meshferry.slot_names = json.dumps(materials)
        if mesh.symbols:
            built.meshferry.symbols = json.dumps(mesh.symbols)
        quantised_values.write(built, mesh)
        self._set_normals(index, mesh, built, triangles, is_skinned=weights is not None)
        return mesh, built

    def _weld(self, index: int, mesh: Mesh) -> tuple[Mesh, npt.NDArray[np.intp]]:
        """Weld the split vertices of a mesh and of the vertex tracks of its node.

        The index of the file's vertex is stored on each corner if triangles with mirrored UVs share vertices in the
        file: an export needs it to write the same tangents.

        Returns
        -------
        tuple
            The mesh and, for each new point, the index of the original point.
        """
        if shares_mirrored_vertices(mesh):
            ids = np.arange(len(mesh.points), dtype=np.int32).reshape(-1, 1)
            mesh = replace(mesh, custom=[*mesh.custom, Layer(arrays.FILE_VERTEX_LAYER, ids)])
        numbered = self.job.tracks.get(index, [])
        welded, first = weld(mesh, [track.points for _, track in numbered])
        if welded is not mesh and numbered:
            self.job.tracks[index] = [
                (number, replace(track, points=track.points[:, first])) for number, track in numbered
            ]
        return welded, first

    def _set_normals(self, index: int, mesh: Mesh, built: bpy.types.Mesh, triangles: Mesh, *, is_skinned: bool) -> None:
        """Give a mesh the normals of its file, as the option ``normals`` chooses: none, exact or editable ones."""
        mode = self.options.normals
        if mode == "NONE" or mesh.normal is None:
            return
        exact = mode == "EXACT" or (mode == "AUTO" and len(mesh.corner_point) > AUTOMATIC_NORMALS_LIMIT)
        has_shapes = bool(mesh.shape_keys) and self.options.use_shape_keys
        if exact and (index in self.job.tracks or has_shapes or is_skinned):
            exact = False  # free normals do not follow deformation
        if not len(mesh.corner_point):
            return
        if exact:
            arrays.add_layer(built, "custom_normal", "FLOAT_VECTOR", mesh.normal, mesh.normal.values)
            built.meshferry.backward_normals = share_backwards(triangles)
        elif self.job.is_placed:
            # Normals have full precision in files that do not split vertices.
            is_quantised = self.job.capabilities.splits_vertices
            file_normals.set_and_store(built, mesh.normal, mesh.corner_point, is_quantised=is_quantised)
        else:
            file_normals.set_editable_normals(built, mesh.normal, mesh.corner_point)


def build_scene(job: ImportContext) -> Steps[int]:
    """Create the content of an import without linking it to a collection; return the number of actions."""
    nodes = job.scene.nodes
    if job.scene.skeletons:
        yield Step("Building armatures", 0.0)
    job.materials.link_from_library({name for node in nodes if node.mesh for name in node.mesh.materials if name})
    build_skeletons(job)
    builder = NodeBuilder(job)
    for index, node in enumerate(nodes):
        yield Step("Building objects", 0.7 * index / len(nodes))
        job.objects.append(builder.build(index, node))
    switch_on_weighted(job)
    helper_bones.show_used(job.scene, job.bones)
    helper_bones.hide(job.scene, job.bones, job.armatures)
    _relate_objects(job)
    actions = yield from scaled(ClipBuilder(job).build(), 0.7, 1.0)
    set_sliders(job)
    return actions


def _relate_objects(job: ImportContext) -> None:
    """Set the parents of objects, and store the finest object of each level of detail and physics shape."""
    for made, node in zip(job.objects, job.scene.nodes, strict=True):
        if node.parent >= 0:
            made.parent = job.objects[node.parent]
        objects.set_role(made, node, job.objects)
    if job.is_placed:
        objects.point_to_parts(job.scene.nodes, job.objects)
