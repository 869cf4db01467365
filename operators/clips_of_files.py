"""Animations of other files, which Re-export leaves out of a file that does not hold them unless the user asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy

from ..blender_data.exporting import exporter
from ..blender_data.exporting.animated_blocks import dependencies
from ..blender_data.exporting.clip_sources import actions_of, clip_name, other_actions
from ..blender_data.exporting.object_selection import candidates_of
from ..blender_data.file_clips import FileClips
from ..blender_data.file_records import FileRecord
from ..io_formats.api import load
from ..io_formats.core.errors import FormatError
from ..io_formats.core.messages import listed
from ..io_formats.core.option_rules import embeds_animation
from .option_properties import to_export_options
from .translations import rpt_


def names_in(path: Path) -> frozenset[str]:
    """Return the names of the animations in a file."""
    try:
        loaded = load(path)
    except (FormatError, OSError):
        return frozenset()
    return frozenset(clip["name"] for clip in loaded.format.facts(loaded.document)["clips"])


def file_clips_of(context: Any, record: FileRecord, source: exporter.Source) -> FileClips | None:
    """Return the animations that a file holds; None if it was exported from Blender and does not exist any more.

    The names count only in files that were exported: two imported files may have animations of the same name.
    """
    origin = _origin_of(record, candidates_of(context, source))
    if record.options is None:
        return origin
    return replace(origin, names=names_in(record.path)) if record.path.exists() else None


def _origin_of(record: FileRecord, objects: Iterable[Any]) -> FileClips:
    """Return the animations that came with objects, or from the file itself."""
    homes = {home for item in objects for home in item.users_collection}
    return FileClips(frozenset({str(record.path), *(home.meshferry.source_path for home in homes)} - {""}))


def clips_left_out(
    context: Any, record: FileRecord, source: exporter.Source, values_of: Callable[[FileRecord], dict[str, Any]]
) -> list[Any]:
    """Return the actions from other files that an export would write into a file.

    ``values_of`` returns the options of the export. It reads the file, and is only called if there are such actions.
    """
    objects = candidates_of(context, source)
    found, origin = dependencies(objects), _origin_of(record, objects)
    if all(origin.allows(action) for block in found.animated for action, _ in actions_of(block)):
        return []
    values = values_of(record)
    own = file_clips_of(context, record, source) if embeds_animation(values) else None
    options = to_export_options(values)
    return other_actions(found, options, own) if own is not None else []


def question(actions: list[Any], record: FileRecord) -> str:
    """Return a text that names the animations of other files, and those of the file that they would replace."""
    if not actions:
        return ""
    names = [clip_name(action) for action in actions]
    files = dict.fromkeys(Path(bpy.path.abspath(action.meshferry.source_path)).name for action in actions)
    text = rpt_("The animation {} of {} is not in {}.").format(listed(names), ", ".join(files), record.path.name)
    there = sorted(names_in(record.path))
    if there:
        return text + " " + rpt_("It is left out, and {} stays, unless you include it below.").format(listed(there))
    return text + " " + rpt_("It is left out unless you include it below.")


def note(actions: list[Any], record: FileRecord) -> list[str]:
    """Return a message about the animations that were left out."""
    if not actions:
        return []
    text = rpt_("{}: animation of another file left out: {}; choose File > Export to include it")
    return [text.format(record.path.name, listed([clip_name(action) for action in actions]))]
