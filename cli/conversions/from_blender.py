"""Conversion of files of Blender's formats: their content is written part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...blender_data.export_options import CLIPS, MERGING, ExportOptions
from ...blender_data.steps import finish
from ...io_formats import api
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import FileFormat, Format
from ...io_formats.disk.file_names import file_name
from ...io_formats.registry import FORMATS, of_same_family
from . import blender_exchange
from .blend_files import BlendPart, parts_to_export
from .blender_formats import BlenderFormat, on_disk
from .convert_plan import ConversionJob
from .part_writing import PartWriter
from .scene_writing import Outcome, OutputWriter
from .settings import ConversionContext

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene


def _options_for(source: BlenderFormat) -> dict[str, Any]:
    """Return the export options for the source: from other formats than .blend, keep all objects and animations."""
    return {} if source.is_blend else {MERGING.name: "KEEP", CLIPS.name: "ACTIONS"}


_AddClips = Callable[["Scene", Outcome, ConversionJob], Iterator[Outcome]]
"""Adds the animations of the other files of a job to a scene; yields an outcome for each of these files."""


class FromBlender:
    """Open files of Blender's formats and write their content."""

    def __init__(self, context: ConversionContext, writer: OutputWriter, add_clips: _AddClips) -> None:
        self._context = context
        self._settings = context.settings
        self._session = context.session
        self._names = context.names
        self._clips = context.clips
        self._writer = writer
        self._add_clips = add_clips
        self._part_writer = PartWriter(context, writer)

    def run(self, job: ConversionJob, source: BlenderFormat) -> Iterator[Outcome]:
        """Run one job; yield an outcome for each file written."""
        opened = Outcome(job.sources[0], job.target)
        with opened.attempt():
            with on_disk(job.sources[0], job.content) as path:
                reach = self._settings.reach_of(path)
                if source.is_blend:
                    left_out = self._session.open(path, reach)
                else:
                    self._session.start_empty()
                    _, left_out = blender_exchange.read_file(self._session, path, source, reach)
            opened.add(left_out)
            if isinstance(job.format, FileFormat) and self._goes_back(job.format, job.target):
                opened.report(left_out, strict=self._settings.strict)
                self._patch(opened, job.format)
                yield opened
                return
            parts = [replace(part, left_out=tuple(left_out)) for part in self._parts(job, source)]
            if source.is_blend:
                parts = [self._part_writer.with_missing(part, job.format) for part in parts]
        if opened.problem is not None:
            yield opened
            return
        if len(parts) > 1:
            self._clips.one_scene = False
        for part in parts:
            path = job.target
            if len(parts) > 1:
                path = self._names.of_part(job.target, path, file_name(part.name))
            outcome = Outcome(job.sources[0], path, collection=part.name, warnings=list(part.left_out))
            if isinstance(job.format, BlenderFormat):
                yield self._part_writer.write(part, outcome, job, job.format)
            else:
                target = job.format
                if source.is_blend and not job.is_named:
                    target = self._own_format(part, target, job.target.suffix.lower())
                yield from self._part(part, outcome, job, target, _options_for(source))

    def _goes_back(self, target: Format, path: Path) -> bool:
        """Return whether only changes are written: into a file that is never new, or one that was imported."""
        from ...blender_data.exporting.placements.placement_patch import imports_of

        if path.suffix.lower() not in target.written_extensions:
            return True
        scene = self._session.load_for_changes().context.scene
        return target.is_patched and bool(imports_of(scene, path, self._settings.collections))

    def _patch(self, outcome: Outcome, target: Format) -> None:
        """Write the changes of a collection into the target file, from which it was imported."""
        from ...blender_data.exporting.placements.placement_patch import imported_from, plan_patch

        scene = self._session.load_for_changes().context.scene
        collection = imported_from(scene, outcome.target, self._settings.collections)
        part = self._part_writer.with_missing(BlendPart(collection), target)
        outcome.report(part.left_out, strict=self._settings.strict)
        plan = finish(plan_patch(collection, self._context.projects))
        outcome.collection = collection.name
        outcome.report([*plan.notes(), *plan.messages], strict=self._settings.strict)
        if not self._settings.dry_run:
            plan.write()
        outcome.facts = target.facts(target.read(plan.patched.data))

    def _parts(self, job: ConversionJob, source: BlenderFormat) -> list[BlendPart]:
        if not source.is_blend and not self._settings.collections:
            return [BlendPart(None)]
        scene = self._session.load_for_changes().context.scene
        with_meshes = job.format.capabilities.meshes
        parts = parts_to_export(scene, self._settings.collections, several=bool(job.folder), with_meshes=with_meshes)
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

    def _part(
        self, part: BlendPart, outcome: Outcome, job: ConversionJob, target: Format, given: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        """Write a part of the open file in one of Meshferry's formats."""
        with outcome.attempt():
            name = part.name or api.writable_name(job.target)
            options = ExportOptions.of({**given, **self._settings.export_options})
            scene = self._session.export_scene(part, options, name, target.capabilities)
            self._part_writer.report_losses(part, scene, options, target)
            if not job.is_named:
                _note_other_format(scene, target, job.target.suffix.lower())
            self._clips.apply(scene, filtered=True)
        if outcome.problem is None:
            yield from self._add_clips(scene, outcome, job)
        if outcome.problem is None:
            yield from self._writer.write(scene, outcome, job, target)
        else:
            yield outcome


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
    for known in _formats_of(extension):
        if known.capabilities.knows_most(joints):
            return known
    return None


def _formats_of(extension: str) -> list[Format]:
    return [known for known in FORMATS if extension in known.written_extensions]
