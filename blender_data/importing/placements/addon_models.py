"""Files of Blender's own importers -> arrays; the open .blend file is left unchanged."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.addon_files import SourceFile, SourceObject
from ....io_formats.core.errors import FormatError
from ....io_formats.core.scene import Layer, Mesh
from ....io_formats.geometry import triangles
from ....io_formats.geometry.triangles import with_corners
from ... import arrays
from ...operator_calls import operator_error
from ...steps import Step, Steps, without_bpy

_NOT_REMOVED = {"libraries", "shape_keys", "window_managers", "workspaces", "screens", "all_ids"}
"""Collections of ``bpy.data`` that are not cleaned up: importers add nothing to them; or their data is removed together
with its user; or (``all_ids`` of Blender 5.2) they list the data of all other collections."""


def import_steps(context: bpy.types.Context, source: SourceFile) -> Steps[None]:
    """Import a source file, unless it was imported before, and store its objects in ``source``.

    Raises
    ------
    FormatError
        The file cannot be read.
    """
    if source.objects is not None:
        return
    try:
        names = yield from without_bpy("Reading source files", source.names)
        yield Step("Importing source files", 0.5)
        source.objects = _import(context, source, names)
    except FormatError as problem:
        raise problem.in_file(source.name) from None


def _import(context: bpy.types.Context, source: SourceFile, names: Iterable[str]) -> list[SourceObject]:
    """Import a source file with Blender's own importer; return its mesh objects and keep nothing in the .blend file."""
    with _free_names(names), _temporary_data():
        # A separate scene is used, since importers change the frame rate and the selection.
        scene = bpy.data.scenes.new("Source")
        layer = scene.view_layers[0]
        family, _, name = source.importer.partition(".")
        try:
            with context.temp_override(scene=scene, view_layer=layer):
                getattr(getattr(bpy.ops, family), name)(filepath=str(source.path), use_anim=False)
        except RuntimeError as problem:
            raise FormatError("Blender cannot read it: {}", operator_error(problem)) from None
        layer.update()
        meshes: dict[bpy.types.ID, Mesh] = {}
        return [_read(obj, meshes) for obj in scene.collection.all_objects if obj.type == "MESH"]


@contextlib.contextmanager
def _temporary_data() -> Iterator[None]:
    """Remove all data that is created in a ``with`` block."""
    before = _all_data()
    try:
        yield
    finally:
        made = [block for owner, blocks in _all_data().items() for block in blocks - before.get(owner, set())]
        scenes = [block for block in made if isinstance(block, bpy.types.Scene)]
        others = [block for block in made if not isinstance(block, bpy.types.Scene)]
        for scene in scenes:
            bpy.data.scenes.remove(scene)
        bpy.data.batch_remove(others)


def _all_data() -> dict[str, set[bpy.types.ID]]:
    collections = [found.identifier for found in bpy.data.bl_rna.properties if found.type == "COLLECTION"]
    return {name: set(getattr(bpy.data, name)) for name in collections if name not in _NOT_REMOVED}


@contextlib.contextmanager
def _free_names(names: Iterable[str]) -> Iterator[None]:
    """Temporarily rename data with these names, so that imported data gets exactly its names in the file."""
    renamed: list[tuple[bpy.types.ID, str]] = []
    try:
        for name in names:
            for owner in (bpy.data.objects, bpy.data.meshes, bpy.data.materials):
                block = owner.get((name, None))  # names of linked data do not collide
                if block is not None:
                    renamed.append((block, block.name))
                    block.name = f".meshferry {len(renamed)}"
        yield
    finally:
        for block, name in renamed:
            block.name = name


def _read(obj: bpy.types.Object, meshes: dict[bpy.types.ID, Mesh]) -> SourceObject:
    data: Any = obj.data
    materials = [slot.material.name if slot.material is not None else "" for slot in obj.material_slots]
    if data not in meshes:
        meshes[data] = _read_mesh(data, materials)
    is_skinned = any(modifier.type == "ARMATURE" for modifier in obj.modifiers)
    return SourceObject(obj.name, data.name, meshes[data], np.array(obj.matrix_world), is_skinned)


def _read_mesh(data: bpy.types.Mesh, materials: list[str]) -> Mesh:
    """Return a mesh with its polygons, which Blender's importer has checked."""
    sizes = arrays.read(data.polygons, "loop_total", dtype=np.int32)
    corners = triangles.fan_corners(sizes)
    index = data.attributes.get("material_index")
    slots = np.zeros(len(sizes), np.int32) if index is None else arrays.read(index.data, "value", dtype=np.int32)
    mesh = Mesh(
        points=arrays.points_of(data),
        corner_point=arrays.corner_vertices(data),
        material_index=np.repeat(slots, sizes - 2),
        materials=materials,
        normal=Layer("normal", arrays.read(data.corner_normals, "vector", 3), per_corner=True),
        uvs=[Layer(layer.name, arrays.read(layer.uv, "vector", 2), per_corner=True) for layer in data.uv_layers],
    )
    for color in data.color_attributes[:1]:
        values = np.rint(255 * arrays.read(color.data, "color_srgb", 4).clip(0, 1)).astype(np.uint8)
        mesh.colors.append(Layer(color.name, values, per_corner=color.domain == "CORNER"))
    return replace(mesh if corners is None else with_corners(mesh, corners), polygon_sizes=sizes)
