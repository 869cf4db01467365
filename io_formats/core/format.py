"""The description of a file format: names, capabilities, options, and its modules, which are imported on first use.

A missing library therefore concerns its own format alone, and starting up stays fast. The methods of
:class:`FileFormat` call the functions of a format's modules ``format``, ``codec``, ``mapping``, ``checks`` and
``patching``; ``make lint`` compares their signatures (``scripts/format_contracts.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from .capabilities import Capabilities
from .errors import UnsupportedFormatError
from .messages import Message, Text
from .options import TANGENTS, GivenOptions, Option, Options
from .recognition import Match, NearMiss

if TYPE_CHECKING:
    from ..projects import Projects
    from .placement import KnownFiles, NewNodes, NodeEdit, Patched
    from .scene import Scene  # not at run time: it imports NumPy, which slows the start of commands


class OutputFile(NamedTuple):
    """One file of a set: its name, and its content or the file of which it is a copy."""

    name: str
    """Name with extension; relative to the folder of the chosen file, possibly in a subfolder."""
    data: bytes = b""
    copy_of: Path | None = None
    """File that is copied unchanged instead of writing ``data``."""
    delay: float = 0.0
    """Seconds by which its modification time is later than those of the other files of the set."""
    obsolete: tuple[str, ...] = ()
    """Names of existing files beside it that do not belong to the set, but that programs would read as part of it. They
    are removed when the set is written, if their first bytes contain ``own_mark``."""
    own_mark: bytes = b""
    """Bytes near the start of a file that identify files by the same writer."""
    own_prefix: str = ""
    """Start of the names of the other files of the set, if it is not the stem of the name. Existing files with other
    names are not replaced."""
    note: str = ""
    """Information for the user about the file, which requires no action."""
    usage: str = ""
    """Instructions for using the files of the set in the target program. The command line does not print them for each
    set."""


COUNTS = ("nodes", "vertices", "triangles", "surfaces", "materials", "uv_layers", "color_layers", "bones", "shape_keys")
"""Keys of ``FileFormat.facts`` that are 0 by default, in the order in which ``inspect`` prints them."""


def modules_of(package: str) -> Callable[[str], Any]:
    """Return a function that imports a module of a package by its name, such as ``codec``, on first use.

    ``checks`` stands for ``mapping`` in a package without a module of this name.
    """

    @cache  # An import takes time even if its module is loaded, and each file needs about 16.
    def load(name: str) -> Any:
        if name == "checks" and find_spec(f"{package}.checks") is None:
            name = "mapping"
        return import_module(f"{package}.{name}")

    return load


@dataclass(eq=False)
class FileFormat:
    """A file format: its names, how it is recognised, read and written, and what it can hold."""

    name: str
    label: str
    extensions: tuple[str, ...]
    """Extensions with the dot, in lower case; the first is the default for writing."""
    capabilities: Capabilities
    modules: Callable[[str], Any] = field(repr=False)
    """Imports a module of the format by its name, usually :func:`modules_of`."""
    needs_blender: ClassVar[bool] = False
    """Whether Blender itself reads and writes the files; the command line knows such formats besides."""
    is_read: bool = True
    reads_paths: bool = False
    """Whether a file may be larger than the memory, so that ``read_path`` reads it, and its document reads on later."""
    is_written: bool = True
    is_linked: bool = False
    """Whether ``mapping`` completes scenes by other files of the project that their file is in."""
    is_patched: bool = False
    """Whether ``patching`` changes the nodes of imported files."""
    adds_models: bool = False
    """Whether ``additions`` makes nodes and files for objects that are new in an imported file."""
    is_patched_whole: bool = False
    """Whether a change that cannot be written prevents all changes; otherwise it is left out and reported."""
    is_built_by_linking: bool = False
    """Whether ``link`` builds the whole scene, so that calling ``to_scene`` before it would do the work twice."""
    import_options: type[Options] = field(default=Options, repr=False)
    """Options of ``to_scene``."""
    export_options: type[Options] = field(default=Options, repr=False)
    """Options of ``from_scene`` and ``files_of``."""
    only_read: tuple[str, ...] = ()
    """Extensions that are read but not written."""
    ambiguous: tuple[str, ...] = ()
    """Extensions that other programs use for other files. A search of a folder tests the content of such files."""
    is_empty: Callable[[bytes], bool] | None = field(default=None, repr=False)
    """Function that returns whether a file has nothing to convert; searches of folders for a conversion leave such
    files out."""
    is_set: bool = False
    """Whether a document becomes several files (``write_files``)."""
    rewritten_as: str = ""
    """For a format that is only read: name of the format in which its files are written again."""
    partner_suffixes: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """For formats whose files come in sets: suffixes of file names in lower case, the usual ones first, and the part
    of a model in such a file: a suffix of ``passes.lod_names``, or an empty text in the main file."""

    @property
    def written_extensions(self) -> tuple[str, ...]:
        """The extensions with which files are written."""
        return tuple(name for name in self.extensions if self.is_written and name not in self.only_read)

    def options(self) -> tuple[Option, ...]:
        """Return the options of the format, for reading first."""
        return tuple(dict.fromkeys((*self.import_options.table(), *self.export_options.table())))

    def capabilities_with(self, options: Mapping[str, Any]) -> Capabilities:
        """Return the capabilities for an export with these options, also those of other tables."""
        chosen = self.export_options.among(options)
        return replace(self.capabilities, tangents=getattr(chosen, TANGENTS, self.capabilities.tangents))

    def _for_reading(self, module: str) -> Any:
        if not self.is_read:
            raise UnsupportedFormatError("{} files are only written", self.label)
        return self.modules(module)

    def _for_writing(self, module: str) -> Any:
        if not self.is_written:
            raise UnsupportedFormatError("{} files are only read", self.label)
        return self.modules(module)

    def sniff(self, head: bytes, size: int) -> Match | NearMiss:
        """Return the evidence for this format in the first 4,096 bytes and the file size, or explain a similar file."""
        if not self.is_read:
            return Match.NONE
        found: Match | NearMiss = self.modules("format").sniff(head, size)
        return found

    def read(self, data: bytes, *, inflated_limit: int | None = None) -> Any:
        """Decode a file's bytes into the format's document.

        ``inflated_limit`` raises the bound on the uncompressed size, in bytes
        (default: the larger of 64 MiB and 64 times the file).

        Raises
        ------
        FormatError
            The data breaks the format; nothing else is raised for any input.
        """
        return self._for_reading("codec").read(data, inflated_limit=inflated_limit)

    def read_path(self, path: Path) -> Any:
        """Decode the file at a path without loading all of it, for a format that ``reads_paths``.

        Raises
        ------
        FormatError
            The data breaks the format, or the file cannot be read.
        """
        return self._for_reading("codec").read_path(path)

    def write(self, document: Any) -> bytes:
        """Encode a document; ``write(read(data))`` has the content of ``data``."""
        encoded: bytes = self._for_writing("codec").write(document)
        return encoded

    def patch(self, data: bytes, edits: Sequence[NodeEdit], reserved: Collection[str] = ()) -> Patched:
        """Return the bytes of a file after edits of its nodes; all other bytes stay unchanged.

        Parameters
        ----------
        reserved:
            Keys that no added node gets: those of removed nodes, which may be put back.

        Raises
        ------
        MeshferryError
            The file cannot be changed, or cannot store these edits.
        """
        if not self.is_patched:
            raise UnsupportedFormatError("{} files cannot be changed", self.label)
        patched: Patched = self.modules("patching").patch(data, edits, reserved)
        return patched

    def patch_refusal(self, path: Path, options: Mapping[str, Any]) -> Text | None:
        """Return the reason why the file at a path must never be changed, or None.

        ``options`` are the options of its import, also those of other tables.
        """
        if not self.is_patched:
            return None
        refusal: Text | None = self.modules("patching").refusal(path, self.import_options.among(options))
        return refusal

    def new_nodes(
        self, document: Any, scene: Scene, path: Path, projects: Projects, known: KnownFiles, reserved: Collection[str]
    ) -> NewNodes:
        """Return nodes for the first part of a scene's placement that can be added to an imported file.

        Parameters
        ----------
        document, path:
            The imported file.
        scene:
            The new nodes, all without parents, and their models.
        known:
            The files beside the imported one.
        reserved:
            As in :meth:`patch`.

        Raises
        ------
        ExportError
            Data that no file can hold.
        """
        made: NewNodes = self.modules("additions").new_nodes(document, scene, path, projects, known, reserved)
        return made

    def write_files(self, document: Any, stem: str) -> list[OutputFile]:
        """Encode a document as one or more files for one folder, the one that the user chose last.

        ``stem`` is the chosen file's name without its extension.
        """
        if not self.is_set:
            return [OutputFile(stem + self.extensions[0], self.write(document))]
        files: list[OutputFile] = self._for_writing("codec").write_files(document, stem)
        return files

    def same_content(self, one: bytes, other: bytes) -> bool:
        """Return whether two files have the same content; compressed data is compared after inflation."""
        is_same: bool = self._for_reading("codec").same_content(one, other)
        return is_same

    def to_scene(self, document: Any, name: str, options: GivenOptions = None) -> Scene:
        """Map a document to Blender's space with this format's ``import_options``.

        ``name`` is used where the file has none; ``Scene.format`` is this format's name.
        """
        scene: Scene = self._for_reading("mapping").to_scene(document, name, self.import_options.of(options))
        scene.format = self.name
        return scene

    def link(self, document: Any, scene: Scene, path: Path, projects: Projects, options: GivenOptions = None) -> None:
        """Complete the scene of a document by other files of the project that its file is in.

        Parameters
        ----------
        path:
            Path of the file.
        projects:
            The projects that are open.
        options:
            Values of ``import_options``.
        """
        if self.is_linked:
            self.modules("mapping").link(document, scene, path, projects, self.import_options.of(options))

    def join(self, document: Any, partners: Mapping[str, Any]) -> Any:
        """Combine the documents of a main file and its partners.

        The partners are given by the part of the model in them.
        """
        if not self.partner_suffixes:
            return document
        return self._for_reading("mapping").join(document, partners)

    def missing(self, document: Any, path: Path, projects: Projects, options: GivenOptions = None) -> list[Message]:
        """Return a message for each kind of file that a document needs and its project does not have.

        The parameters are as in :meth:`link`.
        """
        if not self.is_linked:
            return []
        chosen = self.import_options.of(options)
        messages: list[Message] = self.modules("mapping").missing(document, path, projects, chosen)
        return messages

    def files_of(self, scene: Scene, options: GivenOptions = None) -> list[Scene]:
        """Return the scenes that each become a file, named like the files; most formats store a scene in one file."""
        scenes: list[Scene] = self._for_writing("mapping").files_of(scene, self.export_options.of(options))
        return scenes

    def from_scene(
        self, scene: Scene, options: GivenOptions = None, path: Path | None = None, projects: Projects | None = None
    ) -> Any:
        """Map a scene to a document with this format's ``export_options``; drops are in ``scene.warnings``.

        ``path`` is the path of the file to write, if known: some documents refer to files near it. ``projects``
        are the projects that are open.
        """
        mapping, chosen = self._for_writing("mapping"), self.export_options.of(options)
        if hasattr(mapping, "from_scene_at"):
            return mapping.from_scene_at(scene, chosen, path, projects)
        return mapping.from_scene(scene, chosen)

    def check(self, document: Any, options: GivenOptions = None, path: Path | None = None) -> list[Message]:
        """Apply the rules of the program that will load the file.

        Parameters
        ----------
        options:
            Values of ``export_options``.
        path:
            Path of the file, for rules about the files around it.
        """
        chosen = self.export_options.of(options)
        return self._findings("check", document) + self._findings("check_in_context", document, chosen, path)

    def check_links(self, document: Any, path: Path, projects: Projects, options: GivenOptions = None) -> list[Message]:
        """Apply the rules about a file with the other files of its project; the parameters are as in :meth:`link`."""
        return self._findings("check_links", document, path, projects, self.import_options.of(options))

    def check_scene(self, scene: Scene) -> list[Message]:
        """Check a scene; the elements of the findings can be selected in Blender.

        :meth:`check` applies the remaining rules to the document that is built from the scene.
        """
        return self._findings("check_scene", scene)

    def _findings(self, name: str, *values: object) -> list[Message]:
        """Return the result of a function of ``checks``, or an empty list if the format does not have it."""
        function = getattr(self.modules("checks"), name, None)
        findings: list[Message] = [] if function is None else function(*values)
        return findings

    def facts(self, document: Any) -> dict[str, Any]:
        """Return what ``inspect`` prints, without ``file``, ``format`` and ``error``."""
        found: dict[str, Any] = self._for_reading("mapping").facts(document)
        return {"version": "", **dict.fromkeys(COUNTS, 0), "clips": [], "warnings": [], **found}


Format: TypeAlias = FileFormat
"""A format of any document class."""


@dataclass(eq=False, repr=False)
class Family:
    """Formats that share an importer, panels and a switch in the preferences."""

    name: str
    label: str
    formats: tuple[Format, ...]
    guide: str = ""
    """File name of the family's user guide, which the preferences open."""
    program: str = ""
    """Name of the game or engine for which the files are made, if it differs from the name of the family."""
    folders: tuple[Option, ...] = ()
    """Folders that the preferences hold, besides those that are options of formats."""
    body_shapes: Callable[[], Any] | None = field(default=None, repr=False)
    """Import the module that shapes the figures of the target, with the functions ``sliders``, ``is_attachment``,
    ``morph_weights``, ``joint_shapes`` and ``deformations``; None if it has no figures with sliders."""
