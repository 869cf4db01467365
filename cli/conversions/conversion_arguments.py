"""The options of conversions: command-line arguments -> settings. ``convert`` and ``batch`` share them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from ...blender_data.exporting.export_options import (
    CLIP_FILTER,
    EXPORT_OPTIONS,
    HIDDEN,
    KEEP_IMPORTED,
)
from ...blender_data.importing.import_options import IMPORT_OPTIONS
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import listed
from ...io_formats.core.options import Option, applicable, resolve
from ...io_formats.core.projects import Projects
from ...io_formats.registry import FORMATS, Format
from .. import inputs
from ..option_arguments import (
    OptionTable,
    add_arguments,
    add_mounts_argument,
    format_table,
    given_arguments,
    given_flags,
    given_values,
    usable_values,
)
from . import blender_formats
from .blend_files import ASSETS, BLEND_OPTIONS, COMPRESS
from .blender_formats import BlenderFormat
from .clip_choice import ClipChoice, parse_renaming, wanted_names
from .convert_plan import ConversionPlan
from .outcomes import Settings

_IMPORT = OptionTable("import", "options for writing .blend files: how files become Blender data", IMPORT_OPTIONS)
_BLEND = OptionTable("blend", "options of .blend files", BLEND_OPTIONS)
_EXPORT = OptionTable("export", "options for reading .blend files: what of them becomes a file", EXPORT_OPTIONS)


def add_conversion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an argument for everything that :class:`.outcomes.Settings` holds."""
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
    add_arguments(parser, [table for table, _ in _tables()])


def _tables() -> list[tuple[OptionTable, Format | None]]:
    """Return all option tables in the order of the help, each with its format or None."""
    tables: list[tuple[OptionTable, Format | None]] = [(_IMPORT, None), (_BLEND, None), (_EXPORT, None)]
    for known in FORMATS:
        tables.append((format_table("reading", f"read-{known.name}", known.label, known.import_options), known))
        tables.append((format_table("writing", known.name, known.label, known.export_options), known))
    return tables


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the user's choices."""
    owned = _tables()
    tables = [table for table, _ in owned]
    values = {table.key: given_values(arguments, table, tables) for table in tables}
    export, blend = values[_EXPORT.key], resolve(BLEND_OPTIONS, values[_BLEND.key])
    return Settings(
        import_options=values[_IMPORT.key],
        export_options=export,
        read_options={
            name: value
            for table, known in owned
            if known and table.action == "reading"
            for name, value in values[table.key].items()
        },
        format_options={known.name: values[known.name] for known in FORMATS},
        clips=ClipChoice(wanted_names(str(export.get(CLIP_FILTER.name, ""))), dict(arguments.rename_clip)),
        collections=tuple(arguments.collection),
        strict=arguments.strict,
        is_compressed=COMPRESS.flag(blend),
        makes_assets=ASSETS.flag(blend),
        dry_run=getattr(arguments, "dry_run", False),
        projects=Projects(is_fixed=True, has_mounts=arguments.mounts),
    )


def given_conversion(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the user's choices as arguments, always in the same order and spelling.

    Parsing them with :func:`add_conversion_arguments` gives the same :func:`settings_of`.
    """
    return (
        *(["--strict"] if arguments.strict else []),
        *([] if arguments.mounts else ["--no-mounts"]),
        *(f"--collection={name}" for name in arguments.collection),
        *(f"--rename-clip={old}={new}" for old, new in arguments.rename_clip),
        *given_arguments(arguments, [table for table, _ in _tables()]),
    )


def require_known_options(arguments: argparse.Namespace, target: Format | BlenderFormat) -> None:
    """Raise an error for options that have no effect on files of the target format, whatever the source format.

    Raises
    ------
    MeshferryError
        Such options were given.
    """
    every = [known for known in FORMATS if known.is_read]
    useless = _useless_flags(arguments, every, target, from_blend=True)
    if useless:
        have, them = ("has", "it") if len(useless) == 1 else ("have", "them")
        raise MeshferryError(f"{listed(useless)} {have} no effect when writing {target.label} files; leave {them} out")


def require_usable_paths(arguments: argparse.Namespace) -> None:
    """Raise an error for a given path that its option cannot use.

    Raises
    ------
    MeshferryError
        The message names the path.
    """
    usable_values(arguments, [table for table, _ in _tables()])


def useless_options(arguments: argparse.Namespace, plan: ConversionPlan) -> list[str]:
    """Return a message for each given option that has no effect in this run."""
    if not plan.jobs:
        return []
    sources = [source for job in plan.jobs for source in job.sources]
    formats = (known for source in sources for known in inputs.formats_of(source))
    from_blend = any(blender_formats.by_path(source) is not None for source in sources)
    return useless_between(arguments, formats, plan.jobs[0].format, from_blend=from_blend)


def useless_between(
    arguments: argparse.Namespace, sources: Iterable[Format], target: Format | BlenderFormat, *, from_blend: bool
) -> list[str]:
    """Return the given options that have no effect on a conversion from some formats to another.

    Parameters
    ----------
    from_blend:
        Whether some sources are files of Blender's own formats.
    """
    useless = _useless_flags(arguments, sources, target, from_blend=from_blend)
    return _without_effect(useless, into_blend=isinstance(target, BlenderFormat) and target.is_blend)


def _useless_flags(
    arguments: argparse.Namespace, sources: Iterable[Format], target: Format | BlenderFormat, *, from_blend: bool
) -> list[str]:
    owned = _tables()
    tables = [table for table, _ in owned]
    read = {known.name: known for known in sources}
    counting: dict[str, set[str]] = {}
    if isinstance(target, BlenderFormat):
        counting[_IMPORT.key] = _names(applicable(IMPORT_OPTIONS, (known.capabilities for known in read.values())))
        if target.is_blend:
            counting[_BLEND.key] = _names(BLEND_OPTIONS)
        elif from_blend:
            counting[_EXPORT.key] = {HIDDEN.name}
    elif from_blend:
        counting[_EXPORT.key] = _names(applicable(EXPORT_OPTIONS, [target.capabilities]))
    elif target.capabilities.lod_models and any(known.capabilities.lod_models for known in read.values()):
        counting[_EXPORT.key] = {KEEP_IMPORTED.name}
    if any(known.capabilities.clips for known in read.values()):
        counting.setdefault(_EXPORT.key, set()).add(CLIP_FILTER.name)
    for table, known in owned:
        if known and (known.name in read if table.action == "reading" else known == target):
            counting[table.key] = _names(table.options)
    given = {table.key: given_flags(arguments, table, tables) for table in tables}
    useful = {flag for key, names in counting.items() for flag, option in given[key].items() if option.name in names}
    useless = [flag for flag in dict.fromkeys(flag for flags in given.values() for flag in flags) if flag not in useful]
    if arguments.collection and not from_blend:
        useless.append("--collection")
    return useless


def _names(options: Iterable[Option]) -> set[str]:
    return {option.name for option in options}


def _without_effect(flags: Sequence[str], *, into_blend: bool) -> list[str]:
    place = "when writing .blend files" if into_blend else "in this conversion"
    return [f"{flag} has no effect {place}" for flag in flags]
