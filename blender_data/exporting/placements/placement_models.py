"""Models of a placement: meshes after evaluation, each stored once even if several objects show it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.placement import Matrix, ModelUse, PlacedModel, PlacedNode, SlotUse
from ....io_formats.core.scene import Clip, Mesh, Node, Scene, Surface
from ....io_formats.passes.join_meshes import EqualMeshes
from ... import file_records, names
from ...armature_modifiers import MESHABLE, armature_of
from ...export_options import ExportOptions
from ...rigging.armature_reading import ReadSkeleton, read_skeleton
from ..models.material_bakes import Bakery, BakeSurface, BakeTask
from ..node_plan import is_own_mesh
from ..object_selection import is_of_body
from ..reading import material_reading
from ..reading.image_maps import SurfaceLayers
from ..reading.mesh_reading import transformed
from ..reading.rest_meshes import RestMeshes
from .object_transforms import ObjectPlaces

_ALIGNED = 1e-7
"""Tolerance for each entry of matrices that count as equal."""

_Key = tuple[Any, ...]


class MaterialNames:
    """Unique names for the materials of an export.

    A material keeps its name in the imported file unless another has it.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, bpy.types.Material] = {}
        self._names: dict[bpy.types.Material, str] = {}

    def name(self, material: bpy.types.Material) -> str:
        """Return the name of a material."""
        if material not in self._names:
            name = names.name_in_file(material)
            if name in self.by_name:
                name = material.name
            number = 2
            while name in self.by_name:
                name, number = f"{material.name}.{number:03d}", number + 1
            self._names[material] = name
            self.by_name[name] = material
        return self._names[material]


@dataclass
class _Model:
    """A model that has been read, and its users."""

    mesh: Mesh
    skeleton: ReadSkeleton | None
    sources: list[bpy.types.Object]
    """The objects that show the model."""
    slots: list[list[str]] = field(default_factory=list)
    """Names of the materials of each of these objects."""
    is_generated: bool = False
    """Whether its mesh is that of an instance, not of an object."""


class PlacedModels:
    """Reads the models of one export.

    Objects with the same mesh data share a model if their modifiers give the same result. Materials that are linked to
    an object instead of its data are stored with its node.
    """

    def __init__(self, meshes: RestMeshes, places: ObjectPlaces, options: ExportOptions) -> None:
        self.meshes = meshes
        self.places = places
        self.options = options
        self.materials = MaterialNames()
        self.used_materials: dict[str, None] = {}
        """Names of the materials that faces use."""
        self._models: list[_Model] = []
        self._plain: dict[_Key, int] = {}
        """Index of the model for mesh data that needs no evaluation."""
        self._equal: dict[_Key, tuple[EqualMeshes, dict[int, int]]] = {}
        """For each mesh data block: its different evaluated meshes, without materials, and the index of the model for
        each mesh's ``id``."""
        self.skeletons: dict[bpy.types.Object, ReadSkeleton] = {}
        self.clips: dict[bpy.types.Object, list[Clip]] = {}
        """The clips of each armature, which are read after the meshes."""
        self.owners: set[bpy.types.Object] = set()
        """Objects that show instances; for them, the lack of a mesh is not reported."""
        meshes.reader.name_of_material = self.materials.name

    def rig_of(self, obj: bpy.types.Object) -> bpy.types.Object | None:
        """Return the armature in whose space an object's model is; None if it is in the space of the object."""
        return armature_of(obj) if obj.type in MESHABLE and self.meshes.with_bones else None

    def use(self, obj: bpy.types.Object) -> ModelUse | None:
        """Return the model that the node of an object refers to, or None if the object has no visible mesh."""
        rig = self.rig_of(obj)
        inside = np.identity(4) if rig is None else self._inside(obj, rig)
        key = (obj.data, rig.data if rig is not None else None, inside.tobytes())
        if key in self._plain and self.meshes.is_plain(obj):
            names = material_reading.material_names(material_reading.materials_of(obj, obj.data), self.materials.name)
            return self._used(self._plain[key], obj, names)
        skeleton = self._skeleton(rig) if rig is not None else None
        before = len(self.meshes.report.messages)
        mesh = self.meshes.read(obj, skeleton)
        if mesh is None:
            if obj in self.owners:
                del self.meshes.report.messages[before:]
            return None
        number = self._add(key, transformed(mesh, inside), skeleton)
        if self.meshes.is_plain(obj):
            self._plain[key] = number
        return self._used(number, obj, mesh.materials)

    def use_generated(self, instance: bpy.types.DepsgraphObjectInstance, owner: bpy.types.Object) -> ModelUse | None:
        """Return the model of an instance whose mesh was generated for it.

        It must be called before Blender evaluates the scene again.
        """
        key = (owner.data, instance.object.data.as_pointer())
        if key not in self._plain:
            mesh = self.meshes.reader.read(instance.object, is_instance=True)
            if mesh is None:
                return None
            mesh.surfaces = [Surface(name or names.name_in_file(owner)) for name in mesh.materials]
            self._plain[key] = self._add((owner.data,), mesh, None)
            self._models[self._plain[key]].is_generated = True
        number = self._plain[key]
        return self._used(number, owner, self._models[number].mesh.materials)

    def models(self) -> list[PlacedModel]:
        """Return the models in the order of their first use."""
        return [self._placed(model) for model in self._models]

    # -- models -------------------------------------------------------------------------------

    def _inside(self, obj: bpy.types.Object, rig: bpy.types.Object) -> Matrix:
        """Return the matrix from the space of a deformed object to the space of its armature object."""
        matrix = self.places.relative(obj, rig)
        return np.identity(4) if np.allclose(matrix, np.identity(4), rtol=0, atol=_ALIGNED) else matrix

    def _skeleton(self, rig: bpy.types.Object) -> ReadSkeleton:
        if rig not in self.skeletons:
            deform_only = self.options.use_deform_bones_only
            self.skeletons[rig] = read_skeleton(rig, deform_only=deform_only, report=self.meshes.report)
        return self.skeletons[rig]

    def _add(self, key: _Key, mesh: Mesh, skeleton: ReadSkeleton | None) -> int:
        """Return the index of the model for a mesh.

        A new model is added unless objects with the same data already have an equal one.
        """
        mesh = replace(mesh, own_files=None)  # the mesh is written to a new file
        equal, numbers = self._equal.setdefault(key, (EqualMeshes(), {}))
        first = equal.first(replace(mesh, materials=[""] * len(mesh.materials), surfaces=[]))
        if id(first) not in numbers:
            numbers[id(first)] = len(self._models)
            self._models.append(_Model(mesh, skeleton, []))
        return numbers[id(first)]

    def bake_tasks(self) -> Iterator[BakeTask]:
        """Yield a task for each material, with a surface of each model."""
        found: dict[str, dict[int, BakeSurface]] = {}
        for number, model in enumerate(self._models):
            shown, layers = np.unique(model.mesh.material_index).tolist(), self._layers(model)
            for obj, slots in zip(model.sources, model.slots, strict=True):
                surface = BakeSurface(obj, names.name_in_file(obj), layers, model.mesh, slots)
                surface.is_plain, surface.has_instances = self.meshes.is_plain(obj), model.is_generated
                for slot in shown:
                    found.setdefault(slots[slot], {}).setdefault(number, surface)
        for name in self.used_materials:
            yield BakeTask(name, self.materials.by_name[name], list(found[name].values()))

    def rename(self, bakery: Bakery, nodes: Iterable[PlacedNode]) -> None:
        """Rename the baked materials of all models and of the nodes that show them."""
        found = [bakery.names.get(id(model.mesh), {}) for model in self._models]
        for model in self._models:
            model.mesh = bakery.renamed(model.mesh, model.mesh)
        for node in nodes:
            if isinstance(node.content, ModelUse):
                given = found[node.content.model]
                slots = (replace(one, material=given.get(one.material, one.material)) for one in node.content.slots)
                node.content = replace(node.content, slots=tuple(slots))

    def layers(self) -> dict[str, SurfaceLayers]:
        """Return the layers of the first mesh with each material, by the name of the material."""
        return {name: self._layers(model) for model in reversed(self._models) for name in model.mesh.materials}

    @staticmethod
    def _layers(model: _Model) -> SurfaceLayers:
        maps = getattr(model.sources[0].data, "uv_layers", ()) if model.sources else ()
        shown = next((layer.name for layer in maps if layer.active_render), "")
        return SurfaceLayers(tuple(layer.name for layer in model.mesh.uvs), shown)

    def _used(self, number: int, obj: bpy.types.Object, materials: list[str]) -> ModelUse:
        """Return the use of a model by an object with these materials in its slots."""
        model = self._models[number]
        model.sources.append(obj)
        model.slots.append(materials)
        shown = np.unique(model.mesh.material_index).tolist()
        self.used_materials.update(dict.fromkeys(materials[slot] for slot in shown if materials[slot]))
        if materials == model.mesh.materials:
            return ModelUse(number)
        surfaces = [surface.name for surface in model.mesh.surfaces]
        slots = (SlotUse(name, material or None) for name, material in zip(surfaces, materials, strict=True))
        return ModelUse(number, tuple(slots))

    def _placed(self, model: _Model) -> PlacedModel:
        name = _model_name(model.sources)
        scene = Scene(name, tolerance=self.options.tolerance)
        scene.nodes = [Node(name, mesh=model.mesh, choices=file_records.read_choices(*model.sources[:1]))]
        if model.skeleton is not None:
            scene.skeletons = [model.skeleton.skeleton]
            scene.nodes[0].skeleton = 0
            rigs = dict.fromkeys(rig for obj in model.sources if (rig := self.rig_of(obj)) is not None)
            clips = [clip for rig in rigs for clip in self.clips.get(rig, ())]
            scene.clips = list({clip.name: clip for clip in clips}.values())
        read: Callable[[], Scene] = lambda: scene  # noqa: E731
        return PlacedModel(name, read)


def _model_name(sources: list[bpy.types.Object]) -> str:
    """Return the name of a model: the name of its imported mesh data, otherwise the shortest name of its objects.

    Copies of an object have longer names, so adding a copy does not change the name of the model file.
    """
    data = sources[0].data
    if isinstance(data, bpy.types.Mesh) and data.meshferry.fingerprint:
        return names.without_number(data.name)
    return min((names.name_in_file(obj) for obj in sources), key=lambda name: (len(name), name))


Instance = tuple[bpy.types.Object, "bpy.types.Object | ModelUse", Matrix]
"""The object that shows an instance; the shown object, or the model generated for it; and the world matrix (4, 4)."""


def instances_of(
    models: PlacedModels, owners: set[bpy.types.Object], depsgraph: bpy.types.Depsgraph
) -> Iterator[Instance]:
    """Yield the instances of meshes that objects show by other means than *Instancing: Collection*."""
    for instance in depsgraph.object_instances:
        if not instance.is_instance or instance.parent is None or instance.object.type != "MESH":
            continue
        owner, shown = instance.parent.original, instance.object.original
        if owner not in owners or owner.instance_type == "COLLECTION" or is_of_body(shown):
            continue
        world = np.array(instance.matrix_world, np.float64)
        if shown != owner and shown.type in MESHABLE and armature_of(shown) is None:
            yield owner, shown, world
        elif not is_own_mesh(instance):
            use = models.use_generated(instance, owner)
            if use is not None:
                yield owner, use, world
