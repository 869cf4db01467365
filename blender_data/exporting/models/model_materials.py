"""Materials of models with levels of detail: baked where an upload set needs it, read, and their losses reported."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import bpy

from ....io_formats.core.messages import Report
from ....io_formats.core.scene import Material, Mesh
from ...steps import Steps
from ..baking.baked_pictures import plain_material
from ..baking.cycles_bakes import Blocks, remove
from ..model_exporter import SceneExport
from ..reading.image_maps import SurfaceLayers
from ..reading.material_reading import materials_by_name, read_material, report_other_images
from . import material_losses
from .gltf_export import gltf_materials, needs_gltf
from .material_bakes import Bakery, BakeSurface, BakeTask
from .model_meshes import LodModelMeshes
from .model_objects import ModelNodes


class ModelMaterials:
    """The materials of one export.

    Parameters
    ----------
    export:
        The export, whose options and report are used.
    objects:
        Reader of the meshes of the export.
    """

    def __init__(self, export: SceneExport, objects: LodModelMeshes) -> None:
        self.bakery = Bakery(export)
        self._export = export
        self._objects = objects
        self._shown: Sequence[bpy.types.Object] = ()
        self._plain: dict[str, bpy.types.Material] = {}
        """The temporary materials that stand for baked ones, by their names in the file."""
        self._black: dict[str, bpy.types.Material] = {}
        """Those of materials that only emit light, whose base colour is that light for the diffuse picture only."""
        self._blocks: Blocks = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_exception: object) -> None:
        remove(self._blocks)

    def bake(self, models: Sequence[ModelNodes], shown: Sequence[bpy.types.Object]) -> Steps[None]:
        """Bake the materials of these objects that need it; meshes get the names of further sets of pictures."""
        nodes = [node for model in models for node in model.nodes(0)]
        self._shown = shown
        yield from self.bakery.bake(self._tasks(models, [node.mesh for node in nodes if node.mesh]))
        for name, shading in self.bakery.shadings.items():
            diffuse = material_losses.diffuse_of(shading)
            self._plain[name] = plain_material(name, replace(shading, base_color=diffuse), self._blocks)
            if diffuse is not shading.base_color:
                self._black[name] = plain_material(name, shading, self._blocks)
        for model in models:
            for node in model.nodes(0):
                node.mesh = self.bakery.renamed(node.mesh, model.mesh) if node.mesh is not None else None
            model.mesh = model.finest.mesh or model.mesh

    def _tasks(self, models: Sequence[ModelNodes], meshes: Sequence[Mesh]) -> Iterator[BakeTask]:
        ordered = sorted(models, key=lambda model: model.obj.name)  # not the active object first
        finest = {id(model.mesh): model for model in (*ordered, *reversed(ordered))}.values()  # the first of each mesh
        for name, material in self._found(meshes).items():
            shown = [model for model in finest if name in model.mesh.materials]
            yield BakeTask(name, material, [self._surface(name, material, model) for model in shown])

    def _surface(self, name: str, material: bpy.types.Material, model: ModelNodes) -> BakeSurface:
        obj, mesh, read = model.obj, model.mesh, self._objects
        layers = self._layers(name, material, [mesh])
        made = BakeSurface(read.spaces.stand_in(obj), obj.name, layers, mesh, mesh.materials)
        made.is_plain, made.has_instances = read.meshes.is_plain(obj), read.has_instances(obj)
        return made

    def _found(self, meshes: Sequence[Mesh]) -> dict[str, bpy.types.Material]:
        """Return the materials of meshes by their names in the file."""
        slots = [slot.material for obj in self._shown for slot in obj.material_slots]
        wanted = dict.fromkeys(name for mesh in meshes for name in mesh.materials)
        found = {**materials_by_name(wanted, slots), **self._plain}
        return {name: found[name] for name in wanted if name in found}

    def _layers(self, name: str, material: bpy.types.Material, meshes: Sequence[Mesh]) -> SurfaceLayers:
        """Return the layers of the first of some meshes with a material."""
        uvs = next((mesh.uvs for mesh in meshes if name in mesh.materials), [])
        return material_losses.layers_of(material, tuple(layer.name for layer in uvs), self._shown)

    def read(self) -> list[Material]:
        """Return the materials of the scene's nodes.

        For an upload set, they have the mappings of their pictures and their glTF materials, and all losses are
        reported.
        """
        export, bakery, report = self._export, self.bakery, self._export.report
        meshes = [node.mesh for node in export.scene.nodes if node.mesh is not None]
        found = self._found(meshes)
        others = {name: material for name, material in found.items() if name not in bakery.stated}
        made = [
            replace(read_material(material, report if name in others else Report()), name=name)
            for name, material in found.items()
        ]
        if not export.capabilities.gltf_materials:
            return made
        for plain in made:
            material = found[plain.name]
            layers = self._layers(plain.name, material, meshes)
            shading, left_out = material_losses.losses(material, layers, export.options, export.capabilities)
            bakery.report(left_out, plain.name, material)
            image = material_losses.diffuse_of(shading).image
            plain.mapping = image.mapping if image is not None and plain.texture is not None else None
        report_other_images((one for one in others.values() if not needs_gltf(one)), report)
        if export.options.use_pbr_materials:
            glb = gltf_materials(export.context, {**found, **self._black}, report)
            for plain in made:
                plain.gltf = glb.get(plain.name)
        return made
