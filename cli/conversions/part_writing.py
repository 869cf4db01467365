"""Write objects of the open file with Blender's own exporters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...blender_data.export_options import ExportOptions
from ...io_formats.core.capabilities import ANY_NUMBER, Capabilities, losses
from ...io_formats.core.errors import ExportError
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Kind, Message, Report, Text, counted, distinct, listed
from ...io_formats.registry import by_name
from . import blender_exchange
from .blend_files import BlendPart
from .blender_formats import BLEND_FILE, BlenderFormat
from .convert_plan import ConversionJob
from .scene_writing import Outcome, OutputWriter, scene_facts
from .settings import ConversionContext

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene

_CARRIED = frozenset({"EMPTY", "ARMATURE"})
"""Types of objects that are dropped without a warning in formats without a tree; their children keep their location."""


class PartWriter:
    """Writes parts of the open file with Blender's exporters, and reports losses."""

    def __init__(self, context: ConversionContext, writer: OutputWriter) -> None:
        self._settings = context.settings
        self._session = context.session
        self._writer = writer

    def write(self, part: BlendPart, outcome: Outcome, job: ConversionJob, target: BlenderFormat) -> Outcome:
        """Write a part of the open .blend file; return its outcome."""
        with outcome.attempt():
            chosen, lost, scene = self.take_inventory(part, target)
            outcome.facts = scene_facts(scene, target.capabilities)
            outcome.report(lost, strict=self._settings.strict)
            self.write_objects(chosen, [clip.name for clip in scene.clips], outcome, job, target)
        return outcome

    def take_inventory(self, part: BlendPart, target: BlenderFormat) -> tuple[list[Any], list[Message], Scene]:
        """Return the objects to write, the losses, and the inventory of a part: a scene without the values of data.

        Raises
        ------
        ExportError
            There is nothing to write.
        """
        from ...blender_data.addon_formats import addon_export
        from ...blender_data.addon_formats.inventory import inventory

        context = self._session.load_for_changes().context
        options = ExportOptions.of(self._settings.export_options)
        chosen, left_out = addon_export.chosen_objects(context, part.collection, use_hidden=options.use_hidden)
        if not chosen:
            place = Text("the collection '{}'", part.name) if part.name else Text("the file")
            more = Text("; {}", part.left_out[0]) if part.left_out else ""
            raise ExportError("There is nothing to export in {}: no object is shown{}", place, more)
        coarser = [obj for obj in left_out if addon_export.belongs_to_another(obj)]
        scene = inventory(context, [*chosen, *coarser], part.name, options)
        can = target.capabilities_in(self._session.load().app.version)
        if can.joins_clips:  # all currently playing clips become one clip of the file
            playing = addon_export.playing_clips(chosen)
            together = [clip for clip in scene.clips if clip.name in playing]
            scene.clips = together[:1] + [clip for clip in scene.clips if clip not in together]
        lost: list[Message] = [*part.left_out, *losses(scene, can), *lost_objects(chosen, can)]
        lost += lost_by_exporter(scene, target)
        unseen = dict.fromkeys([*left_out, *addon_export.disabled_in_instances(chosen)])
        hidden = [obj for obj in unseen if not addon_export.belongs_to_another(obj)]
        if hidden:
            lost.append(hidden_objects(hidden))
        return chosen, lost, scene

    def report_losses(self, part: BlendPart, scene: Scene, options: ExportOptions, target: Format) -> None:
        """Report losses that concern objects or data which the export did not read."""
        from ...blender_data.addon_formats import addon_export
        from ...blender_data.addon_formats.inventory import inventory
        from ...io_formats.core.scene import Mesh, Scene

        can = target.capabilities
        if not can.meshes:
            return  # a format of animations or bones obviously has no other data
        context = self._session.load_for_changes().context
        chosen, left_out = addon_export.chosen_objects(context, part.collection, use_hidden=options.use_hidden)
        coarser = [obj for obj in left_out if addon_export.belongs_to_another(obj)]
        whole = inventory(context, [*chosen, *coarser], part.name, options)
        for node in whole.nodes:
            if not can.lod_models:
                node.parent = -1
            if node.mesh is not None:
                node.mesh = Mesh(
                    node.mesh.points,
                    node.mesh.corner_point,
                    node.mesh.material_index,
                    joint_weights=node.mesh.joint_weights,
                    shape_keys=node.mesh.shape_keys,
                )
        if options.clips == "NONE":
            whole.clips = []
        if can.vertex_clips and any(clip.vertices for clip in scene.clips):
            # The bones' deformation is exported as vertex animation, so missing bones are a note, not a loss.
            without_bones = replace(
                BLEND_FILE.capabilities,
                skeletons=can.skeletons,
                influences=ANY_NUMBER if can.influences else 0,
                joint_clips=can.joint_clips,
            )
            baked = losses(Scene("", whole.nodes, whole.skeletons, whole.clips), without_bones)
            scene.warnings += [replace(message, kind=Kind.NOTE) for message in distinct(baked)]
        scene.warnings += [text for text in (*part.left_out, *losses(whole, can)) if text not in scene.warnings]

    def write_objects(
        self, objects: list[Any], clips: list[str], outcome: Outcome, job: ConversionJob, target: BlenderFormat
    ) -> None:
        """Write objects of the open file, unless this is a dry run.

        Raises
        ------
        ExportError
            The format can hold none of the objects, or Blender reports an error.
        """
        from ...blender_data.armature_modifiers import MESHABLE

        if not target.capabilities.skeletons and not any(obj.type in MESHABLE for obj in objects):
            raise ExportError("There is no mesh to write; {} files hold nothing else", target.label)
        blender_exchange.require_writer(self._session, target)
        if target.averages_normals and target.capabilities_in(self._session.load().app.version).normals:
            self._report_sharp_edges(objects, outcome)
        if target.drops_held_poses or (target.drops_held_objects and len(clips) < 2):
            self._report_held_poses(objects, outcome, target)
        if target.left_out:
            self._report_left_out(objects, outcome, target)
        if target.moves_rigs_in:
            outcome.add(turned_rigs(objects, by_name(target.moves_rigs_in)))
        if self._settings.dry_run:
            return
        written = blender_exchange.write_objects(self._session, objects, clips, outcome.target, target)
        outcome.add(written.notices)
        self._writer.put(outcome, job, written.outputs)

    def _report_left_out(self, objects: list[Any], outcome: Outcome, target: BlenderFormat) -> None:
        """Report objects whose surfaces Blender's exporter does not write."""
        from ...blender_data.addon_formats.addon_export import count_faces

        context = self._session.load_for_changes().context
        counts = {
            obj.name: count_faces(context, [obj], triangulated=target.is_triangulated)
            for obj in objects
            if obj.type in target.left_out
        }
        missing = sum(counts.values())
        if missing:
            outcome.facts = {**(outcome.facts or {}), "missing_faces": missing}
            self._report_loss(
                outcome,
                "faces-left-out-by-exporter",
                "{} not carried over by Blender's exporter: {}",
                counted(missing, target.face_label),
                listed([name for name, count in counts.items() if count]),
            )

    def _report_sharp_edges(self, objects: list[Any], outcome: Outcome) -> None:
        """Report objects whose sharp edges become smooth, since the file has one normal for each vertex."""
        from ...blender_data.addon_formats.addon_export import sharp_objects

        sharp = sharp_objects(self._session.load_for_changes().context, objects)
        if sharp:
            self._report_loss(
                outcome,
                "sharp-edges-left-out",
                "{} not carried over, since the file has one normal a vertex: {}",
                counted(len(sharp), "object's sharp edges", "objects' sharp edges"),
                listed(sharp),
            )

    def _report_held_poses(self, objects: list[Any], outcome: Outcome, target: BlenderFormat) -> None:
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
        if held:
            self._report_loss(
                outcome,
                "held-pose-left-out",
                "{} not carried over as animation: {}",
                counted(len(held), "held pose"),
                listed([block.name for block in held]),
            )

    def _report_loss(self, outcome: Outcome, code: str, template: str, *values: object) -> None:
        report = Report()
        report.loss(code, template, *values)
        outcome.report(report.messages, strict=self._settings.strict)


def hidden_objects(objects: Iterable[Any]) -> Message:
    """Return the message about objects that are left out because they are hidden."""
    report = Report(item=listed([obj.name for obj in objects]))
    report.loss("hidden-object-left-out", "hidden, left out")
    message: Message = report.messages[0]
    return message


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
            listed(turned),
        )
    return report.messages


def lost_by_exporter(scene: Scene, target: BlenderFormat) -> list[Message]:
    """Return the losses due to the implementation of the exporter, not to the format."""
    report = Report()
    _report_changed_names(scene, target, report)
    # Vertex animations are lost if exporters write several animations.
    moved = [clip.name for clip in scene.clips for _ in clip.vertices]
    if target.every_action and len(scene.clips) > 1 and moved:
        report.loss(
            "vertex-animation-among-several",
            "{} not carried over, since there are several animations: {}",
            counted(len(moved), "vertex animation"),
            listed(list(dict.fromkeys(moved))),
        )
    return report.messages


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


def lost_objects(objects: list[Any], can: Capabilities) -> list[Message]:
    """Return a message about objects without a surface, which formats without a node tree leave out."""
    from ...blender_data.armature_modifiers import MESHABLE

    lost = [obj.name for obj in objects if obj.type not in MESHABLE | _CARRIED]
    report = Report()
    if not can.node_hierarchy:
        report.loss_of("object-without-surface-left-out", "{} without a surface not carried over: {}", lost)
    return report.messages
