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
from ..tasks import PICTURES_FOLDER, STATE_FOLDER, Result, Status

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
SUFFIXES = (".webp", ".png")
"""Of pictures: the second where a build of Blender lacks the first."""
CANNOT_DRAW = "Blender cannot draw a picture"
"""How the refusals begin that are about this machine, not about a file."""
_MAGIC = {b"RIFF": "image/webp", b"\x89PNG": "image/png"}
"""Kinds of pictures by their first bytes."""
_LARGEST = 1 << 20
"""Bytes; no picture of ours comes near it."""
_HASH = re.compile("[0-9a-f]{16,128}")
_TRIALS = 2
"""Pictures that are tried on a machine on which none has come about yet."""
_REMEDY = "Drawing needs OpenGL 4.3; on Debian and Ubuntu without a graphics card: apt install libegl1 libgl1-mesa-dri"


def picture_file(output: Path, hashed: str) -> Path:
    """Return where the picture of a source with this hash (``Result.hash``) lies, below the output folder.

    Where there is none yet, it is the place to draw it.
    """
    folder = output / STATE_FOLDER / PICTURES_FOLDER
    there = (folder / (hashed + suffix) for suffix in SUFFIXES)
    return next((path for path in there if path.is_file()), folder / (hashed + SUFFIXES[0]))


def read_picture(output: Path, hashed: str) -> tuple[str, bytes] | None:
    """Return the media type and the content of the picture of a source with this hash; None: there is none, or half."""
    if not _HASH.fullmatch(hashed):
        return None
    try:
        data = picture_file(output, hashed).read_bytes()
    except OSError:
        return None
    kind = _MAGIC.get(data[:4])
    is_cut = data.startswith(b"RIFF") and len(data) < 8 + int.from_bytes(data[4:8], "little")
    return (kind, data) if kind and not is_cut and len(data) <= _LARGEST else None


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

        Files that could not be read, or killed their process, have none; pictures that somebody broke are drawn anew.
        """
        if self.problem or not _HASH.fullmatch(result.hash):
            return False
        if not result.status.is_good and not (result.facts and result.status is Status.FAILED):
            return False
        return read_picture(self._output, result.hash) is None

    def note(self, result: Result) -> None:
        """Learn how a task of the kind PICTURE ended."""
        if result.status.is_good:
            self._can_draw = True
        elif result.status.is_quarantined or result.error.startswith(CANNOT_DRAW):
            self._failed += 1
            if self._failed >= _TRIALS and not self._can_draw and not self.problem:
                self.problem = f"There are no pictures of models: {result.error or result.status.value}. {_REMEDY}"


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
    context = session.use_bpy().context
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
