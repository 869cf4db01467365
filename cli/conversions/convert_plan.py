"""Plan the inputs and outputs of a conversion; reject invalid ones before anything is written."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...io_formats import api, registry
from ...io_formats.core.errors import FormatError, MeshferryError, refusal
from ...io_formats.core.messages import Message, distinct
from ...io_formats.core.options import FILES_AS_LEVELS
from ...io_formats.disk.atomic_write import DEVICE_NAME
from ...io_formats.disk.file_names import PathTable, is_device
from ...io_formats.partner_files import FileSet, file_sets
from .. import inputs
from ..inputs import Warn
from ..output import shortened
from . import blender_formats
from .blender_formats import BLEND_FILE, AnyFormat, all_formats
from .settings import Settings


@dataclass(frozen=True)
class ConversionJob:
    """The source files of one conversion, and its target file."""

    sources: tuple[Path, ...]
    """Source files. Several become collections of one .blend file, or animations inside the first one."""
    target: Path
    format: AnyFormat
    """The target format."""
    folder: Path | None
    """The output folder, if the user gave one. It is created if necessary, and a source may become several files in it.
    Links in it that lead out of it are refused."""
    is_named: bool = False
    """Whether the user named the format. Otherwise the extension decides; if several families of formats have it, a
    source is written in the format of its own family."""
    content: bytes | None = None
    """The content of the first source if it was read already, for example from an archive."""
    is_flushed: bool = True
    """Whether each file is flushed to disk; see ``atomic_write.replace_file``."""
    asset_catalog: str = ""
    """UUID of the catalog of assets in the .blend file; empty for none."""
    asset_picture: Path | None = None
    """Image file for previews of assets, if there is one."""
    sets: Mapping[Path, FileSet] = field(default_factory=dict)
    """The sets of the sources that have partners, by source."""

    @property
    def uses_importer(self) -> bool:
        """Whether Blender's own importers read any of the sources, other than .blend files.

        They also read the source files of missing models that files with placements refer to.
        """
        extensions = set(map(registry.extension_of, self.sources))
        imported = (known for known in all_formats() if known.capabilities.placement or known.needs_blender)
        return any(not extensions.isdisjoint(known.extensions) for known in imported if known is not BLEND_FILE)

    def file_set(self, source: Path) -> FileSet:
        """Return a source with its partners."""
        return self.sets.get(source) or FileSet(source)


ANOTHER_FAILED = "Not written, since another file failed and the conversion is strict"


@dataclass
class Outcome:
    """The outcome for one file, or for one collection of a .blend file."""

    source: Path
    target: Path
    collection: str = ""
    facts: dict[str, Any] | None = None
    warnings: list[Message] = field(default_factory=list)
    problem: Exception | None = None
    files: list[Path] = field(default_factory=list)
    """All files of a set, the target last; empty for formats whose documents are a single file."""

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Record an exception in the ``with`` block as the problem, and continue after the block."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest; the reporter tells defects apart)
            self.problem = problem

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages without duplicates."""
        self.warnings = distinct([*self.warnings, *messages])

    def report(self, messages: Iterable[Message], *, strict: bool) -> None:
        """Add messages without duplicates. In a strict conversion, raise an error if some are losses."""
        new = distinct(messages)
        self.add(new)
        api.require_lossless(new, strict=strict)


@dataclass(frozen=True)
class ConversionPlan:
    """All jobs of a run, and the files that it reads or writes."""

    jobs: tuple[ConversionJob, ...]
    taken: PathTable[Path | ConversionJob]
    """Every file that is read (with its path) or written (with its job)."""
    problems: tuple[FormatError, ...]
    """Errors for input paths that match no file."""

    @property
    def source_count(self) -> int:
        """Number of input files and of input paths that match no file."""
        return sum(len(job.sources) for job in self.jobs) + len(self.problems)


def plan_conversions(
    paths: Sequence[str], extension: str | None, folder: str | None, settings: Settings, *, warn: Warn | None = None
) -> ConversionPlan:
    """Assign the input files to conversion jobs.

    Parameters
    ----------
    paths:
        The input files, followed by the output file if ``folder`` is not given.
    extension, folder:
        Values of ``--to`` and ``-o``: format of the output files, and their folder.
    settings:
        Its reading options decide which files belong together. Its material library is not overwritten.
    warn:
        As for :func:`..inputs.expand`.

    Raises
    ------
    MeshferryError
        The arguments are inconsistent, or a file would be overwritten that is still needed.
    """
    if extension is not None:
        refuse_changes(extension)
        if folder is None:
            raise MeshferryError("--to needs -o FOLDER, the folder to write into")
        refuse_levels(settings.read_options)
        written, target = known_kind(extension)
        output, sources = output_folder(folder), paths
    elif folder is not None:
        raise MeshferryError("-o needs --to EXTENSION, the kind of file to write")
    else:
        written, target = _target_file(paths)
        output, sources = None, paths[:-1]
    found = inputs.expand(sources, searched(target, written), leave_out=output, warn=warn, skips_empty=True)
    sets = {one.path: one for one in file_sets((file.path for file in found.files), settings.read_options)}
    for path in sets:
        refuse_same_kind(path, written)
    files = [file for file in found.files if file.path in sets]  # partner files are read with their main file
    if extension is None or output is None:
        together = [file.path for file in files]
        if len(together) > 1 and not target.needs_blender:
            together = _embedded(together, written, target, embeds=settings.embeds_animations)
        jobs = [ConversionJob(tuple(together), Path(paths[-1]), target, None)] if together else []
    else:
        wanted = [(file.path, output / renamed(file.relative, written)) for file in files]
        jobs = list(_folder_jobs(wanted, target, output, is_named=is_format_name(extension)))
    jobs = [replace(job, sets={path: sets[path] for path in job.sources}) for job in jobs]
    also_read = [path for one in sets.values() for path in (*one.partners.values(), *one.levels[1:])]
    also_read += [Path(settings.material_library)] if settings.material_library else []
    return ConversionPlan(tuple(jobs), _taken(jobs, also_read), found.problems)


def refuse_levels(read_options: Mapping[str, Any]) -> None:
    """Raise an error if the files of a run that writes a file for each would be levels of one model."""
    if read_options.get(FILES_AS_LEVELS.name):
        raise MeshferryError("--files-as-levels makes one file of several; name the file to write")


def refuse_changes(extension: str) -> None:
    """Raise an error if files of a format are only written back over the file that a scene was imported from."""
    name, kind = known_kind(extension)
    if name not in kind.written_extensions:
        raise MeshferryError(
            "Changes go back into the {} that a scene was imported from: name that file instead of --to {}",
            kind.label,
            extension,
        )


def output_folder(text: str) -> Path:
    """Return the folder of ``-o``, which need not exist.

    Raises
    ------
    MeshferryError
        There cannot be a folder of this name.
    """
    if not text:
        raise MeshferryError("The folder after -o is empty; name the folder to write into")
    try:
        is_folder = stat.S_ISDIR(os.stat(os.path.abspath(text)).st_mode)
    except FileNotFoundError:
        return Path(text)
    except (OSError, ValueError) as problem:
        raise MeshferryError("{}: the folder cannot be used: {}", shortened(text), refusal(problem)) from None
    if not is_folder:
        raise MeshferryError("{} is a file, not a folder", text)
    return Path(text)


def is_format_name(text: str) -> bool:
    """Return whether a text is the name of a format, not an extension."""
    return any(known.name == text.lower() and known.is_written for known in registry.FORMATS)


def known_kind(text: str) -> tuple[str, AnyFormat]:
    """Return a writable extension, with its dot, and its format.

    The name of a format means its own extension, even if formats share an extension.
    """
    for known in registry.FORMATS:
        if known.name == text.lower() and known.is_written:
            return known.extensions[0], known
    extension = "." + text.lower().lstrip(".")
    found = (
        registry.by_extension(extension)
        or blender_formats.by_extension(extension)
        or registry.patched_by_extension(extension)
    )
    if found is None:
        raise MeshferryError("Nothing here writes '{}' files; known are {}", extension, ", ".join(_writable()))
    return extension, found


def _writable() -> tuple[str, ...]:
    named = dict.fromkeys(extension for known in registry.FORMATS for extension in known.extensions)
    ours = (extension for extension in named if registry.by_extension(extension) is not None)
    return (*ours, *blender_formats.extensions())


def _folder_jobs(
    wanted: Iterable[tuple[Path, Path]], target: AnyFormat, folder: Path, *, is_named: bool
) -> Iterator[ConversionJob]:
    """Yield the jobs for sources and their target files.

    For Blender's formats, a mesh and the animations of the same name are one job; several meshes are separate jobs.
    """
    together: PathTable[list[tuple[Path, Path]]] = PathTable()
    groups: list[list[tuple[Path, Path]]] = []
    for pair in wanted:
        group = together.find(pair[1]) if target.needs_blender else None
        if group is None:
            groups.append(group := [])
            together.add(pair[1], group)
        group.append(pair)
    for group in groups:
        sources = sorted((source for source, _ in group), key=inputs.is_animation)
        joint = [(tuple(sources), group[0][1])]
        separate = [((source,), path) for source, path in group]
        for chosen, path in joint if sum(not inputs.is_animation(source) for source in sources) <= 1 else separate:
            yield ConversionJob(chosen, path, target, folder, is_named=is_named)


def searched(target: AnyFormat, extension: str = "") -> tuple[str, ...]:
    """Return the extensions of files that a folder search includes: all that can be converted to the target.

    These are meshes for mesh formats and animations for animation formats, including Blender's formats, without files
    that already have the target ``extension``.
    """
    if target.needs_blender:
        ours = inputs.known_extensions()
    else:
        alike = [
            known
            for known in registry.FORMATS
            if known.is_read
            and known.capabilities.meshes == target.capabilities.meshes
            and not known.capabilities.placement
        ]
        ours = tuple(dict.fromkeys(extension for known in alike for extension in known.extensions))
    left_out = extension or (target.extensions[0] if target.needs_blender else "")
    return (*ours, *(other for other in blender_formats.extensions() if other != left_out))


def renamed(relative: Path, extension: str) -> Path:
    """Return the path of a file after its conversion to an extension."""
    stem = relative.stem if blender_formats.by_path(relative) else api.scene_name(relative)
    return relative.with_name(stem + extension)


def _target_file(paths: Sequence[str]) -> tuple[str, AnyFormat]:
    """Return extension and format of the last path, which is the file to write."""
    if len(paths) < 2:
        raise MeshferryError(
            "No output given for {}: name the file to write, or use --to EXTENSION -o FOLDER", paths[0]
        )
    if not paths[-1]:
        raise MeshferryError("The last path is empty; name the file to write")
    target = Path(paths[-1])
    if os.path.isdir(target):
        raise MeshferryError("{} is a folder; use --to EXTENSION -o {} to convert into it", target, target)
    written = registry.extension_of(target)
    if not written:
        raise MeshferryError("{} has no known extension; known are {}", target, ", ".join(_writable()))
    found = known_kind(written)
    if is_device(target):
        raise MeshferryError("{}: {}; nothing was written", target, DEVICE_NAME)
    if not os.path.isdir(target.parent):
        raise MeshferryError("{}: the folder does not exist: {}; nothing was written", target, target.parent)
    return found


def _embedded(sources: Sequence[Path], extension: str, target: AnyFormat, *, embeds: bool) -> list[Path]:
    """Return the files that are combined in one, the mesh first, followed by the animations to embed."""
    refusal = f"{len(sources)} files cannot become one {extension} file; use --to {extension.lstrip('.')} -o FOLDER"
    meshes = [source for source in sources if not inputs.is_animation(source)]
    holds = target.capabilities.meshes and target.capabilities.joint_clips
    if not holds or len(meshes) != 1 or inputs.is_blend(meshes[0]):
        raise MeshferryError(refusal)
    if not embeds:
        raise MeshferryError("{}, or --embedded-animation to write the animations into {}", refusal, meshes[0])
    return meshes + [source for source in sources if inputs.is_animation(source)]


def refuse_same_kind(path: Path, extension: str) -> None:
    """Raise an error for a file of Blender's formats that already has the extension to write."""
    if blender_formats.by_path(path) and path.suffix.lower() == extension:
        raise MeshferryError("{} is a {} file already", path, extension)


def _taken(jobs: Sequence[ConversionJob], also_read: Sequence[Path]) -> PathTable[Path | ConversionJob]:
    """Return a table of all files of a run: a file that is read maps to its path, a file that is written to its job.

    Raises
    ------
    MeshferryError
        A file would be both read and written, or written twice.
    """
    taken: PathTable[Path | ConversionJob] = PathTable()
    for source in (*(source for job in jobs for source in job.sources), *also_read):
        taken.add(source, source)
    for job in jobs:
        other = taken.find(job.target)
        if isinstance(other, Path):
            victim = "itself" if other in job.sources else f"the input {other}"
            raise MeshferryError("{} would overwrite {}; nothing was written", job.sources[0], victim)
        if other is not None:
            both = f"{other.sources[0]} and {job.sources[0]}"
            raise MeshferryError("{} would both become {}; nothing was written", both, job.target)
        taken.add(job.target, job)
    return taken
