"""The options of conversions: command-line arguments -> settings. ``convert`` and ``batch`` share them."""

import argparse
import glob
import os
from collections.abc import Iterable, Mapping
from typing import Any

from ...blender_data.export_options import CLIP_FILTER, EXPORT_OPTIONS, HIDDEN, KEEP_IMPORTED
from ...blender_data.importing.import_options import IMPORT_OPTIONS
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Text, listed
from ...io_formats.core.options import Option, applicable
from ...io_formats.disk.reach import OPTION
from ...io_formats.registry import FORMATS
from .. import inputs
from ..option_arguments import add_arguments, add_mounts_argument, flags_of, given_options
from . import blender_formats
from .blend_files import BlendOptions
from .blender_formats import BLEND_FILE, AnyFormat
from .convert_plan import ConversionPlan
from .settings import BLEND, EXPORT, IMPORT, Settings, option_tables, parse_renaming


def add_conversion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an argument for everything that :class:`.settings.Settings` holds."""
    parser.add_argument(
        "--strict", action="store_true", help="take a warning of a loss for a failure: write nothing that lost anything"
    )
    parser.add_argument(
        "--collection",
        action="append",
        default=[],
        metavar="NAME",
        help="collection of a .blend file to export (repeatable with --to). Otherwise those that came from files; "
        "where there are none, those with objects; where one file is wanted and there are several, the whole scene",
    )
    parser.add_argument(
        "--rename-clip",
        action="append",
        default=[],
        type=parse_renaming,
        metavar="OLD=NEW",
        help="give an animation another name (repeatable); an error if no animation has the old name",
    )
    add_mounts_argument(parser)
    parser.add_argument(
        OPTION,
        action="append",
        default=[],
        type=_folder,
        metavar="FOLDER",
        help="read pictures, buffers, layers and libraries that a file names from below this folder, too; / for all. "
        "Otherwise from the file's own folder and the searched ones; a .blend file names files anywhere unless this is "
        "given (repeatable)",
    )
    add_arguments(parser, option_tables())


def settings_of(parsed: Mapping[str, Any]) -> Settings:
    """Return the user's choices from the parsed arguments, by name."""
    return Settings(
        to=parsed["to"] or "",
        options=given_options(parsed),
        collections=tuple(parsed["collection"]),
        new_names=dict(parsed["rename_clip"]),
        strict=parsed["strict"],
        mounts=parsed["mounts"],
        files_from=tuple(parsed.get("files_from", ())),
        searched=tuple(folder for path in parsed.get("paths", ()) if (folder := _searched(path))),
        dry_run=parsed.get("dry_run", False),
    )


def _folder(text: str) -> str:
    """Return the full path of the folder that ``--files-from`` names."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a folder")
    return os.path.abspath(text)


def _searched(path: str) -> str:
    """Return the folder that a path of the command line lets search, also by a pattern; empty if it is a file."""
    while glob.has_magic(path) and not os.path.isdir(path):
        path = os.path.dirname(path) or "."
    return os.path.abspath(path) if os.path.isdir(path) else ""


def require_known_options(settings: Settings, target: AnyFormat) -> None:
    """Raise an error for options that have no effect on files of the target format, whatever the source format.

    Raises
    ------
    MeshferryError
        Such options were given.
    """
    every = [known for known in FORMATS if known.is_read]
    useless = _useless_flags(settings, every, target, from_blend=True)
    if useless:
        have, them = ("has", "it") if len(useless) == 1 else ("have", "them")
        raise MeshferryError(
            "{} {} no effect when writing {} files; leave {} out", listed(useless), have, target.label, them
        )


def useless_options(settings: Settings, plan: ConversionPlan) -> list[str]:
    """Return a message for each given option that has no effect in this run, which has a job."""
    sources = [source for job in plan.jobs for source in job.sources]
    formats = (known for source in sources for known in inputs.formats_of(source))
    from_blend = any(blender_formats.by_path(source) is not None for source in sources)
    return useless_between(settings, formats, plan.jobs[0].format, from_blend=from_blend)


def useless_between(settings: Settings, sources: Iterable[Format], target: AnyFormat, *, from_blend: bool) -> list[str]:
    """Return the given options that have no effect on a conversion from some formats to another.

    Parameters
    ----------
    from_blend:
        Whether some sources are files of Blender's own formats.
    """
    place = Text("when writing .blend files" if target is BLEND_FILE else "in this conversion")
    useless = _useless_flags(settings, sources, target, from_blend=from_blend)
    return [Text("{} has no effect {}", flag, place) for flag in useless]


def _useless_flags(settings: Settings, sources: Iterable[Format], target: AnyFormat, *, from_blend: bool) -> list[str]:
    read = {known.name: known for known in sources}
    counting: dict[str, set[str]] = {}
    if target.needs_blender:
        counting[IMPORT.key] = _names(applicable(IMPORT_OPTIONS, (known.capabilities for known in read.values())))
        if target is BLEND_FILE:
            counting[BLEND.key] = _names(BlendOptions.table())
        elif from_blend:
            counting[EXPORT.key] = {HIDDEN.name}
    else:
        counting[target.name] = _names(target.export_options.table())
        if from_blend:
            counting[EXPORT.key] = _names(applicable(EXPORT_OPTIONS, [target.capabilities]))
        elif target.capabilities.lod_models and any(known.capabilities.lod_models for known in read.values()):
            counting[EXPORT.key] = {KEEP_IMPORTED.name}
    if any(known.capabilities.clips for known in read.values()):
        counting.setdefault(EXPORT.key, set()).add(CLIP_FILTER.name)
    for known in read.values():
        counting[f"read-{known.name}"] = _names(known.import_options.table())
    is_useful: dict[str, bool] = {}
    for table, option, flag in flags_of(option_tables()):
        if flag in settings.options:
            is_useful[flag] = is_useful.get(flag, False) or option.name in counting.get(table.key, ())
    useless = [f"--{flag}" for flag, is_used in is_useful.items() if not is_used]
    if settings.collections and not from_blend:
        useless.append("--collection")
    return useless


def _names(options: Iterable[Option]) -> set[str]:
    return {option.name for option in options}
