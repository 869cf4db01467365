"""Run conversions: between Meshferry's formats without Blender, to and from all others with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...io_formats import api
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import Format
from ...io_formats.disk.reach import Reach, is_picture, report_no_pictures
from ...io_formats.passes.clips import adopt_clips
from ...io_formats.passes.placements import shown_placement, with_single_meshes
from ...io_formats.registry import of_same_family
from .. import interruption
from . import blender_formats
from .blender_formats import BlenderFormat
from .convert_plan import ConversionJob
from .from_blender import FromBlender
from .into_blender import IntoBlender
from .scene_writing import ANOTHER_FAILED, Outcome, OutputWriter, scene_facts
from .settings import ConversionContext

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene


PLACES_MODELS = "It places many models; convert it to .blend, .glb or another of Blender's own formats"


class Conversion:
    """Runs the conversion jobs of one run. A failed file gives an outcome with a problem; the others continue.

    Parameters
    ----------
    several:
        Whether the run has several jobs.
    on_source:
        Called with each source before it is imported, if the target is a .blend file or another of Blender's formats,
        and with None before the target is written.
    """

    def __init__(
        self, context: ConversionContext, *, several: bool, on_source: Callable[[Path | None], None] | None = None
    ) -> None:
        self.context = context
        self.settings = context.settings
        self.clips = context.clips
        self.clips.one_scene = not several
        self._writer = OutputWriter(context)
        self._from_blender = FromBlender(context, self._writer, self._add_clips)
        self._into_blender = IntoBlender(context, self._writer, on_source)

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
        with outcome.attempt():
            scene = self._read(outcome, job, job.content)
            if scene.placement is not None and not target.capabilities.placement:
                raise ExportError(PLACES_MODELS)
            if scene.placement is not None and any(model.is_tree for model in scene.placement.models):
                scene.placement = with_single_meshes(shown_placement(scene.placement, scene.report), scene.report)
        if outcome.problem is not None:
            yield outcome
            return
        yield from self._add_clips(scene, outcome, job)
        if not job.is_named:
            target = of_same_family(target, job.target.suffix, scene.format)
        if outcome.problem is None:
            yield from self._writer.write(scene, outcome, job, target)
        else:
            yield outcome

    def _add_clips(self, scene: Scene, outcome: Outcome, job: ConversionJob) -> Iterator[Outcome]:
        """Add the animations of a job's other files to the scene of the first; yield an outcome for each other file.

        ``outcome``, that of the first file, gets a problem if the run has one scene and an animation to rename is not
        found, or in strict mode if another file failed.
        """
        added = [Outcome(source, job.target) for source in job.sources[1:]]
        for other in added:
            with other.attempt():
                read = self._read(other, job)
                other.report([*read.warnings, *adopt_clips(scene, read)], strict=self.settings.strict)
        yield from added
        if self.settings.strict and any(other.problem is not None for other in added):
            outcome.problem = ExportError(ANOTHER_FAILED)
        else:
            with outcome.attempt():
                self.clips.require_now()

    def _read(self, outcome: Outcome, job: ConversionJob, content: bytes | None = None) -> Scene:
        with interruption.raising():
            files = job.file_set(outcome.source)
            projects = self.context.projects if job.format.capabilities.placement else None
            scene = api.read_scene(files, self.settings.read_options, data=content, projects=projects)
        self.clips.apply(scene)
        _leave_out_textures(scene, self.settings.reach_of(outcome.source))
        outcome.facts = scene_facts(scene)
        return scene


def _leave_out_textures(scene: Scene, reach: Reach) -> None:
    """Remove textures that a scene would bring in from beyond reach, and those that are not pictures."""
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
