"""Settings of conversions, and the tables of their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...blender_data.export_options import CLIP_FILTER, EXPORT_OPTIONS
from ...blender_data.importing.import_options import IMPORT_OPTIONS, MATERIAL_LIBRARY
from ...io_formats.core.options import Value, resolve
from ...io_formats.disk import reach
from ...io_formats.projects import Projects
from ...io_formats.registry import FORMATS
from ..option_arguments import OptionTable, format_table, spell_options, values_of
from .blend_files import ASSETS, BLEND_OPTIONS, COMPRESS, BlendSession
from .clip_choice import ClipChoice, wanted_names
from .file_naming import FileNames

IMPORT = OptionTable("import", "options for writing .blend files: how files become Blender data", IMPORT_OPTIONS)
BLEND = OptionTable("blend", "options of .blend files", BLEND_OPTIONS)
EXPORT = OptionTable("export", "options for reading .blend files: what of them becomes a file", EXPORT_OPTIONS)
READING, WRITING = "reading", "writing"


def option_tables() -> list[OptionTable]:
    """Return all option tables in the order of the help. The key of a table for writing is the name of the format."""
    tables = [IMPORT, BLEND, EXPORT]
    for known in FORMATS:
        tables.append(format_table(READING, f"read-{known.name}", known.label, known.import_options))
        tables.append(format_table(WRITING, known.name, known.label, known.export_options))
    return tables


EMBEDDED = "use_embedded_animation"
"""Name of the option of formats whose mesh files can contain animations."""


@dataclass(frozen=True)
class Settings:
    """The user's choices. ``Settings(**dataclasses.asdict(settings))`` is the same, also after encoding to JSON."""

    to: str = ""
    """Type of the files to write, as after ``--to``; empty if the command line names the files."""
    options: Mapping[str, Value] = field(default_factory=dict)
    """Values of the options that the user gave, by flag without dashes."""
    collections: Sequence[str] = ()
    new_names: Mapping[str, str] = field(default_factory=dict)
    """New names of animations by their names in the files."""
    strict: bool = False
    mounts: bool = True
    """Whether projects include folders elsewhere on this machine."""
    files_from: Sequence[str] = ()
    """Folders that files may bring in others from, besides their own; see ``Reach``."""
    searched: Sequence[str] = ()
    """Folders in which sources are searched, which count like these."""
    dry_run: bool = False
    """Whether to write nothing, and only report files and losses."""

    @cached_property
    def format_options(self) -> dict[str, dict[str, Any]]:
        """The given options by the key of their table: the name of the format for options for writing."""
        return values_of(self.options, option_tables())

    @property
    def import_options(self) -> dict[str, Any]:
        """The options of imports into Blender."""
        return self.format_options[IMPORT.key]

    @property
    def export_options(self) -> dict[str, Any]:
        """The options of exports from Blender."""
        return self.format_options[EXPORT.key]

    @cached_property
    def read_options(self) -> dict[str, Any]:
        """The reading options of all formats; each format uses its own."""
        keys = [table.key for table in option_tables() if table.action == READING]
        return {name: value for key in keys for name, value in self.format_options[key].items()}

    @property
    def material_library(self) -> str:
        """Path of the .blend file that imports take materials from, or an empty text."""
        return str(self.import_options.get(MATERIAL_LIBRARY.name) or "")

    @property
    def embeds_animations(self) -> bool:
        """Whether animations are written into mesh files."""
        return any(values.get(EMBEDDED) for values in self.format_options.values())

    @cached_property
    def _blend_options(self) -> dict[str, Any]:
        return resolve(BLEND_OPTIONS, self.format_options[BLEND.key])

    @property
    def is_compressed(self) -> bool:
        """Whether .blend files are compressed."""
        return COMPRESS.flag(self._blend_options)

    @property
    def makes_assets(self) -> bool:
        """Whether collections in .blend files become assets."""
        return ASSETS.flag(self._blend_options)

    def reach_of(self, source: Path) -> reach.Reach:
        """Return the folders from which a source may bring in other files."""
        return reach.Reach.of(source, self.files_from, self.searched)

    def spelled(self) -> tuple[str, ...]:
        """Return the choices as arguments of the command line, always in the same order and spelling."""
        return (
            *(["--strict"] if self.strict else []),
            *([] if self.mounts else ["--no-mounts"]),
            *(f"{reach.OPTION}={folder}" for folder in self.files_from),
            *(f"--collection={name}" for name in self.collections),
            *(f"--rename-clip={old}={new}" for old, new in self.new_names.items()),
            *spell_options(self.options, option_tables()),
        )


class ConversionContext:
    """State that the conversions of one run share.

    Parameters
    ----------
    projects:
        The open projects; by default, none is open yet.
    """

    def __init__(
        self, settings: Settings, session: BlendSession, names: FileNames, projects: Projects | None = None
    ) -> None:
        self.settings = settings
        self.session = session
        self.names = names
        self.projects = projects or Projects(is_fixed=True, has_mounts=settings.mounts, reach_of=settings.reach_of)
        filtered = str(settings.export_options.get(CLIP_FILTER.name, ""))
        self.clips = ClipChoice(wanted_names(filtered), settings.new_names)
