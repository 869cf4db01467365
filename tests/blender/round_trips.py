"""Files into Blender and out of it, as the shell does it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from encoding import encode_scene


def imported(data: bytes, name: str = "given", *, headless: bool = True, **options: Any) -> SimpleNamespace:
    """Import a file's bytes with the defaults of the shell or of the window; return its format, its document and
    the import's result."""
    from meshferry.io_formats import registry
    from meshferry.io_formats.core.options import resolve

    found = registry.by_content(data[: registry.HEAD_SIZE], len(data))
    document = found.read(data)
    scene = found.to_scene(document, name, resolve(found.import_options.table(), headless=headless))
    return SimpleNamespace(format=found, document=document, made=scene_imported(scene, headless=headless, **options))


def scene_imported(scene: Any, *, armature: Any = None, headless: bool = True, **options: Any) -> Any:
    """Import a scene; return the import's result."""
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.core.options import resolve

    values = import_options.ImportOptions.of(resolve(import_options.IMPORT_OPTIONS, options, headless=headless))
    return importer.import_scene(import_options.ImportRequest(bpy.context, scene, values, armature=armature))


def exported(
    target: Any, *objects: Any, collection: Any = None, file_options: Mapping[str, Any] | None = None, **options: Any
) -> tuple[bytes, list[str]]:
    """Export objects or a collection to one file of a format; return its bytes and the warnings."""
    import bpy
    from meshferry.blender_data import export_options
    from meshferry.blender_data.exporting import exporter, object_selection

    bpy.context.view_layer.update()
    source = object_selection.Source("COLLECTION" if collection else "OBJECTS", collection, objects)
    values = export_options.ExportOptions.of(options)
    can = target.capabilities_with(file_options or {})
    scene = exporter.export_scene(export_options.ExportRequest(bpy.context, source, values, "back", can))
    return encode_scene(scene, target, file_options, ignore_errors=True)
