"""Which materials of an export are baked, on which meshes, and the plain materials that stand for them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Named, Report, Text, counted, joined
from ....io_formats.core.scene import Mesh
from ....io_formats.core.shading import Mapping, Opacity, Shading
from ... import compat
from ...export_options import MOST_BAKES, ExportOptions
from ...steps import Step, Steps, scaled
from ..baking.baked_pictures import picture_count, plain_shading
from ..baking.cycles_bakes import Bake, Baked, remove
from ..baking.surface_shaders import Map, SurfaceShaders
from ..model_exporter import SceneExport
from ..object_selection import Source, candidates_of
from ..reading.image_maps import SurfaceLayers
from ..reading.shader_nodes import LeftOut
from ..reading.shading_reading import opacity_of
from . import material_losses
from .model_objects import find_models

_BORDER = 1e-4
"""Distance by which UVs may exceed a tile."""


@dataclass
class BakeSurface:
    """The faces of one mesh of the file that have a material."""

    obj: bpy.types.Object
    label: str
    """Name of the object, for messages and pictures."""
    layers: SurfaceLayers
    mesh: Mesh | None = None
    """The mesh; None before an export has read it."""
    slots: Sequence[str] = ()
    """Name of the material of each slot of the mesh."""
    is_plain: bool = False
    """Whether the data of the object are its mesh, so that no evaluation is needed."""
    has_instances: bool = False
    """Whether the mesh consists of instances that the object shows, which cannot be baked."""

    def corners(self, name: str) -> list[npt.NDArray[np.floating]]:
        """Return points and UVs of the triangles with a material, each (T, 3, 3); NaN without UVs."""
        if self.mesh is None:
            return [np.zeros((0, 3, 3))] * 2
        wanted = np.array([slot == name for slot in self.slots or [""]])
        chosen = wanted[np.clip(self.mesh.material_index, 0, len(wanted) - 1)]
        corners = self.mesh.corner_point
        uvs = self.mesh.uvs[0].at_corners(corners) if self.mesh.uvs else np.full((len(corners), 2), np.nan)
        flat = np.pad(uvs, ((0, 0), (0, 1)))
        return [values.reshape(-1, 3, 3)[chosen] for values in (self.mesh.points[corners], flat)]


@dataclass
class BakeTask:
    """A material with the meshes that show it."""

    name: str
    """Its name in the file."""
    material: bpy.types.Material
    surfaces: list[BakeSurface]
    shaders: SurfaceShaders = field(init=False)
    report: Report = field(init=False)
    """Receives messages about the material."""
    shading: Shading = field(init=False)
    """The shading that an export without bakes would have."""
    is_flat: bool = False
    side: float = 0.0
    """Length on the surface of one tile of the UV map."""
    mapping: Mapping = field(init=False)
    """Mapping that repeats the pictures."""
    size: tuple[int, int] = (0, 0)
    """Size of the largest image; 0 if the option determines the size."""

    @property
    def sets(self) -> int:
        """Number of sets of pictures."""
        return 1 if self.is_flat else len(self.surfaces)


def planned(tasks: Iterable[BakeTask], options: ExportOptions, can: Capabilities, report: Report) -> list[BakeTask]:
    """Return the tasks that pictures mend and that can be done; report why others cannot."""
    done, without = [], () if options.use_pbr_materials or not can.gltf_materials else (Map.SURFACE, Map.NORMAL)
    for task in tasks:
        tree = compat.node_tree(task.material)
        if tree is None or not task.surfaces or (task.material.meshferry.identity and can.placement):
            continue  # nothing to bake, or a material of the project
        shading, left_out = material_losses.losses(task.material, task.surfaces[0].layers, options, can)
        if not (left_out.nodes or left_out.mappings):
            continue
        task.surfaces = [one for one in task.surfaces if one.mesh is None or len(one.corners(task.name)[0])]
        task.shaders = SurfaceShaders(tree, without)
        if not (task.shaders.can_bake and task.surfaces):
            continue  # the report of what is left out names the shader
        opacity = shading.opacity if shading.opacity is Opacity.CLIP else opacity_of(task.material)
        task.shading = replace(shading, opacity=opacity)
        task.report = report.about(Text("Material '{}'", Named("material", task.name)))
        if reason := _plan(task):
            task.report.loss("material-not-baked", "not baked: {}", reason)
        else:
            done.append(task)
    return done


def _plan(task: BakeTask) -> str:
    """Choose the way of a task; return why it cannot be done, or an empty text."""
    shaders, problems, is_inside = task.shaders, [], True
    if missing := shaders.missing_image():
        return Text("the image '{}' is missing or in tiles", Named("image", missing))
    task.is_flat = all(shaders.is_flat(one.layers) for one in task.surfaces)
    for surface in task.surfaces:
        both = surface.corners(task.name)
        uvs = both[1]
        if not np.isfinite(uvs).all():
            return Text("'{}' has no valid UV map", surface.label)
        tiles = np.floor(uvs.min(axis=1) + _BORDER)
        is_across = (uvs.max(axis=1) > tiles + 1.0 + _BORDER).any()
        is_inside &= not (tiles.any() or is_across)
        normals = (np.cross(part[:, 1] - part[:, 0], part[:, 2] - part[:, 0]) for part in both)
        area, area_of_uvs = (np.linalg.norm(part, axis=1).sum() for part in normals)
        task.side = max(task.side, math.sqrt(area / area_of_uvs) if area_of_uvs > 0.0 else 0.0)
        problems += [Text("'{}' shows it by instances", surface.label)] if surface.has_instances else []
        problems += [Text("faces of '{}' cross the borders of UV tiles", surface.label)] if is_across else []
        problems += [Text("the UVs of '{}' have no area", surface.label)] if len(uvs) and not area_of_uvs else []
    tiling = shaders.tiling(task.surfaces[0].layers) if task.is_flat else None
    task.is_flat &= is_inside or tiling is not None
    task.mapping, task.size = tiling or (Mapping(), (0, 0))
    if problems and not task.is_flat:
        return problems[0]
    if unsteady := shaders.unsteady(is_modified=not all(one.is_plain for one in task.surfaces)):
        text = "{} give other values in the picture: they depend on the view, the object's name, modifiers or EEVEE"
        task.report.change("material-bake-differs", text, joined(unsteady))
    return ""


def price_of(tasks: Sequence[BakeTask]) -> Text:
    """Describe the materials, meshes and pictures of tasks."""
    meshes = len({id(surface.mesh or surface.obj.data) for task in tasks for surface in task.surfaces})
    pictures = counted(sum(task.sets * len(task.shaders.maps) for task in tasks), "picture")
    return Text("{} on {}: up to {}", counted(len(tasks), "material"), counted(meshes, "mesh", "meshes"), pictures)


def bake_price(
    context: bpy.types.Context, source: Source, options: ExportOptions, can: Capabilities
) -> tuple[int, Text]:
    """Return the largest number of sets of pictures that an export bakes, and a text about them."""
    users: dict[bpy.types.Material, dict[bpy.types.ID, BakeSurface]] = {}
    objects: list[bpy.types.Object] = []
    if can.bakes_materials and options.use_baked_materials:
        models = find_models(context, source, options) if can.gltf_materials else []
        objects = [model.finest for model in models] if can.gltf_materials else candidates_of(context, source)
    for obj in objects:
        maps = sorted(getattr(obj.data, "uv_layers", ()), key=lambda layer: not layer.active_render)
        for material in {slot.material for slot in obj.material_slots} - {None}:
            layers = material_losses.layers_of(material, tuple(layer.name for layer in maps), objects)
            users.setdefault(material, {}).setdefault(obj.data, BakeSurface(obj, obj.name, layers))
    tasks = [BakeTask(material.name, material, list(surfaces.values())) for material, surfaces in users.items()]
    tasks = planned(tasks, options, can, Report())
    return sum(task.sets for task in tasks), price_of(tasks)


class Bakery:
    """Bakes the materials of an export."""

    def __init__(self, export: SceneExport) -> None:
        self._export = export
        self._is_on = export.capabilities.bakes_materials and export.options.use_baked_materials
        self._is_off = export.capabilities.bakes_materials and not self._is_on
        self.materials: dict[str, bpy.types.Material] = {}
        """The baked materials by their names in the file, of which each set of pictures has one."""
        self.shadings: dict[str, Shading] = {}
        """Their shadings, with pictures."""
        self.stated: set[str] = set()
        """Names of the materials that the request does not bake, but an export does."""
        self.names: dict[int, dict[str, str]] = {}
        """For the ``id`` of each mesh, the new name of each baked material."""
        self._renamed: dict[tuple[int, int], Mesh] = {}

    def renamed(self, mesh: Mesh, finest: Mesh) -> Mesh:
        """Return a mesh with the names that the baked materials of the finest mesh of its model have."""
        names = self.names.get(id(finest), {})
        made = replace(mesh, materials=[names.get(name, name) for name in mesh.materials])
        return self._renamed.setdefault((id(mesh), id(finest)), made) if made.materials != mesh.materials else mesh

    def report(self, left_out: LeftOut, name: str, material: bpy.types.Material) -> None:
        """Report what was left out of a material with this name in the file, without what an export will bake."""
        if name in self.stated:
            left_out = replace(left_out, nodes={}, mappings=[])
        left_out.report(name if name in self.materials else material.name, self._export.report, is_off=self._is_off)

    def bake(self, tasks: Iterable[BakeTask]) -> Steps[None]:
        """Bake those of the tasks for all materials of the file that need it.

        Raises
        ------
        ExportError
            The request refuses baking.
        """
        export, report = self._export, self._export.report
        tasks = list(tasks) if self._is_on else []
        todo, taken = planned(tasks, export.options, export.capabilities, report), {task.name for task in tasks}
        if todo and export.baking == "REFUSE":
            raise ExportError("its materials need to be baked ({}); choose Re-export", price_of(todo))
        if todo and export.baking == "STATE":
            self.stated = {task.name for task in todo}
            names = tuple(Named("material", task.name) for task in todo)
            report.note("materials-to-bake", "An export bakes {}", price_of(todo), names=names)
            return
        if todo and not hasattr(export.context.scene, "cycles"):
            text = "No material was baked: enable Blender's add-on 'Cycles Render Engine' in the preferences"
            report.loss("cycles-disabled", text)
            return
        for number, task in enumerate(todo):
            try:
                yield from scaled(self._bake(task, taken), number / len(todo), (number + 1) / len(todo))
            except (RuntimeError, ReferenceError, MemoryError, ExportError) as problem:
                task.report.loss("material-not-baked", "not baked: {}", str(problem).strip())
        if self.materials:
            is_warning = bpy.app.background and sum(task.sets for task in todo) > MOST_BAKES
            tell = report.change if is_warning else report.note
            pictures = counted(sum(map(picture_count, self.shadings.values())), "picture")
            tell("materials-baked", "Baked {}: {}", counted(len({*self.materials.values()}), "material"), pictures)

    def _bake(self, task: BakeTask, taken: set[str]) -> Steps[None]:
        """Bake all sets of pictures of a material, whose names become ``taken``."""
        made: dict[str, Shading] = {}
        most = 1 << (self._export.options.bake_size.bit_length() - 1)
        factor = min(1.0, most / max(*task.size, 1))
        width, height = (max(1, round(side * factor)) if all(task.size) else most for side in task.size)
        for number, surface in enumerate(task.surfaces[: task.sets]):
            maps: dict[Map, Baked] = {}
            size, is_repeated = (width, height), task.mapping != Mapping()
            bake = Bake(self._export.context, task.material, surface.layers.uvs[0], size, is_repeated)
            try:
                if task.is_flat:
                    bake.add_square(task.side or 1.0)
                else:
                    bake.add_faces(surface.obj, is_plain=surface.is_plain)
                for done, kind in enumerate(task.shaders.maps):
                    fraction = (number + done / len(task.shaders.maps)) / task.sets
                    yield Step("Baking", fraction, Text("{}: {}", Named("material", task.name), kind.value))
                    maps[kind] = bake.bake(kind, task.shaders.samples)
                    if not maps[kind][1].any():
                        raise ExportError("the UVs of its faces cover no pixel")
            finally:
                remove(bake.blocks)
            name = f"{task.name}_{surface.label}" if number else task.name
            while number and name in taken:
                name += "_"
            taken.add(name)
            made[name] = plain_shading(name, maps, task.shaders.values, task.shading, task.mapping)
        for surface, name in zip(task.surfaces, made, strict=False):
            self.names.setdefault(id(surface.mesh), {})[task.name] = name
        self.materials |= dict.fromkeys(made, task.material)
        self.shadings |= made
