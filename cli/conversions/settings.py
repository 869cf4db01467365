"""Settings of conversions and the tables of their options: choices, names of output files, names of animations."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...blender_data.export_options import CLIP_FILTER, EXPORT_OPTIONS
from ...blender_data.importing.import_options import IMPORT_OPTIONS, MATERIAL_LIBRARY
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Named
from ...io_formats.core.options import Value
from ...io_formats.disk import reach
from ...io_formats.disk.file_names import PathTable, cautious_key, numbered
from ...io_formats.projects import Projects
from ...io_formats.registry import FORMATS
from ..inputs import file_key
from ..option_arguments import OptionTable, format_table, spell_options, values_of
from .blend_files import BlendOptions, BlendSession

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene


@dataclass
class ClipChoice:
    """The user's choices about animations, applied to every scene of a run."""

    patterns: Sequence[str] = ()
    """Names of the animations to export, with wildcards; empty for all."""
    new_names: Mapping[str, str] = field(default_factory=dict)
    """New names of animations by their names in the files."""
    one_scene: bool = False
    """Whether the run has only one scene, so that a name without a match is an error at once."""
    _renamed: set[str] = field(default_factory=set)
    _seen: dict[str, None] = field(default_factory=dict)
    """Names of all animations found so far, in order."""

    def apply(self, scene: Scene, *, filtered: bool = False) -> None:
        """Select and rename the clips of a scene.

        Parameters
        ----------
        filtered:
            Whether the clips are already selected.

        Raises
        ------
        MeshferryError
            A new name equals that of another clip.
        """
        if self.patterns and not filtered:
            scene.clips = [
                clip for clip in scene.clips if any(fnmatch.fnmatchcase(clip.name, wanted) for wanted in self.patterns)
            ]
        self._seen.update(dict.fromkeys(clip.name for clip in scene.clips))
        names = [self.new_names.get(clip.name, clip.name) for clip in scene.clips]
        for clip, name in zip(scene.clips, names, strict=True):
            if name != clip.name and names.count(name) > 1:
                template = "--rename-clip '{}={}': there is another animation '{}'"
                raise MeshferryError(template, Named("animation", clip.name), name, Named("animation", name))
        for clip, name in zip(scene.clips, names, strict=True):
            if clip.name in self.new_names:
                self._renamed.add(clip.name)
            clip.name = name

    def state(self) -> dict[str, Any]:
        """Return the state collected so far, for :meth:`add_state` in another process."""
        seen = list(self._seen) if self.new_names else []  # only errors about renamings list them
        return {"one_scene": self.one_scene, "renamed": list(self._renamed), "seen": seen}

    def add_state(self, state: Mapping[str, Any]) -> None:
        """Add the state of another process."""
        self.one_scene = state["one_scene"]
        self._renamed.update(state["renamed"])
        self._seen.update(dict.fromkeys(state["seen"]))

    def is_renamed(self, name: str) -> bool:
        """Return whether this is the new name of a renamed animation."""
        return any(self.new_names[old] == name for old in self._renamed)

    def require_now(self) -> None:
        """Raise an error for a renaming without a matching clip, if the run has only one scene."""
        if self.one_scene:
            self.require_all()

    def require_all(self) -> None:
        """Raise an error for the first renaming that has not matched a clip so far."""
        for old in self.new_names:
            if old not in self._renamed:
                known = ", ".join(f"'{name}'" for name in self._seen) or "none"
                template = "--rename-clip: there is no animation '{}'; there are {}"
                raise MeshferryError(template, Named("animation", old), known)


def parse_renaming(text: str) -> tuple[str, str]:
    """Return the old and the new name of ``OLD=NEW``, split at the last ``=``, since old names may contain others."""
    old, equals, new = text.rpartition("=")
    if not equals or not old or not new:
        raise argparse.ArgumentTypeError(f"'{text}' is not OLD=NEW, the name of an animation and its new one")
    return old, new


def wanted_names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of name patterns."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


class FileNames:
    """The files of one run: none is written twice, and no input is overwritten.

    Parameters
    ----------
    taken:
        Every file that may not be written.
    """

    def __init__(self, taken: PathTable[Any]) -> None:
        self._taken = taken
        self._given: set[str] = set()
        self._companions: PathTable[str] = PathTable()

    def of_part(self, own: Path, target: Path, name: str) -> Path:
        """Return and reserve the path of one of several files that a source becomes, such as ``crate.lid.mesh``.

        Parameters
        ----------
        own:
            The path for a source that becomes a single file.
        target:
            The same path, or one that this method returned and of which this file is a part.
        name:
            Name of the file's content, without forbidden characters. Dots become underscores, so that files of
            different sources have different names. If the path is reserved already, a number is added.
        """
        before = target.stem[len(own.stem) + 1 :]
        part = (f"{before}_{name}" if before else name).replace(".", "_")
        paths = map(own.with_name, numbered(f"{own.stem}.{part}", own.suffix))
        path = next(one for one in paths if cautious_key(str(one)) not in self._given and not self.is_taken(one))
        self._given.add(cautious_key(str(path)))
        self.take(path)
        return path

    def is_taken(self, path: Path) -> bool:
        """Return whether a path is reserved."""
        return self._taken.find(path) is not None

    def take(self, path: Path) -> None:
        """Reserve a path."""
        self._taken.add(path, path)

    def claim(self, companions: Mapping[Path, str]) -> list[Path]:
        """Reserve the companion files of a set. If some belong to other files of the run, return them and reserve none.

        Parameters
        ----------
        companions:
            Paths, such as that of a texture that several sets share, with text that is the same for equal content.
        """
        clashing = [path for path, content in companions.items() if not self._is_free(path, content)]
        if not clashing:
            for path, content in companions.items():
                self.take(path)
                self._companions.add(path, content)
        return clashing

    def answer(self, question: str, *arguments: Any) -> Any:
        """Return the value of a method for another process, as data for JSON; companions are given in pairs."""
        if question == "claim":
            return self.claim({Path(path): content for path, content in arguments})
        if question == "is_taken":
            return self.is_taken(Path(*arguments))
        own, target, name = arguments
        return self.of_part(Path(own), Path(target), name)

    def _is_free(self, path: Path, content: str) -> bool:
        """Return whether a companion file may have a path: it is free, or reserved for the same content."""
        there = self._companions.find(path)
        return there == content if there is not None else content == text_of_copy(path) or not self.is_taken(path)


def text_of_copy(path: Path) -> str:
    """Return the text of :meth:`FileNames.claim` for a copy of a file on disk."""
    return f"copy of {file_key(path)}"


IMPORT = OptionTable("import", "options for writing .blend files: how files become Blender data", IMPORT_OPTIONS)
BLEND = OptionTable("blend", "options of .blend files", BlendOptions.table())
EXPORT = OptionTable("export", "options for reading .blend files: what of them becomes a file", EXPORT_OPTIONS)
READING, WRITING = "reading", "writing"


def option_tables() -> list[OptionTable]:
    """Return all option tables in the order of the help. The key of a table for writing is the name of the format."""
    tables = [IMPORT, BLEND, EXPORT]
    for known in FORMATS:
        tables.append(format_table(READING, f"read-{known.name}", known.label, known.import_options.table()))
        tables.append(format_table(WRITING, known.name, known.label, known.export_options.table()))
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
    def blend_options(self) -> BlendOptions:
        """The options of .blend files."""
        return BlendOptions.of(self.format_options[BLEND.key])

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
