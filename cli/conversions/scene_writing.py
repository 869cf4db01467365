"""Write a scene, or objects of the open file, as one or several files; facts and losses of each."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...blender_data.export_options import KEEP_IMPORTED, ExportOptions
from ...io_formats import api
from ...io_formats.core.capabilities import ANY_NUMBER, Capabilities, losses
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import Format, OutputFile
from ...io_formats.core.messages import Kind, Message, Report, Text, counted, distinct, joined, listed, of_kind
from ...io_formats.core.options import Options
from ...io_formats.core.placement import ModelUse, Placement
from ...io_formats.core.scene import Clip, Mesh, Role, Scene
from ...io_formats.disk.atomic_write import make_folder, real_place, replace_file
from ...io_formats.disk.file_sets import beside, companions_of, write_outputs
from ...io_formats.registry import by_name
from . import blender_exchange
from .blend_files import BlendPart
from .blender_formats import BLEND_FILE, AnyFormat, BlenderFormat
from .convert_plan import ConversionJob, Outcome
from .settings import EMBEDDED, ConversionContext, text_of_copy

_ANYTHING = replace(BLEND_FILE.capabilities, uv_layers=ANY_NUMBER)
"""Capabilities that all data of scenes fits."""


def scene_facts(scene: Scene, can: Capabilities = _ANYTHING) -> dict[str, Any]:
    """Return the facts of a scene, limited to what a format can hold, under the names that ``inspect`` uses.

    Objects, vertices and triangles of coarser levels of detail and physics shapes are not counted.
    """
    nodes = scene.nodes if can.meshes else []
    skeletons = scene.skeletons if can.skeletons else []
    meshes = [node.mesh for node in nodes if node.mesh is not None]
    objects = [node for node in nodes if node.lod == 0 and node.role is Role.RENDER]
    finest = [node.mesh for node in objects if node.mesh is not None]
    shapes = sum(skeleton.slider_values is not None for skeleton in skeletons) if can.sliders else 0
    return {
        **({"body_shapes": shapes} if shapes else {}),
        "nodes": min(len(objects), 1) if can.joins_objects else len(objects),
        "vertices": sum(len(mesh.points) for mesh in finest),
        "triangles": sum(mesh.triangle_count for mesh in finest),
        "surfaces": sum(len(mesh.materials) for mesh in finest),
        "materials": len({name for mesh in meshes for name in mesh.materials if name}) if can.materials else 0,
        "uv_layers": max((min(len(mesh.uvs), can.uv_layers) for mesh in meshes), default=0),
        "color_layers": max((min(len(mesh.colors), can.color_layers) for mesh in meshes), default=0),
        "bones": sum(len(skeleton.joints) for skeleton in skeletons),
        "shape_keys": sum(len(mesh.shape_keys) for mesh in meshes) if can.shape_keys else 0,
        "clips": [_clip(clip) for clip in scene.clips if _is_held(clip, can)],
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
    found = {"name": clip.name, "kind": _kind(clip), "frames": clip.frames_at_rate, "fps": clip.fps or clip.key_rate}
    return {**found, "seconds": round(clip.duration, 6)} if clip.keys else found


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
_CARRIED = frozenset({"EMPTY", "ARMATURE"})
"""Types of objects that are dropped without a warning in formats without a tree; their children keep their location."""


class OutputWriter:
    """Writes the scenes of one run, and parts of the open file, so that no file is written twice."""

    def __init__(self, context: ConversionContext) -> None:
        self._settings = context.settings
        self._session = context.session
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
            if len(outputs) > 1 or outputs[-1].copy_of is not None or outputs[-1].obsolete:
                outcome.add(write_outputs(outcome.target, self._without_used(outcome.target, outputs), job.folder))
            else:  # A single file needs no staging folder, and searching a folder of 10,000 files for old ones is slow.
                replace_file(outcome.target, outputs[-1].data, is_flushed=job.is_flushed, within=job.folder)
        outcome.files = paths if job.format.is_set and len(paths) > 1 else []

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
        return [*companions, chosen._replace(obsolete=tuple(names))]

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

    def write_part(
        self, part: BlendPart, outcome: Outcome, job: ConversionJob, target: BlenderFormat
    ) -> Iterator[Outcome]:
        """Write a part of the open .blend file; yield its outcome."""
        with outcome.attempt():
            chosen, lost, scene = self.take_inventory(part, target)
            outcome.facts = scene_facts(scene, target.capabilities)
            outcome.report(lost, strict=self._settings.strict)
            self.write_objects(chosen, [clip.name for clip in scene.clips], outcome, job, target)
        yield outcome

    def take_inventory(self, part: BlendPart, target: BlenderFormat) -> tuple[list[Any], list[Message], Scene]:
        """Return the objects to write, the losses, and the inventory of a part: a scene without the values of data.

        Raises
        ------
        ExportError
            There is nothing to write.
        """
        from ...blender_data.addon_formats import addon_export
        from ...blender_data.armature_modifiers import MESHABLE

        options = ExportOptions.of(self._settings.export_options)
        chosen, left_out, scene = self._inventory(part, options)
        if not chosen:
            place = Text("the collection '{}'", part.name) if part.name else Text("the file")
            more = Text("; {}", part.left_out[0]) if part.left_out else ""
            raise ExportError("There is nothing to export in {}: no object is shown{}", place, more)
        can = target.capabilities_in(self._session.load().app.version)
        if can.joins_clips:  # all currently playing clips become one clip of the file
            playing = addon_export.playing_clips(chosen)
            together = [clip for clip in scene.clips if clip.name in playing]
            scene.clips = together[:1] + [clip for clip in scene.clips if clip not in together]
        report = Report([*part.left_out, *losses(scene if can.clips else replace(scene, clips=[]), can)])
        addon_export.report_without_faces(self._session.load_for_changes().context, chosen, report)
        if not can.node_hierarchy:
            lost = [obj.name for obj in chosen if obj.type not in MESHABLE | _CARRIED]
            report.loss_of("object-without-surface-left-out", "{} without a surface not carried over: {}", lost)
        report_lost_by_exporter(scene, target, report)
        _report_lost_movement(chosen, options, target, len(scene.clips), report)
        unseen = dict.fromkeys([*left_out, *addon_export.disabled_in_instances(chosen)])
        report_hidden([obj for obj in unseen if not addon_export.belongs_to_another(obj)], report)
        return chosen, report.messages, scene

    def with_missing(self, part: BlendPart, target: AnyFormat) -> BlendPart:
        """Return a part of the open .blend file with messages about what Blender did not load or evaluate of it."""
        from ...blender_data.addon_formats import addon_export, missing_data

        use_hidden = ExportOptions.of(self._settings.export_options).use_hidden
        context = self._session.load_for_changes().context
        chosen, left_out = addon_export.chosen_objects(context, part.collection, use_hidden=use_hidden)
        objects = [*chosen, *filter(addon_export.belongs_to_another, left_out)]
        report = Report(list(part.left_out))
        missing_data.report_missing(objects, report, with_materials=target.capabilities.materials)
        return replace(part, left_out=tuple(report.messages))

    def _inventory(self, part: BlendPart, options: ExportOptions) -> tuple[list[Any], list[Any], Scene]:
        """Return the objects to write, the others, and the inventory of a part."""
        from ...blender_data.addon_formats import addon_export
        from ...blender_data.addon_formats.inventory import inventory

        context = self._session.load_for_changes().context
        chosen, left_out = addon_export.chosen_objects(context, part.collection, use_hidden=options.use_hidden)
        coarser = [obj for obj in left_out if addon_export.belongs_to_another(obj)]
        return chosen, left_out, inventory(context, [*chosen, *coarser], part.name, options)

    def report_losses(self, part: BlendPart, scene: Scene, options: ExportOptions, target: Format) -> None:
        """Report losses that concern objects or data which the export did not read."""
        can = target.capabilities
        scene.warnings += part.left_out
        if not can.meshes:
            return  # a format of animations or bones obviously has no other data
        _, _, whole = self._inventory(part, options)
        for node in whole.nodes:
            if not can.lod_models:
                node.parent = -1
            if (mesh := node.mesh) is not None:
                form = mesh.points, mesh.corner_point, mesh.material_index
                node.mesh = Mesh(*form, joint_weights=mesh.joint_weights, shape_keys=mesh.shape_keys)
        whole.clips = []  # the export reported the movement
        if can.vertex_clips and any(clip.vertices for clip in scene.clips):
            # The bones' deformation is exported as vertex animation, so missing bones are a note, not a loss.
            without_bones = replace(
                BLEND_FILE.capabilities, skeletons=can.skeletons, influences=ANY_NUMBER if can.influences else 0
            )
            baked = losses(Scene("", whole.nodes, whole.skeletons), without_bones)
            scene.warnings += [replace(message, kind=Kind.NOTE) for message in distinct(baked)]
        scene.warnings += [text for text in losses(whole, can) if text not in scene.warnings]

    def write_objects(
        self, objects: list[Any], clips: list[str], outcome: Outcome, job: ConversionJob, target: BlenderFormat
    ) -> None:
        """Write objects of the open file; a dry run only finds out what the exporter leaves out.

        Raises
        ------
        ExportError
            The format can hold none of the objects, or Blender reports an error.
        """
        from ...blender_data.addon_formats import addon_export
        from ...blender_data.armature_modifiers import MESHABLE

        if not target.capabilities.skeletons and not any(obj.type in MESHABLE for obj in objects):
            raise ExportError("There is no mesh to write; {} files hold nothing else", target.label)
        blender_exchange.require_writer(self._session, target)
        report = Report()
        if target.averages_normals and target.capabilities_in(self._session.load().app.version).normals:
            template = "{} not carried over, since the file has one normal a vertex: {}"
            sharp = addon_export.sharp_objects(self._session.load_for_changes().context, objects)
            nouns = "object's sharp edges", "objects' sharp edges"
            report.loss_of("sharp-edges-left-out", template, sharp, *nouns)
        if target.drops_held_poses or (target.drops_held_objects and len(clips) < 2):
            _report_held_poses(objects, outcome, target, report)
        if target.left_out:
            self._report_left_out(objects, outcome, target, report)
        if target.moves_rigs_in:
            report.messages += turned_rigs(objects, by_name(target.moves_rigs_in))
        outcome.report(report.messages, strict=self._settings.strict)
        dry_run = self._settings.dry_run
        outputs, notices = blender_exchange.write_objects(
            self._session, objects, clips, outcome.target, target, dry_run=dry_run
        )
        outcome.report(notices, strict=self._settings.strict)
        self.put(outcome, job, outputs)

    def _report_left_out(self, objects: list[Any], outcome: Outcome, target: BlenderFormat, report: Report) -> None:
        """Report objects whose surfaces Blender's exporter does not write."""
        from ...blender_data.addon_formats.addon_export import count_faces

        context = self._session.load_for_changes().context
        unwritten = [obj for obj in objects if obj.type in target.left_out]
        counts = {obj.name: count_faces(context, [obj], triangulated=target.is_triangulated) for obj in unwritten}
        if missing := sum(counts.values()):
            outcome.facts = {**(outcome.facts or {}), "missing_faces": missing}
            template, names = "{} not carried over by Blender's exporter: {}", listed([n for n in counts if counts[n]])
            report.loss("faces-left-out-by-exporter", template, counted(missing, target.face_label), names)


def _report_held_poses(objects: list[Any], outcome: Outcome, target: BlenderFormat, report: Report) -> None:
    """Report objects with constant animations, of which the file stores the pose but not the animation."""
    from ...blender_data.addon_formats.addon_import import held_blocks

    held, has_movement = held_blocks(objects)
    rigs = [block for block in held if getattr(block, "type", "") == "ARMATURE"]
    if target.drops_held_objects:
        has_movement, rigs = has_movement or bool(rigs), []
    if has_movement:  # constant objects keep their pose, and moving ones preserve the length of the clip
        held = rigs
    elif held:
        outcome.facts = {**(outcome.facts or {}), "clips": []}
    names = [block.name for block in held]
    report.loss_of("held-pose-left-out", "{} not carried over as animation: {}", names, "held pose")


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


def report_hidden(objects: Iterable[Any], report: Report) -> None:
    """Report objects that are left out because they are hidden, if there are any."""
    if names := [obj.name for obj in objects]:
        report.loss("hidden-object-left-out", "hidden, left out", item=listed(names))


def turned_rigs(objects: Iterable[Any], uploaded: Format) -> list[Message]:
    """Return a note about rigged meshes that viewers would turn, with the format that uploads them right.

    Viewers show such files right only if the avatar faces +X in Blender's world.
    """
    import numpy as np

    from ...blender_data import names
    from ...blender_data.armature_modifiers import armature_of
    from ...io_formats.second_life.avatar.joints import canonical, facing_of

    def is_turned(rig: Any) -> bool:
        bones = {names.name_in_file(bone): rig.matrix_world @ bone.head_local for bone in rig.data.bones}
        heads = {known: np.array(head) for name, head in bones.items() if (known := canonical(name)) is not None}
        return uploaded.capabilities.knows_most(list(bones)) and not np.allclose(facing_of(heads), np.identity(4))

    rigs: dict[str, Any] = {obj.name: armature_of(obj) for obj in objects}
    turned = [name for name, rig in rigs.items() if rig is not None and is_turned(rig)]
    report = Report()
    if turned:
        report.note(
            "rigged-mesh-not-for-upload",
            "{} not for uploads: the avatar does not face +X, so viewers turn it and move its joints; convert to {} "
            "({}) instead: {}",
            counted(len(turned), "rigged mesh is", "rigged meshes are"),
            uploaded.extensions[0],
            uploaded.label,
            listed(of_kind("object", turned)),
        )
    return report.messages


def report_lost_by_exporter(scene: Scene, target: BlenderFormat, report: Report) -> None:
    """Report the losses due to the implementation of the exporter, not to the format."""
    _report_changed_names(scene, target, report)
    # Vertex animations are lost if exporters write several animations.
    moved = [clip.name for clip in scene.clips for _ in clip.vertices]
    if target.every_action and len(scene.clips) > 1 and moved:
        report.loss(
            "vertex-animation-among-several",
            "{} not carried over, since there are several animations: {}",
            counted(len(moved), "vertex animation"),
            listed(of_kind("animation", list(dict.fromkeys(moved)))),
        )


def _report_changed_names(scene: Scene, target: BlenderFormat, report: Report) -> None:
    """Report changed names of objects, bones and materials."""
    if not target.replaced:
        return
    can = target.capabilities
    names = [node.name for node in scene.nodes if node.mesh is not None or can.node_hierarchy]
    names += [name for node in scene.nodes if node.mesh for name in node.mesh.materials]
    if can.skeletons:
        names += [name for skeleton in scene.skeletons for name in (skeleton.name, *(j.name for j in skeleton.joints))]
    changed = [name for name in dict.fromkeys(names) if re.search(target.replaced, name)]
    if changed:
        get = counted(len(changed), "name gets", "names get")
        report.change("name-with-replaced-characters", "{} _ for {}: {}", get, target.replaced_label, listed(changed))


def _report_lost_movement(
    objects: list[Any], options: ExportOptions, target: BlenderFormat, clips: int, report: Report
) -> None:
    """Report movement that Blender's exporter does not write."""
    from ...blender_data.exporting import left_out

    can = target.capabilities
    # These exporters sample the whole scene for a single animation, which has all movement then.
    is_sampled = (can.joins_clips and clips > 0) or (bool(target.every_action) and clips == 1)
    if not can.clips:
        left_out.report_left_out(objects, options, can, report)
    else:
        left_out.report_metaballs(objects, report)
        left_out.report_without_action([] if is_sampled else objects, report)
