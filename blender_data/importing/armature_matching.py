"""Skeletons of a scene -> new armatures or existing ones: the choice of the armature, and the bone of each joint."""

from collections.abc import Collection, Iterable, Sequence

import bpy
import numpy as np

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Message, Named, Report, Text, listed, of_kind
from ...io_formats.core.scene import Scene, Skeleton
from ...io_formats.geometry import hierarchy
from .. import names
from ..armature_modifiers import armature_modifiers
from ..rigging import body_shapes, helper_bones, joint_poses
from ..rigging import bones as rigging_bones
from ..rigging.armature_reading import ReadSkeleton, read_skeleton
from ..rigging.joint_poses import Array, BoneMap
from . import armatures
from .armatures import bind_matrices, extent, parents_of
from .import_context import ImportContext

_ENOUGH = 0.5
"""Share of the joints that an armature must have, by name, to be chosen automatically."""

_SAME_BIND = 1e-4
"""Tolerance for bind transforms that count as equal, relative to the largest entry of each matrix if that is above
1."""

_SAME_PLACE = 1e-4
"""Tolerance for rest positions of joints that count as equal, in metres."""

_NAMED = 3
"""Number of missing bones that a message names; further bones are only counted."""


def keyed_joints(scene: Scene, number: int) -> set[int] | None:
    """Return the joints of a skeleton that have keys; None if the scene needs all joints of the skeleton.

    A file of keys stores rotations relative to the rest pose of the target, so the armature may have another rest pose,
    and may lack the joints without keys. A file of sliders needs no particular joint.
    """
    if is_shape(scene):
        return set()
    if scene.nodes or not scene.clips or not all(clip.keys for clip in scene.clips):
        return None
    return {track.target for clip in scene.clips for track in clip.keys if track.skeleton == number}


def is_shape(scene: Scene) -> bool:
    """Return whether a scene has only positions of sliders, which shape any figure."""
    return not scene.nodes and not scene.clips and any(one.slider_values is not None for one in scene.skeletons)


def is_bound(scene: Scene) -> bool:
    """Return whether the file stores the bind pose of a mesh. Meshes with equal bind poses can share an armature."""
    return any(node.skin is not None for node in scene.nodes)


def choose_for_scene(
    context: bpy.types.Context, scene: Scene, candidates: Iterable[bpy.types.Object], mode: str
) -> bpy.types.Object | None:
    """Return the existing armature for the weights and animations of a file's first skeleton, or None to create one.

    Meshes get a new armature, unless the mode is ``ACTIVE`` or the file stores their bind pose. With a stored bind
    pose, they share an armature that has the same joints in the same pose, or the joints that they need within
    ``share_distance``. The active armature is considered, too, if an import or Meshferry created it.

    Parameters
    ----------
    candidates:
        Armature objects imported in the same run, the oldest first.
    mode:
        A choice of the import option ``armature``.

    Raises
    ------
    MeshferryError
        The mode is ``ACTIVE``, but no armature is active or the active one is linked from a library.
    """
    if not scene.skeletons:
        return None
    active = active_armature(context)
    if mode == "ACTIVE":
        if active is None:
            raise MeshferryError("No armature is active; select one, or let each file get its own")
        if active.library is not None:
            raise MeshferryError(
                "Armature '{}' is linked from another file; make a library override of it", active.name
            )
        return active
    if mode != "AUTO":
        return None
    skeleton = scene.skeletons[0]
    if is_shape(scene):
        unshaped = [candidate for candidate in candidates if not body_shapes.is_shaped(candidate)]
        figures = filter(body_shapes.is_figure, [*unshaped, *([active] if active is not None else [])])
        return next(filter(body_shapes.is_shapeable, figures), None)
    if any(node.mesh is not None for node in scene.nodes):
        if skeleton.share_distance is not None and active is not None and was_made_here(active):
            candidates = [*candidates, active]
        return shared(scene, 0, candidates) if is_bound(scene) or skeleton.share_distance is not None else None
    keyed = keyed_joints(scene, 0)
    found = _best(skeleton, candidates, keyed)
    if found is None and active is not None:
        found = _best(skeleton, [active], keyed)
    return found


def mismatches(
    context: bpy.types.Context, scene: Scene, candidates: Iterable[bpy.types.Object], mode: str
) -> list[Message]:
    """Return a reason for each armature why :func:`choose_for_scene` did not choose it for an animation.

    The armatures are those imported in the same run and the active one.
    """
    if (
        mode != "AUTO"
        or not scene.skeletons
        or not scene.skeletons[0].joints
        or any(node.mesh is not None for node in scene.nodes)
    ):
        return []
    wanted = _names(scene.skeletons[0], keyed_joints(scene, 0))
    active = active_armature(context)
    meant = dict.fromkeys([*([] if is_shape(scene) else candidates), *([active] if active is not None else [])])
    report = Report()
    for armature in meant:
        if armature.library is not None or (is_shape(scene) and not body_shapes.is_shapeable(armature)):
            text = "'{}' is linked from another file; made a new armature"
            report.change("linked-armature", text, armature.name)
            continue
        if is_shape(scene):
            text = "'{}' has no bones that follow a body shape; made a new armature"
            report.change("no-figure", text, armature.name)
            continue
        found = _count(wanted, armature)
        report.change(
            "other-armature",
            "{} of its {} bones is in '{}'; made a new armature"
            if found == 1
            else "{} of its {} bones are in '{}'; made a new armature",
            Text("only {}", found) if found else Text("none"),
            len(wanted),
            armature.name,
        )
    return report.messages


def bone_names(armature: bpy.types.Object) -> set[str]:
    """Return the names of an armature's bones, in Blender and in their file."""
    return {names.name_in_file(bone) for bone in armature.data.bones} | {bone.name for bone in armature.data.bones}


def active_armature(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the active object if it is an armature, else the armature that deforms it."""
    active = context.view_layer.objects.active
    if active is None or active.type == "ARMATURE":
        return active
    owners = [modifier.object for modifier in armature_modifiers(active)]
    return next((obj for obj in [*owners, active.parent] if obj is not None and obj.type == "ARMATURE"), None)


def _names(skeleton: Skeleton, keyed: Collection[int] | None) -> list[set[str]]:
    """Return, for each needed joint, the names that it may have."""
    needed = range(len(skeleton.joints)) if keyed is None else keyed
    return [{skeleton.joints[number].name, *skeleton.joints[number].aliases} for number in needed]


def _count(wanted: Sequence[set[str]], armature: bpy.types.Object) -> int:
    """Return the number of joints for which an armature has a bone."""
    there = bone_names(armature)
    return sum(not there.isdisjoint(names_of) for names_of in wanted)


def _best(
    skeleton: Skeleton, candidates: Iterable[bpy.types.Object], keyed: Collection[int] | None
) -> bpy.types.Object | None:
    """Return the armature with the most joints.

    If several have equally many, equal bind pose, then equal name, then age decides.
    """
    wanted = _names(skeleton, keyed)
    ranked = []
    for age, candidate in enumerate(candidates):
        if candidate.library is not None:
            continue
        share = _count(wanted, candidate) / max(1, len(wanted))
        if share >= _ENOUGH:
            alike = len(candidate.data.bones) == len(skeleton.joints) and skeleton.has_bind
            same = alike and not match(candidate, skeleton, Report()).differs
            ranked.append((share, same, names.name_in_file(candidate) == skeleton.name, -age, candidate))
    return max(ranked, key=lambda entry: entry[:4])[4] if ranked else None


def was_made_here(armature: bpy.types.Object) -> bool:
    """Return whether an import created the bones of an armature, or Meshferry made them from a skeleton."""
    return any(bone.meshferry.order >= 0 for bone in armature.data.bones)


def needed_joints(scene: Scene, number: int) -> set[int] | None:
    """Return the joints of a skeleton that an existing armature must have; None if it must have all."""
    if scene.skeletons[number].share_distance is None:
        return keyed_joints(scene, number)
    return helper_bones.weighted_joints([node for node in scene.nodes if node.skeleton == number])


def shared(scene: Scene, number: int, candidates: Iterable[bpy.types.Object]) -> bpy.types.Object | None:
    """Return the first armature that the bound meshes of a skeleton can share.

    It has all joints with weights within ``share_distance``. If the skeleton states no such distance, the armature must
    match by :func:`alike`.
    """
    skeleton = scene.skeletons[number]
    if skeleton.share_distance is None:
        return alike(skeleton, candidates)
    needed = needed_joints(scene, number) or set()
    own = (candidate for candidate in candidates if candidate.library is None and needed)
    return next((one for one in own if farthest(one, skeleton, needed) <= skeleton.share_distance), None)


def farthest(armature: bpy.types.Object, skeleton: Skeleton, joints: Collection[int]) -> float:
    """Return the largest distance in metres between a joint and its bone; infinity if a bone is missing."""
    there = read_skeleton(armature)
    found = _find(there, skeleton)
    chosen = sorted(joints)
    if any(found[joint] < 0 for joint in chosen):
        return float("inf")
    heads = hierarchy.world_matrices(bind_matrices(skeleton), parents_of(skeleton))[chosen, :3, 3]
    apart: Array = np.linalg.norm(there.rest[[found[joint] for joint in chosen], :3, 3] - heads, axis=1)
    return float(apart.max(initial=0.0))


def alike(skeleton: Skeleton, candidates: Iterable[bpy.types.Object]) -> bpy.types.Object | None:
    """Return the first armature that has all joints of a skeleton, with the same parents and rest transforms."""
    heads = hierarchy.world_matrices(bind_matrices(skeleton), parents_of(skeleton))[:, :3, 3]
    for candidate in candidates:
        if candidate.library is not None or not skeleton.joints:
            continue
        there = read_skeleton(candidate)
        found = _find(there, skeleton)
        if min(found) < 0:
            continue
        parents = [found[parent] if parent >= 0 else -1 for parent in parents_of(skeleton)]
        if [there.parents[number] for number in found] != parents:
            continue
        apart: Array = np.linalg.norm(there.rest[found, :3, 3] - heads, axis=1)
        if apart.max() <= _SAME_PLACE and not _differs(there, skeleton, found):
            return candidate
    return None


def match(
    armature: bpy.types.Object, skeleton: Skeleton, report: Report, keyed: Collection[int] | None = None
) -> BoneMap:
    """Find the bone of each joint of a skeleton by its name in the file, its name in Blender, or an alias.

    Frames are local to a joint's parent, so they define a pose only together with a bind pose: that of the armature,
    or, if none of its bones was imported, that of the skeleton.

    Parameters
    ----------
    report:
        Gets messages about missing bones, bones with other parents, and a different bind pose.
    keyed:
        Joints that have keys, see :func:`keyed_joints`; warnings concern only these, and the bind pose does not matter.
        None: all joints are needed.

    Raises
    ------
    MeshferryError
        The armature has none of the bones.
    """
    there = read_skeleton(armature)
    found = _find(there, skeleton)
    needed = range(len(found)) if keyed is None else sorted(keyed)
    missing = [skeleton.joints[joint].name for joint in needed if found[joint] < 0]
    if missing and len(missing) == len(needed):
        raise MeshferryError(
            "'{}' has none of the bones of '{}'; select the armature that has them, or let the file get its own",
            armature.name,
            skeleton.name,
        )
    if missing:
        report.loss("missing-bones", "Not in '{}': {} of '{}'", armature.name, named(missing), skeleton.name)
    hang = [
        joint
        for joint in needed
        if found[joint] >= 0
        and _parent_there(there, found, joint, keyed) != _parent_bone(skeleton, found, joint, keyed)
    ]
    if hang:
        report.change(
            "other-parents",
            "Under other parents in '{}' than in '{}': {}; they may move otherwise",
            armature.name,
            skeleton.name,
            named([skeleton.joints[joint].name for joint in hang]),
        )
    matched = BoneMap(
        armature,
        [there.bones[number] if number >= 0 else None for number in found],
        lambda: _space(there, skeleton, found, hang),
        extent(there.rest),
    )
    same_parent = [-1 if joint in hang else number for joint, number in enumerate(found)]
    matched.differs = keyed is None and _differs(there, skeleton, same_parent)
    if matched.differs:
        text = "The bind pose of '{}' is not that of '{}'; its bones go where the animation puts them"
        report.change("other-bind-pose", text, skeleton.name, armature.name)
    return matched


def _parent_there(there: ReadSkeleton, found: list[int], joint: int, keyed: Collection[int] | None) -> int:
    """Return the joint index of the parent of a joint's bone, or -1.

    If only keyed joints matter, ancestors that are not the bone of any joint are skipped.
    """
    above = there.parents[found[joint]]
    while keyed is not None and above >= 0 and above not in found:
        above = there.parents[above]
    return above


def _parent_bone(skeleton: Skeleton, found: list[int], joint: int, keyed: Collection[int] | None) -> int:
    """Return the bone index of a joint's parent, or -1.

    If only keyed joints matter, ancestors without a bone are skipped.
    """
    above = skeleton.joints[joint].parent
    while keyed is not None and above >= 0 and found[above] < 0:
        above = skeleton.joints[above].parent
    return found[above] if above >= 0 else -1


def named(bones: list[str]) -> Text:
    """Return the number of bones and the first names, for messages."""
    if len(bones) == 1:
        return Text("bone '{}'", Named("bone", bones[0]))
    more = ", …" if len(bones) > _NAMED else ""
    return Text("{} bones ({}{})", len(bones), listed(of_kind("bone", bones[:_NAMED])), more)


def _find(there: ReadSkeleton, skeleton: Skeleton) -> list[int]:
    """Return the index of the bone for each joint, or -1.

    If several joints have the same name, they are assigned to bones in order.
    """
    waiting: dict[str, list[int]] = {}
    for number, joint in enumerate(there.skeleton.joints):
        waiting.setdefault(joint.name, []).append(number)
    found = [waiting[joint.name].pop(0) if waiting.get(joint.name) else -1 for joint in skeleton.joints]
    # Joints that are still unmatched are compared with the names of bones in Blender.
    taken = set(found)
    by_name = {name: number for number, name in enumerate(there.bones) if number not in taken}
    found = [by_name.pop(joint.name, -1) if at < 0 else at for at, joint in zip(found, skeleton.joints, strict=True)]
    return [
        next((by_name.pop(alias) for alias in joint.aliases if alias in by_name), -1) if at < 0 else at
        for at, joint in zip(found, skeleton.joints, strict=True)
    ]


def _space(there: ReadSkeleton, skeleton: Skeleton, found: list[int], hang: list[int]) -> joint_poses.PoseSpace:
    """Return the matrices that convert joint poses to bone poses.

    Bones of the joints in ``hang`` have other parents than in the skeleton.
    """
    places = np.maximum(np.asarray(found, np.intp), 0)
    if not there.bones or not found:
        none = np.tile(np.eye(4), (len(found), 1, 1))
        return joint_poses.PoseSpace(none, none)
    was_imported = any(there.obj.data.bones[name].meshferry.order >= 0 for name in there.bones)
    own = joint_poses.PoseSpace.of(bind_matrices(skeleton), parents_of(skeleton), there.rest[places])
    if skeleton.has_bind and not was_imported:
        return own
    whole = joint_poses.PoseSpace.of(there.local, there.parents, there.rest)
    space = joint_poses.PoseSpace(whole.left[places], whole.right[places])
    for joint in hang:
        # Frames of the joint are relative to its parent in the file. Using the bind pose of that parent makes the bone
        # rotate about its own location.
        if skeleton.has_bind and np.allclose(own.right[joint], space.right[joint], rtol=_SAME_BIND, atol=_SAME_BIND):
            space.left[joint] = own.left[joint]
    return space


def _differs(there: ReadSkeleton, skeleton: Skeleton, found: list[int]) -> bool:
    """Return whether the bind poses of joints that skeleton and armature have in common differ."""
    both = np.flatnonzero(np.asarray(found) >= 0)
    if not skeleton.has_bind or not len(both):
        return False
    one, other = bind_matrices(skeleton)[both], there.local[np.asarray(found)[both]]
    size = np.maximum(1.0, np.abs(one).max(axis=(1, 2)))
    apart: Array = np.abs(one - other).max(axis=(1, 2))
    return bool((apart > _SAME_BIND * size).any())


def build_skeletons(job: ImportContext) -> None:
    """Create the armatures of a scene, or find the bones of the armature that was given."""
    for number, skeleton in enumerate(job.scene.skeletons):
        if job.options.armature == "NONE":
            job.bones.append(None)
        elif (there := _find_armature(job, number)) is not None:
            needed = needed_joints(job.scene, number)
            bones = match(there, skeleton, job.report, needed)
            job.bones.append(bones)
            if needed and skeleton.share_distance is not None:
                found = bones.bones
                _report_distance(job, there, skeleton, [joint for joint in needed if found[joint] is not None])
            if there == job.request.armature:
                job.played.refer(skeleton, job.report)
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
    distance = farthest(armature, skeleton, needed)
    if skeleton.share_distance is not None and distance > skeleton.share_distance:
        template = "The bones of '{}' are up to {:.3g} m away from where '{}' binds its meshes"
        job.report.change("bones-elsewhere", template, armature.name, distance, skeleton.name)


def _find_armature(job: ImportContext, number: int) -> bpy.types.Object | None:
    """Return the existing armature for a skeleton, or None to create one.

    The armature of the import request was chosen for the first skeleton. If a file has several models, the skeletons of
    further bound meshes use it only if it has all their joints at the same locations.
    """
    given = job.request.armature
    if job.options.armature != "AUTO" or not is_bound(job.scene):
        return given
    return shared(job.scene, number, [*([] if given is None else [given]), *job.armatures])


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
