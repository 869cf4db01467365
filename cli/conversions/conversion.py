"""Run conversions: between Meshferry's formats without Blender, to and from all others with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...io_formats import api
from ...io_formats.core.errors import ExportError
from ...io_formats.passes.adopt_clips import adopt_clips
from ...io_formats.registry import Format, of_same_family
from .. import interruption
from ..scene_facts import scene_facts
from . import blender_formats
from .blend_files import BlendSession
from .blender_formats import BlenderFormat
from .convert_plan import ConversionJob
from .file_naming import FileNames
from .from_blender import FromBlender
from .into_blender import IntoBlender
from .outcomes import ANOTHER_FAILED, Outcome, Settings
from .scene_writing import OutputWriter

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene


PLACES_MODELS = "It places models of other files; convert it to .blend, .glb or another of Blender's own formats"


class Conversion:
    """Runs the conversion jobs of one run. A failed file gives an outcome with a problem; the others continue.

    Parameters
    ----------
    several:
        Whether the run has several jobs.
    on_source:
        Called with each source that is imported into a Blender file with others, and with None before that is written.
    """

    def __init__(
        self,
        settings: Settings,
        session: BlendSession,
        names: FileNames,
        *,
        several: bool,
        on_source: Callable[[Path | None], None] | None = None,
    ) -> None:
        self.settings = settings
        self._writer = OutputWriter(settings, names)
        settings.clips.one_scene = not several
        self._from_blender = FromBlender(settings, session, names, self._writer, self._add_clips)
        self._into_blender = IntoBlender(settings, session, self._writer, on_source)

    def run(self, job: ConversionJob) -> Iterator[Outcome]:
        """Run one job; yield an outcome for each file read or written."""
        source = blender_formats.by_path(job.sources[0])
        if isinstance(job.format, BlenderFormat):
            if source is not None and source.is_blend:
                yield from self._from_blender.run(job, source)
            else:
                yield from self._into_blender.run(job, job.format)
        elif source is not None:
            yield from self._from_blender.run(job, source)
        else:
            yield from self._between_files(job, job.format)

    def _between_files(self, job: ConversionJob, target: Format) -> Iterator[Outcome]:
        """Read a file, add the animations of the other files to it and write the result."""
        outcome = Outcome(job.sources[0], job.target)
        scenes: list[Scene] = []
        if not outcome.attempt(lambda: scenes.append(self._read(outcome, job.content))):
            yield outcome
            return
        (scene,) = scenes
        yield from self._add_clips(scene, outcome, job)
        if not job.is_named:
            target = of_same_family(target, job.target.suffix, scene.format)
        if outcome.problem is None:
            yield from self._writer.write(scene, outcome, job, target)
        else:
            yield outcome

    def _add_clips(self, scene: Scene, outcome: Outcome, job: ConversionJob) -> Iterator[Outcome]:
        """Add the animations of the other files of a job to the scene of the first; yield an outcome for each file.

        Animations that should be renamed and are in none of the files are the problem of ``outcome``.
        """
        added = [Outcome(source, job.target) for source in job.sources[1:]]
        for other in added:
            other.attempt(lambda other=other: self._adopt(scene, other))  # type: ignore[misc]
        yield from added
        if self.settings.strict and any(other.problem is not None for other in added):
            outcome.problem = ExportError(ANOTHER_FAILED)
        else:
            outcome.attempt(self.settings.clips.require_now)

    def _read(self, outcome: Outcome, content: bytes | None = None) -> Scene:
        with interruption.raising():
            scene = api.read_scene(outcome.source, self.settings.read_options, data=content)
        if scene.placement is not None:
            raise ExportError(PLACES_MODELS)
        self.settings.clips.apply(scene)
        outcome.facts = scene_facts(scene)
        return scene

    def _adopt(self, scene: Scene, other: Outcome) -> None:
        """Add the animations of another file to a scene."""
        read = self._read(other)
        said = [*read.warnings, *adopt_clips(scene, read)]
        other.set_warnings(said, said, strict=self.settings.strict)
