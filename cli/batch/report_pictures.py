"""Small pictures of models for the report.

Workbench renders without a graphics card and without a display if a software OpenGL is installed. Without OpenGL,
Blender reports an error or crashes, so pictures are separate tasks after the conversions.
"""

import importlib
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from ...blender_data.importing.import_options import ImportOptions
from ...blender_data.steps import without_collection
from ...io_formats import api
from ...io_formats.core.errors import ExportError, MissingLibraryError
from ...io_formats.core.scene import Scene
from ...io_formats.disk.atomic_write import make_folder, replace_file
from ...io_formats.disk.special_files import is_link, open_regular
from ...io_formats.projects import Projects
from ..conversions import blender_exchange, blender_formats
from ..conversions.blend_files import BlendSession, CannotDrawError
from ..conversions.settings import Settings
from .tasks import CANNOT_DRAW, PICTURES_FOLDER, STATE_FOLDER, Result, Status

SIZE = 128
"""Width and height in pixels."""
_QUALITY = 85
_SHARP = math.radians(30)
"""Angle above which an edge is drawn sharp, in meshes of files without normals."""
_ALWAYS = {"use_weld": False, "use_shape_keys": False, "vertex_animation": "NONE", "use_existing_materials": True}
_MODEL = _ALWAYS | {"armature": "NONE", "use_joint_animation": False, "use_node_animation": False}
"""Import options of scenes with meshes. Bones and animations are left out: importing them takes time."""
_BONES = _ALWAYS | {"armature": "NEW", "bone_direction": "CHILDREN"}
"""Import options of scenes without meshes: the bones are drawn in their first pose."""
_MAGIC = {b"RIFF": "image/webp", b"\x89PNG": "image/png"}
"""Media types by the first bytes of the file. Builds of Blender that lack WebP write PNG."""
_LARGEST = 1 << 20
"""Bytes of the largest file that is shown: even uncompressed, a picture has less than 70,000."""
_HASH = re.compile("[0-9a-f]{16,128}")
_TRIALS = 2
"""Pictures that may fail before the run concludes that this machine cannot draw at all."""
_REMEDY = "Drawing needs OpenGL 4.3" + (
    "; on Debian and Ubuntu without a graphics card: apt install libegl1 libgl1-mesa-dri"
    if sys.platform == "linux"
    else ""
)


def picture_file(output: Path, hashed: str) -> Path:
    """Return the path of the picture of a source with this hash (``Result.hash``)."""
    return output / STATE_FOLDER / PICTURES_FOLDER / f"{hashed}.webp"


def read_picture(output: Path, hashed: str) -> tuple[str, bytes] | None:
    """Return media type and content of the picture of a source with this hash.

    None if it is missing or truncated, or a link: a stranger may have put that there to see another picture.
    """
    if not _HASH.fullmatch(hashed):
        return None
    try:
        with os.fdopen(open_regular(picture_file(output, hashed)), "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError:
        return None
    kind = _MAGIC.get(data[:4])
    is_cut = data.startswith(b"RIFF") and len(data) < 8 + int.from_bytes(data[4:8], "little")
    return (kind, data) if kind and not is_cut and len(data) <= _LARGEST else None


class PictureRun:
    """Selection of the pictures to draw. It stops if this machine cannot draw."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._can_draw = False
        self._failed = 0
        self.problem = ""
        """Message that is printed once if this machine cannot draw; empty otherwise."""

    def wants(self, result: Result) -> bool:
        """Return whether the source of a conversion, of this run or an earlier one, needs a picture.

        Sources that could not be read or crashed their process get no picture. A damaged picture is drawn again.
        """
        was_read = result.status.is_good or (result.facts and result.status is Status.FAILED)
        if self.problem or not was_read or not _HASH.fullmatch(result.hash):
            return False
        return read_picture(self._output, result.hash) is None

    def note(self, result: Result) -> None:
        """Record the result of a task of the kind PICTURE."""
        if result.status.is_good:
            self._can_draw = True
        elif result.status.is_quarantined or result.error_code == CANNOT_DRAW:
            self._failed += 1
            if self._failed >= _TRIALS and not self._can_draw and not self.problem:
                self.problem = f"There are no pictures of models: {result.error or result.status.value}. {_REMEDY}"


def render(
    session: BlendSession,
    source: Path,
    to: Path,
    *,
    content: bytes | None = None,
    settings: Settings | None = None,
    projects: Projects | None = None,
) -> None:
    """Draw the model of a file and write the picture atomically; create its folder if needed.

    Parameters
    ----------
    source:
        Any file that can be converted.
    to:
        Path of the picture, from :func:`picture_file`.
    content:
        Content of the file if it is in memory already, such as a member of an archive; ``source`` is then only its
        name.
    settings:
        Settings of the conversion, for its reading options and the reach of sources.
    projects:
        Open projects, whose files complete the model; see :func:`.api.read_scene`.

    Raises
    ------
    MeshferryError
        The file cannot be read, or it has nothing visible, or ``to`` is a link.
    CannotDrawError
        This machine cannot draw.
    """
    settings = settings or Settings()
    if is_link(to):
        raise ExportError("{} is a link", to)
    try:
        session.load()
    except MissingLibraryError as problem:
        raise CannotDrawError(problem) from None
    known = blender_formats.by_path(source)
    if known is not None:
        blender_exchange.open_file(session, known, source, content, settings)
    else:
        scene = api.read_scene(source, settings.read_options, data=content, projects=projects)
        session.start_empty()
        with without_collection():
            _import(session, scene, source, settings)
    data = _draw(session)
    make_folder(to.parent)
    replace_file(to, data, within=to.parent)


def _import(session: BlendSession, scene: Scene, source: Path, settings: Settings) -> None:
    """Import the meshes of a scene into the open file, or its bones if it has no meshes."""
    has_meshes = scene.placement is not None or any(node.mesh and len(node.mesh.points) for node in scene.nodes)
    if has_meshes:
        scene.clips.clear()
    options = ImportOptions.of({"normals": "EXACT"} | (_MODEL if has_meshes else _BONES))
    result = session.import_scene(scene, options, source, reach=settings.reach_of(source))
    made = result.objects[len(result.objects) - len(scene.nodes) :]
    for obj, node in zip(made, scene.nodes, strict=True):
        if node.mesh is not None and node.mesh.normal is None and obj.data is not None:
            obj.data.set_sharp_from_angle(angle=_SHARP)


def _draw(session: BlendSession) -> bytes:
    """Draw the objects of the open file: their surfaces, or their edges and points if the surfaces are not visible."""
    picture_scene: Any = importlib.import_module("...blender_data.pictures", __package__)
    context = session.load_for_changes().context
    # Objects of disabled collections are drawn only if there are no others.
    objects = list(context.view_layer.objects) or list(context.scene.objects)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder, "picture")
        for surfaces in (True, False):
            made = picture_scene.make_scene(objects, SIZE, surfaces=surfaces)
            if made is None:
                break
            settings = made.render.image_settings
            try:
                settings.file_format = "WEBP"
            except TypeError:
                settings.file_format = "PNG"
            settings.color_mode = "RGBA"
            settings.quality = _QUALITY
            session.render(made, drawn)
            if not picture_scene.is_blank(str(drawn)):
                return drawn.read_bytes()
    raise ExportError("There is nothing to see in it")
