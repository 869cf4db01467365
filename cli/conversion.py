"""One conversion after the other: files to files, files to .blend, .blend to files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..blender_data.export_options import EXPORT_OPTIONS
from ..blender_data.import_options import IMPORT_OPTIONS
from ..io_formats import files, formats
from ..io_formats.capabilities import losses
from ..io_formats.errors import ExportError, MeshferryError, UnsupportedFormatError
from ..io_formats.formats import Format
from ..io_formats.options import resolve
from ..io_formats.scene import Clip, Role, Scene
from .blend_files import COMPRESS, BlendPart, BlendSession
from .convert_plan import Job
from .inputs import file_key, is_blend


@dataclass(frozen=True)
class Settings:
    """What the user chose, by table; options left out are missing."""

    import_options: dict[str, Any] = field(default_factory=dict)
    export_options: Mapping[str, Any] = field(default_factory=dict)
    blend_options: Mapping[str, Any] = field(default_factory=dict)
    format_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name of the format to write."""
    collections: tuple[str, ...] = ()
    strict: bool = False


@dataclass
class Outcome:
    """What became of one file, or of one collection of a .blend file."""

    source: Path
    target: Path
    collection: str = ""
    facts: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    problem: Exception | None = None


class Conversion:
    """The jobs of one run: a bad file is an outcome with a problem, and the next one follows."""

    def __init__(self, settings: Settings, session: BlendSession, taken: frozenset[str]) -> None:
        self._settings = settings
        self._session = session
        self._taken = set(taken)

    def run(self, job: Job) -> Iterator[Outcome]:
        """Do one job; yield an outcome for each file read or written."""
        if is_blend(job.target):
            yield from self._into_blend(job)
        elif is_blend(job.sources[0]):
            yield from self._out_of_blend(job)
        else:
            yield self._between_files(job)

    def _between_files(self, job: Job) -> Outcome:
        outcome = Outcome(job.sources[0], job.target)

        def convert() -> None:
            scene = files.read_scene(outcome.source)
            outcome.facts = scene_facts(scene)
            self._write(scene, outcome, job)

        return _attempt(outcome, convert)

    def _into_blend(self, job: Job) -> list[Outcome]:
        """Make every source a collection of one file, which is saved without those that failed."""
        outcomes = [Outcome(source, job.target) for source in job.sources]
        options: dict[str, Any] = {}

        def start() -> None:
            self._session.start_empty()
            options.update(resolve(IMPORT_OPTIONS, self._session.import_defaults() | self._settings.import_options))

        started = _attempt(Outcome(job.sources[0], job.target), start)
        if started.problem is not None:
            return [_failed(outcome, started.problem) for outcome in outcomes]
        for outcome in outcomes:
            _attempt(outcome, lambda outcome=outcome: self._import(outcome, options))  # type: ignore[misc]
        good = [outcome for outcome in outcomes if outcome.problem is None]
        if not good:
            return outcomes
        if self._settings.strict and len(good) < len(outcomes):
            refusal = ExportError("Not written, since another file failed and the conversion is strict")
            for outcome in good:
                _failed(outcome, refusal)
            return outcomes

        def save() -> None:
            _make_folder(job)
            compress = resolve((COMPRESS,), self._settings.blend_options)[COMPRESS.name]
            self._session.save(job.target, compress=compress)

        saved = _attempt(Outcome(job.sources[0], job.target), save)
        if saved.problem is not None:
            for outcome in good:
                _failed(outcome, saved.problem)
        return outcomes

    def _import(self, outcome: Outcome, options: Mapping[str, Any]) -> None:
        scene = files.read_scene(outcome.source)
        facts = scene_facts(scene)
        result = self._session.import_scene(scene, options, outcome.source)
        outcome.collection = result.collection.name
        outcome.facts = facts | {"nodes": len(result.objects), "triangles": result.triangles}
        self._tell(outcome, result.warnings, result.warnings)

    def _out_of_blend(self, job: Job) -> Iterator[Outcome]:
        source = job.sources[0]
        opened = Outcome(source, job.target)
        parts: list[BlendPart] = []

        def open_file() -> None:
            self._session.open(source)
            parts.extend(self._session.parts(self._settings.collections, several=job.in_folder))
            if len(parts) > 1 and not job.in_folder:
                raise ExportError(
                    f"{len(parts)} collections cannot become one file; "
                    "say --to EXTENSION -o FOLDER to write one for each"
                )

        if _attempt(opened, open_file).problem is not None:
            yield opened
            return
        for part in parts:
            target = job.target
            if len(parts) > 1:
                target = target.with_name(file_name(part.name) + target.suffix)
            outcome = Outcome(source, target, collection=part.name)
            yield _attempt(outcome, lambda outcome=outcome, part=part: self._export(outcome, part, job))  # type: ignore[misc]

    def _export(self, outcome: Outcome, part: BlendPart, job: Job) -> None:
        if outcome.target != job.target:
            if file_key(outcome.target) in self._taken - {file_key(job.target)}:
                raise ExportError(f"{outcome.target} belongs to another input; rename the collection '{part.name}'")
            self._taken.add(file_key(outcome.target))
        target = target_format(outcome.target)
        name = part.name or files.scene_name(outcome.target)
        options = resolve(EXPORT_OPTIONS, self._settings.export_options)
        scene = self._session.export_scene(part, options, name, target.capabilities)
        outcome.facts = scene_facts(scene)
        self._write(scene, outcome, job)

    def _write(self, scene: Scene, outcome: Outcome, job: Job) -> None:
        target = target_format(outcome.target)
        options = resolve(target.export_options, self._settings.format_options.get(target.name))
        lost = losses(scene, target.capabilities)
        data, said = files.encode_scene(scene, target, options)
        self._tell(outcome, said, [*lost, *scene.warnings])
        _make_folder(job)
        files.replace_file(outcome.target, data)

    def _tell(self, outcome: Outcome, said: Sequence[str], lost: Sequence[str]) -> None:
        """Keep the warnings, each once; those of a loss are the end of a strict conversion.

        What the target program makes of a file is no loss: ``check`` is there for that.
        """
        outcome.warnings = list(dict.fromkeys(said))
        if self._settings.strict and lost:
            more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
            raise ExportError(f"Not written, since the conversion is strict: {lost[0]}{more}")


def target_format(path: Path) -> Format:
    """Return the format that a file name asks for."""
    found = formats.by_extension(path.suffix)
    if found is None:
        raise UnsupportedFormatError(f"Nothing here writes '{path.suffix}' files")
    return found


def _attempt(outcome: Outcome, work: Callable[[], None]) -> Outcome:
    try:
        work()
    except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest; the reporter tells defects apart)
        _failed(outcome, problem)
    return outcome


def _failed(outcome: Outcome, problem: Exception) -> Outcome:
    outcome.problem = problem
    return outcome


def _make_folder(job: Job) -> None:
    if job.in_folder:
        try:
            job.target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ExportError(
                f"{job.target.parent}: the folder cannot be made: {problem.strerror or problem}"
            ) from None


def file_name(collection: str) -> str:
    """Return a collection's name as a name that every system takes for a file."""
    return re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", collection).rstrip(" .") or "_"


def scene_facts(scene: Scene) -> dict[str, Any]:
    """Return the facts of a scene, under the names that ``inspect`` uses."""
    meshes = [node.mesh for node in scene.nodes if node.mesh is not None]
    finest = [node.mesh for node in scene.nodes if node.mesh and node.lod == 0 and node.role is Role.RENDER]
    return {
        "nodes": len(scene.nodes),
        "vertices": sum(len(mesh.points) for mesh in finest),
        "triangles": sum(mesh.triangle_count for mesh in finest),
        "surfaces": sum(len(mesh.materials) for mesh in finest),
        "materials": len({name for mesh in meshes for name in mesh.materials if name}),
        "uv_layers": max((len(mesh.uvs) for mesh in meshes), default=0),
        "color_layers": max((len(mesh.colors) for mesh in meshes), default=0),
        "bones": sum(len(skeleton.joints) for skeleton in scene.skeletons),
        "shape_keys": sum(len(mesh.shape_keys) for mesh in meshes),
        "clips": [
            {"name": clip.name, "kind": _kind(clip), "frames": clip.frame_count, "fps": clip.fps}
            for clip in scene.clips
        ],
    }


def _kind(clip: Clip) -> str:
    kinds = []
    if any(track.skeleton is None for track in clip.transforms):
        kinds.append("node")
    if any(track.skeleton is not None for track in clip.transforms):
        kinds.append("bone")
    if clip.vertices:
        kinds.append("vertex")
    return " and ".join(kinds) or "empty"


__all__ = ["Conversion", "MeshferryError", "Outcome", "Settings", "file_name", "scene_facts", "target_format"]
