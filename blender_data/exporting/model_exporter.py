"""Blender -> Scene for formats without a node tree: undeformed meshes, skeletons and joint clips."""

from collections.abc import Iterable, Mapping, Sized

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import joined, listed
from ...io_formats.core.scene import Mesh, Node, Scene
from ...io_formats.passes.join_meshes import join
from .. import file_records, names
from ..animation.clip_sources import ClipSource
from ..armature_modifiers import MESHABLE, armature_of
from ..export_options import ExportRequest
from ..properties import stored_fields
from ..rigging.armature_reading import ReadSkeleton, SkeletonSpace, read_skeleton
from ..steps import Step, Steps, scaled
from . import node_plan
from .joint_sampling import JointSampler, report_baked
from .node_plan import NodeMeshes
from .object_selection import because, select, select_armatures
from .reading.mesh_reading import transformed
from .reading.rest_meshes import RestMeshes
from .real_instances import Copies, common_armature, parts_shown, real_instances, report_parts


class SceneExport:
    """One export: the request, the resulting scene, and its warnings."""

    def __init__(self, request: ExportRequest) -> None:
        self.context = request.context
        self.source = request.source
        self.options = request.options
        self.file_clips = request.file_clips
        self.baking = request.baking
        self.capabilities = request.capabilities
        self.scene = Scene(request.name, tolerance=request.options.tolerance)
        if self.source.collection is not None:
            self.scene.source_name = stored_fields(self.source.collection.meshferry, Scene).get("source_name", "")
        self.report = self.scene.report
        self.chosen: list[bpy.types.Object] = []
        """The exported objects."""

    def report_ranges(self, clips: Iterable[ClipSource]) -> None:
        """Report keys outside the frame ranges of imported actions."""
        self.scene.warnings += [message for clip in clips for message in clip.messages]

    def leave_out_instances(self, objects: Iterable[bpy.types.Object]) -> None:
        """Report that the options leave out the instances shown by objects."""
        names = sorted(obj.name for obj in objects if obj.instance_type != "NONE")
        if names:
            self.report.loss("instances-left-out", "Instances left out as chosen: {}", joined(names[:8]))

    def require_nodes(self, nodes: Sized) -> None:
        """Raise an error if there are no nodes; its text gives the warnings as the reason."""
        if not len(nodes):
            raise ExportError("There is no mesh to export{}", because(self.scene.warnings))

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps; its ``warnings`` are for the user.

        Raises
        ------
        ExportError
            The objects cannot be exported; the subclasses list the causes.
        """
        raise NotImplementedError


Matrix4 = npt.NDArray[np.float64]

_ALIGNED = 1e-7
"""Tolerance for each entry of matrices that count as equal."""


class ModelExport(SceneExport):
    """An export to a format without a node tree; the user's scene is unchanged afterwards.

    Every mesh object becomes a root node without transform, with its mesh in the space chosen by the option ``space``.
    A mesh that an armature deforms is in the space of the armature object, so that points and bones agree.
    """

    def __init__(self, request: ExportRequest) -> None:
        super().__init__(request)
        self.skeletons: dict[bpy.types.Object, ReadSkeleton] = {}
        self.spaces: dict[bpy.types.Object, SkeletonSpace] = {}
        self.copies: Copies = {}
        """The temporary copies of the objects in skinned collection instances."""

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps.

        Raises
        ------
        ExportError
            There is nothing to export, an object has zero scale, or an armature lacks the requested animation.
        """
        use_hidden = self.options.use_hidden
        if self.capabilities.meshes:
            objects = select(self.context, self.source, use_hidden=use_hidden, with_empties=False, report=self.report)
            self.chosen = objects
            is_real = self.capabilities.skeletons and self.options.use_instances
            with real_instances(self.context, objects if is_real else []) as self.copies:
                yield from scaled(self._read_objects(objects), 0.0, 0.5)
                report_baked(objects, self.options, self.capabilities, self.report)
                yield from scaled(self._read_clips(), 0.5, 1.0)
        else:
            self.chosen = select_armatures(self.context, self.source, use_hidden=use_hidden, report=self.report)
            for obj in self.chosen:
                self._skeleton(obj)
            yield from self._read_clips()
        return self.scene

    # -- skeletons ------------------------------------------------------------------------------

    def _skeleton(self, obj: bpy.types.Object) -> int:
        """Return the index of an armature's skeleton in the scene. The first call for an armature reads it."""
        if obj not in self.skeletons:
            node_plan.require_size(obj, node_plan.world_matrix(self._evaluated(obj)))
            deform_only = self.options.use_deform_bones_only
            read = read_skeleton(obj, deform_only=deform_only, report=self.report)
            space = SkeletonSpace(self._file_space(obj))
            self.skeletons[obj], self.spaces[obj] = read, space
            self.scene.skeletons.append(space.moved(read, self.report))
        return list(self.skeletons).index(obj)

    def _read_clips(self) -> Steps[None]:
        """Sample the joint clips of all skeletons, if the format holds them."""
        if not self.capabilities.joint_clips:
            return
        sampler = JointSampler(self.context, self.options, self.capabilities, self.report, self.file_clips)
        skeletons = [(read, self.spaces[obj]) for obj, read in self.skeletons.items()]
        self.scene.clips = yield from sampler.clips(skeletons)
        self.report_ranges(sampler.sources)
        if not self.scene.clips and not self.capabilities.meshes:
            raise ExportError(
                "{}: no animation to export; give the armature an action, or choose other clips",
                listed([obj.name for obj in self.skeletons]),
            )

    # -- meshes ---------------------------------------------------------------------------------

    def _read_objects(self, objects: list[bpy.types.Object]) -> Steps[None]:
        """Make a node of each object that has a mesh or shows instances."""
        meshes = RestMeshes(self.context, self.options, self.capabilities, self.report)
        instances = NodeMeshes(meshes.reader, meshes.reader.depsgraph, self.options.tolerance)
        place: dict[bpy.types.Object, int] = {}
        copies = [copy for members in self.copies.values() for copy in members]
        with meshes.at_rest([*objects, *(copy for copy in copies if copy.type in MESHABLE)]):
            instances.depsgraph = meshes.reader.depsgraph
            self._read_instances(instances, [*(obj for obj in objects if obj not in self.copies), *copies])
            for number, obj in enumerate(objects):
                yield Step("Reading meshes", number / len(objects))
                node = self._node(obj, meshes, instances)
                if node is not None:
                    place[obj] = len(self.scene.nodes)
                    self.scene.nodes.append(node)
        for obj, number in place.items():
            finest = obj.meshferry.lod_of
            if finest in place and finest != obj:
                self.scene.nodes[number].lod = max(1, obj.meshferry.lod)
                self.scene.nodes[number].lod_of = place[finest]
        self._report_lost_parents(place)
        self.require_nodes(self.scene.nodes)

    def _report_lost_parents(self, exported: Mapping[bpy.types.Object, int]) -> None:
        """Report objects whose parent is an exported object or a bone, since the format stores no parents."""
        lost = [
            obj.name
            for obj in exported
            if obj.parent_type == "BONE" or (obj.parent in exported and obj.meshferry.lod_of is None)
        ]
        if lost:
            text = "the parent (an object or a bone) is not carried over"
            self.report.loss("parent-left-out", text, item=listed(lost))

    def _read_instances(self, instances: NodeMeshes, objects: list[bpy.types.Object]) -> None:
        if self.options.use_instances:
            parts = parts_shown([*objects, *self.copies])
            report_parts(parts, self.report)
            instances.left_out = set(parts)
            instances.read_instances(set(objects))
        else:
            self.leave_out_instances(objects)

    def _node(self, obj: bpy.types.Object, meshes: RestMeshes, instances: NodeMeshes) -> Node | None:
        """Return the node of an object, or None if it has no visible mesh."""
        members = self.copies.get(obj, [obj])
        armature = None
        if self.capabilities.skeletons and obj.type in MESHABLE:
            armature = armature_of(obj)
        elif obj in self.copies:
            armature = common_armature(obj, members)
        skeleton = self._skeleton(armature) if armature is not None else None
        parts: list[Mesh] = []
        for member in members:
            parts += self._member_parts(member, armature, meshes, instances)
        if not parts:
            return None
        sources = [obj, *(source for member in members for source in (member, *instances.shown.get(member, ())))]
        node = Node(
            names.name_in_file(obj), mesh=join(parts), skeleton=skeleton, choices=file_records.read_choices(*sources)
        )
        carrier = armature or obj
        node.world = node_plan.world_matrix(self._evaluated(carrier)) @ np.linalg.pinv(self._file_space(carrier))
        return node

    def _member_parts(
        self, obj: bpy.types.Object, armature: bpy.types.Object | None, meshes: RestMeshes, instances: NodeMeshes
    ) -> list[Mesh]:
        """Return the meshes of an object and of its instances in the space of the file.

        ``armature`` is the armature that deforms the object, if any.
        """
        parts: list[Mesh] = []
        if obj.type in MESHABLE:
            deforms = armature is not None and (armature_of(obj) == armature)
            own = meshes.read(obj, self.skeletons[armature] if armature is not None and deforms else None)
            if own is not None:
                node_plan.require_size(obj, node_plan.world_matrix(self._evaluated(obj)))
                parts.append(transformed(own, self._to_file(obj, armature)))
        to_file = self._from_world(obj, armature)
        parts += [transformed(mesh, to_file @ matrix) for mesh, matrix in instances.instances.get(obj, [])]
        return parts

    def _evaluated(self, obj: bpy.types.Object) -> bpy.types.Object:
        return obj.evaluated_get(self.context.evaluated_depsgraph_get())

    # -- spaces ---------------------------------------------------------------------------------

    def _file_space(self, obj: bpy.types.Object) -> Matrix4:
        """Return the matrix from an object's own space to the space of the file, which the option ``space`` chooses."""
        choice = self.options.space
        matrix = np.identity(4) if choice == "OWN" else node_plan.world_matrix(self._evaluated(obj)).copy()
        if choice == "TURNED_AND_SCALED":
            matrix[:3, 3] = 0
        return matrix

    def _to_file(self, obj: bpy.types.Object, armature: bpy.types.Object | None) -> Matrix4:
        """Return the matrix from an object's own space to that of the file; deformed objects follow their armature."""
        if armature is None:
            return self._file_space(obj)
        held = node_plan.world_matrix(self._evaluated(armature))
        relative = np.linalg.inv(held) @ node_plan.world_matrix(self._evaluated(obj))
        if np.allclose(relative, np.identity(4), rtol=0, atol=_ALIGNED):
            # An object that did not move relative to its armature since the import is exported exactly.
            relative = np.identity(4)
        return self._file_space(armature) @ relative

    def _from_world(self, obj: bpy.types.Object, armature: bpy.types.Object | None) -> Matrix4:
        """Return the matrix from world space to the space of the file that contains an object."""
        carrier = armature or obj
        if self.options.space == "WORLD":
            return np.identity(4)
        return self._file_space(carrier) @ np.linalg.pinv(node_plan.world_matrix(self._evaluated(carrier)))
