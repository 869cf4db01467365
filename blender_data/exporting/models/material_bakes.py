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

    @property
    def uv_map(self) -> str:
        """Name of the exported UV map, on which pictures lie."""
        return "".join(self.layers.uvs[:1])

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

    def side(self, name: str) -> float:
        """Return the length on the surface of one tile of the UV map."""
        normals = (np.cross(part[:, 1] - part[:, 0], part[:, 2] - part[:, 0]) for part in self.corners(name))
        area, of_uvs = (np.linalg.norm(part, axis=1).sum() for part in normals)
        return math.sqrt(area / of_uvs) if of_uvs > 0.0 else 1.0


@dataclass
class BakeTask:
    """A material with the meshes that show it."""

    name: str
    """Its name in the file."""
    material: bpy.types.Material
    surfaces: list[BakeSurface]
    maps: list[Map] = field(default_factory=list)
    is_flat: bool = False
    shading: Shading = field(init=False)
    """The shading that an export without bakes would have."""
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
    done = []
    for task in tasks:
        tree = compat.node_tree(task.material)
        if tree is None or not task.surfaces or (task.material.meshferry.identity and can.placement):
            continue  # nothing to bake, or a material of the project
        shading, left_out = material_losses.losses(task.material, task.surfaces[0].layers, options, can)
        if not (left_out.nodes or left_out.mappings):
            continue
        task.surfaces = [one for one in task.surfaces if one.mesh is None or len(one.corners(task.name)[0])]
        about, shaders = report.about(Text("Material '{}'", Named("material", task.name))), SurfaceShaders(tree)
        opacity = shading.opacity if shading.opacity is Opacity.CLIP else opacity_of(task.material)
        task.shading = replace(shading, opacity=opacity)
        if not (shaders.is_known and task.surfaces):
            continue  # the report of what is left out names the shader
        if reason := _plan(task, shaders, about):
            about.loss("material-not-baked", "not baked: {}", reason)
        else:
            done.append(task)
    return done


def _plan(task: BakeTask, shaders: SurfaceShaders, report: Report) -> str:
    """Choose the maps and the way of a task; return why it cannot be done, or an empty text."""
    if missing := shaders.missing_image():
        return Text("the image '{}' is missing or in tiles", Named("image", missing))
    task.maps = shaders.maps()
    task.is_flat = all(shaders.is_flat(one.uv_map, one.layers.shown_uv) for one in task.surfaces)
    first, problems, is_inside = task.surfaces[0], [], True
    for surface in task.surfaces:
        uvs = surface.corners(task.name)[1]
        if not np.isfinite(uvs).all():
            return Text("'{}' has no valid UV map", surface.label)
        tiles = np.floor(uvs.min(axis=1) + _BORDER)
        is_across = (uvs.max(axis=1) > tiles + 1.0 + _BORDER).any()
        is_inside &= not (tiles.any() or is_across)
        problems += [Text("'{}' shows it by instances", surface.label)] if surface.has_instances else []
        problems += [Text("faces of '{}' cross the borders of UV tiles", surface.label)] if is_across else []
        edges = np.diff(uvs, axis=1)
        has_area = not len(uvs) or np.cross(edges[:, 0], edges[:, 1]).any()
        problems += [] if has_area else [Text("the UVs of '{}' have no area", surface.label)]
    tiling = shaders.tiling(first.uv_map, first.layers.shown_uv) if task.is_flat else None
    task.is_flat &= is_inside or tiling is not None
    task.mapping, task.size = tiling or (Mapping(), (0, 0))
    if problems and not task.is_flat:
        return problems[0]
    if unsteady := shaders.unsteady(is_modified=not all(one.is_plain for one in task.surfaces)):
        text = "{} give other values in the picture: they depend on the view, the object's name, modifiers or EEVEE"
        report.change("material-bake-differs", text, joined(unsteady))
    return ""


def price_of(tasks: Sequence[BakeTask]) -> Text:
    """Describe the materials, meshes and pictures of tasks."""
    meshes = len({id(surface.mesh or surface.obj.data) for task in tasks for surface in task.surfaces})
    pictures = counted(sum(task.sets * len(task.maps) for task in tasks), "picture")
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
        baked, pictures = 0, 0
        for number, task in enumerate(todo):
            try:
                count = yield from scaled(self._bake_all(task, taken), number / len(todo), (number + 1) / len(todo))
            except TypeError as problem:
                if "CYCLES" not in str(problem):
                    raise
                text = "No material was baked: enable Blender's add-on 'Cycles Render Engine' in the preferences"
                report.loss("cycles-disabled", text)
                return
            except (RuntimeError, ReferenceError, MemoryError, ExportError) as problem:
                about = report.about(Text("Material '{}'", Named("material", task.name)))
                about.loss("material-not-baked", "not baked: {}", str(problem).strip())
                continue
            baked, pictures = baked + 1, pictures + count
        if baked:
            is_warning = bpy.app.background and sum(task.sets for task in todo) > MOST_BAKES
            tell = report.change if is_warning else report.note
            tell("materials-baked", "Baked {}: {}", counted(baked, "material"), counted(pictures, "picture"))

    def _bake_all(self, task: BakeTask, taken: set[str]) -> Steps[int]:
        """Bake all sets of pictures of a material; return the number of pictures."""
        made: dict[str, Shading] = {}
        for number, surface in enumerate(task.surfaces[: task.sets]):
            maps = yield from scaled(self._bake(task, surface), number / task.sets, (number + 1) / task.sets)
            name = f"{task.name}_{surface.label}" if number else task.name
            while number and name in taken:
                name += "_"
            taken.add(name)
            values = SurfaceShaders(task.material.node_tree).values()
            made[name] = plain_shading(name, maps, values, task.shading, task.mapping)
        for surface, name in zip(task.surfaces, made, strict=False):
            self.names.setdefault(id(surface.mesh), {})[task.name] = name
        self.materials |= dict.fromkeys(made, task.material)
        self.shadings |= made
        return sum(map(picture_count, made.values()))

    def _bake(self, task: BakeTask, surface: BakeSurface) -> Steps[dict[Map, Baked]]:
        """Bake the maps of a set of pictures."""
        context, shaders = self._export.context, SurfaceShaders(task.material.node_tree)
        most = 1 << (self._export.options.bake_size.bit_length() - 1)
        factor = min(1.0, most / max(*task.size, 1))
        width, height = (max(1, round(side * factor)) if all(task.size) else most for side in task.size)
        bake = Bake(context, task.material, surface.uv_map, (width, height), task.mapping != Mapping())
        maps: dict[Map, Baked] = {}
        try:
            if task.is_flat:
                bake.add_square(max(one.side(task.name) for one in task.surfaces))
            elif surface.is_plain:
                bake.add_faces(surface.obj)
            else:
                bake.add_faces(surface.obj.evaluated_get(context.evaluated_depsgraph_get()))
            for done, kind in enumerate(task.maps):
                yield Step("Baking", done / len(task.maps), Text("{}: {}", Named("material", task.name), kind.value))
                maps[kind] = bake.bake(kind, shaders.samples())
                if not maps[kind][1].any():
                    raise ExportError("the UVs of its faces cover no pixel")
            return maps
        finally:
            remove(bake.blocks)
