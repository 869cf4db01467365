"""Materials of models with levels of detail: baked where an upload set needs it, read, and their losses reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import bpy

from ....io_formats.core.messages import Report
from ....io_formats.core.scene import Material, Mesh
from ....io_formats.core.shading import Shading
from ...armature_modifiers import MESHABLE
from ...steps import Steps
from ..baking.material_bakes import Bakery, BakeSurface, BakeTask, is_mended, planned, uses
from ..model_exporter import SceneExport
from ..reading.material_reading import materials_by_name, read_material, read_materials, report_other_images
from ..reading.shader_nodes import LeftOut
from . import material_losses
from .gltf_export import gltf_materials, needs_gltf
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
        self._export = export
        self._objects = objects
        self.bakery = Bakery(export.context, export.options.bake_size, export.report)
        self._baked: dict[str, bpy.types.Material] = {}
        """The plain materials that stand for baked ones, by their names in the file."""

    def bake(self, models: Sequence[ModelNodes], objects: Sequence[bpy.types.Object]) -> Steps[None]:
        """Bake the materials that need it; the meshes of models get the names of further sets of pictures."""
        slots = [slot.material for obj in objects for slot in obj.material_slots]
        wanted = [name for model in models for node in model.nodes(0) if node.mesh for name in node.mesh.materials]
        finest = {id(model.mesh): model for model in reversed(models)}
        meshes = [model.mesh for model in models]
        tasks: list[BakeTask] = []
        for name, material in materials_by_name(wanted, slots).items():
            shading, left_out = self._losses(
                material, replace(read_material(material, Report()), name=name), meshes, objects
            )
            owners = [model for model in reversed(finest.values()) if uses(model.mesh, name)]
            if owners and is_mended(left_out):
                surfaces = [
                    BakeSurface(model.mesh, model.mesh.materials, self._objects_of(model), model.obj.name)
                    for model in owners
                ]
                tasks.append(BakeTask(name, material, shading, surfaces))
        renamed = yield from self.bakery.bake(planned(tasks, self._export.report), set(wanted), self._export.baking)
        self._baked = renamed.materials
        changed: dict[tuple[int, int], Mesh] = {}
        for model in models:
            given = renamed.names.get(id(model.mesh), {})
            for node in model.nodes(0):
                if node.mesh is not None and not given.keys().isdisjoint(node.mesh.materials):
                    mesh = replace(node.mesh, materials=[given.get(name, name) for name in node.mesh.materials])
                    node.mesh = changed.setdefault((id(node.mesh), id(given)), mesh)
        for model in models:
            model.mesh = model.finest.mesh or model.mesh

    def _objects_of(self, model: ModelNodes) -> list[tuple[bpy.types.Object, bool]]:
        """Return the objects of the finest mesh of a model, and whether each is evaluated; none if it has instances."""
        members = self._objects.copies.get(model.obj, [model.obj])
        if self._objects.shows_instances([model.obj, *members]):
            return []
        shown = [self._objects.spaces.stand_in(obj) for obj in members if obj.type in MESHABLE]
        return [(obj, not self._objects.meshes.is_plain(obj)) for obj in shown]

    def _losses(
        self, material: bpy.types.Material, plain: Material, meshes: Sequence[Mesh], objects: Sequence[bpy.types.Object]
    ) -> tuple[Shading, LeftOut]:
        layers = material_losses.layers_of(material, material_losses.uv_names(plain.name, meshes), objects)
        return material_losses.losses_of(material, plain, layers, use_gltf=self._export.options.use_pbr_materials)

    def read(self, objects: Sequence[bpy.types.Object]) -> list[Material]:
        """Return the materials of the scene's nodes.

        For an upload set, they have the mappings of their pictures and their glTF materials, and all losses are
        reported.
        """
        export, report = self._export, self._export.report
        meshes = [node.mesh for node in export.scene.nodes if node.mesh is not None]
        wanted = [name for mesh in meshes for name in mesh.materials]
        slots = [slot.material for obj in objects for slot in obj.material_slots]
        found = {**materials_by_name(wanted, slots), **self._baked}
        found = {name: found[name] for name in dict.fromkeys(wanted) if name in found}
        stated = {name: found[name] for name in self.bakery.stated}
        others = {name: material for name, material in found.items() if name not in stated}
        made = [*read_materials(others, report), *read_materials(stated, Report())]
        if not export.capabilities.gltf_materials:
            return made
        for plain in made:
            shading, left_out = self._losses(found[plain.name], plain, meshes, objects)
            if plain.name in stated:
                left_out = replace(left_out, nodes={}, mappings=[])
            name = plain.name if plain.name in self._baked else found[plain.name].name
            left_out.report(name, report, is_off=not export.bakes)
            image = material_losses.diffuse_of(shading).image
            plain.mapping = image.mapping if image is not None and plain.texture is not None else None
        report_other_images((one for one in others.values() if not needs_gltf(one)), report)
        if export.options.use_pbr_materials:
            glb = gltf_materials(export.context, found, report)
            for plain in made:
                plain.gltf = glb.get(plain.name)
        return made
