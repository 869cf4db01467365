"""Blender -> Scene; the user's scene is the same before and after."""

import contextlib
from collections.abc import Container

import bpy

from ...io_formats.core.messages import Details, Text, distinct, listed
from ...io_formats.core.scene import Node, Scene
from .. import import_marks, scene_state
from ..animated_blocks import Dependencies, dependencies
from ..animation.clip_sources import ClipSource, find_clips, played
from ..animation.pose_curves import moves_object
from ..animation.scene_time import SceneTime
from ..export_options import ExportOptions, ExportRequest
from ..steps import Step, Steps, finish, scaled
from . import node_plan
from .clip_sampling import ClipSampler, deforming_objects, is_keyed
from .left_out import report_left_out
from .model_exporter import ModelExport, SceneExport
from .models.lod_model_exporter import LodModelExport
from .node_plan import NodeMesh, NodeMeshes, PlannedNode, plan
from .object_selection import Source, candidates_of, select, with_ancestors
from .placements.placement_export import PlacementExport
from .reading.material_reading import names_in_files
from .reading.mesh_reading import MeshReader

__all__ = ["ExportOptions", "ExportRequest", "Source", "export_scene", "export_steps"]


def export_scene(request: ExportRequest) -> Scene:
    """Read objects from Blender as a scene.

    Returns
    -------
    Scene
        The scene, with texts for the user in ``warnings``.

    Raises
    ------
    ExportError
        There is nothing to export, an object has zero scale, or similar; the message names the object and says what to
        do.
    """
    return finish(export_steps(request))


def export_steps(request: ExportRequest) -> Steps[Scene]:
    """Do the same as :func:`export_scene` in steps. Between them the user's scene may be in another pose or frame."""
    context = request.context
    if context.mode not in {"OBJECT", "POSE"}:
        # Blender copies changes made in edit mode to the object data only on request.
        for obj in {context.object, *context.objects_in_mode} - {None}:
            obj.update_from_editmode()
    export: type[SceneExport] = ModelExport
    if request.capabilities.placement:
        export = PlacementExport
    elif request.capabilities.node_hierarchy:
        export = NodeTreeExport
    elif request.capabilities.lod_models:
        export = LodModelExport
    try:
        running = export(request)
        scene = yield from running.steps()
    except node_plan.SingularTransformError as problem:
        raise node_plan.all_singular(context, candidates_of(context, request.source), problem) from None
    can, clips = request.capabilities, bool(scene.clips)
    report_left_out(running.chosen, request.options, can, scene.report, has_clips=clips)
    scene.warnings[:] = distinct(scene.warnings)
    return scene


class NodeTreeExport(SceneExport):
    """One export to a format with a tree of nodes."""

    def __init__(self, request: ExportRequest) -> None:
        super().__init__(request)
        self.objects = select(self.context, self.source, use_hidden=self.options.use_hidden, report=self.report)
        self.chosen = self.objects
        collection = self.source.collection
        merge = self.merges()
        self.scene.file_materials = names_in_files(self.objects)
        self.nodes = plan(self.objects, collection.name if collection else request.name, merge=merge)
        if merge:
            self.report_dropped_empties()

    def report_dropped_empties(self) -> None:
        """Report empties that are dropped because objects are merged, and that have no node, children or instances."""
        kept = {node.obj for node in self.nodes} | {obj.parent for obj in self.objects}
        dropped = [
            obj.name for obj in self.objects if obj.type == "EMPTY" and obj.instance_type == "NONE" and obj not in kept
        ]
        if dropped:
            text = "empties whose names do not begin with # are left out where objects are merged"
            self.report.loss("unmarked-empties", text, **_unmarked(dropped))

    def report_merged_animations(self, clips: list[ClipSource]) -> None:
        """Report objects that clips move and that are merged into the node of another object."""
        moved = [
            part.name
            for node in self.nodes
            for part in [*node.parts, *node.instancers]
            if part is not node.obj and any(moves_object(part, clip) for clip in clips)
        ]
        if moved:
            number = Text("an animated object") if len(moved) == 1 else Text("animated objects")
            self.report.loss(
                "merged-animation",
                "{} without # before the name, merged into another node, whose vertices move instead; "
                "add # to move a node",
                number,
                **_unmarked(moved),
            )

    def merges(self) -> bool:
        """Return whether objects are merged into the nearest ancestor whose name starts with #.

        By default, objects of imported collections are not merged.
        """
        choice = self.options.merging
        collection = self.source.collection
        if choice == "AUTO" and collection is not None:
            choice = collection.meshferry.merging
            if choice == "AUTO":
                choice = "KEEP" if collection.meshferry.from_file else "MERGE"
        if choice == "AUTO":
            all_from_files = all(any(c.meshferry.from_file for c in obj.users_collection) for obj in self.objects)
            choice = "KEEP" if all_from_files else "MERGE"
        return bool(choice == "MERGE")

    def steps(self) -> Steps[Scene]:
        found = dependencies(self.objects)
        holds_clips = self.capabilities.node_clips or self.capabilities.vertex_clips
        clips = find_clips(self.context.scene, found, self.options, self.file_clips) if holds_clips else []
        with scene_state.kept(self.context, found.animated, played(clips)) if clips else contextlib.nullcontext():
            yield from self.read(clips, found)
        return self.scene

    def read(self, clips: list[ClipSource], found: Dependencies) -> Steps[None]:
        """Read the scene at rest, then sample each clip."""
        deforming: set[bpy.types.Object] = set()
        if clips:
            self.report_ranges(clips)
            self.report_merged_animations(clips)
            if self.capabilities.vertex_clips and self.options.animation_kind != "NODE":
                searching = deforming_objects(self.context.scene, clips, found.animated)
                deforming = yield from scaled(searching, 0.0, 0.05)
            clips[0].play(found.animated)
            time = SceneTime.of(self.context.scene)
            scene_state.set_frame(self.context.scene, time.scene_frame(clips[0].frames(time)[0]))
        animated = bool(clips)
        pinned = [obj for obj in self.objects if obj.meshferry.rest_is_basis]
        resting = scene_state.changed(self.context, scene_state.resting(pinned))
        with resting, scene_state.at_stored_rests(self.context, filter(_has_valid_rest, with_ancestors(self.objects))):
            depsgraph = self.context.evaluated_depsgraph_get()
            reader = MeshReader(depsgraph, self.options, self.capabilities, self.report)
            meshes = NodeMeshes(reader, depsgraph, self.options.tolerance)
            if self.source.origin is not None:
                meshes.set_origin(self.source.origin)
            reading = self.node_meshes(meshes, deforming, animated=animated)
            node_meshes = yield from scaled(reading, 0.05 if animated else 0.0, 0.4 if animated else 1.0)
            self.scene.nodes = [
                self.node(node, node_meshes.get(index), meshes) for index, node in enumerate(self.nodes)
            ]
        if animated:
            sampler = ClipSampler(self.context, self.nodes, self.scene, meshes, self.options, deforming)
            rest = scene_state.animated_values(found.animated, played(clips))
            for number, source in enumerate(clips):
                # Objects that this clip does not animate must be at rest, not in the last pose of the previous clip.
                source.play(found.animated)
                for channel in rest:
                    channel.restore()
                start, end = (0.4 + 0.6 * done / len(clips) for done in (number, number + 1))
                clip = yield from scaled(sampler.sample(source, node_meshes), start, end)
                if clip is not None:
                    self.scene.clips.append(clip)

    def node_meshes(
        self, meshes: NodeMeshes, deforming: Container[bpy.types.Object], *, animated: bool
    ) -> Steps[dict[int, NodeMesh]]:
        """Read the meshes of all nodes at rest. Those of ``deforming`` objects change their shape."""
        if self.options.use_instances:
            meshes.read_instances({obj for node in self.nodes for obj in meshes.owners(node)})
        else:
            self.leave_out_instances(self.objects)
        deforms = animated and self.capabilities.vertex_clips and self.options.animation_kind != "NODE"
        read: dict[int, NodeMesh] = {}
        for index, node in enumerate(self.nodes):
            yield Step("Reading meshes", index / len(self.nodes))
            moving = [part for part in node.parts if deforms and (part in deforming or _may_move(part, node))]
            found = meshes.read(node, moving)
            if found is not None:
                read[index] = found
        return read

    def node(self, planned: PlannedNode, found: NodeMesh | None, meshes: NodeMeshes) -> Node:
        """Make a node of the scene with its rest transform."""
        node = Node(planned.name, planned.parent, mesh=found.mesh if found else None)
        if planned.parent == -1:
            node.is_root = True
        rest = _rest(planned, meshes)
        node.translation, node.rotation, node.scale = rest.translation, rest.rotation, rest.scale
        if rest.sheared:
            text = "its transform is sheared, which a file cannot hold; the nearest without shear was exported"
            self.report.change("sheared-transform", text, item=planned.name)
        return node


def _rest(planned: PlannedNode, meshes: NodeMeshes) -> node_plan.Transform:
    obj = planned.obj
    if obj is not None:
        if _has_valid_rest(obj) and meshes.is_plain(planned):
            kept = obj.meshferry  # exactly as in the file
            return node_plan.Transform(tuple(kept.rest_location), tuple(kept.rest_rotation), tuple(kept.rest_scale))
        node_plan.require_size(obj, node_plan.world_matrix(obj.evaluated_get(meshes.depsgraph)))
    return meshes.local(planned)


def _has_valid_rest(obj: bpy.types.Object) -> bool:
    """Return whether an object has the rest transform of its file, which counts only below the parent there."""
    return obj.meshferry.has_rest and is_keyed(obj) and import_marks.has_given_space(obj)


def _unmarked(names: list[str]) -> Details:
    """Return the details of a message about objects whose names need a # at the start to become nodes."""
    return {"item": listed(names), "is_fixable": True, "names": tuple(names)}


def _may_move(part: bpy.types.Object, node: PlannedNode) -> bool:
    """Return whether a part may move relative to its node by its own or a parent's animation."""
    obj = part
    while obj is not None and obj is not node.obj:
        parent_moves = obj.parent is not None and not node_plan.hangs_on_object(obj)
        if obj.animation_data is not None or len(obj.constraints) or parent_moves or obj.rigid_body is not None:
            return True
        obj = obj.parent
    return False
