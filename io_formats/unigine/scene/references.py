"""References of a scene, resolved in its project, and functions that load the models of its placement.

The last section of docs/formats/unigine_projects.md describes the rules.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

import numpy as np

from ...core.addon_files import SourceObject
from ...core.errors import ExportError, FormatError
from ...core.messages import Message, Named
from ...core.recognition import signature_text
from ...core.scene import Layer, Material, Matrix4, Mesh, Node, Scene, Surface
from ...geometry.normals import unit
from ...geometry.triangles import with_corners
from ...passes.clips import adopt_clips
from ...passes.join_meshes import join
from ..animation.format import UNIGINE_ANIMATION
from ..mesh.document import MeshFile
from ..mesh.format import UNIGINE_MESH
from ..mesh.scene_builder import UV_NAMES
from ..project.fbx_assets import SourceMesh
from ..project.guids import Rule, plain_reference
from ..project.project import Project
from ..project.scene_materials import ProjectMaterials

_OF_EDITOR = {".runtimes", ".cache_textures", ".editor2", ".thumbnails", "core", "editor2"}
_GRAPH = ".agraph"
_GRAPH_CLIP = re.compile(rb'"anim_guid"\s*:\s*"([0-9a-f]{40})"')
_SOURCES = (".fbx", ".gltf", ".glb", ".obj", ".dae")


@dataclass(frozen=True)
class LinkedFile:
    """A file found for a reference."""

    path: str
    """Path in the project, which also identifies the file."""
    read: Callable[[], bytes]
    """Function that returns the content, or raises ``FormatError``."""
    is_source: bool = False
    """Whether this is the source from which the referenced file was made, because that file is missing."""
    file: str = ""
    """Path on disk; empty if only the editor may change the file."""
    full: str = ""
    """Path on disk, even if only the editor may change the file."""


def is_of_editor(path: str) -> bool:
    """Return whether the editor makes the file at a path in a project, or the file belongs to the engine."""
    return path.lower().split("/")[0] in _OF_EDITOR


class ProjectLinks:
    """Finds the files and materials that a scene refers to in a project.

    Parameters
    ----------
    project:
        The project.
    with_materials:
        Whether surfaces get the materials of the project instead of those in the mesh files.
    """

    def __init__(self, project: Project, *, with_materials: bool) -> None:
        self._project = project
        self._materials = ProjectMaterials(project) if with_materials else None
        self._problems: dict[Message, None] = {}

    def find(self, reference: str) -> LinkedFile | None:
        """Return the file that a reference leads to, or None if it is missing."""
        found = self._project.find(reference)
        if found.path is None:
            return None
        is_source = found.rule is Rule.SOURCE_OF_MISSING_RUNTIME or found.path.lower().endswith(_SOURCES)
        full = str(self._project.root / found.path)
        file = "" if is_of_editor(found.path) else full
        return LinkedFile(found.path, partial(self._project.files.read, found.path), is_source, file, full)

    def graph_clips(self, graph: str) -> list[str] | None:
        """Return the references of the animations that an animation graph plays; None if the graph is missing.

        Nodes refer to the runtime of a graph, which the editor compiles from it.
        """
        path = self._project.asset_of(plain_reference(graph)) or self._project.find(graph).path
        if path is None or not path.lower().endswith(_GRAPH):
            return None
        try:
            found = _GRAPH_CLIP.findall(self._project.files.read(path))
        except FormatError:
            return None
        return list(dict.fromkeys(guid.decode() for guid in found))

    def source_mesh(self, reference: str) -> SourceMesh | None:
        """Return the FBX file from which a missing mesh was made; None if that is missing, too."""
        return self._project.source_mesh(reference)

    def material(self, reference: str, surface: str) -> str | None:
        """Return the name of a reference's material in the scene, or None to use the material of the mesh file."""
        return self._materials.name_of(reference, surface) if self._materials is not None else None

    def use_libraries(self, references: list[str]) -> None:
        """Include material libraries of SDK 2.0 in the search for materials."""
        for reference in references:
            problem = self._project.add_library(reference)
            if problem is not None:
                self._problems[problem] = None

    @property
    def materials(self) -> list[Material]:
        """Materials whose names :meth:`material` has returned so far; empty if ``with_materials`` is false."""
        return self._materials.materials if self._materials is not None else []

    def warnings(self) -> list[Message]:
        """Return messages about missing materials and libraries."""
        return [*self._problems, *(self._materials.warnings() if self._materials is not None else [])]

    def not_shown(self) -> list[Message]:
        """Return the messages about material settings without a counterpart in Blender."""
        return self._materials.not_shown() if self._materials is not None else []


_HEAD = 4096


def inline_mapping(geometry: MeshFile, name: str) -> Callable[[], Scene]:
    """Return a function that maps a mesh inside a scene file."""
    return partial(UNIGINE_MESH.to_scene, geometry, name)


def from_file(file: LinkedFile, animations: Sequence[LinkedFile], name: str) -> Callable[[], Scene]:
    """Return a function that reads a mesh file, with the animations that it plays."""

    def read() -> Scene:
        try:
            data = file.read()
            if known := signature_text(data[:_HEAD]):
                raise FormatError(known)
            scene = UNIGINE_MESH.to_scene(UNIGINE_MESH.read(data), name)
        except FormatError as problem:
            raise problem.in_file(file.path) from None
        for animation in animations if scene.skeletons else ():
            _add_animation(scene, animation)
        return scene

    return read


def _add_animation(scene: Scene, file: LinkedFile) -> None:
    name = file.path.rpartition("/")[2].rpartition(".")[0]
    try:
        other = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(file.read()), name)
        scene.warnings += adopt_clips(scene, other)
    except (FormatError, ExportError) as problem:
        name = Named("animation", file.path)
        scene.report.loss("unreadable-animation", "Its animation '{}' cannot be used: {}", name, problem)


_NO_MATERIAL = "surface_0"


@dataclass(frozen=True)
class _Part:
    """An object of a model: the model itself or one of its levels of detail."""

    obj: SourceObject
    matrix: Matrix4
    prefix: str = ""
    """Text before the name of the material in the names of the part's surfaces."""
    postfix: str = ""

    def surfaces(self) -> dict[int, str]:
        """Return the names of the surfaces by material slot, in the order in which faces first use them."""
        used, first = np.unique(self.obj.mesh.material_index, return_index=True)
        materials = self.obj.mesh.materials
        return {
            slot: self.prefix + ((materials[slot] if slot < len(materials) else "") or _NO_MATERIAL) + self.postfix
            for slot in used[np.argsort(first)].tolist()
        }


def from_source(source: SourceMesh, name: str, surfaces: Sequence[str]) -> Callable[[], Scene]:
    """Return a function that maps a mesh of an imported FBX file.

    Parameters
    ----------
    source:
        The missing mesh.
    name:
        Name of the model.
    surfaces:
        Names of its surfaces in a scene, used if the project does not state them.
    """

    def read() -> Scene:
        parts = _parts(source)
        if any(part.obj.is_skinned for part in parts):
            raise FormatError("The mesh is skinned; only static meshes are taken from FBX files", file=_label(source))
        names = source.surfaces or surfaces
        if not names and source.merges_materials:
            names = sorted({name for part in parts for name in part.surfaces().values()}, reverse=True)
        mesh = join(_with_surfaces(parts, names))
        return Scene(name, [Node(name, mesh=mesh)], format="unigine_mesh")

    return read


def _label(source: SourceMesh) -> str:
    return f"{source.file.name}/{source.name}"


def _parts(source: SourceMesh) -> list[_Part]:
    """Return the objects that make up a mesh.

    Raises
    ------
    FormatError
        There is no such object, or the file was not imported.
    """
    file = source.file
    if file.head is None or file.objects is None:
        raise FormatError("Only Blender can read FBX files", file=_label(source))
    matrix = source.to_engine(file.head)
    if source.is_merged:
        order = {name: number for number, name in enumerate(file.head.names)}
        static = sorted((obj for obj in file.objects if not obj.is_skinned), key=lambda obj: order.get(obj.name, -1))
        parts = [_Part(obj, matrix @ obj.world, "" if source.merges_materials else f"{obj.name}_") for obj in static]
    else:
        named = [(postfix, file.find(source.name + postfix)) for postfix in source.levels]
        parts = [_Part(obj, matrix, postfix=postfix) for postfix, obj in named if obj is not None]
        if len(parts) < 2:  # an object without other levels keeps its name
            found = file.find(source.name, source.surfaces)
            parts = [_Part(found, matrix)] if found is not None else []
    if not parts:
        raise FormatError("The FBX file has no such mesh", file=_label(source))
    return parts


def _with_surfaces(parts: Sequence[_Part], names: Sequence[str]) -> list[Mesh]:
    """Return the meshes of parts in the space of the model, all with the same surfaces as material slots.

    Surfaces get the given names. These are matched to materials ignoring case; if as many remain unmatched on both
    sides, by order.
    """
    stated = [part.surfaces() for part in parts]
    own = {name.casefold(): name for slots in stated for name in slots.values()}
    given = {name.casefold(): name for name in reversed(names)}
    chosen = {key: given.get(key, name) for key, name in own.items()}
    unknown = [key for key in own if key not in given]
    left = [name for name in names if name.casefold() not in own]
    if len(unknown) == len(left):
        chosen.update(zip(unknown, left, strict=True))
    used = set(chosen.values())
    surfaces = list(dict.fromkeys([*(name for name in names if name in used), *chosen.values()]))
    place = {key: surfaces.index(name) for key, name in chosen.items()}
    meshes = []
    for part, slots in zip(parts, stated, strict=True):
        index = np.zeros(max(slots, default=0) + 1, np.int32)
        for slot, name in slots.items():
            index[slot] = place[name.casefold()]
        mesh = _transformed(part.obj.mesh, part.matrix)
        found = [Surface(name) for name in surfaces]
        meshes.append(replace(mesh, material_index=index[mesh.material_index], materials=surfaces, surfaces=found))
    return meshes


def _transformed(mesh: Mesh, matrix: Matrix4) -> Mesh:
    """Transform a mesh, and give UV maps their usual names; if the matrix mirrors, polygons are reversed."""
    linear = matrix[:3, :3]
    if np.linalg.det(linear) < 0:
        corners = np.arange(len(mesh.corner_point)).reshape(-1, 3)[::-1, [0, 2, 1]].reshape(-1)
        sizes = mesh.polygon_sizes
        mesh = replace(
            with_corners(mesh, corners),
            material_index=mesh.material_index[::-1],
            polygon_sizes=None if sizes is None else sizes[::-1],
        )
    points = mesh.points @ linear.T + matrix[:3, 3]
    normal = mesh.normal
    if normal is not None:
        normal = replace(normal, values=unit(normal.values @ np.linalg.pinv(linear)).astype(np.float32))
    names = [*UV_NAMES, *(layer.name for layer in mesh.uvs[len(UV_NAMES) :])]
    uvs = [Layer(name, layer.values, per_corner=True) for name, layer in zip(names, mesh.uvs, strict=False)]
    return replace(mesh, points=points.astype(np.float32), normal=normal, uvs=uvs)


class Problem(Enum):
    """Kind of an unresolved reference.

    Its value: message code, noun in singular and plural, template of the message.
    """

    MESH = ("mesh-not-found", "mesh", "meshes", "{} not found; an empty stands for each: {}")
    SOURCE_MESH = ("only-source-found", "mesh", "meshes", "{} not found, only the source; import that separately: {}")
    """The mesh is missing, but the file from which the editor made it exists."""
    NODE = ("node-file-not-found", "node file", "node files", "{} not found; an empty stands for each: {}")
    SOURCE_NODE = (
        "only-source-found",
        "node file",
        "node files",
        "{} not found, only the source; import that separately: {}",
    )
    BROKEN_NODE = ("unreadable-node-file", "node file", "node files", "{} cannot be read; an empty stands for each: {}")
    LOOP = ("node-file-loop", "node file refers to itself", "node files refer to themselves", "{}; left out there: {}")
    CLUSTER = ("cluster-left-out", "cluster", "clusters", "{} left out, since a binary file has the places: {}")
    ANIMATION = ("unreadable-animation", "animation", "animations", "{} not found or not readable: {}")
