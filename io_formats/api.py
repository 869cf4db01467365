"""Conversion between files on disk, documents and scenes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import registry
from .core.capabilities import losses
from .core.errors import ExportError, FormatError
from .core.format import Format, OutputFile
from .core.import_choices import adopt_choices, store_choices, with_import_choices
from .core.messages import (
    Kind,
    Message,
    Named,
    Report,
    Text,
    distinct,
    errors_of,
    joined,
    listed,
    warnings_of,
    with_allowed,
)
from .core.options import MESH_FILES, GivenOptions
from .disk.special_files import read_bytes, special_kind
from .partner_files import FileSet, file_set, levels_by_triangles

if TYPE_CHECKING:
    from .core.scene import ImportChoice, Scene
    from .disk.reach import Reach
    from .projects import Projects

PLACES_MODELS = "It places many models; convert it to .blend, .glb or another of Blender's own formats"
MOST_ERRORS = 5
"""Maximum number of broken rules that the text of an error lists."""


@dataclass(eq=False, repr=False)
class LoadedFile:
    """A decoded file."""

    path: Path
    format: Format
    document: Any
    data: bytes
    """The content; its owner may empty it to free the memory. Empty for a format that ``reads_paths``."""
    partners: dict[str, Path] = field(default_factory=dict)
    """The other files of the set that were read into the document, by the part of the model that they contain."""
    messages: list[Message] = field(default_factory=list)
    """Warnings about the other files of the set."""


def format_of(path: str | Path) -> Format | None:
    """Return the format of a file's content, or None if it is unknown, cannot be read, or is not a regular file."""
    if special_kind(path):
        return None  # Reading would consume the content, which the import still needs.
    try:
        with open(path, "rb") as stream:
            head = stream.read(registry.HEAD_SIZE)
            return registry.by_content(head, os.fstat(stream.fileno()).st_size, Path(path).name)
    except (OSError, ValueError):
        return None


def load(path: str | Path, *, data: bytes | None = None, inflated_limit: int | None = None) -> LoadedFile:
    """Read a file of any known format into its document; the content decides which.

    ``data`` is the file's content if it was read already, for example from an archive; ``path`` is then only its name.

    Raises
    ------
    FormatError
        The content is not a file of a known format, or is damaged; the error names the file.
    """
    path = Path(path)
    try:
        if data is None and (large := _read_by_path(path)) is not None:
            return LoadedFile(path, large, large.read_path(path), b"")
        data = read_bytes(path) if data is None else data
        found = registry.by_content(data[: registry.HEAD_SIZE], len(data), path.name)
        return LoadedFile(path, found, found.read(data, inflated_limit=inflated_limit), data)
    except FormatError as problem:
        raise problem.in_file(str(path)) from None
    except MemoryError:
        raise FormatError("There is not enough memory for this file", file=str(path)) from None


def _read_by_path(path: Path) -> Format | None:
    """Return the format of a file if its extension is that of a format that ``reads_paths``, and it is of such one."""
    found = format_of(path) if any(known.reads_paths for known in registry.of_file(path.name)) else None
    return found if found is not None and found.reads_paths else None


def load_set(files: FileSet, *, data: bytes | None = None, inflated_limit: int | None = None) -> LoadedFile:
    """Read a file with its partners. A partner that cannot be read gives a warning.

    ``data`` is the content of the main file if it was read already.

    Raises
    ------
    FormatError
        The main file cannot be read, or the files are too many for the levels of a model.
    """
    messages: list[Message] = []
    if files.levels:
        main, partners = _load_levels(files.levels, messages, inflated_limit)
    else:
        main, partners = load(files.path, data=data, inflated_limit=inflated_limit), {}
    if main.format.partner_suffixes:
        part_of = {path: part for part, path in files.partners.items()}
        for loaded in _load_each(part_of, messages, inflated_limit, main.format):
            partners[part_of[loaded.path]] = loaded
        if partners:
            main.document = main.format.join(main.document, {part: one.document for part, one in partners.items()})
    main.partners = {part: loaded.path for part, loaded in partners.items()}
    main.messages = messages
    for loaded in partners.values():
        loaded.data = b""
    return main


def _load_levels(
    paths: Sequence[Path], messages: list[Message], inflated_limit: int | None
) -> tuple[LoadedFile, dict[str, LoadedFile]]:
    """Read files that are levels of one model; return the highest one, and the others by their part of the model."""
    levels_by_triangles(paths, [0] * len(paths))  # raises an error for too many files before any is read
    found = list(_load_each(paths, messages, inflated_limit))
    if not found:
        raise FormatError("{}", joined(messages, "; "))
    for loaded in found:
        if not loaded.format.partner_suffixes:
            raise FormatError("{} files are not levels of a model", loaded.format.label, file=str(loaded.path))
    by_path = {loaded.path: loaded for loaded in found}
    triangles = [loaded.format.facts(loaded.document)["triangles"] for loaded in by_path.values()]
    parts = {part: by_path[path] for part, path in levels_by_triangles(list(by_path), triangles).items()}
    return parts.pop(""), parts


def _load_each(
    paths: Iterable[Path], messages: list[Message], inflated_limit: int | None, expected: Format | None = None
) -> Iterator[LoadedFile]:
    """Yield the files that can be read and have the expected format; warn of the others."""
    for path in paths:
        try:
            loaded = load(path, inflated_limit=inflated_limit)
            if expected is not None and loaded.format != expected:
                raise FormatError("This is a {} file", loaded.format.label)
        except FormatError as problem:
            cause = problem.sentence(with_file=False)
            Report(messages).loss("partner-not-read", "The file was not read: {}", cause, item=Named("file", path.name))
            continue
        yield loaded


def read_scene(
    path: str | Path | FileSet,
    options: Mapping[str, Any] | None = None,
    *,
    data: bytes | None = None,
    inflated_limit: int | None = None,
    choices: Iterable[ImportChoice] = (),
    projects: Projects | None = None,
) -> Scene:
    """Read a file of any known format as a scene named after the file.

    Files of the same set that are beside it belong to it, unless ``options`` turn that off or it has ``data``; a
    :class:`FileSet` has exactly the files that it names. Each format uses its own options among ``options``.
    ``choices`` are the import choices stored on the armature that receives the content; they override ``options``.
    ``data`` is like in :func:`load`. With ``projects``, other files of the project that the file is in complete the
    scene.
    """
    if not isinstance(path, FileSet):
        path = file_set(path, options) if data is None else FileSet(Path(path))
    loaded = load_set(path, data=data, inflated_limit=inflated_limit)
    # Free the bytes of the file, since memory use is highest later, when Blender's mesh is built.
    loaded.data = data = b""
    return scene_of(loaded, options, choices=choices, projects=projects)


def scene_of(
    loaded: LoadedFile,
    options: Mapping[str, Any] | None = None,
    *,
    choices: Iterable[ImportChoice] = (),
    projects: Projects | None = None,
) -> Scene:
    """Map the document of a file to a scene as :func:`read_scene` does; this can be repeated with other choices."""
    path, found, document = loaded.path, loaded.format, loaded.document
    try:
        chosen = adopt_choices(found.import_options.among(options or {}), choices)
        if projects is not None and found.is_built_by_linking:
            from .core.scene import Scene  # imported here, since NumPy slows the start of commands

            scene = Scene(writable_name(path), format=found.name)
        else:
            scene = found.to_scene(document, writable_name(path), chosen)
        scene.warnings += loaded.messages
        store_choices(scene, chosen)
        if projects is not None:
            found.link(document, scene, path, projects, chosen)
        return scene
    except FormatError as problem:
        raise problem.in_file(str(path)) from None


def scene_name(path: Path) -> str:
    """Return the scene name for a file: ``Lodge.Folktails.Model.mesh`` is ``Lodge.Folktails.Model``."""
    name = path.name
    for known in registry.of_file(name):
        for extension in known.extensions:
            if name.lower().endswith(extension) and len(name) > len(extension):
                return name[: -len(extension)]
    return path.stem or name


def writable_name(path: Path) -> str:
    """Return :func:`scene_name` as text that files can hold, with question marks for bytes that are not UTF-8."""
    return scene_name(path).encode("utf-8", "replace").decode("utf-8")


@dataclass(eq=False, repr=False)
class EncodedFile:
    """A file ready to be written."""

    scene: Scene
    """The scene of the file, with the file's name."""
    outputs: list[OutputFile]
    """The files to write for it; the file that the user chose is the last one."""
    messages: list[Message]
    """Losses, changes and notes of the encoding, findings about the file, and notes about the use of its files."""

    @property
    def usage(self) -> str:
        """Instructions for using the files in the target program, or an empty text."""
        return self.outputs[-1].usage


def files_of(scene: Scene, target: Format, options: GivenOptions = None) -> list[Scene]:
    """Return the scenes that each become a file of a format; :func:`file_names` names the files.

    Parameters
    ----------
    options:
        Values of the format's ``export_options``.

    Raises
    ------
    ExportError
        The scene has nothing that such a file can hold.
    """
    from .passes.clips import with_frames  # slow to import

    with _quiet_numpy():
        parts = target.files_of(scene if target.capabilities.keyed_clips else with_frames(scene), options)
    if not parts:
        raise ExportError("There is nothing in '{}' that {} file can hold", scene.name, _article(target.label))
    return parts


@dataclass(eq=False, repr=False)
class SceneFiles:
    """The files that a scene becomes, and the messages about the whole scene."""

    parts: list[Scene]
    """A scene for each file, without the messages about the whole scene."""
    messages: list[Message]


def split(scene: Scene, target: Format, options: GivenOptions = None) -> SceneFiles:
    """Adapt a scene to the capabilities of a format, and split it into scenes for its files like :func:`files_of`.

    Raises
    ------
    ExportError
        The scene has nothing that such a file can hold.
    """
    from .passes.flatten import fit  # slow to import

    can = target.capabilities
    if scene.placement is not None and not can.placement:
        raise ExportError(PLACES_MODELS)
    if scene.placement is not None and any(model.is_tree for model in scene.placement.models):
        from .passes.placements import shown_placement, with_single_meshes  # slow to import

        scene.placement = with_single_meshes(shown_placement(scene.placement, scene.report), scene.report)
    if not can.meshes:
        scene.nodes = []  # when converting to an animation format, the mesh is not reported as lost
    lost = losses(scene, can)
    fit(scene, can, registry.by_name(scene.format).capabilities if scene.format else None)
    parts = files_of(scene, target, options)
    messages = distinct([*lost, *scene.warnings])
    for part in parts:
        part.warnings = []  # a new list, since parts may share that of the scene
    return SceneFiles(parts, messages)


def _quiet_numpy() -> AbstractContextManager[object]:
    """Suppress NumPy's warnings about overflow, which name no file; writers check the values that they write."""
    import numpy as np  # slow to import

    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _article(label: str) -> str:
    """Return a format's label with its article; U is pronounced as in "unit"."""
    return f"an {label}" if label[:1] in "AEIO" else f"a {label}"


def file_names(scenes: Sequence[Scene]) -> list[str]:
    """Return the names of scenes as distinct file names, without extension."""
    from .disk.file_names import distinct_file_names  # slow to import

    return distinct_file_names(scene.name for scene in scenes)


def encode_part(
    scene: Scene,
    target: Format,
    options: GivenOptions = None,
    *,
    path: str | Path | None = None,
    projects: Projects | None = None,
) -> EncodedFile:
    """Encode one of the scenes of :func:`files_of`; warnings of the whole scene are not repeated.

    Parameters
    ----------
    options:
        Values of the format's ``export_options``. Those given apply to all objects. The others have the value with
        which the scene's objects were imported, if it is known.
    path:
        Path of the file, from which the names of a set of files are derived; default: the scene's name.
    projects:
        The open projects; by default, the projects that the file needs are opened.

    Raises
    ------
    ExportError
        A rule of the target program is broken. If imported models are written unchanged (``Scene.as_imported``), this
        is a warning.
    """
    from .disk.file_names import file_name  # slow to import

    with _quiet_numpy():
        findings = target.check_scene(scene)
        broken = errors_of(findings)
        document = None
        try:
            document, checked = check_part(scene, target, options, path=path, projects=projects)
            findings += checked
        except Exception:
            if scene.as_imported or not broken:
                raise  # an error in the scene is reported by itself, since this exception may be its effect
        broken = broken or errors_of(findings)  # errors of the scene can cause further errors in the document
        if broken and not scene.as_imported:
            raise _refusal(broken, [*findings, *distinct(scene.warnings)])
        name = scene_name(Path(path)) if path is not None else file_name(scene.name)
        outputs = target.write_files(document, name)
        report = Report([*scene.warnings, *warnings_of(findings), *errors_of(findings)])
        for output in outputs:
            if output.note:
                report.note("use-of-file", output.note)
        return EncodedFile(scene, outputs, distinct(report.messages))


def check_part(
    scene: Scene,
    target: Format,
    options: GivenOptions = None,
    *,
    path: str | Path | None = None,
    projects: Projects | None = None,
) -> tuple[Any, list[Message]]:
    """Return the document of one scene of :func:`split`, and the findings about it; see :func:`encode_part`."""
    with _quiet_numpy():
        chosen = with_import_choices(scene, target.export_options.of(options))
        place = Path(path) if path is not None else None
        document = target.from_scene(scene, chosen, place, projects)
        checked = target.check(document, chosen, place)
        names = scene.file_materials.get(target.name, ())
        own = registry.by_name(scene.format).rewritten_as if scene.format else ""
        is_same_format = target.name in {scene.format, own}
        return document, with_allowed(checked, chosen, is_same_format=is_same_format, file_names=names)


def _refusal(broken: Iterable[Message], findings: Sequence[Message]) -> ExportError:
    """Return the error for broken rules of the target program: its text has the first, and it holds all findings."""
    texts = list(dict.fromkeys(broken))
    rest = len(texts) - MOST_ERRORS
    text = joined(texts[:MOST_ERRORS], "; ")
    if rest > 0:
        text = Text("{}; and {} more", text, rest)
    return ExportError("{}", text, findings=findings)


def write_scene(scene: Scene, path: str | Path, target: Format, options: GivenOptions = None) -> list[Message]:
    """Encode a scene that is one file and replace ``path`` completely or not at all; return the texts for the user."""
    return [message for message in write_files(scene, path, target, options)[1] if not message.is_note]


def write_files(
    scene: Scene, path: str | Path, target: Format, options: GivenOptions = None, *, strict: bool = False
) -> tuple[tuple[Path, ...], list[Message]]:
    """Encode a scene that is one file, or one set, and replace its files; return these and the messages.

    Parameters
    ----------
    strict:
        Whether losses prevent that anything is written.

    Raises
    ------
    ExportError
        The scene would become several files, breaks a rule of the format, or cannot be written.
    """
    from .disk.file_sets import companions_of, write_outputs  # slow to import, and readers do not need it

    files = split(scene, target, options)
    if len(files.parts) > 1:
        names = listed([part.name for part in files.parts])
        way = "; mesh_files='joined' makes one of them" if MESH_FILES in target.export_options.table() else ""
        raise ExportError("'{}' would become {} files: {}{}", scene.name, len(files.parts), names, way)
    encoded = encode_part(files.parts[0], target, options, path=path)
    messages = distinct([*files.messages, *encoded.messages])
    require_lossless(messages, strict=strict)
    more = write_outputs(path, encoded.outputs)
    beside = [place for place, _ in companions_of(Path(path), encoded.outputs)]
    return (*beside, Path(path)), distinct([*messages, *more])


def require_lossless(messages: Sequence[Message], *, strict: bool = True, file: str | Path = "") -> None:
    """Raise an error if some messages are losses and the caller is strict."""
    lost = [message for message in messages if message.is_loss]
    if strict and lost:
        more = Text(" (and {:,} more)", len(lost) - 1) if len(lost) > 1 else ""
        raise ExportError("Refused in strict mode: {}{}", lost[0], more, file=file)


def findings_of(
    loaded: LoadedFile, options: Mapping[str, Any], missing: Iterable[Message], projects: Projects
) -> list[Message]:
    """Return the findings about a file by the rules of the program that will load it.

    Parameters
    ----------
    options:
        Values of the format's options for reading and for writing.
    missing:
        Messages of ``Format.missing`` and about unreadable files of the set.
    """
    target = loaded.format
    findings = target.check(loaded.document, target.export_options.among(options), loaded.path)
    findings += target.check_links(loaded.document, loaded.path, projects, target.import_options.among(options))
    return findings + [replace(message, kind=Kind.WARNING) for message in distinct(missing) if not message.is_note]


def leave_out_textures(scene: Scene, reach: Reach) -> None:
    """Remove textures that a scene would bring in from beyond reach, and those that are not pictures."""
    from .disk.reach import is_picture, report_no_pictures  # as above

    outside: list[str] = []
    no_pictures: list[str] = []
    for material in scene.materials:
        texture = material.texture
        if texture is None or not texture.path or texture.data is not None or texture.read is not None:
            continue
        if reach.brings_in(texture.path, above=True):
            outside.append(texture.path)
        elif os.path.isfile(texture.path) and not is_picture(texture.path):
            no_pictures.append(texture.path)
        else:
            continue
        material.texture = None
    reach.report_outside(outside, scene.report)
    report_no_pictures(no_pictures, scene.report)
