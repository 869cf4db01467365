"""A scene -> the file or the files that it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..io_formats import files
from ..io_formats.capabilities import losses
from ..io_formats.errors import ExportError
from ..io_formats.flattening import flatten
from ..io_formats.formats import Format
from ..io_formats.options import resolve
from ..io_formats.scene import Scene
from .convert_plan import Job
from .inputs import file_key, is_blend
from .outcomes import Outcome, Settings
from .scene_facts import scene_facts

EMBEDDED = "use_embedded_animation"
"""Option of formats whose meshes may have animations inside."""


class SceneWriter:
    """Writes the scenes of one run, so that no file is written twice."""

    def __init__(self, settings: Settings, taken: frozenset[str]) -> None:
        self._settings = settings
        self._taken = set(taken)

    def write(self, scene: Scene, outcome: Outcome, job: Job, target: Format) -> Iterator[Outcome]:
        """Write the file or the files that a scene becomes; yield an outcome for each."""
        options = resolve(target.export_options, self._settings.format_options.get(target.name))
        parts: list[tuple[Scene, Path]] = []
        lost: list[str] = []

        def split() -> None:
            if not target.capabilities.meshes:
                scene.nodes = []  # who asks for an animation loses no mesh
            lost.extend([*losses(scene, target.capabilities), *scene.warnings])
            if not target.capabilities.node_hierarchy:
                flatten(scene)
            found = files.files_of(scene, target, options)
            parts.extend(zip(found, self._targets(found, outcome, job, target), strict=True))

        if not outcome.attempt(split):
            yield outcome
            return
        for part, path in parts:
            facts = scene_facts(part, target.capabilities)
            if not options.get(EMBEDDED, True):
                facts["clips"] = []
            written = Outcome(outcome.source, path, outcome.collection, facts)

            def encode(part: Scene = part, written: Outcome = written) -> None:
                encoded = files.encode_part(part, target, options, stem=files.scene_name(written.target))
                written.tell([*lost, *encoded.warnings], [*lost, *encoded.losses], strict=self._settings.strict)
                make_folder(job)
                files.write_outputs(written.target, encoded.outputs)

            written.attempt(encode)
            yield written
            lost.clear()  # said once

    def _targets(self, parts: Sequence[Scene], outcome: Outcome, job: Job, target: Format) -> list[Path]:
        """Name the files that one source becomes, so that none is written twice in a run.

        A single file is named after its source, several after what they hold; so is an animation that the user gave
        a name, or that comes out of a .blend file, which holds more than one.
        """
        base = outcome.target
        if not job.in_folder:
            if len(parts) > 1:
                raise ExportError(_too_many(parts, job, target))
            return [base]
        names_clips = not target.capabilities.meshes and any(
            is_blend(outcome.source) or self._settings.clips.is_renamed(clip.name)
            for part in parts
            for clip in part.clips
        )
        targets = [base]
        if len(parts) > 1 or names_clips:
            targets = [base.with_name(name + base.suffix) for name in files.file_names(parts)]
        for path in targets:
            if path != job.target:
                if file_key(path) in self._taken - {file_key(job.target)}:
                    way = (
                        f"rename the collection '{outcome.collection}'" if outcome.collection else "rename one of them"
                    )
                    raise ExportError(f"{path} belongs to another input; {way}")
                self._taken.add(file_key(path))
        return targets


def _too_many(parts: Sequence[Scene], job: Job, target: Format) -> str:
    """Say why several parts are not one file, and what to do."""
    some = ", ".join(f"'{part.name}'" for part in parts[:5]) + (" …" if len(parts) > 5 else "")
    folder = f"--to {job.target.suffix.lstrip('.').lower()} -o FOLDER to write a file for each"
    if target.capabilities.meshes:
        return (
            f"{len(parts)} objects ({some}) cannot become one file; say --mesh-files joined to join them, or {folder}"
        )
    return f"{len(parts)} animations ({some}) cannot become one file; choose one with --clip-names, or say {folder}"


def make_folder(job: Job) -> None:
    """Make the folder that was named to write into."""
    if job.in_folder:
        try:
            job.target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ExportError(
                f"{job.target.parent}: the folder cannot be made: {problem.strerror or problem}"
            ) from None
