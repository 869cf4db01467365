"""What a conversion will read and write, decided and refused before anything is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..io_formats import files, formats
from ..io_formats.errors import MeshferryError
from . import inputs
from .inputs import BLEND, InputFile


@dataclass(frozen=True)
class Job:
    """Files to read, and the file that they become."""

    sources: tuple[Path, ...]
    """Several only where they become collections of one .blend file."""
    target: Path
    in_folder: bool
    """A folder was named, not a file: it is made when needed, and a .blend file may become several files in it."""


@dataclass(frozen=True)
class Plan:
    """All jobs of a run, and the files that nothing else may write to."""

    jobs: tuple[Job, ...]
    taken: frozenset[str]
    """:func:`inputs.file_key` of every file that is read or written."""

    @property
    def source_count(self) -> int:
        return sum(len(job.sources) for job in self.jobs)


def make_plan(paths: Sequence[str], extension: str | None, folder: str | None, also_read: Sequence[Path] = ()) -> Plan:
    """Decide what becomes what.

    Parameters
    ----------
    paths:
        The files to read and, where no folder is given, the file to write as the last.
    extension, folder:
        ``--to`` and ``-o``: the kind of file to write for each file read, and where.
    also_read:
        Other files that the conversion needs, such as a material library.

    Raises
    ------
    MeshferryError
        The arguments make no sense together, or a file would be overwritten that is still needed.
    """
    if extension is not None and folder is not None:
        jobs = _folder_jobs(paths, _known_extension(extension), Path(folder))
    elif extension is None and folder is None:
        jobs = [_file_job(paths)]
    elif folder is None:
        raise MeshferryError("--to says what kind of file to write; say with -o FOLDER where")
    else:
        raise MeshferryError("-o says where to write; say with --to EXTENSION what kind of file")
    return Plan(tuple(jobs), _taken(jobs, also_read))


def _known_extension(text: str) -> str:
    """Return an extension that can be written, with its dot; the name of a format stands for its own."""
    extension = "." + text.lower().lstrip(".")
    if extension == BLEND or formats.by_extension(extension) is not None:
        return extension
    for known in formats.FORMATS:
        if known.name == text.lower():
            return known.extensions[0]
    raise MeshferryError(f"Nothing here writes '{extension}' files; known are {', '.join(_writable())}")


def _writable() -> tuple[str, ...]:
    return (*inputs.known_extensions(), BLEND)


def _folder_jobs(paths: Sequence[str], extension: str, folder: Path) -> list[Job]:
    wanted = inputs.known_extensions() if extension == BLEND else _writable()
    if folder.exists() and not folder.is_dir():
        raise MeshferryError(f"{folder} is a file, not a folder")
    found = inputs.expand(paths, wanted, leave_out=folder)
    _refuse_blend_to_blend(found, extension)
    return [Job((file.path,), folder / _renamed(file.relative, extension), in_folder=True) for file in found]


def _renamed(relative: Path, extension: str) -> Path:
    stem = relative.stem if inputs.is_blend(relative) else files.scene_name(relative)
    return relative.with_name(stem + extension)


def _file_job(paths: Sequence[str]) -> Job:
    if len(paths) < 2:
        raise MeshferryError(f"{paths[0]} shall become what? Name the file to write, or say --to EXTENSION -o FOLDER")
    target = Path(paths[-1])
    if target.is_dir():
        raise MeshferryError(f"{target} is a folder; say --to EXTENSION -o {target} to convert into it")
    extension = _known_extension(target.suffix) if target.suffix else None
    if extension is None:
        raise MeshferryError(f"{target} has no extension that says what to write; known are {', '.join(_writable())}")
    found = inputs.expand(paths[:-1], inputs.known_extensions() if extension == BLEND else _writable())
    _refuse_blend_to_blend(found, extension)
    if len(found) > 1 and extension != BLEND:
        raise MeshferryError(
            f"{len(found)} files cannot become one {extension} file; say --to {extension.lstrip('.')} -o FOLDER"
        )
    return Job(tuple(file.path for file in found), target, in_folder=False)


def _refuse_blend_to_blend(found: Sequence[InputFile], extension: str) -> None:
    if extension == BLEND:
        for file in found:
            if inputs.is_blend(file.path):
                raise MeshferryError(f"{file.path} is a .blend file already")


def _taken(jobs: Sequence[Job], also_read: Sequence[Path]) -> frozenset[str]:
    sources = [source for job in jobs for source in job.sources]
    read = {inputs.file_key(source): source for source in [*sources, *also_read]}
    written: dict[str, Job] = {}
    for job in jobs:
        key = inputs.file_key(job.target)
        if key in read:
            victim = "itself" if read[key] in job.sources else f"the input {read[key]}"
            raise MeshferryError(f"{job.sources[0]} would overwrite {victim}; nothing was written")
        if key in written:
            both = f"{written[key].sources[0]} and {job.sources[0]}"
            raise MeshferryError(f"{both} would both become {job.target}; nothing was written")
        written[key] = job
    return frozenset(read) | frozenset(written)
