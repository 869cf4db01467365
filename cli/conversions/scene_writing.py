"""Write a scene as one or several files; the outcome and the facts of each."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...blender_data.export_options import KEEP_IMPORTED
from ...io_formats import api
from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import Format, OutputFile
from ...io_formats.core.messages import Message, Text, distinct, joined
from ...io_formats.core.options import Options
from ...io_formats.core.placement import ModelUse, Placement
from ...io_formats.core.scene import Clip, Role, Scene
from ...io_formats.disk.atomic_write import make_folder, real_place, replace_file
from ...io_formats.disk.file_sets import beside, companions_of, write_outputs
from ...io_formats.registry import by_name
from .convert_plan import ConversionJob
from .settings import EMBEDDED, ConversionContext, text_of_copy

ANOTHER_FAILED = "Not written, since another file failed and the conversion is strict"


@dataclass
class Outcome:
    """The outcome for one file, or for one collection of a .blend file."""

    source: Path
    target: Path
    collection: str = ""
    facts: dict[str, Any] | None = None
    warnings: list[Message] = field(default_factory=list)
    problem: Exception | None = None
    files: list[Path] = field(default_factory=list)
    """All files of a set, the target last; empty for formats whose documents are a single file."""

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Record an exception in the ``with`` block as the problem, and continue after the block."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest; the reporter tells defects apart)
            self.problem = problem

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages without duplicates."""
        self.warnings = distinct([*self.warnings, *messages])

    def report(self, messages: Iterable[Message], *, strict: bool) -> None:
        """Add messages without duplicates. In a strict conversion, raise an error if some are losses."""
        new = distinct(messages)
        self.add(new)
        lost = [message for message in new if message.is_loss]
        if strict and lost:
            more = Text(" (and {:,} more)", len(lost) - 1) if len(lost) > 1 else ""
            raise ExportError("Not written, since the conversion is strict: {}{}", lost[0], more)


def scene_facts(scene: Scene, can: Capabilities | None = None) -> dict[str, Any]:
    """Return the facts of a scene, limited to what a format can hold, under the names that ``inspect`` uses.

    Objects, vertices and triangles of coarser levels of detail and physics shapes are not counted.
    """
    if can is not None:
        nodes = scene.nodes if can.meshes else []
        skeletons = scene.skeletons if can.skeletons else []
        scene = replace(scene, nodes=nodes, skeletons=skeletons, clips=[c for c in scene.clips if _is_held(c, can)])
    meshes = [node.mesh for node in scene.nodes if node.mesh is not None]
    objects = [node for node in scene.nodes if node.lod == 0 and node.role is Role.RENDER]
    finest = [node.mesh for node in objects if node.mesh is not None]
    shapes = sum(skeleton.slider_values is not None for skeleton in scene.skeletons)
    return {
        **({"body_shapes": shapes} if shapes and (can is None or can.sliders) else {}),
        "nodes": min(len(objects), 1) if can and can.joins_objects else len(objects),
        "vertices": sum(len(mesh.points) for mesh in finest),
        "triangles": sum(mesh.triangle_count for mesh in finest),
        "surfaces": sum(len(mesh.materials) for mesh in finest),
        "materials": 0
        if can and not can.materials
        else len({name for mesh in meshes for name in mesh.materials if name}),
        "uv_layers": _most((len(mesh.uvs) for mesh in meshes), can.uv_layers if can else None),
        "color_layers": _most((len(mesh.colors) for mesh in meshes), can.color_layers if can else None),
        "bones": sum(len(skeleton.joints) for skeleton in scene.skeletons),
        "shape_keys": 0 if can and not can.shape_keys else sum(len(mesh.shape_keys) for mesh in meshes),
        "clips": [_clip(clip) for clip in scene.clips],
    }


def placement_facts(placement: Placement) -> dict[str, Any]:
    """Return the facts of a new file that places models: its nodes, and each model once, however often it is placed.

    Raises
    ------
    FormatError
        A model cannot be read.
    """
    nodes = [node for part in placement.parts for node in part.nodes]
    shown = Counter(node.content.model for node in nodes if isinstance(node.content, ModelUse))
    models = {number: scene_facts(placement.models[number].read()) for number in shown}
    facts: dict[str, Any] = {"nodes": len(nodes)}
    for name in ("vertices", "triangles", "surfaces"):
        facts[name] = sum(models[number][name] * count for number, count in shown.items())
    for name in ("uv_layers", "color_layers"):
        facts[name] = max((one[name] for one in models.values()), default=0)
    for name in ("bones", "shape_keys"):
        facts[name] = sum(one[name] for one in models.values())
    return facts


def _clip(clip: Clip) -> dict[str, Any]:
    """Return the facts of a clip. A clip with keys at arbitrary times has a length instead of a number of frames."""
    found = {"name": clip.name, "kind": _kind(clip), "frames": clip.frame_count, "fps": clip.fps or clip.key_rate}
    return {**found, "seconds": round(clip.duration, 6)} if clip.keys else found


def _most(counts: Iterable[int], held: int | None) -> int:
    """Return the largest count, or the format's limit if that is lower. Without counts, return 0."""
    most = max(counts, default=0)
    return most if held is None else min(most, held)


def _is_held(clip: Clip, can: Capabilities) -> bool:
    """Return whether a format can hold at least a part of a clip, such as its name."""
    held = {"node": can.node_clips, "bone": can.joint_clips, "vertex": can.vertex_clips, "empty": can.clips}
    return any(held[kind] for kind in _kind(clip).split(" and "))


def _kind(clip: Clip) -> str:
    kinds = []
    if any(track.skeleton is None for track in clip.transforms):
        kinds.append("node")
    if clip.keys or any(track.skeleton is not None for track in clip.transforms):
        kinds.append("bone")
    if clip.vertices:
        kinds.append("vertex")
    return " and ".join(kinds) or "empty"


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
        options = target.export_options.of(given)
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
            if not getattr(options, EMBEDDED, True):
                facts["clips"] = []
            written = Outcome(outcome.source, path, outcome.collection, facts)
            with written.attempt():
                if part.placement is not None:
                    facts |= {**placement_facts(part.placement), "materials": len(part.materials)}
                encoded = api.encode_part(part, target, options, path=path, projects=self._projects)
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


def _is_joinable(scene: Scene, options: Options) -> bool:
    """Return whether joining objects would give fewer files: there are several, and joining was not requested."""
    return getattr(options, JOINED, "JOINED") != "JOINED" and sum(node.mesh is not None for node in scene.nodes) > 1


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
