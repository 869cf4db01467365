"""One conversion after the other: files to files, files to .blend, .blend to files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..blender_data.exporting.export_options import EXPORT_OPTIONS
from ..blender_data.importing.import_options import IMPORT_OPTIONS
from ..io_formats import files
from ..io_formats.clip_adoption import adopt_clips
from ..io_formats.errors import ExportError
from ..io_formats.formats import Format
from ..io_formats.garbage import without_collection
from ..io_formats.options import resolve
from ..io_formats.scene import Scene
from . import inputs
from .blend_files import COMPRESS, BlendPart, BlendSession
from .blender_formats import BlenderFormat
from .convert_plan import Job
from .file_naming import FileNames
from .inputs import is_blend
from .outcomes import Outcome, Settings
from .scene_facts import scene_facts
from .scene_writing import SceneWriter, make_folder

_ANOTHER_FAILED = "Not written, since another file failed and the conversion is strict"


class Conversion:
    """The jobs of one run: a bad file is an outcome with a problem, and the next one follows."""

    def __init__(self, settings: Settings, session: BlendSession, names: FileNames, *, several: bool) -> None:
        self._settings = settings
        self._session = session
        self._names = names
        self._writer = SceneWriter(settings, names)
        self._several = several
        """Whether there are several scenes to come: a name of an animation may concern one of them alone."""

    def run(self, job: Job) -> Iterator[Outcome]:
        """Do one job; yield an outcome for each file read or written."""
        if isinstance(job.format, BlenderFormat):
            yield from self._into_blend(job)
        elif is_blend(job.sources[0]):
            yield from self._out_of_blend(job, job.format)
        else:
            yield from self._between_files(job, job.format)

    def _between_files(self, job: Job, target: Format) -> Iterator[Outcome]:
        """Read a file, put the animations of the others into it and write what becomes of it."""
        outcome = Outcome(job.sources[0], job.target)
        scenes: list[Scene] = []
        if not outcome.attempt(lambda: scenes.append(self._read(outcome, job.content))):
            yield outcome
            return
        (scene,) = scenes
        added = [Outcome(source, job.target) for source in job.sources[1:]]
        for other in added:
            other.attempt(lambda other=other: self._adopt(scene, other))  # type: ignore[misc]
        yield from added
        if self._settings.strict and any(other.problem is not None for other in added):
            outcome.problem = ExportError(_ANOTHER_FAILED)
        if outcome.attempt(self._require_clips):
            yield from self._writer.write(scene, outcome, job, target)
        else:
            yield outcome

    def _read(self, outcome: Outcome, content: bytes | None = None) -> Scene:
        scene = files.read_scene(outcome.source, self._settings.read_options, data=content)
        self._settings.clips.apply(scene)
        outcome.facts = scene_facts(scene)
        return scene

    def _adopt(self, scene: Scene, other: Outcome) -> None:
        """Put the animations of another file into a scene."""
        read = self._read(other)
        said = [*read.warnings, *adopt_clips(scene, read)]
        other.tell(said, said, strict=self._settings.strict)

    def _into_blend(self, job: Job) -> list[Outcome]:
        """Make every source a collection of one file, which is saved without those that failed."""
        outcomes = [Outcome(source, job.target) for source in job.sources]
        options: dict[str, Any] = {}

        def start() -> None:
            self._session.start_empty()
            options.update(resolve(IMPORT_OPTIONS, self._session.import_defaults() | self._settings.import_options))

        started = Outcome(job.sources[0], job.target)
        if not started.attempt(start):
            return _all_failed(outcomes, started.problem)
        armatures: list[Any] = []
        for outcome in sorted(outcomes, key=lambda outcome: not inputs.may_hold_meshes(outcome.source)):
            content = job.content if outcome is outcomes[0] else None
            outcome.attempt(  # type: ignore[misc]
                lambda outcome=outcome, content=content: self._import(outcome, content, options, armatures)
            )
        good = [outcome for outcome in outcomes if outcome.problem is None]
        if not good:
            return outcomes
        if self._settings.strict and len(good) < len(outcomes):
            _all_failed(good, ExportError(_ANOTHER_FAILED))
            return outcomes

        def save() -> None:
            self._require_clips()
            make_folder(job)
            compress = resolve((COMPRESS,), self._settings.blend_options)[COMPRESS.name]
            self._session.save(job.target, compress=compress)

        saved = Outcome(job.sources[0], job.target)
        if not saved.attempt(save):
            _all_failed(good, saved.problem)
        return outcomes

    def _import(
        self, outcome: Outcome, content: bytes | None, options: Mapping[str, Any], armatures: list[Any]
    ) -> None:
        with without_collection():
            scene = self._read(outcome, content)
            facts = scene_facts(scene)
            result = self._session.import_scene(scene, options, outcome.source, armatures)
        outcome.collection = result.collection.name
        made = [thing for thing in result.objects if thing.type != "ARMATURE"]
        finest = [
            thing for thing in made if thing.data and not thing.meshferry.lod and thing.meshferry.role == "RENDER"
        ]
        triangles = sum(len(thing.data.polygons) for thing in finest)
        outcome.facts = facts | {"nodes": len(made), "triangles": triangles}
        outcome.tell(result.warnings, result.warnings, strict=self._settings.strict)

    def _out_of_blend(self, job: Job, target: Format) -> Iterator[Outcome]:
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

        if not opened.attempt(open_file):
            yield opened
            return
        self._several |= len(parts) > 1
        for part in parts:
            path = job.target
            if len(parts) > 1:
                path = self._names.of_part(path, files.file_name(part.name))
            yield from self._part(part, Outcome(source, path, collection=part.name), job, target)

    def _part(self, part: BlendPart, outcome: Outcome, job: Job, target: Format) -> Iterator[Outcome]:
        """Write what a part of the open .blend file becomes."""
        scenes: list[Scene] = []

        def export() -> None:
            name = part.name or files.scene_name(job.target)
            options = resolve(EXPORT_OPTIONS, self._settings.export_options)
            scenes.append(self._session.export_scene(part, options, name, target.capabilities))
            self._settings.clips.apply(scenes[0], filtered=True)
            self._require_clips()

        if outcome.attempt(export):
            yield from self._writer.write(scenes[0], outcome, job, target)
        else:
            yield outcome

    def _require_clips(self) -> None:
        """Refuse a new name for an animation that is not there, where no later job can have it."""
        if not self._several:
            self._settings.clips.require_all()


def _is_finest(made: Any) -> bool:
    """Tell whether an object is neither a coarser level of detail nor a physics shape."""
    return bool(made.meshferry.lod == 0 and made.meshferry.role == "RENDER")


def _all_failed(outcomes: list[Outcome], problem: Exception | None) -> list[Outcome]:
    for outcome in outcomes:
        outcome.problem = problem
    return outcomes
