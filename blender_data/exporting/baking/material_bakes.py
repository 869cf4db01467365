"""Which materials of an export are baked, on which meshes, and the plain materials that stand for them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Named, Report, Text, counted, joined
from ....io_formats.core.scene import Mesh
from ....io_formats.core.shading import Shading, Texture
from ... import compat
from ...steps import Step, Steps, scaled
from ..reading.shader_nodes import LeftOut
from .baked_pictures import Maps, look_of
from .cycles_bakes import BakeMesh, BakeScene, faces_of, square
from .emission_copies import Map
from .plain_materials import PlainMaterial
from .surface_shaders import NOTHING_KNOWN, Dependence, SurfaceShaders

_BORDER = 1e-4
"""Distance by which UVs may exceed a tile."""


@dataclass
class BakeSurface:
    """The faces of one mesh of the file that have a material."""

    mesh: Mesh
    slots: list[str]
    """Name of the material of each slot of the mesh, which a node may replace."""
    objects: list[tuple[bpy.types.Object, bool]]
    """Objects that the mesh consists of, and whether each is evaluated; empty if the faces belong to instances."""
    label: str
    """Name of the object, for messages and pictures."""
    is_shown_uv: bool = True
    """Whether the exported UV map is the one that is marked for rendering."""

    def uvs(self, name: str) -> npt.NDArray[np.floating]:
        """Return the UVs of the triangles with a material, (T, 3, 2)."""
        corners = self.mesh.uvs[0].at_corners(self.mesh.corner_point).reshape(-1, 3, 2)
        return corners[self._is_chosen(name)]

    def area_ratio(self, name: str) -> float:
        """Return the area of the faces with a material relative to that of their UVs."""
        points = self.mesh.points[self.mesh.corner_point.reshape(-1, 3)[self._is_chosen(name)]]
        uvs = self.uvs(name)
        area = np.linalg.norm(np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]), axis=1).sum()
        (u, v), (other_u, other_v) = (uvs[:, 1] - uvs[:, 0]).T, (uvs[:, 2] - uvs[:, 0]).T
        of_uvs = np.abs(u * other_v - v * other_u).sum()
        return float(area / of_uvs) if of_uvs > 0.0 else 1.0

    def _is_chosen(self, name: str) -> npt.NDArray[np.bool_]:
        wanted = np.array([slot == name for slot in self.slots or [""]])
        return wanted[np.clip(self.mesh.material_index, 0, len(wanted) - 1)]


@dataclass
class BakeTask:
    """A material with a loss that pictures would mend."""

    name: str
    """Its name in the file."""
    material: bpy.types.Material
    shading: Shading
    surfaces: list[BakeSurface]
    maps: list[Map] = field(default_factory=list)
    dependence: Dependence = NOTHING_KNOWN
    is_flat: bool = False

    def sets(self) -> int:
        """Return the number of sets of pictures."""
        return 1 if self.is_flat else len(self.surfaces)


def uses(mesh: Mesh, name: str) -> bool:
    """Return whether faces of a mesh have a material."""
    slots = np.unique(np.clip(mesh.material_index, 0, max(len(mesh.materials) - 1, 0))).tolist()
    return any(mesh.materials[slot] == name for slot in slots) if mesh.materials else False


def is_mended(left_out: LeftOut) -> bool:
    """Return whether pictures can hold some of what was left out of a material."""
    return bool(left_out.nodes or left_out.mappings)


def planned(tasks: Sequence[BakeTask], report: Report) -> list[BakeTask]:
    """Return the tasks that can be done; report why others cannot."""
    done = []
    for task in tasks:
        about = report.about(Text("Material '{}'", Named("material", task.name)))
        shaders = SurfaceShaders(compat.node_tree(task.material))
        if not shaders.is_known():
            continue  # the report of what is left out names the shader
        if reason := _plan(task, shaders, about):
            about.loss("material-not-baked", "not baked: {}", reason)
        else:
            done.append(task)
    return done


def _plan(task: BakeTask, shaders: SurfaceShaders, report: Report) -> Text:
    """Choose the maps and the way of a task; return why it cannot be done, or an empty text."""
    if missing := shaders.without_image():
        return Text("the image '{}' is missing or in tiles", Named("image", missing[0]))
    task.maps = list(maps_of(shaders))
    if not task.maps:
        task.is_flat = True
        return Text("")
    for surface in task.surfaces:
        if not surface.mesh.uvs or not np.isfinite(surface.uvs(task.name)).all():
            return Text("'{}' has no valid UV map", surface.label)
    names = {surface.mesh.uvs[0].name for surface in task.surfaces}
    is_shown = all(surface.is_shown_uv for surface in task.surfaces)
    found = [shaders.dependence(name, is_shown=is_shown) for name in names]
    task.dependence = found[0]
    uvs = [surface.uvs(task.name) for surface in task.surfaces]
    is_inside = all(((part >= -_BORDER) & (part <= 1.0 + _BORDER)).all() for part in uvs)
    task.is_flat = all(one.is_flat for one in found) and (found[0].is_periodic or is_inside)
    if not task.is_flat:
        for surface, part in zip(task.surfaces, uvs, strict=True):
            if not surface.objects:
                return Text("'{}' shows it by instances", surface.label)
            tiles = np.floor(part.min(axis=1) + _BORDER)
            if (part.max(axis=1) > tiles + 1.0 + _BORDER).any():
                return Text("faces of '{}' cross the borders of UV tiles", surface.label)
    if unsteady := shaders.view_dependent():
        text = "{} give other values in the picture: they depend on the view, on the name of the object or on EEVEE"
        report.change("material-bake-differs", text, joined(unsteady))
    deformed = [
        surface.label for surface in task.surfaces if any(is_evaluated for _obj, is_evaluated in surface.objects)
    ]
    if deformed and shaders.uses_generated():
        text = (
            "generated coordinates follow the shape of '{}' after its modifiers, unlike in Blender if these deform it"
        )
        report.change("material-bake-generated", text, deformed[0])
    return Text("")


def maps_of(shaders: SurfaceShaders) -> Iterator[Map]:
    """Yield the maps of inputs that nodes determine."""
    if not shaders.is_emission:
        if shaders.constant("color") is None:
            yield Map.COLOR
        if shaders.occlusion or None in map(shaders.constant, ("roughness", "metallic")):
            yield Map.SURFACE
    keys = ("alpha",) if shaders.is_emission else ("alpha", "specular")
    if shaders.has_gaps or None in map(shaders.constant, keys):
        yield Map.COVERAGE
    color, strength = shaders.constant("emission"), shaders.constant("strength")
    is_dark = strength == (0.0,) or (color is not None and not any(color[:3]))
    if not is_dark and (color is None or strength is None):
        yield Map.EMISSION
    if shaders.has_normals():
        yield Map.NORMAL


def _price(tasks: Sequence[BakeTask]) -> Text:
    """Describe the materials, meshes and pictures of tasks."""
    meshes = len({id(surface.mesh) for task in tasks for surface in task.surfaces})
    return price_text(len(tasks), meshes, sum(task.sets() * len(task.maps) for task in tasks))


def price_text(materials: int, meshes: int, pictures: int) -> Text:
    """Describe how much is baked."""
    counts = (counted(materials, "material"), counted(meshes, "mesh", "meshes"), counted(pictures, "picture"))
    return Text("{} on {}: up to {}", *counts)


_VALUES_OF = {
    Map.COLOR: ("color",),
    Map.SURFACE: ("roughness", "metallic"),
    Map.COVERAGE: ("alpha",),
    Map.EMISSION: ("emission", "strength"),
}


@dataclass
class Renamed:
    """The plain materials that stand for baked ones, by their names in the file."""

    materials: dict[str, bpy.types.Material] = field(default_factory=dict)
    names: dict[int, dict[str, str]] = field(default_factory=dict)
    """For the ``id`` of each mesh, the new name of each baked material."""


class Bakery:
    """Bakes materials; a context manager that removes all temporary data at its end.

    Parameters
    ----------
    size:
        Width and height of pictures on meshes, and the largest of all others; rounded down to a power of two.
    """

    def __init__(self, context: bpy.types.Context, size: int, report: Report) -> None:
        self._context = context
        self._size = 1 << (size.bit_length() - 1)
        self._report = report
        self._plain: list[PlainMaterial] = []
        self.stated: list[str] = []
        """Names of the materials that the request does not bake, but an export does."""
        self.textures: dict[bpy.types.Image, Texture] = {}
        """The textures of the pictures, which stay valid after the export."""

    def __enter__(self) -> Bakery:
        return self

    def __exit__(self, *_exception: object) -> None:
        for plain in self._plain:
            with contextlib.suppress(ReferenceError):  # an undo during the export removed it
                plain.remove()

    def bake(self, tasks: Sequence[BakeTask], taken: set[str], baking: str) -> Steps[Renamed]:
        """Bake tasks.

        ``taken`` are the names of all materials of the file, to which new names are added. ``baking`` is that of the
        request.

        Raises
        ------
        ExportError
            The request refuses baking.
        """
        done = Renamed()
        if baking != "BAKE" and tasks:
            text = _price(tasks)
            if baking == "REFUSE":
                raise ExportError("its materials need to be baked ({}); choose Re-export", text)
            self.stated = [task.name for task in tasks]
            names = tuple(Named("material", name) for name in self.stated)
            self._report.note("materials-to-bake", "An export bakes {}", text, names=names)
            return done
        total, count, pictures, baked = max(1, sum(task.sets() * len(task.maps) for task in tasks)), 0, 0, 0
        for task in tasks:
            made: list[PlainMaterial] = []
            try:
                for number in range(task.sets()):
                    maps = yield from scaled(self._bake(task, number), count / total, (count + len(task.maps)) / total)
                    count += len(task.maps)
                    made.append(self._plain_of(task, number, maps, taken))
            except TypeError as problem:
                if "CYCLES" not in str(problem):
                    raise
                text = "No material was baked: enable Blender's add-on 'Cycles Render Engine' in the preferences"
                self._report.loss("cycles-disabled", text)
                break
            except (RuntimeError, ReferenceError, MemoryError, ExportError) as problem:
                about = self._report.about(Text("Material '{}'", Named("material", task.name)))
                about.loss("material-not-baked", "not baked: {}", str(problem).strip())
                continue
            baked += 1
            pictures += sum(len(plain.textures) for plain in made)
            done.materials.update({plain.name: plain.material for plain in made})
            for surface, plain in zip(task.surfaces, made, strict=False):
                done.names.setdefault(id(surface.mesh), {})[task.name] = plain.name
        if baked:
            text = Text("Baked {}: {}", counted(baked, "material"), counted(pictures, "picture"))
            self._report.note("materials-baked", "{}", text)
        return done

    def _bake(self, task: BakeTask, number: int) -> Steps[Maps]:
        """Bake the maps of a set of pictures."""
        if not task.maps:
            return {}
        scene = BakeScene(self._context, casts_rays=SurfaceShaders(task.material.node_tree).casts_rays())
        meshes: list[BakeMesh] = []
        try:
            size = self._add_meshes(task, number, meshes)
            maps: Maps = {}
            for done, kind in enumerate(task.maps):
                subject = Text("{}: {}", Named("material", task.name), kind.value)
                yield Step("Baking", done / len(task.maps), subject)
                mutes = task.is_flat and task.dependence.mapping is not None
                maps[kind] = scene.bake(task.material, kind, meshes, size, mutes_mapping=mutes)
                if not maps[kind][1].any():
                    raise ExportError("the UVs of its faces cover no pixel")
            return maps
        finally:
            scene.remove()
            for made in meshes:
                bpy.data.meshes.remove(made.mesh)

    def _add_meshes(self, task: BakeTask, number: int, meshes: list[BakeMesh]) -> tuple[int, int]:
        """Add the temporary meshes of a set of pictures; return the size of the pictures."""
        surface = task.surfaces[number]
        uv_map = surface.mesh.uvs[0].name
        if task.is_flat:
            ratios = [one.area_ratio(task.name) for one in task.surfaces]
            meshes.append(square(math.sqrt(max(ratios)), uv_map))
            width, height = task.dependence.size or (self._size, self._size)
            factor = min(1.0, self._size / max(width, height))
            return max(1, round(width * factor)), max(1, round(height * factor))
        for obj, is_evaluated in surface.objects:
            depsgraph = self._context.evaluated_depsgraph_get()
            seen = obj.evaluated_get(depsgraph) if is_evaluated else obj
            meshes.append(faces_of(seen, depsgraph, task.material, uv_map))
        return self._size, self._size

    def _plain_of(self, task: BakeTask, number: int, maps: Maps, taken: set[str]) -> PlainMaterial:
        """Return the plain material of a set of pictures, which is removed at the end."""
        shaders = SurfaceShaders(task.material.node_tree)
        baked = {key for kind in task.maps for key in _VALUES_OF.get(kind, ())}
        keys = {"color", "roughness", "metallic", "specular", "alpha", "emission", "strength"} - baked
        values = {key: value for key in keys if (value := shaders.constant(key)) is not None}
        surface, name = task.surfaces[number], task.name
        if number:
            name = f"{task.name}_{surface.label}"
            while name in taken:
                name += "_"
        taken.add(name)
        look = look_of(maps, values, is_emission=shaders.is_emission)
        mapping = task.dependence.mapping if task.is_flat else None
        uv_map = "" if surface.is_shown_uv and mapping is None else surface.mesh.uvs[0].name
        plain = PlainMaterial(task.material, name, look, task.shading, uv_map=uv_map, mapping=mapping)
        self._plain.append(plain)
        self.textures |= plain.textures
        return plain
