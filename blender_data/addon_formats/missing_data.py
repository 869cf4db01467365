"""Data of an opened .blend file that Blender did not load or does not evaluate, as far as exported objects use it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import bpy

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Report, counted, listed
from .. import compat
from ..exporting.object_selection import has_surface
from .outside_files import file_blocks, paths_of

_NOT_FOLLOWED = (bpy.types.Scene, bpy.types.Screen, bpy.types.WindowManager, bpy.types.WorkSpace)
"""Types of data blocks that may refer to everything in the file."""


def report_missing(objects: Iterable[bpy.types.Object], report: Report, *, with_materials: bool) -> None:
    """Report drivers that Blender does not run, and linked data and files that are missing, if objects use them."""
    bpy.context.evaluated_depsgraph_get()  # only the evaluation finds out which drivers are invalid
    used = _used_by(objects, with_materials=with_materials)
    drivers = [
        (block.name, curve.data_path)
        for block in used
        for curve in _drivers(block)
        if not (curve.driver.is_valid or curve.mute)
    ]
    report.loss_of(
        "disabled-driver",
        "{} without effect, since it is broken or needs a script, which is not run: {}",
        [name for name, _path in drivers],
        "driver",
    )
    gone = sorted(block.name for block in used if block.is_missing)
    if gone:
        paths = sorted({block.library.filepath for block in used if block.is_missing and block.library is not None})
        number = counted(len(gone), "linked data block is", "linked data blocks are")
        report.loss("missing-library", "{} missing ({}) in {}", number, listed(gone), listed(paths))
    files = sorted({path for block in used & file_blocks() for path in _missing_files(block)} | {*_missing_caches(used)})
    report.loss_of("missing-file", "{} of the .blend file not found: {}", files, "file")


def _used_by(objects: Iterable[bpy.types.Object], *, with_materials: bool) -> set[Any]:
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
            waiting += uses.get(block, ())
    return found


def _drivers(block: Any) -> Iterator[bpy.types.FCurve]:
    """Yield the drivers of a data block and of the node tree in it."""
    for owner in (block, compat.node_tree(block) if isinstance(block, bpy.types.Material) else None):
        data = getattr(owner, "animation_data", None)
        yield from data.drivers if data is not None else ()


def _missing_files(block: Any) -> Iterator[str]:
    """Yield the files of a data block that do not exist, unless it is packed or has none."""
    is_made = getattr(block, "source", "FILE") in {"GENERATED", "VIEWER"}
    if not is_made and getattr(block, "packed_file", None) is None and not block.filepath.startswith("<"):
        yield from (path for path in paths_of(block) if not os.path.exists(path))


def _missing_caches(used: Iterable[Any]) -> Iterator[str]:
    for obj in used:
        for modifier in getattr(obj, "modifiers", ()):
            path = modifier.filepath if modifier.type == "MESH_CACHE" and modifier.show_viewport else ""
            if path and not os.path.exists(bpy.path.abspath(path, library=obj.library)):
                yield path


def report_other_scenes(scene: bpy.types.Scene, report: Report) -> None:
    """Report models that only other scenes of the file hold.

    Raises
    ------
    ExportError
        The scene itself has no models.
    """
    own = set(scene.objects)
    others = [
        other.name for other in bpy.data.scenes if any(_is_model(obj) for obj in other.objects if obj not in own)
    ]
    if others and not any(map(_is_model, own)):
        template = "The scene '{}', which the file opens, has no models; save it with one of these open: {}"
        raise ExportError(template, scene.name, listed(others))
    if others:
        template = "only the scene '{}' is converted, which the file opens; {} not: {}"
        number = counted(len(others), "scene with other models is", "scenes with other models are")
        report.note("other-scenes", template, scene.name, number, listed(others))


def _is_model(obj: bpy.types.Object) -> bool:
    return obj.type == "ARMATURE" or has_surface(obj)
