"""Convert to Blender's formats: import each source into an empty file, then save or export it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...blender_data.importing.import_options import SET_FRAME_RATE, VERTEX_ANIMATION, ImportOptions
from ...blender_data.steps import without_collection
from ...io_formats import api
from ...io_formats.core.capabilities import Capabilities, losses
from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Message, counted, listed
from ...io_formats.disk.atomic_write import make_folder, real_place
from ...io_formats.passes.flatten import fit
from ...io_formats.passes.placements import expand_references, shown_placement
from ...io_formats.registry import by_name, labels_of
from .. import inputs, interruption
from . import blender_exchange, blender_formats
from .blend_files import BlendPart
from .blender_formats import BlenderFormat, on_disk
from .convert_plan import ConversionJob
from .part_writing import PartWriter, hidden_objects, lost_by_exporter
from .scene_writing import ANOTHER_FAILED, Outcome, OutputWriter, scene_facts
from .settings import ConversionContext

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene


@dataclass
class _Work:
    """The state of one job."""

    job: ConversionJob
    target: BlenderFormat
    options: ImportOptions
    armatures: list[Any] = field(default_factory=list)
    clips: dict[str, None] = field(default_factory=dict)
    """Names of all animations found so far."""


class IntoBlender:
    """Converts to a Blender format: imports the sources into an empty Blender file, and saves or exports it."""

    def __init__(
        self,
        context: ConversionContext,
        writer: OutputWriter,
        on_source: Callable[[Path | None], None] | None = None,
    ) -> None:
        self._settings = context.settings
        self._session = context.session
        self._projects = context.projects
        self._clips = context.clips
        self._on_source = on_source
        self._part_writer = PartWriter(context, writer)

    def run(self, job: ConversionJob, target: BlenderFormat) -> list[Outcome]:
        """Import every source into a collection of one file, and write it without the sources that failed."""
        outcomes = [Outcome(source, job.target) for source in job.sources]
        started = Outcome(job.sources[0], job.target)
        with started.attempt():
            work = _Work(job, target, self._start(target))
        if started.problem is not None:
            return _all_failed(outcomes, started.problem)
        # Importers of other add-ons may change any data in the open file, so it is not reused after them.
        ours = all(blender_formats.by_path(source) is None for source in job.sources)
        with self._session.emptied_afterwards() if ours else contextlib.nullcontext():
            return self._fill_and_write(work, outcomes)

    def _fill_and_write(self, work: _Work, outcomes: list[Outcome]) -> list[Outcome]:
        job = work.job
        order = sorted(outcomes, key=_comes_later) if len(outcomes) > 1 else outcomes
        for outcome in order:
            interruption.check()
            if self._on_source is not None:
                self._on_source(outcome.source)
            content = job.content if outcome is outcomes[0] else None
            with outcome.attempt():
                self._add(outcome, content, work)
        good = [outcome for outcome in outcomes if outcome.problem is None]
        if not good:
            return outcomes
        if self._settings.strict and len(good) < len(outcomes):
            _all_failed(good, ExportError(ANOTHER_FAILED))
            return outcomes
        if self._on_source is not None:
            self._on_source(None)
        saved = Outcome(job.sources[0], job.target)
        with saved.attempt():
            self._save(saved, work, good)
        if saved.problem is None:
            good[0].add(saved.warnings)
            good[0].facts = {**(good[0].facts or {}), **(saved.facts or {})}
            good[0].files = saved.files
        else:
            _all_failed(good, saved.problem)
        return outcomes

    def _start(self, target: BlenderFormat) -> ImportOptions:
        """Open an empty file; return the options for imports into it."""
        self._session.start_empty()
        given = self._settings.import_options
        if not target.is_blend:
            # Use the file's frame rate, so that exporters need not interpolate between its frames.
            given = {SET_FRAME_RATE.name: True, **given, VERTEX_ANIMATION.name: "SHAPE_KEYS"}
        elif self._settings.dry_run and given.get(VERTEX_ANIMATION.name) == "CACHE":
            given[VERTEX_ANIMATION.name] = "NONE"  # a dry run must not write the cache file
        return ImportOptions.of(given)

    def _add(self, outcome: Outcome, content: bytes | None, work: _Work) -> None:
        known = blender_formats.by_path(outcome.source)
        if known is None:
            with without_collection():
                self._add_ours(outcome, content, work)
        else:
            self._add_foreign(outcome, content, known, work)

    def _add_ours(self, outcome: Outcome, content: bytes | None, work: _Work) -> None:
        with interruption.raising():
            options = self._settings.read_options
            files = work.job.file_set(outcome.source)
            scene = api.read_scene(files, options, data=content, projects=self._projects)
        self._clips.apply(scene)
        lost: list[Message] = []
        if scene.placement is not None and not work.target.is_blend:
            # Most of Blender's exporters leave out instances, and all of them would write wires as meshes.
            scene.placement = expand_references(shown_placement(scene.placement, scene.report))
        if not work.target.is_blend:
            lost = _fitted(scene, work.target.capabilities_in(self._session.load().app.version))
            lost += lost_by_exporter(scene, work.target)
        outcome.facts = facts = scene_facts(scene, work.target.capabilities)
        outcome.report(lost, strict=self._settings.strict)
        outcome.add(scene.warnings)
        work.clips.update(dict.fromkeys(clip.name for clip in scene.clips))
        reach = self._settings.reach_of(outcome.source)
        result = self._session.import_scene(scene, work.options, outcome.source, work.armatures, options, reach)
        outcome.collection = result.collection.name
        made = [obj for obj in result.objects if obj.type != "ARMATURE"]
        finest = [obj for obj in made if obj.type == "MESH" and _is_finest(obj)]
        triangles = sum(len(obj.data.loops) - 2 * len(obj.data.polygons) for obj in finest)
        outcome.facts = facts | {"nodes": len(made), "triangles": triangles}
        if scene.placement is not None:
            work.clips.update(dict.fromkeys(_clips_of(result.objects)))
            found = {slot.material for obj in finest for slot in obj.material_slots if slot.material}
            outcome.facts["materials"] = len(found)
        outcome.report(result.warnings, strict=self._settings.strict)

    def _add_foreign(self, outcome: Outcome, content: bytes | None, known: BlenderFormat, work: _Work) -> None:
        """Import a file with one of Blender's own importers into a separate collection."""
        with on_disk(outcome.source, content) as path:
            collection, left_out = blender_exchange.read_file(self._session, path, known, self._settings.reach_of(path))
        outcome.add(left_out)
        outcome.collection = collection.name
        _, lost, scene = self._part_writer.take_inventory(BlendPart(collection, tuple(left_out)), work.target)
        outcome.facts = scene_facts(scene, work.target.capabilities)
        work.clips.update(dict.fromkeys(clip.name for clip in scene.clips))
        outcome.report(lost, strict=self._settings.strict)

    def _save(self, saved: Outcome, work: _Work, sources: list[Outcome]) -> None:
        self._clips.require_now()
        if work.target.is_blend:
            real_place(work.job.target, work.job.folder)
            if self._settings.dry_run:
                return
            if work.job.folder is not None:
                make_folder(work.job.target.parent)
            if self._settings.blend_options.use_assets:
                for source in sources:
                    self._mark_asset(source, work.job)
            job, compress = work.job, self._settings.blend_options.use_compressed_blend
            self._session.save(job.target, compress=compress, is_flushed=job.is_flushed, within=job.folder)
        else:
            from ...blender_data.exporting.object_selection import is_disabled

            objects = list(self._session.load_for_changes().context.view_layer.objects)
            hidden = dict.fromkeys(obj for obj in objects if obj.hide_get() or is_disabled(obj))
            if hidden:
                saved.report([hidden_objects(hidden)], strict=self._settings.strict)
                objects = [obj for obj in objects if obj not in hidden]
            self._part_writer.write_objects(objects, list(work.clips), saved, work.job, work.target)

    def _mark_asset(self, outcome: Outcome, job: ConversionJob) -> None:
        """Mark the collection of a source as an asset; animations for an armature of another source have none."""
        collection = self._session.load().data.collections.get(outcome.collection)
        if collection is None:
            return
        from ...blender_data import pictures

        known = blender_formats.by_path(outcome.source)
        tags = labels_of(collection.meshferry.file_format) if known is None else (known.label,)
        pictures.mark_asset(
            collection,
            tags=tags,
            description=f"Imported from {outcome.source.name}",
            catalog=job.asset_catalog,
            picture=job.asset_picture,
        )


def _fitted(scene: Scene, can: Capabilities) -> list[Message]:
    """Remove data from a scene that a format cannot hold; return warnings about it."""
    lost: list[Message] = [*losses(scene, can)]
    came_from = scene.format
    fit(scene, can, by_name(came_from).capabilities if came_from else None)
    if not can.clips:
        scene.clips = []  # without animation, meshes are at rest
        for model in scene.placement.models if scene.placement is not None else ():
            model.read = partial(_at_rest, model.read)
    elif can.joins_clips:
        del scene.clips[1:]
    return lost


def _at_rest(read: Callable[[], Scene]) -> Scene:
    """Read a model without its animations, which are reported."""
    scene = read()
    if scene.clips:
        number, names = counted(len(scene.clips), "animation"), listed([clip.name for clip in scene.clips])
        scene.report.loss("animations-left-out", "{} not carried over: {}", number, names)
        scene.clips = []
    return scene


def _clips_of(objects: Iterable[Any]) -> list[str]:
    """Return the names of the animations that objects play."""
    from ...blender_data.addon_formats.addon_export import playing_clips

    return sorted(playing_clips(objects))


def _comes_later(outcome: Outcome) -> bool:
    """Return whether a file has only animations, which need the armatures of other files."""
    return not inputs.may_hold_meshes(outcome.source)


def _is_finest(made: Any) -> bool:
    """Return whether an object is neither a coarser level of detail nor a physics shape."""
    return bool(made.meshferry.lod == 0 and made.meshferry.role == "RENDER")


def _all_failed(outcomes: list[Outcome], problem: Exception | None) -> list[Outcome]:
    for outcome in outcomes:
        outcome.problem = problem
    return outcomes
