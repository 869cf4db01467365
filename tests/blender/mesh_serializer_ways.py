"""MeshSerializer2 files into Blender and out of it, as the shell does it, and what the tests compare."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mesh_serializer_made as made
import numpy as np


def imported(data: bytes, name: str = "given", **options: Any) -> Any:
    """Import a file's bytes as the shell does; return what was made."""
    import bpy
    from meshferry.blender_data.importing import importer
    from meshferry.io_formats.registry import MESH_SERIALIZER

    scene = MESH_SERIALIZER.to_scene(MESH_SERIALIZER.read(data), name)
    return importer.import_scene(importer.ImportRequest(bpy.context, scene, importer.ImportOptions.of(options)))


def exported(*things: Any, file_options: dict[str, Any] | None = None, **options: Any) -> Any:
    """Export objects to one file; return what it holds, and what was said."""
    import bpy
    from meshferry.blender_data.exporting import export_options, exporter
    from meshferry.io_formats.core.options import resolve
    from meshferry.io_formats.registry import MESH_SERIALIZER

    bpy.context.view_layer.update()
    source = exporter.Source("OBJECTS", objects=things)
    values = resolve(export_options.EXPORT_OPTIONS, options)
    scene = exporter.export_scene(
        exporter.ExportRequest(
            bpy.context, source, exporter.ExportOptions.of(values), "back", MESH_SERIALIZER.capabilities
        )
    )
    said = list(scene.warnings)
    (part,) = MESH_SERIALIZER.files_of(scene, file_options)
    part.warnings = []
    data = MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(part, file_options))
    return SimpleNamespace(stored=made.unpack(data), said=said + part.warnings, data=data)


def has_exact_normals() -> bool:
    from meshferry.blender_data import compat

    return compat.HAS_FREE_NORMALS


def to_file(points: Any) -> Any:
    """Return points or directions of Blender in the file's axes (section 3)."""
    x, y, z = np.asarray(points, np.float64).T
    return np.stack((-x, z, -y), axis=-1)


def corners_of(stored: made.Stored) -> Any:
    return stored.points[stored.triangles]
