"""Placement -> collections: one for each file, with groups and levels, instanced where files refer to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix

from ....io_formats.core.placement import Channels, ModelUse, PlacedCollection, PlacedNode, Placement, PlacementPart
from ....io_formats.passes.placement_changes import is_same_place
from ... import file_records, import_marks, names
from ...file_records import FileRecord
from ...mesh_data import checksums
from ...properties import store_fields
from ...shading.shaders import layers_of
from ...steps import Step, Steps, scaled
from ..import_context import ImportContext, ImportResult
from ..objects import hide_levels
from .node_objects import NodeObjects
from .placement_models import ModelBuilder, Stand, Template


class PlacedCollections:
    """Creates the collections of an import, and links its objects to them."""

    def __init__(self, job: ImportContext, parts: Sequence[PlacementPart]) -> None:
        self.job = job
        self.of_parts = [self._new(names.fit(part.name)) for part in parts]
        """The collection of each part."""
        self.groups = [self._add_groups(number, part.collections) for number, part in enumerate(parts)]
        """The collections of each part for the groups in ``PlacementPart.collections``."""
        self._levels: dict[tuple[int, int], bpy.types.Collection] = {}

    def link_object(self, made: bpy.types.Object, part: int, level: int = 0, group: int = -1) -> None:
        """Link an object of a part to the collection of its level of detail, or to that of its group."""
        if level:
            self._level(part, level).objects.link(made)
        else:
            (self.groups[part][group] if group >= 0 else self.of_parts[part]).objects.link(made)

    def link_to_scene(self) -> None:
        """Link the collections to the user's scene; collections of other files are linked without being shown."""
        context = self.job.request.context
        main, *others = self.of_parts
        context.scene.collection.children.link(main)
        if others:
            parts = self._new(names.fit(f"{main.name} Parts"))
            for other in others:
                parts.children.link(other)
            context.scene.collection.children.link(parts)
            for view_layer in context.scene.view_layers:
                layer = view_layer.layer_collection.children.get(parts.name)
                if layer is not None:
                    layer.exclude = True
        hide_levels(context.view_layer, [group for group in self.groups[0] if group.hide_render])

    def _new(self, name: str) -> bpy.types.Collection:
        return self.job.keep(bpy.data.collections.new(name))

    def _level(self, part: int, level: int) -> bpy.types.Collection:
        if (part, level) not in self._levels:
            home = self.of_parts[part]
            inner = self._levels[part, level] = self._new(names.fit(f"{home.name} LOD {level}"))
            inner.hide_viewport = inner.hide_render = True
            home.children.link(inner)
        return self._levels[part, level]

    def _add_groups(self, part: int, groups: Sequence[PlacedCollection]) -> list[bpy.types.Collection]:
        """Make the nested collections of a part; parents come before children."""
        home = self.of_parts[part]
        made: list[bpy.types.Collection] = []
        for group in groups:
            is_taken = names.fit(group.name) in bpy.data.collections
            above = made[group.parent] if group.parent >= 0 else home
            inner = self._new(names.fit(f"{group.name} {above.name}" if is_taken else group.name))
            inner.meshferry.source_name = names.readable(group.name)
            inner.hide_render = group.is_hidden
            # in instanced collections, hiding with the eye icon has no effect
            inner.hide_viewport = group.is_hidden and part > 0
            above.children.link(inner)
            made.append(inner)
        return made


_SHEAR = 1e-3
"""Largest cosine between two axes that counts as perpendicular."""
_EXACT = 3e-7
"""Largest cosine between two axes at which an object's transform represents a matrix exactly in single precision."""
_STEP = 32
"""Number of nodes that are created between two points at which the user can cancel."""


@dataclass
class _NewObjects:
    """Objects that are created for a node: copies of a template, or one object without a model."""

    node: PlacedNode
    names: list[str]
    template: Template | None = None
    made: list[bpy.types.Object] = field(default_factory=list)


class PlacementImporter:
    """Creates the collections and objects of a placement."""

    def __init__(self, job: ImportContext, placement: Placement) -> None:
        self.job = job
        self.placement = placement
        self.objects: list[bpy.types.Object] = []
        self.triangles = 0
        self._models = ModelBuilder(job)
        self._collections = PlacedCollections(job, placement.parts)
        self._plain = NodeObjects(job, self._collections.of_parts)
        self._sheared: list[str] = []
        self._import_ids = [import_marks.new_import() for _ in placement.parts]
        self._armatures: dict[bpy.types.Armature, bpy.types.Object] = {}
        """The armature object at the first node that shows a skinned model, by armature data."""

    def build(self) -> Steps[ImportResult]:
        """Create everything, and link the collections to the user's scene at the end."""
        nodes = [node for part in self.placement.parts for node in part.nodes]
        uses = dict.fromkeys(node.content for node in nodes if isinstance(node.content, ModelUse))
        self.job.materials.link_from_library({slot.material for use in uses for slot in use.slots if slot.material})
        yield from scaled(self._build_models(uses), 0.0, 0.7)
        planned = [self._plan(node) for node in nodes]
        yield from scaled(self._create([new for some in planned for new in some]), 0.7, 0.85)
        done = 0
        for number, part in enumerate(self.placement.parts):
            made: list[bpy.types.Object] = []
            hidden: list[bool] = []
            for node in part.nodes:
                if done % _STEP == 0:
                    yield Step("Placing objects", 0.85 + 0.15 * done / len(nodes))
                parent = made[node.parent] if node.parent >= 0 else None
                hidden.append(node.is_hidden or (node.parent >= 0 and hidden[node.parent]))
                made.append(self._build_node(number, node, planned[done], parent, hidden[-1]))
                done += 1
            self._find_sheared(part.nodes, made)
        self._models.remove_templates()
        self.job.materials.report_textures()
        self._models.report()
        text = "{} sheared, which Blender's objects cannot be; nearest transform: {}"
        self.job.report.change_of("sheared-transform", text, self._sheared, "node is", "nodes are", most=5)
        armatures, actions = list(self._armatures.values()), self._models.actions
        return self.job.finished(ImportResult(self._link(), self.objects, self.triangles, armatures, actions))

    def _link(self) -> bpy.types.Collection:
        """Link the collections to the user's scene, those of other files without showing them; return the main one."""
        collections = self._collections.of_parts
        main = collections[0]
        main.meshferry.from_file = True
        for collection, part, import_id in zip(collections, self.placement.parts, self._import_ids, strict=True):
            store_fields(collection.meshferry, self.job.scene)
            import_marks.write_origin(collection, self.job.request)
            collection.meshferry.import_id = import_id
            file = part.file if collection != main else self.job.request.source_path
            collection.meshferry.source_path = file
            if file and part.digest:
                record = FileRecord(Path(file).absolute(), self.job.scene.format, part.digest)
                file_records.write([collection], record)
        self._collections.link_to_scene()
        self.job.request.context.view_layer.update()
        return main

    def _build_models(self, uses: Iterable[ModelUse]) -> Steps[None]:
        """Create the models that nodes use, each with every set of surfaces that a node shows."""
        of_models: dict[int, list[ModelUse]] = {}
        for use in uses:
            of_models.setdefault(use.model, []).append(use)
        for number, (model, found) in enumerate(of_models.items()):
            placed = self.placement.models[model]
            building = self._models.build(placed, found)
            yield from scaled(building, number / len(of_models), (number + 1) / len(of_models), placed.name)

    def _stand(self, node: PlacedNode) -> Stand | None:
        return self._models.stands.get(node.content) if isinstance(node.content, ModelUse) else None

    def _plan(self, node: PlacedNode) -> list[_NewObjects]:
        """Return the objects of a node that have to be created, other than those of a model with a tree.

        If the model is below the node's object, that object comes first.
        """
        fitting, stand = names.fit(node.name), self._stand(node)
        if stand is None or stand.is_tree:
            return [_NewObjects(node, [fitting])]
        objects = stand.template.objects
        wanted = [
            names.fit(f"{node.name} Armature") if len(objects) > 1 and obj.type == "ARMATURE" else fitting
            for obj in objects
        ]
        if node.instances is None:
            return [_NewObjects(node, wanted, stand.template)]
        copies = [_NewObjects(node, wanted, stand.template) for _ in node.instances]
        return [_NewObjects(node, [fitting]), *copies]

    def _create(self, planned: Sequence[_NewObjects]) -> Steps[None]:
        """Create objects, and name them in the order of their names.

        In another order, 40,000 objects would take a minute, since Blender searches their locations in a sorted list.
        """
        wanted = [name for new in planned for name in new.names]
        given = names.distinct(wanted, (obj.name for obj in bpy.data.objects if obj.library is None))
        numbers = ((new, number) for new in planned for number in range(len(new.names)))
        named = sorted(zip(given, numbers, strict=True), key=lambda entry: names.in_order(entry[0]))
        for done, (_name, (new, _number)) in enumerate(named):
            if done % _STEP == 0:
                yield Step("Creating objects", 0.5 * done / len(named))
            if new.template is not None and not new.made:
                new.made = new.template.copy(self.job.keep)
        for done, (name, (new, number)) in enumerate(named):
            if done % _STEP == 0:
                yield Step("Creating objects", 0.5 + 0.5 * done / len(named))
            if new.template is None:
                new.made = [self._plain.build(new.node, name)]
            else:
                new.made[number].name = name

    def _build_node(
        self,
        part: int,
        node: PlacedNode,
        planned: Sequence[_NewObjects],
        parent: bpy.types.Object | None,
        is_hidden: bool,
    ) -> bpy.types.Object:
        """Place and mark the objects of a node; return the object that has the transform of the node."""
        stand, made = self._stand(node), planned[0].made[0]
        if stand is not None and planned[0].template is not None:
            self._put(part, planned[0], stand, parent, node.channels or node.matrix, is_hidden)
        else:
            self._plain.set_camera(node, made)
            _place(made, parent, node.channels or node.matrix)
            if is_hidden:
                made.hide_render = made.hide_viewport = True  # even in instances of its collection
            self._link_object(made, part, node)
        if node.is_linkset_root:
            for obj in planned[0].made:
                obj.meshferry.is_linkset_root = True
        import_marks.mark_node(made, node.key, node.name)
        import_marks.mark_object(made, self._import_ids[part])
        if stand is not None and stand.is_tree:
            self._hang(part, node, stand, made, is_hidden)
        elif stand is not None and node.instances is not None:
            for new, matrix in zip(planned[1:], node.instances, strict=True):
                self._put(part, new, stand, made, matrix, is_hidden)
        return made

    def _link_object(self, made: bpy.types.Object, part: int, node: PlacedNode) -> None:
        self.objects.append(made)
        self._collections.link_object(made, part, _level_of(node), node.collection)

    def _hang(self, part: int, node: PlacedNode, stand: Stand, parent: bpy.types.Object, is_hidden: bool) -> None:
        """Parent the objects of a model with a tree to a node's object.

        Their transforms are locked, since only the node as a whole can be moved.
        """
        for obj in stand.template.hang(parent, self.job.keep):
            if obj.hide_viewport != is_hidden:
                obj.hide_render = obj.hide_viewport = is_hidden
            import_marks.mark_part(obj, self._import_ids[part])
            self._link_object(obj, part, node)
        self.triangles += stand.template.triangles

    def _put(
        self,
        part: int,
        new: _NewObjects,
        stand: Stand,
        parent: bpy.types.Object | None,
        place: Channels | npt.NDArray[np.float64],
        is_hidden: bool,
    ) -> None:
        """Put the objects of a model at a node; the first is the mesh object, or the armature object above it."""
        node, made = new.node, new.made
        level = _level_of(node)
        for obj in made:
            if level:
                obj.meshferry.lod = level
            if stand.materials != stand.template.materials and obj.type == "MESH":
                self._set_materials(obj, stand)
            if is_hidden or stand.is_hidden:
                obj.hide_render = obj.hide_viewport = True  # even in instances of its collection
                obj.meshferry.has_hidden_surfaces = stand.is_hidden
            if obj.type == "MESH":
                obj.meshferry.node_slots = stand.slots
                stand.identities = stand.identities or "\n".join(import_marks.material_identities(obj))
                obj.meshferry.given_materials = stand.identities
                obj.meshferry.given_mesh = checksums.identity_of(obj.data)
            self._link_object(obj, part, node)
            if obj.type == "ARMATURE":
                self._armatures.setdefault(obj.data, obj)
        self.triangles += stand.template.triangles if level == 0 else 0
        _place(made[0], parent, place)
        for obj in made[0 if node.instances is not None else 1 :]:
            names.remember(obj, node.name)
            import_marks.mark_object(obj, self._import_ids[part])

    def _set_materials(self, obj: bpy.types.Object, stand: Stand) -> None:
        """Set the materials that differ from those of the mesh data on the object itself."""
        for slot, name, usual in zip(obj.material_slots, stand.materials, stand.template.materials, strict=False):
            if name != usual:
                slot.link = "OBJECT"
                slot.material = self.job.materials.find(name, layers_of(obj.data))

    def _find_sheared(self, nodes: Sequence[PlacedNode], made: Sequence[bpy.types.Object]) -> None:
        """Store on objects the part of their nodes' matrices that object transforms cannot represent.

        Collect sheared nodes.
        """
        if not nodes:
            return
        wanted = np.stack([node.matrix for node in nodes])
        axes = wanted[:, :3, :3]
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        unit = np.divide(axes, lengths, out=np.zeros_like(axes), where=lengths > 0)
        products = np.abs(np.einsum("nij,nik->njk", unit, unit))[:, [0, 0, 1], [1, 2, 2]].max(axis=1)
        has_matrix = np.array([node.channels is None for node in nodes])
        for index in np.flatnonzero(has_matrix & ((products > _EXACT) | (lengths == 0).any(axis=(1, 2)))).tolist():
            held = np.array(made[index].matrix_basis, np.float64)
            if not is_same_place(held, wanted[index]):
                made[index].meshferry.shear = _shear(held, wanted[index]).reshape(-1)
        self._sheared += [nodes[index].name for index in np.flatnonzero(products > _SHEAR).tolist()]


def _level_of(node: PlacedNode) -> int:
    return node.content.level if isinstance(node.content, ModelUse) else 0


def _shear(held: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the matrix by which ``held`` must be multiplied to get ``wanted``; zeros if there is none."""
    try:
        shear = np.linalg.solve(held, wanted).astype(np.float64)
    except np.linalg.LinAlgError:
        return np.zeros((4, 4))
    single = shear.astype(np.float32).astype(np.float64)  # rounded as the property stores it
    return shear if is_same_place(held @ single, wanted) else np.zeros((4, 4))


def _place(made: bpy.types.Object, parent: bpy.types.Object | None, place: Channels | npt.NDArray[np.float64]) -> None:
    """Set the transform of an object relative to its parent."""
    if parent is not None:
        made.parent = parent
    if not isinstance(place, Channels):
        made.rotation_mode = "QUATERNION"
        made.matrix_basis = Matrix(place.tolist())
        return
    # set channels directly: from a matrix, Blender computes rounded ones and chooses among equivalent Euler angles
    made.location, made.scale = place.location, place.scale
    if place.quaternion is None:
        made.rotation_mode, made.rotation_euler = place.order, place.rotation
    else:
        made.rotation_mode, made.rotation_quaternion = "QUATERNION", place.quaternion
