"""Blender -> Scene for files whose objects are models with a transform, levels of detail, shapes and a binding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import Mesh, Node, Role, Scene, Surface
from ....io_formats.passes import lod_names
from ....io_formats.passes.join_meshes import EqualMeshes
from ... import names, scene_state
from ...armature_modifiers import MESHABLE, armature_of
from ...export_options import ExportRequest
from ...rigging import body_shapes, joint_poses
from ...rigging.armature_reading import ReadSkeleton, read_skeleton
from ...steps import Step, Steps, scaled
from .. import node_plan
from ..model_exporter import SceneExport
from ..object_selection import enabled_objects, with_ancestors
from ..reading import rest_meshes
from ..reading.mesh_reading import transformed
from ..reading.rest_meshes import RestMeshes
from ..real_instances import common_armature, parts_shown, real_instances, report_parts
from .generated_parts import PartGenerator
from .model_materials import ModelMaterials
from .model_meshes import LodModelMeshes, ObjectSpaces, exact_product, lod_model_skeleton, matrix_of
from .model_objects import ModelIndex, ModelNodes, ModelObjects, find_models


def without_unused_slots(mesh: Mesh) -> Mesh:
    """Return the finest mesh of a model with the slots to export.

    Slots with the same material are merged and slots without triangles are removed. Imported slots are not changed,
    since the target program may refer to them by index.
    """
    if any(surface.order is not None for surface in mesh.surfaces) or len(mesh.materials) < 2:
        return mesh
    used = set(np.unique(mesh.material_index).tolist())
    names = list(dict.fromkeys(name for slot, name in enumerate(mesh.materials) if slot in used))
    if not names or names == mesh.materials:
        return mesh
    table = [names.index(name) if name in names else 0 for name in mesh.materials]
    return _moved(mesh, table, names, [mesh.surfaces[mesh.materials.index(name)] for name in names])


def with_slots_of(mesh: Mesh, finest: Mesh, *, is_shape: bool = False) -> Mesh:
    """Return a coarser level or a physics shape with the slots of the finest mesh.

    Slots are matched by the names of their materials, repeated names in order. Triangles without a material go to the
    only slot of the finest mesh. A material that the finest mesh lacks gets an additional slot at the end, so that the
    checks can name it; in physics shapes, whose materials are not shown, its triangles go to the first slot.
    """
    if mesh.materials == finest.materials:
        return mesh
    names = list(finest.materials)
    places: dict[str, list[int]] = {}
    for slot, name in enumerate(names):
        places.setdefault(name, []).append(slot)
    seen: dict[str, int] = {}
    table = []
    used = set(np.unique(mesh.material_index).tolist())
    for slot, name in enumerate(mesh.materials):
        occurrence = seen[name] = seen.get(name, -1) + 1
        found = places.get(name)
        if found is not None:
            table.append(found[min(occurrence, len(found) - 1)])
        elif is_shape or slot not in used or (not name and len(finest.materials) == 1):
            table.append(0)
        else:
            places[name] = [len(names)]
            table.append(len(names))
            names.append(name)
    return _moved(mesh, table, names, _surfaces(mesh, finest, table, names))


def _surfaces(mesh: Mesh, finest: Mesh, table: Sequence[int], names: Sequence[str]) -> list[Surface]:
    """Return a surface for each slot: that of the mesh itself, or else a copy of the finest mesh's surface.

    ``names`` are the names of the slots, and ``table`` has the slot of each slot of the mesh. Quantisation ranges are
    removed from copies.
    """
    found = [surface.without_domains() for surface in finest.surfaces[: len(names)]]
    found += [Surface(name) for name in names[len(found) :]]
    used = set(np.unique(mesh.material_index).tolist())
    for slot, surface in enumerate(mesh.surfaces):
        if slot in used or surface.name == found[table[slot]].name:
            found[table[slot]] = surface
    return found


def _moved(mesh: Mesh, table: Sequence[int], names: list[str], surfaces: list[Surface]) -> Mesh:
    index = np.array(table, np.int32)[mesh.material_index]
    return replace(mesh, material_index=index, materials=names, surfaces=surfaces)


Matrix4 = npt.NDArray[np.float64]

_APART = 0.1
"""Distance between the centres of two levels, relative to the diagonal of the finest, above which the levels count as
side by side."""


@dataclass
class _Part:
    """The mesh and transform of one object of a model."""

    mesh: Mesh
    """In the object's own space."""
    place: Matrix4
    """(4, 4) matrix from the object's own space to the world; for an object that an armature deforms, to the space
    relative to that armature."""
    is_bound: bool = False
    """Whether an armature deforms the object."""


class LodModelExport(SceneExport):
    """One export of models with their transforms; the user's scene is the same before and after.

    A model consists of the node of its finest object, followed by those of its coarser levels, its physics shape and
    its hulls. All of them have the transform of the finest object, and all meshes are in its space. This is the
    object's world transform, or, for a deformed object, the one relative to its armature, with the armature's rotation
    and scale but not its location. Scales are positive; mirroring and shear are applied to the points. For the order of
    models see :func:`.model_objects.find_models`.
    """

    def __init__(self, request: ExportRequest) -> None:
        super().__init__(request)
        self.as_imported = self.scene.as_imported = self.options.use_as_imported
        self.skeletons: dict[bpy.types.Object, ReadSkeleton] = {}
        self.meshes = RestMeshes(self.context, self.options, self.capabilities, self.report)
        self.spaces = ObjectSpaces(self.meshes)
        self.objects = LodModelMeshes(self.spaces, self.options.tolerance)
        self.equal_meshes = EqualMeshes()
        self.materials = ModelMaterials(self, self.objects)

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps.

        Raises
        ------
        ExportError
            There is nothing to export, or an object has zero scale.
        """
        found = find_models(self.context, self.source, self.options, self.report)
        self.chosen = [model.finest for model in found]
        parts = list(dict.fromkeys(obj for model in found for obj in model.parts()))
        enabled = set(enabled_objects(self.context.view_layer.layer_collection))
        unseen = [obj for obj in parts if obj not in enabled]
        instances = parts if self.capabilities.skeletons and self.options.use_instances else []
        with (
            self.materials,
            scene_state.changed(self.context, scene_state.on_resting_bones(parts)),
            scene_state.stand_ins(self.context, unseen) as self.spaces.stand_ins,
            real_instances(self.context, instances) as self.objects.copies,
        ):
            if self.options.use_instances:
                report_parts(parts_shown(parts, ModelIndex(bpy.data.objects).parts), self.report)
            copies = [copy for members in self.objects.copies.values() for copy in members]
            seen = [*(self.spaces.stand_in(obj) for obj in parts), *copies]
            with self.meshes.at_rest(obj for obj in seen if obj.type in MESHABLE):
                self._read_instances(found)
                models = yield from scaled(self._read_models(found), 0.0, 0.2)
                yield from scaled(self.materials.bake(models, (*parts, *copies)), 0.2, 0.6)
            self.require_nodes(models)
            _name_apart(models)
            if not self.as_imported:
                yield from scaled(PartGenerator(self.options, self.report).generate(models), 0.6, 1.0)
            linkset_root(models).finest.is_linkset_root = True
            for model in models:
                self.scene.nodes += model.nodes(len(self.scene.nodes))
            self.scene.materials = self.materials.read()
        return self.scene

    def _read_models(self, found: list[ModelObjects]) -> Steps[list[ModelNodes]]:
        """Read all models whose finest object has a visible mesh."""
        models: list[ModelNodes] = []
        for number, objects in enumerate(found):
            yield Step("Reading meshes", number / len(found), objects.finest.name)
            model = self._read_model(objects)
            if model is not None:
                _share_meshes(model, self.equal_meshes)
                models.append(model)
        return models

    def _read_model(self, objects: ModelObjects) -> ModelNodes | None:
        """Read a model; return None if its finest object has no visible mesh."""
        finest = objects.finest
        armature = armature_of(finest) if finest.type in MESHABLE else None
        if finest in self.objects.copies:
            armature = common_armature(finest, self.objects.copies[finest])
        read = self._read_part(finest, armature)
        if read is None:
            if finest.type not in MESHABLE:
                text = "nothing that it instances is a model; left out"
                self.report.loss("instance-without-model", text, item=finest.name)
            return None
        is_on_bone = finest.parent is not None and finest.parent_type == "BONE" and not read.is_bound
        if is_on_bone and not body_shapes.is_attached(finest):
            text = "its parent bone is not carried over; give it weights of that bone"
            self.report.loss("parent-left-out", text, item=finest.name)
        transform = self.spaces.transform(finest, armature if read.is_bound else None, read.place)
        if not self.as_imported:
            read.mesh = without_unused_slots(read.mesh)
        into = joint_poses.inverse(matrix_of(transform))
        rig = armature if read.is_bound else None
        mesh = _placed(read, into)
        node = _node_of(finest, transform, mesh)
        inside = exact_product(into, read.place)
        if not np.array_equal(inside, np.identity(4)):
            node.to_object = joint_poses.inverse(inside)
        if rig is not None:
            node.skeleton = list(self.skeletons).index(rig)
            node.skin = rest_meshes.read_skin(
                finest, self.spaces.relative(finest, rig), self.spaces.of_armature(rig).space
            )
        model = ModelNodes(finest, node, mesh)
        for level, obj in sorted(objects.levels.items()):
            coarser = self._read_beside(obj, finest, read, into, armature)
            if coarser is not None:
                model.add_level(level, coarser[0], to_object=coarser[1])
        self._read_shapes(model, objects, read, into, armature)
        return model

    def _read_shapes(
        self, model: ModelNodes, objects: ModelObjects, finest: _Part, into: Matrix4, armature: bpy.types.Object | None
    ) -> None:
        """Read the physics shape and the hulls of a model; nothing deforms them."""
        if objects.physics is not None:
            found = self._read_beside(objects.physics, objects.finest, finest, into, armature, is_shape=True)
            if found is not None:
                mesh = replace(found[0], joint_indices=None, joint_weights=None)
                name = names.name_in_file(objects.physics)
                model.physics = model.shape(name, mesh, Role.PHYSICS, to_object=found[1])
        for obj in (*objects.hulls, *((objects.base_hull,) if objects.base_hull else ())):
            part = _Part(self.objects.hull_of(obj), self.spaces.place(obj, armature if finest.is_bound else None))
            node_plan.require_size(obj, part.place)
            place = _location_beside(part, finest)
            is_base, to_object = obj == objects.base_hull, _to_object(into, place)
            fields = {"is_base_hull": is_base, "to_object": to_object}
            made = model.shape(names.name_in_file(obj), _placed(part, into, place), Role.HULL, **fields)
            if is_base:
                model.base_hull = made
            else:
                model.hulls.append(made)

    def _read_beside(
        self,
        obj: bpy.types.Object,
        owner: bpy.types.Object,
        finest: _Part,
        into: Matrix4,
        armature: bpy.types.Object | None,
        *,
        is_shape: bool = False,
    ) -> tuple[Mesh, Matrix4] | None:
        """Read a coarser level or a physics shape in the space of the nodes of its model; return it and ``to_object``.

        ``owner`` is the finest object of the model, ``finest`` its part, and ``into`` the matrix to the space of the
        nodes.
        """
        own = armature_of(obj)
        part = self._read_part(obj, own or armature if finest.is_bound and not is_shape else None, bones=armature)
        if part is None:
            return None
        if finest.is_bound and not part.is_bound:
            part.place = self.spaces.place(obj, armature)
        is_static = not finest.is_bound and not part.is_bound
        if is_static and self.spaces.is_of_duplicate(obj, owner, part.place, finest.place):
            part.place = finest.place
        place = _location_beside(part, finest, keeps_place=part.is_bound and own is not None)
        mesh = with_slots_of(_placed(part, into, place), finest.mesh, is_shape=is_shape)
        return mesh, _to_object(into, place)

    def _read_part(
        self, obj: bpy.types.Object, armature: bpy.types.Object | None, bones: bpy.types.Object | None = None
    ) -> _Part | None:
        """Read an object; return None if it has no visible mesh.

        ``armature`` is the armature that deforms it. Its weights refer to the bones of the armature ``bones`` if given,
        otherwise to those of ``armature``.
        """
        mesh = self.objects.mesh_of(obj, self._skeleton(bones or armature) if armature is not None else None)
        if mesh is None:
            return None
        is_bound = armature is not None and (
            mesh.joint_weights is not None or (self.as_imported and rest_meshes.has_skin(obj))
        )
        place = self.spaces.place(obj, armature if is_bound else None)
        node_plan.require_size(obj, place)
        return _Part(mesh, place, is_bound)

    def _read_instances(self, models: list[ModelObjects]) -> None:
        finest = {model.finest for model in models}
        if self.options.use_instances:
            self.objects.read_instances(finest)
        else:
            self.leave_out_instances(finest)

    def _skeleton(self, armature: bpy.types.Object) -> ReadSkeleton:
        """Return the skeleton of an armature.

        The first call for an armature adds it to the skeletons of the scene.
        """
        if armature not in self.skeletons:
            self.skeletons[armature] = read_skeleton(armature, report=self.report)
            self.scene.skeletons.append(
                lod_model_skeleton(self.skeletons[armature], self.spaces.of_armature(armature).space)
            )
        return self.skeletons[armature]


def _node_of(finest: bpy.types.Object, transform: node_plan.Transform, mesh: Mesh) -> Node:
    """Return the node of a model's finest object, without a skeleton."""
    return Node(
        lod_names.without_suffix(names.name_in_file(finest)),
        translation=transform.translation,
        rotation=transform.rotation,
        scale=transform.scale,
        mesh=mesh,
        file_matrix=_file_matrix(finest),
    )


def _file_matrix(finest: bpy.types.Object) -> Matrix4 | None:
    """Return the matrix that an object has in its imported file, or None if it is not known."""
    numbers = finest.meshferry.file_matrix.split()
    try:
        return np.array(numbers, np.float64).reshape(4, 4) if numbers else None
    except ValueError:
        return None


def linkset_root(models: Sequence[ModelNodes]) -> ModelNodes:
    """Return the model to which the others of an upload are linked.

    It is the one whose object is marked as root, otherwise the one whose object is an ancestor of all others, otherwise
    the first: that of the active object, the first by name, or with Keep as Imported the first in the file. If several
    are marked, such as copies or several imported linksets, the same rules choose among these.
    """
    candidates = [model for model in models if model.obj.meshferry.is_linkset_root] or models
    common = set.intersection(*({*with_ancestors([model.obj])} for model in candidates))
    return next((model for model in candidates if model.obj in common), candidates[0])


def _share_meshes(model: ModelNodes, known: EqualMeshes) -> None:
    """Replace the meshes of a model by equal meshes of earlier models, so that linked duplicates share them."""
    for node in model.nodes(0):
        if node.mesh is not None:
            node.mesh = known.first(_without_object_names(node.mesh))
    if model.finest.mesh is not None:
        model.mesh = model.finest.mesh


def _name_apart(models: list[ModelNodes]) -> None:
    """Make the names of models unique.

    Models with equal names get the names of their Blender objects.
    """
    taken: set[str] = set()
    for model in models:
        name = model.finest.name
        number = 2
        if name in taken:
            name = lod_names.without_suffix(model.obj.name)
        while name in taken:
            name = f"{model.finest.name}.{number:03d}"
            number += 1
        taken.add(name)
        model.finest.name = name
        for level, node in model.levels.items():
            node.name = lod_names.of_level(name, level)


def _to_object(into: Matrix4, place: Matrix4) -> Matrix4:
    """Return the matrix from the space of the nodes of a model to that of an object at a place."""
    return joint_poses.inverse(exact_product(into, place))


def _placed(part: _Part, into: Matrix4, place: Matrix4 | None = None) -> Mesh:
    """Return a part's mesh in the space of its model's nodes."""
    return transformed(part.mesh, exact_product(into, part.place if place is None else place))


def _location_beside(part: _Part, finest: _Part, *, keeps_place: bool = False) -> Matrix4:
    """Return the matrix of a coarser level or a shape, normally with the location of the finest object.

    Artists often arrange levels side by side, so their own locations are ignored. But if the user applied the location
    to the points, the location of the finest object would move the level away from it, so that the level's own location
    is used. With ``keeps_place``, for a deformed object, its own location is preferred, unless only that of the finest
    brings both together.
    """
    moved = part.place.copy()
    moved[:3, 3] = finest.place[:3, 3]
    if np.array_equal(moved, part.place) or not len(part.mesh.points) or not len(finest.mesh.points):
        return moved
    middle, size = _box(finest.mesh, finest.place)
    beside = float(np.linalg.norm(_box(part.mesh, moved)[0] - middle))
    own = float(np.linalg.norm(_box(part.mesh, part.place)[0] - middle))
    if keeps_place:
        return moved if own > _APART * size and beside < own / 2 else part.place
    return part.place if beside > _APART * size and own < beside / 2 else moved


def _box(mesh: Mesh, place: Matrix4) -> tuple[Matrix4, float]:
    """Return the centre (3,) of a transformed mesh's bounding box, and the length of its diagonal."""
    points = mesh.points @ place[:3, :3].T + place[:3, 3]
    least, most = points.min(axis=0), points.max(axis=0)
    return (least + most) / 2, float(np.linalg.norm(most - least))


def _without_object_names(mesh: Mesh) -> Mesh:
    """Return a mesh without the names of surfaces that have no material.

    Such a surface is named after its object, so linked duplicates without materials would otherwise differ.
    """
    materials = mesh.materials or [""] * len(mesh.surfaces)
    named = [
        surface if material else replace(surface, name="")
        for surface, material in zip(mesh.surfaces, materials, strict=False)
    ]
    return replace(mesh, surfaces=[*named, *mesh.surfaces[len(named) :]])
