"""Animations of other files, which Re-export leaves out of a file that does not hold them unless the user asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import bpy

from ...blender_data.animated_blocks import dependencies
from ...blender_data.animation.action_ranges import FileClips
from ...blender_data.animation.clip_sources import actions_of, clip_name, other_actions
from ...blender_data.exporting import object_selection
from ...blender_data.exporting.object_selection import candidates_of
from ...blender_data.file_records import FileRecord
from ...io_formats.api import load
from ...io_formats.core.errors import FormatError
from ...io_formats.core.messages import Message, Named, Report, Text, joined, listed
from ...io_formats.core.options import embeds_animation
from ..option_properties import to_export_options
from ..translations import rpt_


def facts_in(path: Path) -> Mapping[str, Any]:
    """Return the facts of a file; without version and animations if it cannot be read."""
    try:
        loaded = load(path)
    except (FormatError, OSError):
        return {"version": "", "clips": []}
    return loaded.format.facts(loaded.document)


def file_clips_of(context: bpy.types.Context, record: FileRecord, source: object_selection.Source) -> FileClips | None:
    """Return the animations that a file holds; None if that is not known.

    An imported file holds those that came with its objects, an exported one those that were exported to it. Names do
    not count: some formats name an animation after its file, and the user may rename it.
    """
    if record.options is not None:
        return FileClips(frozenset({str(record.path), *record.clip_files})) if record.clip_files is not None else None
    homes = {home for obj in candidates_of(context, source) for home in obj.users_collection}
    return FileClips(frozenset({str(record.path), *(home.meshferry.source_path for home in homes)} - {""}))


def clip_files_of(
    context: bpy.types.Context, source: object_selection.Source, values: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the files that the animations of an export with these options were imported from."""
    found = dependencies(candidates_of(context, source))
    imported = other_actions(found, to_export_options(values), FileClips(frozenset()))
    return tuple(sorted({action.meshferry.source_path for action in imported}))


def clips_left_out(
    context: bpy.types.Context,
    record: FileRecord,
    source: object_selection.Source,
    values_of: Callable[[FileRecord], dict[str, Any]],
) -> list[Any]:
    """Return the actions from other files that an export would write into a file.

    ``values_of`` returns the options of the export. It reads the file, and is only called if there are such actions.
    """
    found, own = dependencies(candidates_of(context, source)), file_clips_of(context, record, source)
    if own is None or all(own.allows(action) for block in found.animated for action, _ in actions_of(block)):
        return []
    values = values_of(record)
    return other_actions(found, to_export_options(values), own) if embeds_animation(values) else []


def clips_question(actions: list[Any], record: FileRecord) -> str:
    """Return a question that names the animations of other files, and the animations of the file that they replace."""
    if not actions:
        return ""
    names = [clip_name(action) for action in actions]
    files = dict.fromkeys(Path(bpy.path.abspath(action.meshferry.source_path)).name for action in actions)
    text = Text("The animation {} of {} is not in {}.", listed(names), ", ".join(files), record.path.name)
    there = sorted({clip["name"] for clip in facts_in(record.path)["clips"]})
    choice = Text("It is left out unless you include it below.")
    if there:
        choice = Text("It is left out, and {} stays, unless you include it below.", listed(there))
    return rpt_(joined((text, choice), " "))


def clips_note(actions: list[Any], record: FileRecord) -> list[Message]:
    """Return a message about the animations that were left out."""
    if not actions:
        return []
    report = Report(item=Named("file", record.path.name))
    report.note(
        "animation-of-another-file",
        "animation of another file left out: {}; choose File > Export to include it",
        listed([clip_name(action) for action in actions]),
    )
    return report.messages
