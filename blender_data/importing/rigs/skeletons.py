"""Skeletons of a scene -> new armatures, or the bones of existing ones."""

from __future__ import annotations

from collections.abc import Collection

import bpy

from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.scene import Skeleton
from ...rigging import body_shapes, helper_bones
from ...rigging import bones as rigging_bones
from ...rigging.joint_poses import BoneMap
from ..import_context import ImportContext
from . import armature_matching, armatures


def build_skeletons(job: ImportContext) -> None:
    """Create the armatures of a scene, or find the bones of the armature that was given."""
    for number, skeleton in enumerate(job.scene.skeletons):
        if job.options.armature == "NONE":
            job.bones.append(None)
        elif (there := _find_armature(job, number)) is not None:
            needed = armature_matching.needed_joints(job.scene, number)
            bones = armature_matching.match(there, skeleton, job.report, needed)
            job.bones.append(bones)
            if needed and skeleton.share_distance is not None:
                found = bones.bones
                _report_distance(job, there, skeleton, [joint for joint in needed if found[joint] is not None])
            if there == job.request.armature:
                job.played.refer(skeleton)
        elif skeleton.joints:
            bones = _build_armature(job, number, skeleton)
            job.bones.append(bones)
            job.armatures.append(bones.armature)
        else:
            job.bones.append(None)


def set_sliders(job: ImportContext) -> None:
    """Set the sliders of the figures in a scene, and report bones that cannot be shaped exactly.

    Raises
    ------
    MeshferryError
        The armature that was given is not a figure with sliders.
    """
    for skeleton, found in zip(job.scene.skeletons, job.bones, strict=True):
        if skeleton.slider_values is None:
            continue
        if found is None:
            job.report.loss("body-shape-left-out", "The body shape was left out, since the import uses no armature")
            continue
        armature = found.armature
        if not body_shapes.is_figure(armature):
            raise MeshferryError("'{}' has no bones that follow a body shape", armature.name)
        if not body_shapes.is_shapeable(armature):
            template = "Armature '{}' is linked from another file; make an editable library override of it"
            raise MeshferryError(template, armature.name)
        if armature not in job.armatures:
            job.shape_restorers.append(body_shapes.restorer(armature))
        body_shapes.set_percents(armature, skeleton.slider_values)
        job.shapes += 1
        if body_shapes.unfit_bones(armature):
            job.report.change(
                "bones-not-along-axes",
                "Bones of '{}' do not lie along the avatar's axes, so shapes are up to 2 cm off; Retarget Names > "
                "Keep Proportions makes a copy with these axes",
                armature.name,
            )


def switch_on_weighted(job: ImportContext) -> None:
    """Switch *Deform* on for bones with weights, if the import used *Deform* to mark the bones for automatic weights.

    Otherwise poses of these bones would not move the mesh in Blender.
    """
    for number, (skeleton, found) in enumerate(zip(job.scene.skeletons, job.bones, strict=True)):
        if found is None or all(joint.automatic_weights is None for joint in skeleton.joints):
            continue
        weighted = helper_bones.weighted_joints([node for node in job.scene.nodes if node.skeleton == number])
        bones = [found.bones[joint] for joint in sorted(weighted)]
        rigging_bones.switch_on(found.armature, [name for name in bones if name is not None])


def _report_distance(
    job: ImportContext, armature: bpy.types.Object, skeleton: Skeleton, needed: Collection[int]
) -> None:
    distance = armature_matching.farthest(armature, skeleton, needed)
    if skeleton.share_distance is not None and distance > skeleton.share_distance:
        template = "The bones of '{}' are up to {:.3g} m away from where '{}' binds its meshes"
        job.report.change("bones-elsewhere", template, armature.name, distance, skeleton.name)


def _find_armature(job: ImportContext, number: int) -> bpy.types.Object | None:
    """Return the existing armature for a skeleton, or None to create one.

    The armature of the import request was chosen for the first skeleton. If a file has several models, the skeletons of
    further bound meshes use it only if it has all their joints at the same locations.
    """
    given = job.request.armature
    if job.options.armature != "AUTO" or not armature_matching.is_bound(job.scene):
        return given
    return armature_matching.shared(job.scene, number, [*([] if given is None else [given]), *job.armatures])


def _build_armature(job: ImportContext, number: int, skeleton: Skeleton) -> BoneMap:
    name = skeleton.name or job.scene.name
    size = helper_bones.size_of([node for node in job.scene.nodes if node.skeleton == number])
    return armatures.build(
        job.request.context,
        f"{name} Armature" if any(node.name == name for node in job.scene.nodes) else name,
        skeleton,
        armatures.BoneDrawing(size, job.options.bone_direction == "CHILDREN"),
        keep=job.keep,
    )
