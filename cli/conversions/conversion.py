"""Run conversions: between Meshferry's formats without Blender, to and from all others with it.

A file of Blender's formats is opened, and its content written part by part, by our writers or Blender's exporters. To
write such a file, each source is imported into an empty file, which is then saved or exported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...blender_data.export_options import CLIPS, MERGING, ExportOptions
from ...blender_data.importing.import_options import SET_FRAME_RATE, VERTEX_ANIMATION, ImportOptions
from ...blender_data.steps import finish, without_collection
from ...io_formats import api
from ...io_formats.core.capabilities import Capabilities, losses
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Report
from ...io_formats.disk.atomic_write import make_folder, real_place
from ...io_formats.disk.file_names import file_name
from ...io_formats.passes.clips import adopt_clips
from ...io_formats.passes.flatten import fit
from ...io_formats.passes.placements import expand_references, shown_placement
from ...io_formats.registry import FORMATS, by_name, labels_of, of_same_family
from .. import inputs, interruption
from . import blender_exchange
from .blend_files import BlendPart, parts_to_export
from .blender_formats import BlenderFormat, by_path, on_disk
from .convert_plan import ANOTHER_FAILED, ConversionJob, Outcome
from .scene_writing import OutputWriter, report_hidden, report_lost_by_exporter, scene_facts
from .settings import ConversionContext

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene

_Export = Callable[[BlendPart, Outcome, ConversionJob], Iterator[Outcome]]
"""Writes a part of the open file; yields an outcome for each file."""


@dataclass
class _Work:
    """The state of a job that imports its sources into one file."""

    job: ConversionJob
    target: BlenderFormat
    options: ImportOptions
    armatures: list[Any] = field(default_factory=list)
    clips: dict[str, None] = field(default_factory=dict)
    """Names of all animations found so far."""


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
        self, context: ConversionContext, *, several: bool, on_source: Callable[[Path | None], object] | None = None
    ) -> None:
        self.context = context
        self.settings = context.settings
        self.clips = context.clips
        self.clips.one_scene = not several
        self._session = context.session
        self._writer = OutputWriter(context)
        self._on_source = on_source or (lambda _source: None)

    def run(self, job: ConversionJob) -> Iterator[Outcome]:
        """Run one job; yield an outcome for each file read or written."""
        source, target = by_path(job.sources[0]), job.format
        if not isinstance(target, BlenderFormat):
            if source is None:
                yield from self._between_files(job, target)
            else:
                yield from self._from_blender(job, source, partial(self._export, source=source, target=target))
        elif source is not None and source.is_blend:
            yield from self._from_blender(job, source, partial(self._writer.write_part, target=target))
        else:
            yield from self._into_blender(job, target)

    def _between_files(self, job: ConversionJob, target: Format) -> Iterator[Outcome]:
        """Read a file, add the animations of the other files to it and write the result."""
        outcome = Outcome(job.sources[0], job.target)
        with outcome.attempt():
            scene = self._read(outcome, job, job.content)
        if outcome.problem is not None:
            yield outcome
            return
        if not job.is_named:
            target = of_same_family(target, job.target.suffix, scene.format)
        yield from self._write_with_clips(scene, outcome, job, target)

    def _write_with_clips(
        self, scene: Scene, outcome: Outcome, job: ConversionJob, target: Format
    ) -> Iterator[Outcome]:
        """Add the animations of a job's other files to the scene of the first, and write it; yield all outcomes.

        ``outcome``, that of the first file, gets a problem if the run has one scene and an animation to rename is not
        found, or in strict mode if another file failed.
        """
        added = [Outcome(source, job.target) for source in job.sources[1:]]
        for other in added:
            with other.attempt():
                read = self._read(other, job)
                other.report([*read.warnings, *adopt_clips(scene, read)], strict=self.settings.strict)
        yield from added
        with outcome.attempt():
            if self.settings.strict and any(other.problem is not None for other in added):
                raise ExportError(ANOTHER_FAILED)
            self.clips.require_now()
        if outcome.problem is None:
            yield from self._writer.write(scene, outcome, job, target)
        else:
            yield outcome

    def _read(self, outcome: Outcome, job: ConversionJob, content: bytes | None = None) -> Scene:
        """Read a source, with the user's choice of animations; if Blender does not import it, note its facts, too."""
        in_blender = job.format.needs_blender
        with interruption.raising():
            files = job.file_set(outcome.source)
            projects = self.context.projects if in_blender or job.format.capabilities.placement else None
            scene = api.read_scene(files, self.settings.read_options, data=content, projects=projects)
        self.clips.apply(scene)
        if not in_blender:
            api.leave_out_textures(scene, self.settings.reach_of(outcome.source))
            outcome.facts = scene_facts(scene)
        return scene

    def _from_blender(self, job: ConversionJob, source: BlenderFormat, export: _Export) -> Iterator[Outcome]:
        """Open a file of Blender's formats and write its content; yield an outcome for each file."""
        opened = Outcome(job.sources[0], job.target)
        with opened.attempt():
            left_out = blender_exchange.open_file(self._session, source, job.sources[0], job.content, self.settings)
            opened.add(left_out)
            if self._goes_back(job):
                opened.report(left_out, strict=self.settings.strict)
                self._patch(opened, by_name(job.format.name))
                yield opened
                return
            parts = [replace(part, left_out=tuple(left_out)) for part in self._parts(job, source)]
            if source.is_blend:
                parts = [self._writer.with_missing(part, job.format) for part in parts]
        if opened.problem is not None:
            yield opened
            return
        if len(parts) > 1:
            self.clips.one_scene = False
        for part in parts:
            path = job.target
            if len(parts) > 1:
                path = self.context.names.of_part(job.target, path, file_name(part.name))
            yield from export(part, Outcome(job.sources[0], path, part.name, warnings=list(part.left_out)), job)

    def _goes_back(self, job: ConversionJob) -> bool:
        """Return whether only changes are written: into a file that is never new, or one that was imported."""
        from ...blender_data.exporting.placements.placement_patch import imports_of

        if job.target.suffix.lower() not in job.format.written_extensions:
            return True
        scene = self._session.load_for_changes().context.scene
        return job.format.is_patched and bool(imports_of(scene, job.target, self.settings.collections))

    def _patch(self, outcome: Outcome, target: Format) -> None:
        """Write the changes of a collection into the target file, from which it was imported."""
        from ...blender_data.exporting.placements.placement_patch import imported_from, plan_patch

        scene = self._session.load_for_changes().context.scene
        collection = imported_from(scene, outcome.target, self.settings.collections)
        part = self._writer.with_missing(BlendPart(collection), target)
        outcome.report(part.left_out, strict=self.settings.strict)
        plan = finish(plan_patch(collection, self.context.projects))
        outcome.collection = collection.name
        outcome.report([*plan.notes(), *plan.messages], strict=self.settings.strict)
        if not self.settings.dry_run:
            plan.write()
        outcome.facts = target.facts(target.read(plan.patched.data))

    def _parts(self, job: ConversionJob, source: BlenderFormat) -> list[BlendPart]:
        if not source.is_blend and not self.settings.collections:
            return [BlendPart(None)]
        scene = self._session.load_for_changes().context.scene
        with_meshes = job.format.capabilities.meshes
        parts = parts_to_export(scene, self.settings.collections, several=bool(job.folder), with_meshes=with_meshes)
        if len(parts) > 1 and job.folder is None:
            raise ExportError(
                "{} collections cannot become one file; use --to EXTENSION -o FOLDER to write one for each", len(parts)
            )
        return parts

    def _own_format(self, part: BlendPart, target: Format, extension: str) -> Format:
        """Return the format to write for an extension that families share.

        Its family is the family from which the animations of the part were imported. If that is unknown or there are
        several, the joints decide.
        """
        if target.capabilities.meshes or len(_formats_of(extension)) < 2:
            return target
        from ...blender_data.exporting.joint_sampling import actions_of_armatures

        scene = self._session.load_for_changes().context.scene
        objects = part.collection.all_objects if part.collection is not None else scene.objects
        armatures = [obj for obj in objects if obj.type == "ARMATURE"]
        actions: list[Any] = actions_of_armatures(armatures)
        origins = {action.meshferry.file_format for action in actions} - {""}
        found = {own.name: own for own in (of_same_family(target, extension, origin) for origin in origins)}
        if len(found) == 1:
            return next(iter(found.values()))
        return _known_by([bone.name for obj in armatures for bone in obj.data.bones], extension) or target

    def _export(
        self, part: BlendPart, outcome: Outcome, job: ConversionJob, source: BlenderFormat, target: Format
    ) -> Iterator[Outcome]:
        """Write a part of the open file in one of Meshferry's formats.

        From other sources than .blend files, all objects and animations are kept by default.
        """
        extension = job.target.suffix.lower()
        if source.is_blend and not job.is_named:
            target = self._own_format(part, target, extension)
        with outcome.attempt():
            given = {} if source.is_blend else {MERGING.name: "KEEP", CLIPS.name: "ACTIONS"}
            options = ExportOptions.of({**given, **self.settings.export_options})
            name = part.name or api.writable_name(job.target)
            can = target.capabilities_with(self.settings.format_options.get(target.name, {}))
            scene = self._session.export_scene(part, options, name, can)
            self._writer.report_losses(part, scene, options, target)
            if not job.is_named:
                _note_other_format(scene, target, extension)
            self.clips.apply(scene, filtered=True)
        if outcome.problem is None:
            yield from self._write_with_clips(scene, outcome, job, target)
        else:
            yield outcome

    def _into_blender(self, job: ConversionJob, target: BlenderFormat) -> Iterator[Outcome]:
        """Import every source into a collection of one file, and write it without the sources that failed."""
        outcomes = [Outcome(source, job.target) for source in job.sources]
        whole = Outcome(job.sources[0], job.target)
        with whole.attempt():
            work = _Work(job, target, self._start(target))
            # Importers of other add-ons may change any data in the open file, so it is not reused after them.
            ours = all(by_path(source) is None for source in job.sources)
            with self._session.emptied_afterwards() if ours else contextlib.nullcontext():
                for outcome in sorted(outcomes, key=_comes_later) if len(outcomes) > 1 else outcomes:
                    interruption.check()
                    self._on_source(outcome.source)
                    with outcome.attempt():
                        self._add(outcome, job.content if outcome is outcomes[0] else None, work)
                if good := [outcome for outcome in outcomes if outcome.problem is None]:
                    if self.settings.strict and len(good) < len(outcomes):
                        raise ExportError(ANOTHER_FAILED)
                    self._on_source(None)
                    self._save(whole, work, good)
                    good[0].add(whole.warnings)
                    good[0].facts = {**(good[0].facts or {}), **(whole.facts or {})}
                    good[0].files = whole.files
        for outcome in outcomes:
            outcome.problem = outcome.problem or whole.problem
        yield from outcomes

    def _start(self, target: BlenderFormat) -> ImportOptions:
        """Open an empty file; return the options for imports into it."""
        self._session.start_empty()
        given = self.settings.import_options
        if not target.is_blend:
            # Use the file's frame rate, so that exporters need not interpolate between its frames.
            given = {SET_FRAME_RATE.name: True, **given, VERTEX_ANIMATION.name: "SHAPE_KEYS"}
        elif self.settings.dry_run and given.get(VERTEX_ANIMATION.name) == "CACHE":
            given[VERTEX_ANIMATION.name] = "NONE"  # a dry run must not write the cache file
        return ImportOptions.of(given)

    def _add(self, outcome: Outcome, content: bytes | None, work: _Work) -> None:
        """Import a source into a separate collection."""
        known = by_path(outcome.source)
        if known is None:
            with without_collection():
                self._add_ours(outcome, content, work)
            return
        with on_disk(outcome.source, content) as path:
            collection, left_out = blender_exchange.read_file(self._session, path, known, self.settings.reach_of(path))
        outcome.add(left_out)
        outcome.collection = collection.name
        _, lost, scene = self._writer.take_inventory(BlendPart(collection, tuple(left_out)), work.target)
        outcome.facts = scene_facts(scene, work.target.capabilities)
        work.clips.update(dict.fromkeys(clip.name for clip in scene.clips))
        outcome.report(lost, strict=self.settings.strict)

    def _add_ours(self, outcome: Outcome, content: bytes | None, work: _Work) -> None:
        scene = self._read(outcome, work.job, content)
        report = Report()
        if scene.placement is not None and not work.target.is_blend:
            # Most of Blender's exporters leave out instances, and all of them would write wires as meshes.
            scene.placement = expand_references(shown_placement(scene.placement, scene.report))
        if not work.target.is_blend:
            _fit(scene, work.target.capabilities_in(self._session.load().app.version), report)
            report_lost_by_exporter(scene, work.target, report)
        outcome.facts = facts = scene_facts(scene, work.target.capabilities)
        outcome.report(report.messages, strict=self.settings.strict)
        outcome.add(scene.warnings)
        work.clips.update(dict.fromkeys(clip.name for clip in scene.clips))
        options, reach = self.settings.read_options, self.settings.reach_of(outcome.source)
        result = self._session.import_scene(scene, work.options, outcome.source, work.armatures, options, reach)
        outcome.collection = result.collection.name
        made = [obj for obj in result.objects if obj.type != "ARMATURE"]
        finest = [obj for obj in made if obj.type == "MESH" and _is_finest(obj)]
        triangles = sum(len(obj.data.loops) - 2 * len(obj.data.polygons) for obj in finest)
        outcome.facts = facts | {"nodes": len(made), "triangles": triangles}
        if scene.placement is not None:
            from ...blender_data.addon_formats.addon_export import playing_clips

            work.clips.update(dict.fromkeys(sorted(playing_clips(result.objects))))
            found = {slot.material for obj in finest for slot in obj.material_slots if slot.material}
            outcome.facts["materials"] = len(found)
        outcome.report(result.warnings, strict=self.settings.strict)

    def _save(self, saved: Outcome, work: _Work, sources: list[Outcome]) -> None:
        self.clips.require_now()
        job = work.job
        if work.target.is_blend:
            real_place(job.target, job.folder)
            if self.settings.dry_run:
                return
            if job.folder is not None:
                make_folder(job.target.parent)
            if self.settings.blend_options.use_assets:
                for source in sources:
                    self._mark_asset(source, job)
            compress = self.settings.blend_options.use_compressed_blend
            self._session.save(job.target, compress=compress, is_flushed=job.is_flushed, within=job.folder)
            return
        from ...blender_data.exporting.object_selection import is_disabled

        objects = list(self._session.load_for_changes().context.view_layer.objects)
        hidden = dict.fromkeys(obj for obj in objects if obj.hide_get() or is_disabled(obj))
        report = Report()
        report_hidden(hidden, report)
        saved.report(report.messages, strict=self.settings.strict)
        objects = [obj for obj in objects if obj not in hidden]
        self._writer.write_objects(objects, list(work.clips), saved, job, work.target)

    def _mark_asset(self, outcome: Outcome, job: ConversionJob) -> None:
        """Mark the collection of a source as an asset; animations for an armature of another source have none."""
        collection = self._session.load().data.collections.get(outcome.collection)
        if collection is None:
            return
        from ...blender_data import pictures

        known = by_path(outcome.source)
        pictures.mark_asset(
            collection,
            tags=labels_of(collection.meshferry.file_format) if known is None else (known.label,),
            description=f"Imported from {outcome.source.name}",
            catalog=job.asset_catalog,
            picture=job.asset_picture,
        )


def _note_other_format(scene: Scene, target: Format, extension: str) -> None:
    """Report that the joints are those of another format with the same extension, and how to choose that format."""
    other = _known_by([joint.name for skeleton in scene.skeletons for joint in skeleton.joints], extension)
    if other is not None and other is not target:
        scene.report.note(
            "other-format-knows-joints",
            "Written as {}; --to {} writes {}, whose joints the armature has",
            target.label,
            other.name,
            other.label,
        )


def _known_by(joints: Sequence[str], extension: str) -> Format | None:
    """Return the first format with an extension that knows most of these joints by name, or None."""
    return next((known for known in _formats_of(extension) if known.capabilities.knows_most(joints)), None)


def _formats_of(extension: str) -> list[Format]:
    return [known for known in FORMATS if extension in known.written_extensions]


def _fit(scene: Scene, can: Capabilities, report: Report) -> None:
    """Remove data from a scene that a format cannot hold, and report it."""
    report.messages += losses(scene, can)
    came_from = scene.format
    fit(scene, can, by_name(came_from).capabilities if came_from else None)
    if not can.clips:
        scene.clips = []  # without animation, meshes are at rest
        for model in scene.placement.models if scene.placement is not None else ():
            model.read = partial(_at_rest, model.read)
    elif can.joins_clips:
        del scene.clips[1:]


def _at_rest(read: Callable[[], Scene]) -> Scene:
    """Read a model without its animations, which are reported."""
    scene = read()
    names = [clip.name for clip in scene.clips]
    scene.report.loss_of("animations-left-out", "{} not carried over: {}", names, "animation")
    scene.clips = []
    return scene


def _comes_later(outcome: Outcome) -> bool:
    """Return whether a file has only animations, which need the armatures of other files."""
    return not inputs.may_hold_meshes(outcome.source)


def _is_finest(made: Any) -> bool:
    """Return whether an object is neither a coarser level of detail nor a physics shape."""
    return bool(made.meshferry.lod == 0 and made.meshferry.role == "RENDER")
