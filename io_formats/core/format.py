"""The description of a file format: names, capabilities, options, and its modules, which are imported on first use.

A missing library therefore concerns its own format alone, and starting up stays fast. Each protocol below lists the
functions that a format's module of one kind must have; ``make lint`` compares their signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from .capabilities import Capabilities
from .errors import UnsupportedFormatError
from .messages import Message, Text
from .options import Option
from .output_file import OutputFile
from .recognition import Match, NearMiss

if TYPE_CHECKING:
    from .body_shapes import BodyShapes  # imports NumPy, too
    from .placement_edits import NodeEdit, Patched
    from .projects import Projects
    from .scene import Scene  # not at run time: it imports NumPy, which slows the start of commands

COUNTS = (
    "nodes",
    "vertices",
    "triangles",
    "surfaces",
    "materials",
    "uv_layers",
    "color_layers",
    "bones",
    "shape_keys",
)
"""Keys of ``FileFormat.facts`` that are 0 by default, in the order in which ``inspect`` prints them."""

DocumentT = TypeVar("DocumentT")
ReadT_co = TypeVar("ReadT_co", covariant=True)
WrittenT_contra = TypeVar("WrittenT_contra", contravariant=True)
Values = Mapping[str, Any]


class Sniffer(Protocol):
    """Function of a format's module ``sniffing``."""

    def sniff(self, head: bytes, size: int, /) -> Match | NearMiss: ...


class Reader(Protocol[ReadT_co]):
    """Functions of a format's module ``reader``."""

    def read(self, data: bytes, /, *, inflated_limit: int | None = None) -> ReadT_co: ...

    def same_content(self, one: bytes, other: bytes, /) -> bool: ...


@runtime_checkable
class PathReader(Protocol[ReadT_co]):
    """Function of the module ``reader`` of a format whose files may be larger than the memory."""

    def read_path(self, path: Path, /) -> ReadT_co: ...


class SceneReader(Protocol[WrittenT_contra]):
    """Function of a format's module ``scene_mapping`` for import."""

    def to_scene(self, document: WrittenT_contra, name: str, options: Values | None = None, /) -> Scene: ...


class Linker(Protocol[WrittenT_contra]):
    """Functions of a format's module ``linking``."""

    def link(
        self, document: WrittenT_contra, scene: Scene, path: Path, projects: Projects, options: Values, /
    ) -> None: ...

    def missing(
        self, document: WrittenT_contra, path: Path, projects: Projects, options: Values, /
    ) -> list[Message]: ...


class Facts(Protocol[WrittenT_contra]):
    """Function of a format's module ``facts``."""

    def facts(self, document: WrittenT_contra, /) -> dict[str, Any]: ...


class Partners(Protocol[DocumentT]):
    """Function of the module ``partners`` of a format whose files come in sets."""

    def join(self, document: DocumentT, partners: Mapping[str, DocumentT], /) -> DocumentT: ...


class Writer(Protocol[WrittenT_contra]):
    """Function of a format's module ``writer``."""

    def write(self, document: WrittenT_contra, /) -> bytes: ...


class SetWriter(Protocol[WrittenT_contra]):
    """Function of the module ``writer`` of a format whose documents become several files."""

    def write_files(self, document: WrittenT_contra, stem: str, /) -> list[OutputFile]: ...


class SceneWriter(Protocol[ReadT_co]):
    """Functions of a format's module ``scene_mapping`` for export."""

    def from_scene(self, scene: Scene, options: Values | None = None, /) -> ReadT_co: ...

    def files_of(self, scene: Scene, options: Values | None = None, /) -> list[Scene]: ...


@runtime_checkable
class PathSceneWriter(Protocol[ReadT_co]):
    """Function of a module that maps scenes to documents that depend on the files around the target."""

    def from_scene_at(
        self, scene: Scene, options: Values, path: Path | None, projects: Projects | None, /
    ) -> ReadT_co: ...


@runtime_checkable
class Checks(Protocol[WrittenT_contra]):
    """Function of a format's module ``checks``."""

    def check(self, document: WrittenT_contra, /) -> list[Message]: ...


@runtime_checkable
class ContextChecks(Protocol[WrittenT_contra]):
    """Function of a module with checks that depend on options or on other files."""

    def check_in_context(self, document: WrittenT_contra, options: Values, path: Path | None, /) -> list[Message]: ...


@runtime_checkable
class LinkedChecks(Protocol[WrittenT_contra]):
    """Function of a module with checks that depend on other files of the project."""

    def check_links(
        self, document: WrittenT_contra, path: Path, projects: Projects, options: Values, /
    ) -> list[Message]: ...


@runtime_checkable
class SceneChecks(Protocol):
    """Function of the module ``checks`` of a format that can check scenes."""

    def check_scene(self, scene: Scene, /) -> list[Message]: ...


class Patcher(Protocol):
    """Function of a format's module ``patching``."""

    def patch(self, data: bytes, edits: Sequence[NodeEdit], /) -> Patched: ...

    def refusal(self, path: Path, options: Values, /) -> Text | None: ...


def modules_of(package: str) -> Callable[[str], Any]:
    """Return a function that imports a module of a package by its name, such as ``reader``, on first use."""
    # The modules are kept: an import takes time even if its module is loaded, and each file needs about 16.
    return cache(lambda name: import_module(f"{package}.{name}"))


@dataclass(frozen=True)
class FileFormat:
    """A file format: its names, how it is recognised, read and written, and what it can hold."""

    name: str
    label: str
    extensions: tuple[str, ...]
    """Extensions with the dot, in lower case; the first is the default for writing."""
    capabilities: Capabilities
    modules: Callable[[str], Any] = field(repr=False)
    """Imports a module of the format by its name, usually :func:`modules_of`. The protocols above name the modules."""
    is_read: bool = True
    reads_paths: bool = False
    """Whether a file may be larger than the memory, so that ``read_path`` reads it, and its document reads on later."""
    is_written: bool = True
    is_linked: bool = False
    """Whether ``linking`` completes scenes by other files of the project that their file is in."""
    is_patched: bool = False
    """Whether ``patching`` changes the nodes of imported files."""
    is_patched_whole: bool = False
    """Whether a change that cannot be written prevents all changes; otherwise it is left out and reported."""
    is_built_by_linking: bool = False
    """Whether ``link`` builds the whole scene, so that calling ``to_scene`` before it would do the work twice."""
    import_options: tuple[Option, ...] = field(default=(), repr=False)
    """Options of ``to_scene``."""
    export_options: tuple[Option, ...] = field(default=(), repr=False)
    """Options of ``from_scene`` and ``files_of``."""
    only_read: tuple[str, ...] = ()
    """Extensions that are read but not written."""
    ambiguous: tuple[str, ...] = ()
    """Extensions that other programs use for other files. A search of a folder tests the content of such files."""
    is_empty: Callable[[bytes], bool] | None = field(default=None, repr=False)
    """Function that returns whether a file has nothing to convert; searches of folders for a conversion leave such
    files out."""
    is_dropped: bool = True
    """Whether the importer accepts dropped files with these extensions; False if most such files are for another
    importer."""
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
        sniffer: Sniffer = self.modules("sniffing")
        return sniffer.sniff(head, size)

    def read(self, data: bytes, *, inflated_limit: int | None = None) -> Any:
        """Decode a file's bytes into the format's document.

        ``inflated_limit`` raises the bound on the uncompressed size, in bytes
        (default: the larger of 64 MiB and 64 times the file).

        Raises
        ------
        FormatError
            The data breaks the format; nothing else is raised for any input.
        """
        reader: Reader[Any] = self._for_reading("reader")
        return reader.read(data, inflated_limit=inflated_limit)

    def read_path(self, path: Path) -> Any:
        """Decode the file at a path without loading all of it, for a format that ``reads_paths``.

        Raises
        ------
        FormatError
            The data breaks the format, or the file cannot be read.
        """
        reader: PathReader[Any] = self._for_reading("reader")
        return reader.read_path(path)

    def write(self, document: Any) -> bytes:
        """Encode a document; ``write(read(data))`` has the content of ``data``."""
        writer: Writer[Any] = self._for_writing("writer")
        return writer.write(document)

    def patch(self, data: bytes, edits: Sequence[NodeEdit]) -> Patched:
        """Return the bytes of a file after edits of its nodes; all other bytes stay unchanged.

        Raises
        ------
        MeshferryError
            The file cannot be changed, or cannot store these edits.
        """
        if not self.is_patched:
            raise UnsupportedFormatError("{} files cannot be changed", self.label)
        patcher: Patcher = self.modules("patching")
        return patcher.patch(data, edits)

    def patch_refusal(self, path: Path, options: Values) -> Text | None:
        """Return the reason why the file at a path must never be changed, or None.

        ``options`` are the options of its import.
        """
        patcher: Patcher | None = self.modules("patching") if self.is_patched else None
        return patcher.refusal(path, options) if patcher is not None else None

    def write_files(self, document: Any, stem: str) -> list[OutputFile]:
        """Encode a document as one or more files for one folder, the one that the user chose last.

        ``stem`` is the chosen file's name without its extension.
        """
        if self.is_set:
            writer: SetWriter[Any] = self._for_writing("writer")
            return writer.write_files(document, stem)
        return [OutputFile(stem + self.extensions[0], self.write(document))]

    def same_content(self, one: bytes, other: bytes) -> bool:
        """Return whether two files have the same content; compressed data is compared after inflation."""
        reader: Reader[Any] = self._for_reading("reader")
        return reader.same_content(one, other)

    def to_scene(self, document: Any, name: str, options: Values | None = None) -> Scene:
        """Map a document to Blender's space with this format's ``import_options``.

        ``name`` is used where the file has none; ``Scene.format`` is this format's name.
        """
        mapping: SceneReader[Any] = self._for_reading("scene_mapping")
        scene = mapping.to_scene(document, name, options)
        scene.format = self.name
        return scene

    def link(self, document: Any, scene: Scene, path: Path, projects: Projects, options: Values | None = None) -> None:
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
            linker: Linker[Any] = self.modules("linking")
            linker.link(document, scene, path, projects, options or {})

    def join(self, document: Any, partners: Mapping[str, Any]) -> Any:
        """Combine the documents of a main file and its partners.

        The partners are given by the part of the model in them.
        """
        if not self.partner_suffixes:
            return document
        joining: Partners[Any] = self._for_reading("partners")
        return joining.join(document, partners)

    def missing(self, document: Any, path: Path, projects: Projects, options: Values | None = None) -> list[Message]:
        """Return a message for each kind of file that a document needs and its project does not have.

        The parameters are as in :meth:`link`.
        """
        linker: Linker[Any] | None = self.modules("linking") if self.is_linked else None
        return linker.missing(document, path, projects, options or {}) if linker is not None else []

    def files_of(self, scene: Scene, options: Values | None = None) -> list[Scene]:
        """Return the scenes that each become a file, named like the files; most formats store a scene in one file."""
        mapping: SceneWriter[Any] = self._for_writing("scene_mapping")
        return mapping.files_of(scene, options)

    def from_scene(
        self,
        scene: Scene,
        options: Values | None = None,
        path: Path | None = None,
        projects: Projects | None = None,
    ) -> Any:
        """Map a scene to a document with this format's ``export_options``; drops are in ``scene.warnings``.

        ``path`` is the path of the file to write, if known: some documents refer to files near it. ``projects``
        are the projects that are open.
        """
        mapping: SceneWriter[Any] | PathSceneWriter[Any] = self._for_writing("scene_mapping")
        if isinstance(mapping, PathSceneWriter):
            return mapping.from_scene_at(scene, options or {}, path, projects)
        return mapping.from_scene(scene, options)

    def check(self, document: Any, options: Values | None = None, path: Path | None = None) -> list[Message]:
        """Apply the rules of the program that will load the file.

        Parameters
        ----------
        options:
            Values of ``export_options``.
        path:
            Path of the file, for rules about the files around it.
        """
        checks = self.modules("checks")
        findings = checks.check(document) if isinstance(checks, Checks) else []
        if isinstance(checks, ContextChecks):
            findings = findings + checks.check_in_context(document, options or {}, path)
        return findings

    def check_links(
        self, document: Any, path: Path, projects: Projects, options: Values | None = None
    ) -> list[Message]:
        """Apply the rules about a file with the other files of its project; the parameters are as in :meth:`link`."""
        checks = self.modules("checks")
        is_linked = isinstance(checks, LinkedChecks)
        return checks.check_links(document, path, projects, options or {}) if is_linked else []

    def check_scene(self, scene: Scene) -> list[Message]:
        """Check a scene; the elements of the findings can be selected in Blender.

        :meth:`check` applies the remaining rules to the document that is built from the scene.
        """
        checks = self.modules("checks")
        return checks.check_scene(scene) if isinstance(checks, SceneChecks) else []

    def facts(self, document: Any) -> dict[str, Any]:
        """Return what ``inspect`` prints, without ``file``, ``format`` and ``error``."""
        facts: Facts[Any] = self._for_reading("facts")
        return {"version": "", **dict.fromkeys(COUNTS, 0), "clips": [], "warnings": [], **facts.facts(document)}


Format: TypeAlias = FileFormat
"""A format of any document class."""


@dataclass(frozen=True)
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
    body_shapes: Callable[[], BodyShapes] | None = field(default=None, repr=False)
    """Import the module that shapes the figures of the target; None if it has no figures with sliders."""
