"""Blender's own importers and exporters, called so that they carry what Timbermesh carries.

Imports run with the defaults that an artist gets. The glTF export differs from its defaults in
three options: tangents on (a Timbermesh file always has them), the active vertex colour whatever
the material's nodes use, and no packing of images; PLY writes normals, UVs and colours.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import addon_utils
import bpy

GLTF_EXPORT = {
    "export_format": "GLB",
    "export_tangents": True,
    "export_normals": True,
    "export_texcoords": True,
    "export_vertex_color": "ACTIVE",
    "export_active_vertex_color_when_no_material": True,
}
PLY_EXPORT = {
    "export_normals": True,
    "export_uv": True,
    "export_colors": "SRGB",
    "export_attributes": False,
    "export_triangulated_mesh": False,
}


def enable() -> None:
    """Enable Blender's glTF add-on; PLY and Collada are part of Blender."""
    addon_utils.enable("io_scene_gltf2", default_set=False)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keep what the operators print (C++ ones too) away from the table, and the terminal's speed out of the times."""
    saved = os.dup(1)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(sink)


def export_gltf(path: Path, **changes: object) -> None:
    bpy.ops.export_scene.gltf(filepath=str(path), **{**GLTF_EXPORT, **changes})


def import_gltf(path: Path) -> None:
    bpy.ops.import_scene.gltf(filepath=str(path))


def export_ply(path: Path) -> None:
    bpy.ops.wm.ply_export(filepath=str(path), **PLY_EXPORT)


def import_ply(path: Path) -> None:
    bpy.ops.wm.ply_import(filepath=str(path))


def has_collada() -> bool:
    """Return whether this Blender has its own Collada importer, which 5.0 removed."""
    return "collada_import" in dir(bpy.ops.wm)


def import_collada(path: Path) -> None:
    bpy.ops.wm.collada_import(filepath=str(path))
