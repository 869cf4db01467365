"""Reading, writing and checking of files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from ..io_formats import api, registry
from ..io_formats.core.errors import FormatError, MeshferryError, refusal
from ..io_formats.core.format import Format
from ..io_formats.core.messages import Message, Text, listed
from ..io_formats.core.options import Option, Value
from ..io_formats.partner_files import file_sets
from .scene import Scene, copied

if TYPE_CHECKING:
    from ..io_formats.projects import Projects

Source: TypeAlias = "str | os.PathLike[str] | bytes | BinaryIO | Sequence[str | os.PathLike[str]]"
"""A path, the content of a file, an open binary file, or the paths of a set of files: levels of detail, physics."""


@dataclass(eq=False)
class Written:
    """The result of :func:`write` and :func:`convert`."""

    files: tuple[Path, ...]
    """All files written, the chosen one last."""
    messages: tuple[Message, ...]
    """Losses, changes and notes."""


def read(source: Source, *, name: str = "", strict: bool = False, **options: Any) -> Scene:
    """Read a file of any format; its content decides which.

    Files that belong to it, such as ``hut_LOD1.dae`` beside ``hut.dae``, are read with it.

    Parameters
    ----------
    source:
        A path, bytes, a binary file object, or the paths of a set of files.
    name:
        Name of the scene, and in messages of bytes. Default: that of the file.
    strict:
        Whether losses raise an error.
    options:
        Options of the command line, such as ``assumed_frame_rate=25``; :func:`formats` lists them.

    Raises
    ------
    MeshferryError
        The file cannot be read, an option is wrong, or, if ``strict``, data was lost.
    """
    known = registry.FORMATS if options else []  # else the families that the file does not need stay unimported
    given = _values((option for one in known for option in one.import_options.table()), options)
    loaded = _loaded(source, name, given)
    _values(loaded.format.import_options.table(), options, loaded.format.label)
    loaded.data = b""  # memory that the scene can use
    projects = _projects() if loaded.format.capabilities.placement else None
    scene = api.scene_of(loaded, given, projects=projects)
    if any(material.texture is not None for material in scene.materials):
        from ..io_formats.disk.reach import Reach  # slow to import, and few files have textures

        api.leave_out_textures(scene, Reach.of(loaded.path))
    scene.name = name or scene.name
    api.require_lossless(scene.warnings, strict=strict, file=loaded.path)
    return Scene(_core=scene)


def write(
    scene: Scene,
    path: str | os.PathLike[str],
    *,
    format: str = "",  # noqa: A002 (the word that callers expect)
    strict: bool = False,
    **options: Any,
) -> Written:
    """Write a scene, completely or not at all; existing files are replaced.

    Parameters
    ----------
    format:
        Name or extension of a format. By default, the extension of ``path`` decides, and among formats that share one
        the scene's own.
    strict:
        Whether losses raise an error before anything is written.
    options:
        Options of the command line, such as ``mesh_version="ms12"``.

    Raises
    ------
    MeshferryError
        The scene breaks a rule of the format or would become several files, a file cannot be written, an option is
        wrong, or, if ``strict``, data was lost.
    """
    if not isinstance(scene, Scene):
        raise MeshferryError("A value of type '{}' is not a scene", type(scene).__name__)
    (path,) = paths_of(path, "a path")
    named = registry.find(format) or registry.by_extension(format) or registry.by_name(format) if format else None
    target = named or _by_extension(path, scene.format)
    chosen = target.export_options.of(_values(target.export_options.table(), options, target.label))
    try:
        files, messages = api.write_files(copied(scene._core), path, target, chosen, strict=strict)
        return Written(files, tuple(messages))
    except MeshferryError as problem:
        raise problem.in_file(str(path)) from None


def check(source: Source, *, name: str = "", **options: Any) -> list[Message]:
    """Check a file against the rules of the program that will load it.

    Errors have ``message.kind.value == "error"``: the program rejects the file. For warnings, it shows something
    unexpected.
    """
    given = _values((option for known in registry.FORMATS for option in known.options()), options)
    loaded = _loaded(source, name, given)
    projects, reading = _projects(), loaded.format.import_options.among(given)
    missing = loaded.format.missing(loaded.document, loaded.path, projects, reading)
    return api.findings_of(loaded, given, [*loaded.messages, *missing], projects)


def inspect(source: Source, *, name: str = "") -> dict[str, Any]:
    """Return the facts of a file like the command line with ``--json``: format, version, counts, clips, warnings."""
    from ..cli.output import plain, warnings_entry

    loaded = _loaded(source, name, {})
    facts = {"format": loaded.format.name, **loaded.format.facts(loaded.document)}
    entry: dict[str, Any] = plain(facts | warnings_entry([*facts["warnings"], *loaded.messages]))
    return entry


def formats() -> dict[str, Format]:
    """Return all formats by name.

    Their ``import_options`` and ``export_options`` have a ``table()`` of the options of :func:`read` and :func:`write`.
    """
    return {known.name: known for known in registry.FORMATS}


def _projects() -> Projects:
    """Return the projects for one file, none of which is open."""
    from ..io_formats.disk.reach import Reach
    from ..io_formats.projects import Projects

    return Projects(is_fixed=True, reach_of=Reach.of)


def _loaded(source: Source, name: str, options: Mapping[str, Any]) -> api.LoadedFile:
    """Read the document of a file or of a set of files."""
    if isinstance(source, bytes | bytearray | memoryview):
        return api.load(name or "bytes", data=bytes(source))
    if hasattr(source, "read"):
        name = name or str(getattr(source, "name", "file object"))
        try:
            data = source.read()
        except (OSError, ValueError) as problem:
            raise FormatError("The file cannot be read: {}", refusal(problem), file=name) from None
        if not isinstance(data, bytes):
            raise FormatError("The file object does not give bytes; open it in binary mode", file=name)
        return api.load(name, data=data)
    sets = file_sets(paths_of(source, "a path, bytes, a binary file or a list of paths"), options)
    if len(sets) != 1:
        names = listed([one.path.name for one in sets])
        raise FormatError("{} files do not belong together ({}); read one after the other", len(sets), names)
    return api.load_set(sets[0])


def paths_of(source: object, kinds: str) -> list[Path]:
    """Return a path, or several, as a list; ``kinds`` says in the error for other values what is accepted."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(paths, Sequence) or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise MeshferryError("A value of type '{}' is not {}", type(source).__name__, kinds)
    return [Path(path) for path in paths]


def _by_extension(path: Path, source: str) -> Format:
    """Return the format to write for the extension of a path."""
    extension = registry.extension_of(path)
    found = registry.by_extension(extension)
    if found is None:
        known = sorted({extension for known in registry.FORMATS for extension in known.written_extensions})
        template = "write() has no format for '{}', but for {}; convert() also writes those of Blender"
        raise MeshferryError(template, extension, ", ".join(known), file=path)
    return registry.of_same_family(found, extension, source)


def _values(options: Iterable[Option], given: Mapping[str, Any], subject: str = "any format") -> dict[str, Value]:
    """Return values by the names of options, given by keyword."""
    return values_of({one.keyword: (one.name, one) for one in options} if given else {}, given, subject)


def values_of(options: Mapping[str, tuple[str, Option]], given: Mapping[str, Any], subject: str) -> dict[str, Value]:
    """Return values that are given by keyword, or by the end of it (``version``) if no other keyword has this end.

    Parameters
    ----------
    options:
        By keyword: the name of the value in the result, and the option.

    Raises
    ------
    MeshferryError
        There is no such option; the text names the near ones.
    """
    found = {}
    for keyword, value in given.items():
        ends = [own for own in options if own == keyword] or [own for own in options if own.endswith(f"_{keyword}")]
        if len(ends) != 1:
            from difflib import get_close_matches

            near = ", ".join(ends or get_close_matches(keyword, options, 3) or sorted(options))
            known = Text("known are {}", near) if near else Text("it has none")
            raise MeshferryError("There is no option '{}' of {}; {}", keyword, subject, known)
        name, option = options[ends[0]]
        found[name] = option.parsed(value)
    return found
