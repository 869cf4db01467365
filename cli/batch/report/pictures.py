"""A file -> a small picture of its model, for the report.

Workbench draws without a graphics card and without a display, as long as there is some OpenGL; where there is none,
Blender refuses or dies of it. Pictures therefore are tasks of their own, after the conversions.
"""

from __future__ import annotations

import importlib
import math
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....blender_data.importing.import_options import IMPORT_OPTIONS
from ....io_formats import files
from ....io_formats.errors import ExportError, MissingLibraryError
from ....io_formats.garbage import without_collection
from ....io_formats.options import resolve
from ....io_formats.replacing import refusal, replace_file
from ....io_formats.scene import Scene
from ...blend_files import BlendSession
from ...inputs import is_blend
from ..work import PICTURES_FOLDER, STATE_FOLDER, Ended, Result

SIZE = 96
"""Pixels each way."""
SUFFIXES = (".webp", ".png")
"""Of pictures: the second where a build of Blender lacks the first."""
CANNOT_DRAW = "Blender cannot draw a picture"
"""How the refusals begin that are about this machine, not about a file."""
_QUALITY = 85
_SHARP = math.radians(30)
"""Angle above which an edge is drawn sharp, in meshes of files without normals."""
_HASH = re.compile("[0-9a-f]{16,128}")
_TRIALS = 3
"""Pictures that are tried on a machine on which none has come about yet."""

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
    if is_blend(source):
        session.open(source)
    else:
        scene = files.read_scene(source, read_options, data=content)
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


def _import(session: BlendSession, scene: Scene, source: Path) -> None:
    """Add what can be seen of a scene to the open file."""
    has_meshes = any(node.mesh is not None and len(node.mesh.points) for node in scene.nodes)
    if has_meshes:
        scene.clips.clear()
    normals = session.import_defaults().get("normals", "EXACT")
    options = resolve(IMPORT_OPTIONS, {"normals": normals} | (_MODEL if has_meshes else _BONES))
    result = session.import_scene(scene, options, source)
    made = result.objects[len(result.objects) - len(scene.nodes) :]
    for thing, node in zip(made, scene.nodes, strict=True):
        if node.mesh is not None and node.mesh.normal is None and thing.data is not None:
            thing.data.set_sharp_from_angle(angle=_SHARP)


def _draw(session: BlendSession, folder: Path) -> Path:
    """Draw the objects of the open file; what has surfaces without any area by its edges and points."""
    picture_scene: Any = importlib.import_module("....blender_data.picture_scene", __package__)
    objects = list(session.bpy.context.scene.objects)
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


def picture_file(output: Path, hashed: str) -> Path:
    """Return where the picture of a source with this hash (``Result.hash``) lies, below the output folder.

    Where there is none yet, it is the place to draw it.
    """
    folder = output / STATE_FOLDER / PICTURES_FOLDER
    there = (folder / (hashed + suffix) for suffix in SUFFIXES)
    return next((path for path in there if path.is_file()), folder / (hashed + SUFFIXES[0]))


class PictureRun:
    """Which pictures are still to be drawn, in the order of the plan; given up where this machine cannot draw."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._can_draw = False
        self._failed = 0
        self.problem = ""
        """Why there are no further pictures, to be said once; empty: there are."""

    def wants(self, result: Result) -> bool:
        """Tell whether a picture should be drawn of what ``result`` (of a conversion, now or earlier) tells of.

        Files that could not be read, or killed their process, have none.
        """
        if self.problem or not _HASH.fullmatch(result.hash):
            return False
        if not result.ended.is_good and not (result.facts and result.ended is Ended.FAILED):
            return False
        return not picture_file(self._output, result.hash).is_file()

    def note(self, result: Result) -> None:
        """Learn how a task of the kind PICTURE ended."""
        if result.ended.is_good:
            self._can_draw = True
        elif result.ended.is_quarantined or result.error.startswith(CANNOT_DRAW):
            self._failed += 1
            if self._failed >= _TRIALS and not self._can_draw and not self.problem:
                self.problem = f"There are no pictures of the models: {result.error or result.ended.value}"
