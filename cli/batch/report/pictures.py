"""A file -> a small picture of its model, for the report.

Workbench draws without a graphics card and without a display, as long as there is some OpenGL; where there is none,
Blender refuses or dies of it. Pictures therefore are tasks of their own, after the conversions.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....blender_data.importing.import_options import IMPORT_OPTIONS
from ....io_formats import files
from ....io_formats.errors import ExportError, MeshferryError
from ....io_formats.garbage import without_collection
from ....io_formats.options import resolve
from ....io_formats.replacing import replace_file
from ....io_formats.scene import Scene
from ...blend_files import BlendSession
from ...inputs import is_blend

SIZE = 96
"""Pixels each way."""
_KIND = {".webp": "WEBP", ".jpg": "JPEG"}
"""Blender's names of picture formats by extension; the second where a build of Blender lacks the first."""
_QUALITY = 85

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
) -> None:
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

    Raises
    ------
    MeshferryError
        The file cannot be read, there is nothing to see in it, or this machine cannot draw.
    """
    if is_blend(source):
        session.open(source)
    else:
        scene = files.read_scene(source, read_options, data=content)
        session.start_empty()
        with without_collection():
            _import(session, scene, source)
    picture_scene = importlib.import_module("....blender_data.picture_scene", __package__)
    made = picture_scene.make_scene(list(session.bpy.context.scene.objects), SIZE)
    if made is None:
        raise ExportError("There is nothing to see in it")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "picture" + to.suffix)
        settings = made.render.image_settings
        settings.file_format = _KIND[to.suffix]
        settings.color_mode = "RGBA" if to.suffix == ".webp" else "RGB"
        settings.quality = _QUALITY
        session.render(made, drawn)
        replace_file(to, drawn.read_bytes())


def _import(session: BlendSession, scene: Scene, source: Path) -> None:
    """Add what can be seen of a scene to the open file."""
    has_meshes = any(node.mesh is not None and len(node.mesh.points) for node in scene.nodes)
    if has_meshes:
        scene.clips.clear()
    normals = session.import_defaults().get("normals", "EXACT")
    options = resolve(IMPORT_OPTIONS, {"normals": normals} | (_MODEL if has_meshes else _BONES))
    session.import_scene(scene, options, source)
