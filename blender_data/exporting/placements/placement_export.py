"""Blender -> Scene for files that place models: nodes for objects, parts for instanced collections, cameras."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import bpy
import numpy as np

from ....io_formats.core.messages import listed
from ....io_formats.core.placement import (
    Camera,
    Content,
    Matrix,
    ModelUse,
    PartUse,
    PlacedNode,
    Placement,
    PlacementPart,
)
from ....io_formats.core.scene import Scene
from ... import names, scene_state
from ...animation import pose_curves
from ...armature_modifiers import MESHABLE
from ...export_options import ExportRequest
from ...rigging.armature_reading import SkeletonSpace
from ...steps import Step, Steps, scaled
from .. import node_plan
from ..joint_sampling import JointSampler
from ..left_out import Movement, Movements
from ..model_exporter import SceneExport
from ..models.material_bakes import Bakery
from ..object_selection import is_hidden_node, is_of_body, parents_first, select
from ..reading.mesh_reading import shows_surface
from ..reading.rest_meshes import RestMeshes
from ..reading.shading_reading import read_shadings
from .object_transforms import ObjectPlaces
from .placement_models import Instance, PlacedModels, instances_of
from .placement_objects import report_changed_materials


def read_camera(obj: bpy.types.Object, scene: bpy.types.Scene) -> Camera:
    """Return a camera with its vertical extent at the resolution of the scene."""
    data = obj.data
    corners = data.view_frame(scene=scene)
    heights = [corner.y for corner in corners]
    height = max(heights) - min(heights)
    is_main = scene.camera == obj
    if data.type == "ORTHO":
        return Camera(0.0, height, data.clip_start, data.clip_end, is_main)
    angle = 2.0 * math.atan2(height / 2.0, -corners[0].z)
    return Camera(angle, 0.0, data.clip_start, data.clip_end, is_main)


_NAMED = 5


@dataclass
class PlacedPart:
    """The objects of one part of the placement, and their nodes."""

    name: str
    objects: list[bpy.types.Object]
    """Parents before their children."""
    root: Matrix = field(default_factory=lambda: np.identity(4))
    """(4, 4) matrix from the world to the space of the part."""
    nodes: list[PlacedNode] = field(default_factory=list)
    node_of: dict[bpy.types.Object, int] = field(default_factory=dict)


class PlacementExport(SceneExport):
    """An export to a format that places models; the user's scene is unchanged afterwards.

    A node has the matrix of its object relative to the parent node, in double precision. The model of a deformed object
    is in the space of its armature object, and so is its node. An armature is a node itself if it has other children,
    or deforms several objects.
    """

    def __init__(self, request: ExportRequest) -> None:
        super().__init__(request)
        use_hidden = self.options.use_hidden
        objects = select(self.context, self.source, use_hidden=use_hidden, places_models=True, report=self.report)
        collection = self.source.collection
        self.parts = [PlacedPart(collection.name if collection is not None else request.name, objects)]
        self._part_of: dict[bpy.types.Collection, int] = {}
        self.bakery = Bakery(self)
        self.hidden = {obj for obj in objects if not obj.visible_get(view_layer=self.context.view_layer)}

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps.

        Raises
        ------
        ExportError
            There is nothing to export, or an object has zero scale.
        """
        if self.options.use_instances:
            for part in self.parts:  # the list grows during the loop, by the collections that its parts instance
                self._add_parts(part)
        else:
            self.leave_out_instances(self.parts[0].objects)
        objects = self.chosen = list(dict.fromkeys(obj for part in self.parts for obj in part.objects))
        with scene_state.evaluated(self.context, objects):
            yield from self._read(objects)
        self._report_left_out(objects)
        return self.scene

    # -- parts ---------------------------------------------------------------------------------

    def _add_parts(self, part: PlacedPart) -> None:
        """Add a part for each collection that is instanced by an object of this part and does not have a part yet."""
        for obj in part.objects:
            collection = _instanced(obj)
            if collection is None or collection in self._part_of:
                continue
            self._part_of[collection] = len(self.parts)
            members = parents_first(_shown_members(collection))
            offset = np.identity(4)
            offset[:3, 3] = -np.array(collection.instance_offset, np.float64)
            self.hidden.update(obj for obj in members if obj.hide_viewport)
            is_import = bool(collection.meshferry.source_path)
            name = names.without_number(collection.name) if is_import else collection.name
            self.parts.append(PlacedPart(name, members, offset))

    def _read(self, objects: list[bpy.types.Object]) -> Steps[None]:
        """Read all nodes and models while Blender evaluates all objects."""
        of_models = replace(self.capabilities, node_hierarchy=False)  # the files of models have no tree of nodes
        meshes = RestMeshes(self.context, self.options, of_models, self.report)
        depsgraph = meshes.reader.depsgraph
        places = ObjectPlaces(depsgraph)
        models = PlacedModels(meshes, places, self.options)
        shown = [instance.object.original for instance in depsgraph.object_instances if instance.is_instance]
        with meshes.at_rest(obj for obj in dict.fromkeys([*objects, *shown]) if obj.type in MESHABLE):
            places.depsgraph = meshes.reader.depsgraph
            instances = self._instances(models, objects, meshes)
            for number, part in enumerate(self.parts):
                builder = _PartBuilder(self, part, places, models)
                for done, obj in enumerate(builder.with_nodes()):
                    yield Step("Reading meshes", 0.5 * (number + done / len(part.objects)) / len(self.parts))
                    builder.add(obj)
                builder.add_instances(instances)
                builder.hide()
            yield from scaled(self.bakery.bake(models.bake_tasks()), 0.5, 1.0)
            models.rename(self.bakery, (node for part in self.parts for node in part.nodes))
        if self.capabilities.joint_clips and self.options.clips != "NONE":
            yield from self._read_clips(models)
        parts = [PlacementPart(part.name, part.nodes) for part in self.parts]
        self.scene.placement = Placement(parts, models.models())
        self._read_materials(models)

    def _read_clips(self, models: PlacedModels) -> Steps[None]:
        """Sample every action of the armatures, with all bones, and name the active one at the nodes that it moves."""
        options = self.options.with_values(clips="ACTIONS", animated_bones="ALL", clip_names="", frame_rate=0.0)
        sampler = JointSampler(self.context, options, self.capabilities, self.report, self.file_clips)
        skeletons = [(read, SkeletonSpace(np.identity(4))) for read in models.skeletons.values()]
        clips = yield from sampler.clips(skeletons)
        self.report_ranges(sampler.sources)
        active: dict[bpy.types.Object, str] = {}
        for clip, (rig, source) in zip(clips, sampler.owners, strict=True):
            tracks = [replace(track, skeleton=0) for track in clip.transforms]
            models.clips.setdefault(rig, []).append(replace(clip, transforms=tracks))
            action = rig.animation_data.action
            if action is not None and action == pose_curves.action_of(rig, source)[0]:
                active[rig] = clip.name
        movements = Movements()
        rigs = dict.fromkeys([*models.skeletons, *(obj for obj in self.chosen if obj.type == "ARMATURE")])
        still = [rig for rig in rigs if rig not in models.clips]
        lost = sorted(rig.name for rig in still if Movement.BONES in movements.of(rig))
        if lost:
            text = "its animation is not in the file; export it with File > Export to an animation file"
            self.report.loss("armature-animation-left-out", text, item=listed(lost))
        for part in self.parts:
            for obj, number in part.node_of.items():
                use, rig = part.nodes[number].content, models.rig_of(obj)
                if rig in active and isinstance(use, ModelUse):
                    part.nodes[number].content = replace(use, animation=active[rig])

    def _instances(
        self, models: PlacedModels, objects: Sequence[bpy.types.Object], meshes: RestMeshes
    ) -> list[Instance]:
        if not self.options.use_instances:
            return []
        found = list(instances_of(models, set(objects), meshes.reader.depsgraph))
        models.owners = {owner for owner, _shown, _world in found}
        return found

    def part_of(self, obj: bpy.types.Object) -> PartUse | None:
        """Return the part that an object instances, or None."""
        collection = _instanced(obj)
        return PartUse(self._part_of[collection]) if collection in self._part_of else None

    def _read_materials(self, models: PlacedModels) -> None:
        used = {name: models.materials.by_name[name] for name in models.used_materials}
        shown, bakery = {**used, **self.bakery.materials}, self.bakery
        layers, report = models.layers(), self.report
        self.scene.materials = read_shadings(shown, layers, report, bakery.shadings, bakery.report)
        report_changed_materials(used.values(), self.report)

    # -- messages ------------------------------------------------------------------------------

    def _report_left_out(self, objects: Sequence[bpy.types.Object]) -> None:
        """Report parent bones, which no file of the export can store."""
        on_bones = [obj.name for obj in objects if obj.parent is not None and obj.parent_type == "BONE"]
        if on_bones:
            text = "its parent bone is not carried over; it stands where the bone rests"
            self.report.loss("parent-left-out", text, item=listed(on_bones))


class _PartBuilder:
    """Builds the nodes of one part."""

    def __init__(self, export: PlacementExport, part: PlacedPart, places: ObjectPlaces, models: PlacedModels) -> None:
        self.export = export
        self.part = part
        self.places = places
        self.models = models
        self.rig_of = {obj: models.rig_of(obj) for obj in part.objects}
        self.hidden: list[bool] = []

    def with_nodes(self) -> list[bpy.types.Object]:
        """Return the objects that become nodes.

        Objects that are visible only as instances of their parent are excluded, and so are armatures that need no node.
        Armatures come before the objects that they deform.
        """
        shown = [obj for obj in self.part.objects if not self._is_instanced_only(obj)]
        bound = [rig for obj in shown if (rig := self.rig_of[obj]) is not None]
        parents = {obj.parent for obj in shown if self.rig_of[obj] is None and obj.type != "ARMATURE"}
        nodes = [obj for obj in shown if obj.type != "ARMATURE" or obj in parents or bound.count(obj) > 1]
        ordered: dict[bpy.types.Object, None] = {}
        waiting = set(nodes)

        def visit(obj: bpy.types.Object | None) -> None:
            if obj in waiting:
                waiting.remove(obj)
                visit(obj.parent)
                visit(self.rig_of[obj])
                ordered.setdefault(obj)

        for obj in nodes:
            visit(obj)
        return list(ordered)

    def add(self, obj: bpy.types.Object) -> None:
        """Add the node of an object."""
        rig = self.rig_of[obj]
        frame = rig or obj
        above = frame if rig is not None and rig in self.part.node_of else frame.parent
        while above is not None and above not in self.part.node_of:
            above = above.parent
        matrix = self.places.relative(frame, self._frame(above) if above is not None else None)
        if above is None:
            matrix = self.part.root @ matrix
        node_plan.require_size(obj, self.places.world(frame))
        node = PlacedNode(names.name_in_file(obj), -1 if above is None else self.part.node_of[above], matrix)
        self._take_over(obj, node)
        node.content = self._content(obj)
        self._append(node, obj in self.export.hidden)
        self.part.node_of[obj] = len(self.part.nodes) - 1

    def add_instances(self, instances: Sequence[Instance]) -> None:
        """Add a node for each instance that an object of this part shows, below the node of that object."""
        for owner, shown, world in instances:
            if owner not in self.part.node_of:
                continue
            use = shown if isinstance(shown, ModelUse) else self.models.use(shown)
            matrix = self.places.seen_from(self._frame(owner), world)
            name = names.name_in_file(owner if isinstance(shown, ModelUse) else shown)
            number = self.part.node_of[owner]
            self._append(PlacedNode(name, number, matrix, use), self.hidden[number])

    def hide(self) -> None:
        """Hide the topmost nodes of hidden objects.

        If visible nodes are below such a node, it becomes a plain node without content instead.
        """
        has_shown = [False] * len(self.part.nodes)
        plain: list[str] = []
        for number in range(len(self.part.nodes) - 1, -1, -1):
            node = self.part.nodes[number]
            if self.hidden[number] and has_shown[number] and node.content is not None:
                node.content = None
                plain.append(node.name)
            if node.parent >= 0:
                has_shown[node.parent] |= has_shown[number] or not self.hidden[number]
        for number, node in enumerate(self.part.nodes):
            is_below = node.parent >= 0 and self.hidden[node.parent] and not has_shown[node.parent]
            node.is_hidden = self.hidden[number] and not has_shown[number] and not is_below
        text = "{} with visible children, which became nodes without a mesh: {}"
        self.export.report.loss_of("hidden-parents", text, plain, "hidden object", most=_NAMED)

    def _append(self, node: PlacedNode, is_hidden: bool) -> None:
        self.part.nodes.append(node)
        self.hidden.append(is_hidden)

    def _frame(self, obj: bpy.types.Object) -> bpy.types.Object:
        """Return the object in whose space the node of an object is."""
        return self.rig_of[obj] or obj

    def _is_instanced_only(self, obj: bpy.types.Object) -> bool:
        """Return whether Blender shows an object only at the vertices or faces of its parent."""
        parent = obj.parent if self.export.options.use_instances else None
        return parent is not None and parent.instance_type in {"VERTS", "FACES"}

    def _content(self, obj: bpy.types.Object) -> Content | None:
        """Return the content of the node of an object: a model, a camera, or the part of an instanced collection."""
        if obj.type in MESHABLE:
            return self.models.use(obj) if shows_surface(obj.evaluated_get(self.places.depsgraph)) else None
        if obj.type == "CAMERA":
            return read_camera(obj, self.export.context.scene)
        if obj.type == "LIGHT":
            self.export.report.loss("unsupported-objects", "lights cannot be exported", item=obj.name)
            return None
        return self.export.part_of(obj)

    @staticmethod
    def _take_over(obj: bpy.types.Object, node: PlacedNode) -> None:
        """Copy to a node the type and the shear that an import stored on its object, since Blender cannot show them."""
        kept = obj.meshferry
        if not kept.node_key:
            return
        node.kind = str(obj.get("type", ""))
        shear = np.array(kept.shear, np.float64).reshape(4, 4)
        if kept.is_property_set("shear") and shear.any():
            node.matrix = node.matrix @ shear


def _instanced(obj: bpy.types.Object) -> bpy.types.Collection | None:
    """Return the collection of which an object shows an instance, or None."""
    return obj.instance_collection if obj.instance_type == "COLLECTION" else None


def _shown_members(collection: bpy.types.Collection) -> list[bpy.types.Object]:
    """Return the objects that are visible in instances of a collection, and hidden nodes of imported files.

    Bodies to fit clothes on are left out.
    """
    members = [obj for obj in collection.objects if not is_of_body(obj)]
    found = [obj for obj in members if not obj.hide_viewport or is_hidden_node(obj)]
    for child in collection.children:
        if not child.hide_viewport:
            found += _shown_members(child)
    return list(dict.fromkeys(found))
