"""Write a scene as one or several files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...blender_data.export_options import KEEP_IMPORTED
from ...io_formats import api
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import Format, OutputFile
from ...io_formats.core.messages import Message, Text, joined
from ...io_formats.core.options import resolve
from ...io_formats.disk.atomic_write import make_folder, real_place, replace_file
from ...io_formats.disk.file_sets import beside, companions_of, write_outputs
from ...io_formats.registry import by_name
from ..scene_facts import placement_facts, scene_facts
from .convert_plan import ConversionJob
from .file_naming import text_of_copy
from .outcomes import Outcome
from .settings import EMBEDDED, ConversionContext

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene

JOINED = "mesh_files"
"""Name of the option of formats that can join several objects in one file."""


class OutputWriter:
    """Writes the scenes of one run, so that no file is written twice."""

    def __init__(self, context: ConversionContext) -> None:
        self._settings = context.settings
        self._names = context.names
        self._clips = context.clips
        self._projects = context.projects

    def write(self, scene: Scene, outcome: Outcome, job: ConversionJob, target: Format) -> Iterator[Outcome]:
        """Write the file or the files that a scene becomes; yield an outcome for each."""
        given = self._settings.format_options.get(target.name, {})
        options = resolve(target.export_options, given)
        with outcome.attempt():
            came_from = by_name(scene.format).capabilities if scene.format else None
            if came_from is not None and came_from.lod_models and target.capabilities.lod_models:
                # For scenes read from Blender, the exporter has already set this.
                scene.as_imported = bool(self._settings.export_options.get(KEEP_IMPORTED.name))
            files = api.split(scene, target, options)
            paths = self._targets(files.parts, outcome, job, target, joinable=_is_joinable(scene, options))
        if outcome.problem is not None:
            yield outcome
            return
        unreported: Sequence[Message] = files.messages
        """Messages about the whole scene, which are reported with the first file that is written."""
        for part, path in zip(files.parts, paths, strict=True):
            facts = scene_facts(part, target.capabilities)
            if not options.get(EMBEDDED, True):
                facts["clips"] = []
            written = Outcome(outcome.source, path, outcome.collection, facts)
            with written.attempt():
                if part.placement is not None:
                    facts |= {**placement_facts(part.placement), "materials": len(part.materials)}
                encoded = api.encode_part(part, target, given, path=path, projects=self._projects)
                written.report([*unreported, *encoded.messages], strict=self._settings.strict)
                self.put(written, job, encoded.outputs)
            yield written
            if written.problem is None:
                unreported = []

    def put(self, outcome: Outcome, job: ConversionJob, outputs: Sequence[OutputFile]) -> None:
        """Write the files of an outcome, unless this is a dry run.

        Raises
        ------
        ExportError
            Files belong to others, a link leads out of the output folder, or the operating system reports an error.
        """
        paths = self._claim(outcome.target, outputs)
        for path in paths:  # also in dry runs, and before folders are made
            real_place(path, job.folder)
        if not self._settings.dry_run:
            if job.folder is not None:
                make_folder(job.target.parent)
            if job.format.is_set or outputs[-1].copy_of is not None:
                outcome.add(write_outputs(outcome.target, self._without_used(outcome.target, outputs), job.folder))
            else:  # A single file needs no staging folder, and searching a folder of 10,000 files for old ones is slow.
                replace_file(outcome.target, outputs[-1].data, is_flushed=job.is_flushed, within=job.folder)
        outcome.files = paths if job.format.is_set else []

    def _claim(self, target: Path, outputs: Sequence[OutputFile]) -> list[Path]:
        """Reserve the paths of a file set within this run and return them, the chosen one last.

        Raises
        ------
        ExportError
            The run reads one of the files, or writes it for another set with different content.
        """
        companions = {path: _content_text(output) for path, output in companions_of(target, outputs)}
        clashing = self._names.claim(companions) if companions else []
        if clashing:
            they = "It belongs" if len(clashing) == 1 else "They belong"
            raise ExportError(
                "{} would also write {}. {} to other files of this run; rename one of them or convert into "
                "another folder",
                target,
                ", ".join(path.name for path in clashing),
                they,
            )
        return [*companions, target]

    def _without_used(self, target: Path, outputs: Sequence[OutputFile]) -> list[OutputFile]:
        """Return the files of a set without obsolete ones that this run reads or writes."""
        *companions, chosen = outputs
        names = [name for name in chosen.obsolete if not self._names.is_taken(beside(target, chosen, Path(name)))]
        return [*companions, replace(chosen, obsolete=tuple(names))]

    def _targets(
        self, parts: Sequence[Scene], outcome: Outcome, job: ConversionJob, target: Format, *, joinable: bool
    ) -> list[Path]:
        """Return the paths of the files that one source becomes, so that none is written twice in a run.

        A single file is named after its source; several add the names of their content. The name of a renamed animation
        is always added, since most versions of animation files store no name.
        """
        base = outcome.target
        if job.folder is None:
            if len(parts) > 1:
                raise ExportError(_too_many(parts, job, target, joinable=joinable))
            return [base]
        has_new_names = not target.capabilities.meshes and any(
            self._clips.is_renamed(clip.name) for part in parts for clip in part.clips
        )
        if len(parts) == 1 and not has_new_names:
            return [base]
        return [self._names.of_part(job.target, base, name) for name in api.file_names(parts)]


def _content_text(output: OutputFile) -> str:
    """Return a text that is the same for files with the same content."""
    return hashlib.blake2b(output.data).hexdigest() if output.copy_of is None else text_of_copy(output.copy_of)


def _is_joinable(scene: Scene, options: Mapping[str, Any]) -> bool:
    """Return whether joining objects would give fewer files: there are several, and joining was not requested."""
    return options.get(JOINED, "JOINED") != "JOINED" and sum(node.mesh is not None for node in scene.nodes) > 1


def _too_many(parts: Sequence[Scene], job: ConversionJob, target: Format, *, joinable: bool) -> Text:
    """Return an error message for several parts that cannot become one file, with the options that help."""
    some = joined([Text("'{}'", part.name) for part in parts[:5]])
    some = Text("{} …", some) if len(parts) > 5 else some
    way = Text("--to {} -o FOLDER to write a file for each", job.target.suffix.lstrip(".").lower())
    if not target.capabilities.meshes:
        template = "{} animations ({}) cannot become one file; choose one with --clip-names, or use {}"
    elif joinable:
        template = "{} objects ({}) cannot become one file; use --mesh-files joined to join them, or {}"
    else:
        template = "{} meshes ({}) cannot become one file; use {}"
    return Text(template, len(parts), some, way)
