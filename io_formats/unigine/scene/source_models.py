"""Models of a placement made from FBX files that Blender imported: selection of objects, and their surfaces.

The last section of docs/formats/unigine_projects.md describes the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.addon_files import SourceObject
from ...core.errors import FormatError
from ...core.scene import Layer, Matrix4, Mesh, Node, Scene, Surface
from ...geometry.normals import unit
from ...geometry.triangles import with_corners
from ...passes.join_meshes import join
from ..mesh.scene_builder import UV_NAMES
from ..project.fbx_assets import SourceMesh

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
