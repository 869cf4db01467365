"""Data of an opened .blend file that Blender did not load or does not evaluate, as far as exported objects use it."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import bpy

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Report, counted, listed
from .. import compat
from ..exporting.object_selection import has_surface
from .outside_files import paths_of

_NOT_FOLLOWED = (bpy.types.Scene, bpy.types.Screen, bpy.types.WindowManager, bpy.types.WorkSpace)
"""Types of data blocks that may refer to everything in the file."""
_OF_FILES = (bpy.types.Image, bpy.types.MovieClip, bpy.types.CacheFile, bpy.types.Volume, bpy.types.VectorFont)
"""Types of data blocks that hold the path of a file, apart from libraries."""


def report_missing(objects: Iterable[bpy.types.Object], report: Report, *, with_materials: bool) -> None:
    """Report drivers that Blender does not run, and linked data and files that are missing, if objects use them."""
    bpy.context.evaluated_depsgraph_get()  # only the evaluation finds out which drivers are invalid
    used = used_by(objects, with_materials=with_materials)
    broken = sorted(block.name for block in used for driver in _drivers(block) if not driver.is_valid)
    text = "{} without effect, since it is broken or needs a script, which is not run: {}"
    report.loss_of("disabled-driver", text, broken, "driver")
    gone = sorted((block for block in used if block.is_missing), key=lambda block: block.name)
    if gone:
        paths = sorted({block.library.filepath for block in gone if block.library is not None})
        text = "{} from missing libraries ({}) left out: {}"
        number, names = counted(len(gone), "linked data block"), listed([block.name for block in gone])
        report.loss("missing-library", text, number, listed(paths), names)
    files = sorted({path for block in used for path in _files(block) if not os.path.exists(path)})
    report.loss_of("missing-file", "{} of the .blend file not found: {}", files, "file")


def used_by(objects: Iterable[bpy.types.Object], *, with_materials: bool) -> set[Any]:
    """Return objects with all data blocks that they use at any depth."""
    uses: dict[bpy.types.ID, list[bpy.types.ID]] = {}
    for block, users in bpy.data.user_map().items():
        for user in users:
            uses.setdefault(user, []).append(block)
    found: set[bpy.types.ID] = set()
    waiting: list[bpy.types.ID] = list(objects)
    while waiting:
        block = waiting.pop()
        if block in found or isinstance(block, _NOT_FOLLOWED):
            continue
        if with_materials or not isinstance(block, bpy.types.Material):
            found.add(block)
            unused = set(_unlinked_images(block))
            waiting += [used for used in uses.get(block, ()) if used not in unused]
    return found


def _unlinked_images(block: Any) -> Iterator[bpy.types.ID]:
    """Yield the images of an empty, and those that only nodes without links have in a material or group of nodes."""
    if isinstance(block, bpy.types.Object):
        yield from (block.data,) if isinstance(block.data, bpy.types.Image) else ()
    tree = compat.node_tree(block) if isinstance(block, bpy.types.Material) else block
    nodes = [node for node in getattr(tree, "nodes", ()) if isinstance(getattr(node, "image", None), bpy.types.Image)]
    linked = {node.image for node in nodes if any(output.is_linked for output in node.outputs)}
    yield from (node.image for node in nodes if node.image not in linked)


def _drivers(block: Any) -> Iterator[bpy.types.Driver]:
    """Yield the drivers of a data block and of the node tree in it."""
    for owner in (block, compat.node_tree(block) if isinstance(block, bpy.types.Material) else None):
        data = getattr(owner, "animation_data", None)
        yield from (curve.driver for curve in data.drivers if not curve.mute) if data is not None else ()


def _files(block: Any) -> Iterator[str]:
    """Yield the files that a data block or the modifiers of an object read, unless they are packed or generated."""
    is_inside = getattr(block, "source", "") in {"GENERATED", "VIEWER"} or getattr(block, "packed_file", None)
    if isinstance(block, _OF_FILES) and not (is_inside or block.filepath.startswith("<")):
        yield from paths_of(block)
    for modifier in getattr(block, "modifiers", ()):
        if modifier.type == "MESH_CACHE" and modifier.show_viewport and modifier.filepath:
            yield bpy.path.abspath(modifier.filepath, library=block.library)


def report_other_scenes(scene: bpy.types.Scene, report: Report) -> None:
    """Report models that only other scenes of the file hold.

    Raises
    ------
    ExportError
        The scene itself has no models.
    """
    own = set(scene.objects)
    others = [other.name for other in bpy.data.scenes if any(_is_model(obj) for obj in other.objects if obj not in own)]
    if others and not any(map(_is_model, own)):
        template = "The scene '{}', which the file opens, has no models; save it with one of these open: {}"
        raise ExportError(template, scene.name, listed(others))
    if others:
        template = "only the scene '{}' is converted, which the file opens; {} not: {}"
        number = counted(len(others), "scene with other models is", "scenes with other models are")
        report.note("other-scenes", template, scene.name, number, listed(others))


def _is_model(obj: bpy.types.Object) -> bool:
    return obj.type == "ARMATURE" or has_surface(obj)
