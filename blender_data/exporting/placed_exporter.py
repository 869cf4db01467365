"""Blender -> Scene for files in which each object is a model of its own, with its place, levels, shapes and binding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.errors import ExportError
from ...io_formats.core.findings import Finding, Severity
from ...io_formats.core.scene import Mesh, Node, Role, Scene
from ...io_formats.passes import lod_names
from ...io_formats.passes.join_meshes import join
from .. import joint_poses, names, surfaces
from ..steps import Step, Steps, scaled
from . import level_slots, scene_state, skin_reading, transforms
from .armature_reading import ReadSkeleton, read_skeleton
from .export_request import ExportRequest
from .material_reading import read_materials
from .mesh_reading import Triangulation, points_of, transformed
from .missing_parts import MissingParts, PlacedModel
from .model_objects import ModelIndex, ModelObjects, find_models
from .node_meshes import NodeMeshes
from .object_selection import MESHABLE, armature_of
from .placed_skeletons import placed_skeleton
from .real_instances import Copies, common_armature, left_out_levels, real_instances
from .rest_meshes import RestMeshes
from .scene_export import SceneExport
from .transforms import Transform

Matrix4 = npt.NDArray[np.float64]

_ALIGNED = 1e-7
"""Largest difference between two matrices, relative to their size, that is taken for rounding."""

_SHEAR = 1e-4
"""Cosine between the axes of a transform above which its shear is worth a word."""

_UNAPPLIED = 1e-4
"""Difference from 1 of a scale, or from the identity of a rotation, that is taken for rounding."""

_APART = 0.1
"""Distance of the middles of two levels, as a share of the finest's diagonal, beyond which they do not lie together."""


@dataclass
class _Part:
    """An object of a model as it was read."""

    mesh: Mesh
    """In the object's own space."""
    place: Matrix4
    """(4, 4) from there to where it stands: among the models, or, of what an armature deforms, before that."""
    is_bound: bool = False
    """Whether an armature deforms it."""


@dataclass(frozen=True)
class _Stand:
    """How an armature object stands."""

    space: Matrix4
    """(4, 4) its rotation and scale."""
    inverse: Matrix4
    """(4, 4) from the world to its own space."""


class PlacedExport(SceneExport):
    """One export of models that keep their place; the user's scene is the same before and after.

    Each model is the node of its finest object and after it those of its coarser levels, its physics shape and its
    hulls. All of them have the finest's transform, and all meshes are in the space of that. The transform is the
    object's in the world, or, of an object that an armature deforms, that relative to the armature, with the rotation
    and scale of the armature but not its location. Scales are above zero; what they mirror or shear is in the points.

    The first model is the active object's, the others follow by name; see :func:`.model_objects.find_models`.
    """

    def __init__(self, request: ExportRequest) -> None:
        super().__init__(request)
        self.as_imported = self.options.use_as_imported
        if self.as_imported:
            self.scene.as_imported = True
        self.skeletons: dict[bpy.types.Object, ReadSkeleton] = {}
        self.stands: dict[bpy.types.Object, _Stand] = {}
        self.stand_ins: dict[bpy.types.Object, bpy.types.Object] = {}
        self.copies: Copies = {}
        """The objects of skinned collection instances."""
        self.read: dict[tuple[bpy.types.Object, bpy.types.Object | None], Mesh | None] = {}
        self.meshes = RestMeshes(self.context, self.options, self.capabilities)
        self.instances = NodeMeshes(self.meshes.reader, self.meshes.reader.depsgraph, self.options.tolerance)

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps.

        Raises
        ------
        ExportError
            Nothing to export, an object of zero scale.
        """
        found = find_models(self.context, self.source, self.options)
        self.notices += found.notices
        parts = list(dict.fromkeys(thing for model in found.models for thing in model.parts()))
        unseen = [thing for thing in parts if thing not in found.enabled]
        instances = parts if self.capabilities.skeletons and self.options.use_instances else []
        with (
            scene_state.stand_ins(self.context, unseen) as self.stand_ins,
            real_instances(self.context, instances) as self.copies,
        ):
            self.notices += left_out_levels(self.copies)
            copies = [copy for members in self.copies.values() for copy in members]
            seen = [*(self.stand_ins.get(thing, thing) for thing in parts), *copies]
            with self.meshes.at_rest(thing for thing in seen if thing.type in MESHABLE):
                self.instances.depsgraph = self.meshes.reader.depsgraph
                self._read_instances(found.models)
                models = yield from scaled(self._models(found.models), 0.0, 1.0 if self.as_imported else 0.2)
            self.notices += self.meshes.notices
            self.scene.findings += self.meshes.reader.findings
            if not models:
                why = f" ({'; '.join(self.notices)})" if self.notices else ""
                raise ExportError(f"There is no mesh to export{why}")
            self._name_apart(models)
            if not self.as_imported:
                missing = MissingParts(self.options)
                yield from scaled(missing.fill(models), 0.2, 1.0)
                made = missing.made()
                self.notices += [*made, *missing.notices()]
                for finding in missing.costs:
                    self.warn(finding)
                # Reported, but none of it is a loss.
                self.scene.notes = made + [str(finding) for finding in missing.costs]
            for model in models:
                self.scene.nodes += model.nodes(len(self.scene.nodes))
            self._read_materials([*parts, *copies])
        self.scene.warnings += dict.fromkeys(self.notices)
        return self.scene

    # -- models ---------------------------------------------------------------------------------

    def _models(self, found: list[ModelObjects]) -> Steps[list[PlacedModel]]:
        """Read all models that have something to show."""
        models: list[PlacedModel] = []
        for number, objects in enumerate(found):
            yield Step("Reading meshes", number / len(found), objects.finest.name)
            model = self._model(objects)
            if model is not None:
                models.append(model)
        return models

    def _model(self, objects: ModelObjects) -> PlacedModel | None:
        """Read a model; None where its finest object has nothing to show."""
        finest = objects.finest
        armature = armature_of(finest) if finest.type in MESHABLE else None
        if finest in self.copies:
            armature = common_armature(finest, self.copies[finest])
        read = self._part(finest, armature)
        if read is None:
            if finest.type not in MESHABLE:
                self.notices.append(f"{finest.name}: nothing that it instances is a model; left out")
            return None
        self._say_lost_parent(finest, read)
        transform = self._transform(finest, armature if read.is_bound else None, read.place)
        if not self.as_imported:
            read.mesh = level_slots.tidied(read.mesh)
        into = joint_poses.inverse(_matrix_of(transform))
        rig = armature if read.is_bound else None
        mesh = self._placed(read, into)
        node = Node(
            lod_names.without_suffix(names.file_name(finest)),
            translation=transform.translation,
            rotation=transform.rotation,
            scale=transform.scale,
            mesh=mesh,
            skeleton=list(self.skeletons).index(rig) if rig is not None else None,
        )
        inside = _snapped(into @ read.place)
        if not np.array_equal(inside, np.identity(4)):
            node.to_object = joint_poses.inverse(inside)
        if rig is not None:
            node.skin = skin_reading.read_skin(finest, self._relative(finest, rig), self._stand(rig).space)
        model = PlacedModel(finest, node, mesh)
        for level, thing in sorted(objects.levels.items()):
            coarser = self._beside(thing, read, into, armature)
            if coarser is not None:
                name = lod_names.of_level(node.name, level)
                model.levels[level] = replace(node, name=name, mesh=coarser, lod=level, skin=None, to_object=None)
        self._read_shapes(model, objects, read, into, armature)
        return model

    def _read_shapes(
        self,
        model: PlacedModel,
        objects: ModelObjects,
        finest: _Part,
        into: Matrix4,
        armature: bpy.types.Object | None,
    ) -> None:
        """Read the physics shape and the hulls of a model; nothing deforms them."""

        def node(thing: bpy.types.Object, role: Role, mesh: Mesh) -> Node:
            bare = replace(model.finest, name=names.file_name(thing), mesh=mesh, role=role, to_object=None)
            return replace(bare, skeleton=None, skin=None)

        if objects.physics is not None:
            mesh = self._beside(objects.physics, finest, into, armature, is_shape=True)
            if mesh is not None:
                mesh = replace(mesh, joint_indices=None, joint_weights=None)
                model.physics = node(objects.physics, Role.PHYSICS, mesh)
        for thing in (*objects.hulls, *((objects.base_hull,) if objects.base_hull else ())):
            part = _Part(self._hull_mesh(thing), self._place(thing, armature if finest.is_bound else None))
            transforms.require_size(thing, part.place)
            mesh = self._placed(part, into, self._laid(part, finest))
            made = node(thing, Role.HULL, mesh)
            if thing == objects.base_hull:
                made.is_base_hull = True
                model.base_hull = made
            else:
                model.hulls.append(made)

    def _beside(
        self,
        thing: bpy.types.Object,
        finest: _Part,
        into: Matrix4,
        armature: bpy.types.Object | None,
        *,
        is_shape: bool = False,
    ) -> Mesh | None:
        """Read a coarser level or a physics shape into the space of the finest object's node."""
        own = armature_of(thing)
        part = self._part(thing, own or armature if finest.is_bound and not is_shape else None, bones=armature)
        if part is None:
            return None
        if finest.is_bound and not part.is_bound:
            part.place = self._place(thing, armature)
        place = self._laid(part, finest, keeps_place=part.is_bound and own is not None)
        return level_slots.aligned(self._placed(part, into, place), finest.mesh, is_shape=is_shape)

    def _part(
        self, thing: bpy.types.Object, armature: bpy.types.Object | None, bones: bpy.types.Object | None = None
    ) -> _Part | None:
        """Read an object; None where it has nothing to show.

        ``armature`` is what deforms it, whose bones, or those of the armature ``bones``, its weights are for.
        """
        mesh = self._mesh(thing, self._skeleton(bones or armature) if armature is not None else None)
        if mesh is None:
            return None
        is_bound = armature is not None and (
            mesh.joint_weights is not None or (self.as_imported and skin_reading.has_skin(thing))
        )
        place = self._place(thing, armature if is_bound else None)
        transforms.require_size(thing, place)
        return _Part(mesh, place, is_bound)

    def _mesh(self, thing: bpy.types.Object, read: ReadSkeleton | None) -> Mesh | None:
        """Return the mesh of an object and of the instances that it shows, in its own space."""
        key = (thing, read.thing if read else None)
        if key not in self.read:
            seen = self.stand_ins.get(thing, thing)
            before = len(self.meshes.notices)
            own = self.meshes.read(seen, read) if thing.type in MESHABLE else None
            if seen is not thing:
                said = self.meshes.notices[before:]
                self.meshes.notices[before:] = [text.replace(f"{seen.name}:", f"{thing.name}:") for text in said]
            meshes = [own] if own is not None else []
            shown = self.instances.instances_of(thing)
            for member in self.copies.get(thing, ()):
                shown = [*shown, *self.instances.instances_of(member), *self._member_mesh(member, read)]
            if shown:
                back = joint_poses.inverse(self._world(thing))
                meshes += [transformed(mesh, back @ matrix) for mesh, matrix in shown]
            self.read[key] = join(meshes) if meshes else None
        return self.read[key]

    def _member_mesh(self, member: bpy.types.Object, read: ReadSkeleton | None) -> list[tuple[Mesh, Matrix4]]:
        """Return the mesh of an object of an instance with its matrix in world space; none if it has no mesh."""
        if member.type not in MESHABLE:
            return []
        mesh = self.meshes.read(member, read if read is not None and armature_of(member) == read.thing else None)
        return [] if mesh is None else [(mesh, self._world(member))]

    def _hull_mesh(self, thing: bpy.types.Object) -> Mesh:
        """Return a hull: all its points in their order, with what faces it has."""
        seen = self.stand_ins.get(thing, thing)
        if not self.meshes.is_plain(seen):
            seen = seen.evaluated_get(self.meshes.reader.depsgraph)
        data = seen.to_mesh()
        try:
            if data is None:
                return Mesh(np.empty((0, 3), np.float32), np.empty(0, np.int32), np.empty(0, np.int32))
            corners = Triangulation.of(data).corner_point if len(data.polygons) else np.empty(0, np.int32)
            mesh = Mesh(points_of(data), corners, np.zeros(len(corners) // 3, np.int32), [""])
            mesh.surfaces = surfaces.read(thing, [], [])[:1]
            return mesh
        finally:
            seen.to_mesh_clear()

    def _read_instances(self, models: list[ModelObjects]) -> None:
        finest = {model.finest for model in models}
        if self.options.use_instances:
            shown = {copy for members in self.copies.values() for copy in members}
            # An instanced collection shows the levels and shapes of the models in it, too, all in one place.
            self.instances.left_out = ModelIndex(bpy.data.objects).parts
            self.instances.read_instances((finest - set(self.copies)) | shown)
            return
        left_out = [thing.name for thing in finest if thing.instance_type != "NONE"]
        if left_out:
            self.notices.append(f"Instances left out as chosen: {', '.join(sorted(left_out)[:8])}")

    def _say_lost_parent(self, thing: bpy.types.Object, read: _Part) -> None:
        if thing.parent is not None and thing.parent_type == "BONE" and not read.is_bound:
            self.notices.append(f"{thing.name}: its parent bone is not carried over; give it weights of that bone")

    def _name_apart(self, models: list[PlacedModel]) -> None:
        """Give models of one name the names that Blender tells their objects apart by."""
        taken: set[str] = set()
        for model in models:
            name = model.finest.name
            number = 2
            if name in taken:
                name = lod_names.without_suffix(model.thing.name)
            while name in taken:
                name = f"{model.finest.name}.{number:03d}"
                number += 1
            taken.add(name)
            model.finest.name = name
            for level, node in model.levels.items():
                node.name = lod_names.of_level(name, level)

    # -- places ---------------------------------------------------------------------------------

    def _skeleton(self, armature: bpy.types.Object) -> ReadSkeleton:
        """Return the bones of an armature; it becomes a skeleton of the scene when it is first asked for."""
        if armature not in self.skeletons:
            self.skeletons[armature] = read_skeleton(armature, notice=self.notices.append)
            self.scene.skeletons.append(placed_skeleton(self.skeletons[armature], self._stand(armature).space))
        return self.skeletons[armature]

    def _stand(self, armature: bpy.types.Object) -> _Stand:
        if armature not in self.stands:
            world = self._world(armature)
            transforms.require_size(armature, world)
            space = world.copy()
            space[:3, 3] = 0
            self.stands[armature] = _Stand(_snapped(space), joint_poses.inverse(world))
            if not self.as_imported:
                self._warn_unapplied(armature, space)
        return self.stands[armature]

    def _warn_unapplied(self, armature: bpy.types.Object, space: Matrix4) -> None:
        """Warn of an armature with a rotation or a scale."""
        scale = np.linalg.norm(space[:3, :3], axis=0)
        unapplied = ["scale"] if (np.abs(scale - 1) > _UNAPPLIED).any() else []
        if (np.abs(space[:3, :3] / scale - np.identity(3)) > _UNAPPLIED).any():
            unapplied.insert(0, "rotation")
        if unapplied:
            are = "is" if len(unapplied) == 1 else "are"
            text = (
                f"its {' and '.join(unapplied)} {are} not applied, so its bones differ from the avatar's; apply the "
                "transform (Object > Apply > Rotation & Scale)"
            )
            self.warn(Finding(Severity.WARNING, f"Armature '{armature.name}'", text, names=(armature.name,)))

    def _world(self, thing: bpy.types.Object) -> Matrix4:
        return transforms.world(self._evaluated(thing))

    def _evaluated(self, thing: bpy.types.Object) -> bpy.types.Object:
        return self.stand_ins.get(thing, thing).evaluated_get(self.meshes.reader.depsgraph)

    def _relative(self, thing: bpy.types.Object, armature: bpy.types.Object | None) -> Matrix4:
        """Return the matrix from an object's own space into the world's, or into an armature object's.

        Where the object's channels say the same they are taken: they have all their digits wherever it stands.
        """
        seen = self._evaluated(thing)
        above = self._evaluated(armature) if armature is not None else None
        if transforms.has_plain_channels(seen, above):
            return _matrix_of(transforms.local(seen, above))
        world = transforms.world(seen)
        return world if armature is None else _snapped(self._stand(armature).inverse @ world)

    def _place(self, thing: bpy.types.Object, armature: bpy.types.Object | None) -> Matrix4:
        """Return the matrix from an object's own space to where it stands: in the world, or beside an armature."""
        relative = self._relative(thing, armature)
        return relative if armature is None else self._stand(armature).space @ relative

    def _transform(self, thing: bpy.types.Object, armature: bpy.types.Object | None, place: Matrix4) -> Transform:
        """Return the transform of a model's nodes, its scales above zero."""
        seen = self._evaluated(thing)
        above = self._evaluated(armature) if armature is not None else None
        is_plain = armature is None or np.array_equal(self._stand(armature).space, np.identity(4))
        if is_plain and transforms.has_plain_channels(seen, above):
            found = transforms.local(seen, above)
        else:
            translation, rotation, scale, shear = joint_poses.decompose(place[None])
            found = Transform(_tuple(translation[0]), _tuple(rotation[0]), _tuple(scale[0]))
            if shear[0] > _SHEAR:
                self.notices.append(f"{thing.name}: its transform is sheared; the shear was applied to the points")
        return replace(found, scale=_tuple(np.abs(found.scale)))

    def _laid(self, part: _Part, finest: _Part, *, keeps_place: bool = False) -> Matrix4:
        """Return where a coarser level or a shape stands: in the place of the finest, whose levels lie side by side.

        Where that would put it beside the finest, and its own place would not, its points were given their place in
        the world, as applying the location does; then its own place holds. What an armature deforms (``keeps_place``)
        stays in its own place unless that is beside the finest, and the place of the finest is not.
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

    def _placed(self, part: _Part, into: Matrix4, place: Matrix4 | None = None) -> Mesh:
        """Return a part's mesh in the space of its model's nodes."""
        matrix = _snapped(into @ (part.place if place is None else place))
        if np.array_equal(matrix, np.identity(4)):
            return part.mesh
        mesh = transformed(part.mesh, matrix)
        return replace(mesh, surfaces=[surface.without_domains() for surface in mesh.surfaces])

    # -- materials ------------------------------------------------------------------------------

    def _read_materials(self, parts: list[bpy.types.Object]) -> None:
        wanted = [name for node in self.scene.nodes if node.mesh is not None for name in node.mesh.materials]
        slots = [slot.material for thing in parts for slot in thing.material_slots]
        self.scene.materials = read_materials(wanted, slots, self.notices.append)


def _tuple(values: Matrix4) -> Any:
    return tuple(values.tolist())


def _matrix_of(transform: Transform) -> Matrix4:
    return joint_poses.matrices(transform.translation, transform.rotation, transform.scale)


def _snapped(matrix: Matrix4) -> Matrix4:
    """Return a matrix with entries that are whole numbers but for rounding as such numbers."""
    whole = np.rint(matrix)
    size = max(1.0, float(np.abs(matrix[:3, :3]).max()))
    near = np.abs(matrix - whole) < _ALIGNED * size
    return np.where(near, whole, matrix)


def _box(mesh: Mesh, place: Matrix4) -> tuple[Matrix4, float]:
    """Return the middle (3,) of a placed mesh, and the length of the diagonal of the box around it."""
    points = mesh.points @ place[:3, :3].T + place[:3, 3]
    least, most = points.min(axis=0), points.max(axis=0)
    return (least + most) / 2, float(np.linalg.norm(most - least))
