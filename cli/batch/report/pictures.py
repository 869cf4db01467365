"""A file -> a small picture of its model, for the report.

Workbench draws without a graphics card and without a display, as long as there is some OpenGL; where there is none,
Blender refuses or dies of it. Pictures therefore are tasks of their own, after the conversions.
"""

from __future__ import annotations

import importlib
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....blender_data.importing.import_options import ImportOptions
from ....io_formats import api
from ....io_formats.binary.gc_pause import without_collection
from ....io_formats.core.errors import ExportError, MissingLibraryError
from ....io_formats.core.scene import Scene
from ....io_formats.disk.atomic_write import refusal, replace_file
from ...conversions import blender_exchange, blender_formats
from ...conversions.blend_files import BlendSession
from ...conversions.blender_formats import BlenderFormat
from ...conversions.on_disk import on_disk
from .picture_files import CANNOT_DRAW, SUFFIXES, PictureRun, picture_file

__all__ = ["CANNOT_DRAW", "SIZE", "PictureRun", "picture_file", "render"]

SIZE = 96
"""Pixels each way."""
_QUALITY = 85
_SHARP = math.radians(30)
"""Angle above which an edge is drawn sharp, in meshes of files without normals."""
_ALWAYS = {"use_weld": False, "use_shape_keys": False, "vertex_animation": "NONE", "use_existing_materials": True}
_MODEL = _ALWAYS | {"armature": "NONE", "use_joint_animation": False, "use_node_animation": False}
"""Import options where there are meshes: as they lie, which is quick."""
_BONES = _ALWAYS | {"armature": "NEW", "bone_direction": "CHILDREN"}
"""Import options where there are bones alone: they are drawn in their first pose."""


def render(
    session: BlendSession,
    source: Path,
    to: Path,
    *,
    content: bytes | None = None,
    read_options: Mapping[str, Any] | None = None,
) -> Path:
    """Draw the model of a file into ``to``, whole or not at all; its folder is made where needed.

    Parameters
    ----------
    source:
        Any file that can be converted.
    to:
        As :func:`picture_file` names it.
    content:
        What is in the file, where somebody has it already, out of an archive say; ``source`` then only names it.
    read_options:
        As the conversion has them.

    Returns
    -------
    Path
        The file: ``to``, with another extension where this Blender cannot write that kind of picture.

    Raises
    ------
    MeshferryError
        The file cannot be read, there is nothing to see in it, or this machine cannot draw (the text begins with
        :data:`CANNOT_DRAW`).
    """
    try:
        session.load()
    except MissingLibraryError as problem:
        raise MissingLibraryError(f"{CANNOT_DRAW}: {problem}") from None
    known = blender_formats.by_path(source)
    if known is not None:
        _open(session, source, known, content)
    else:
        scene = api.read_scene(source, read_options, data=content)
        session.start_empty()
        with without_collection():
            _import(session, scene, source)
    with tempfile.TemporaryDirectory() as folder:
        drawn = _draw(session, Path(folder))
        place = to.with_suffix(drawn.suffix)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ExportError(f"{place.parent}: the folder cannot be made: {refusal(problem)}") from None
        replace_file(place, drawn.read_bytes())
    return place


def _open(session: BlendSession, source: Path, known: BlenderFormat, content: bytes | None) -> None:
    """Open a file of one of Blender's kinds."""
    with on_disk(source, content) as path:
        if known.is_blend:
            session.open(path)
        else:
            session.start_empty()
            blender_exchange.read_file(session, path, known)


def _import(session: BlendSession, scene: Scene, source: Path) -> None:
    """Add what can be seen of a scene to the open file."""
    has_meshes = any(node.mesh is not None and len(node.mesh.points) for node in scene.nodes)
    if has_meshes:
        scene.clips.clear()
    normals = session.import_defaults().get("normals", "EXACT")
    options = ImportOptions.of({"normals": normals} | (_MODEL if has_meshes else _BONES))
    result = session.import_scene(scene, options, source)
    made = result.objects[len(result.objects) - len(scene.nodes) :]
    for thing, node in zip(made, scene.nodes, strict=True):
        if node.mesh is not None and node.mesh.normal is None and thing.data is not None:
            thing.data.set_sharp_from_angle(angle=_SHARP)


def _draw(session: BlendSession, folder: Path) -> Path:
    """Draw the objects of the open file; what has surfaces without any area by its edges and points."""
    picture_scene: Any = importlib.import_module("....blender_data.picture_scene", __package__)
    context = session.bpy.context
    # What a file keeps in collections that are switched off is not meant to be seen, unless it is all there is.
    objects = list(context.view_layer.objects) or list(context.scene.objects)
    for surfaces in (True, False):
        made = picture_scene.make_scene(objects, SIZE, surfaces=surfaces)
        if made is None:
            break
        drawn = folder / ("picture" + _set_kind(made.render.image_settings))
        session.render(made, drawn)
        if not picture_scene.is_blank(str(drawn)):
            return drawn
    raise ExportError("There is nothing to see in it")


def _set_kind(settings: Any) -> str:
    """Choose what kind of picture to write; return its extension."""
    suffix = SUFFIXES[0]
    try:
        settings.file_format = "WEBP"
    except TypeError:
        settings.file_format = "PNG"
        suffix = SUFFIXES[1]
    settings.color_mode = "RGBA"
    settings.quality = _QUALITY
    return suffix
