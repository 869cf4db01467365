"""Hide helper bones, which deform nothing and would fill the view with lines in and around the model.

For example, a model of a cat, 6 cm in size, has 289 bones, of which 52 deform it. Control and mechanism bones are up to
12 cm long, and its animation scales some by a million.
"""

from collections.abc import Mapping, Sequence

import bpy
import numpy as np

from ...io_formats.core.scene import Node, Scene
from ...io_formats.geometry.transforms import bounds
from ..armature_modifiers import deformed_meshes
from .joint_poses import BoneMap

COLLECTION = "Helper Bones"
LONG, OUTSIDE = 0.25, 0.1
"""Limits from which bones without weights are hidden: their length, and the distance by which they extend outside of
the model. Both are relative to the largest side of the model."""
LARGE = 2.0
"""Scale by an animation from which bones without weights are hidden."""


def hide(scene: Scene, bones: Sequence[BoneMap | None], made: Sequence[bpy.types.Object]) -> None:
    """Put helper bones of new armatures into a hidden bone collection; the export treats them like all others.

    If the meshes have no weights, helper bones cannot be recognised. Bones of joints whose ends are known stay visible.

    Parameters
    ----------
    bones:
        The bones of each skeleton of the scene, None if they were left out.
    made:
        The new armatures.
    """
    for armature in made:
        deforming: set[str] = set()
        others: set[str] = set()
        nodes: list[Node] = []
        for number, found in enumerate(bones):
            if found is None or found.armature != armature:
                continue
            bound = [node for node in scene.nodes if node.skeleton == number]
            weighted = weighted_joints(bound)
            nodes += bound
            for joint, name in enumerate(found.bones):
                if name is not None and joint in weighted:
                    deforming.add(name)
                elif name is not None and scene.skeletons[number].joints[joint].tail is None:
                    others.add(name)
        if deforming and size_of(nodes) > 0:
            _hide_far(armature.data, sorted(others - deforming), deforming, nodes)


def hide_scaled(armature: bpy.types.Object, scales: Mapping[str, float]) -> None:
    """Hide bones that deform nothing and that the first frame of an animation scales by ``LARGE`` or more.

    Armatures with bone collections that the user made are not changed.

    Parameters
    ----------
    scales:
        Scale of each bone relative to its rest pose and its parent.
    """
    data = armature.data
    if not scales or {group.name for group in data.collections_all} - {COLLECTION}:
        return
    total: dict[str, float] = {}
    for bone in data.bones:  # ``bones`` lists parents before children
        total[bone.name] = scales.get(bone.name, 1.0) * (total[bone.parent.name] if bone.parent else 1.0)
    if max(total.values()) <= LARGE:
        return
    meshes = deformed_meshes(armature)
    deforming = {group.name for obj in meshes for group in obj.vertex_groups}
    size = max((float(obj.dimensions[axis]) for obj in meshes for axis in range(3)), default=0.0)
    if deforming and size > 0:
        others = [bone for bone in data.bones if bone.name not in deforming and total[bone.name] > LARGE]
        put_away(data, [bone for bone in others if _is_long(bone, bone.length * total[bone.name], deforming, size)])


def show_used(scene: Scene, bones: Sequence[BoneMap | None]) -> None:
    """Remove bones to which meshes of a scene have weights from the hidden collection of their armature."""
    for number, found in enumerate(bones):
        hidden = found.armature.data.collections_all.get(COLLECTION) if found is not None else None
        if found is None or hidden is None:
            continue
        for joint in weighted_joints([node for node in scene.nodes if node.skeleton == number]):
            name = found.bones[joint]
            if name is not None:
                hidden.unassign(found.armature.data.bones[name])


def size_of(nodes: Sequence[Node]) -> float:
    """Return the largest side of the bounding box of the meshes of nodes, in metres; 0 without meshes."""
    points = [node.mesh.points for node in nodes if node.mesh]
    return max((float(np.ptp(bounds(some), axis=0).max()) for some in points if len(some)), default=0.0)


def weighted_joints(nodes: Sequence[Node]) -> set[int]:
    """Return the indices of the joints to which the meshes of nodes have weights."""
    found: set[int] = set()
    for node in nodes:
        mesh = node.mesh
        if mesh and mesh.joint_indices is not None and mesh.joint_weights is not None:
            found.update(np.flatnonzero(np.bincount(mesh.joint_indices[mesh.joint_weights > 0])).tolist())
    return found


def _hide_far(data: bpy.types.Armature, names: Sequence[str], deforming: set[str], nodes: Sequence[Node]) -> None:
    """Hide those of the named bones that are far outside of the meshes, or much longer than these."""
    points = np.concatenate([node.mesh.points for node in nodes if node.mesh])
    (low, high), size = bounds(points), size_of(nodes)

    def is_far(bone: bpy.types.Bone) -> bool:
        ends = np.array([bone.head_local, bone.tail_local])
        if max((low - ends).max(), (ends - high).max()) > OUTSIDE * size:
            return True
        return _is_long(bone, bone.length, deforming, size)

    put_away(data, [data.bones[name] for name in names if is_far(data.bones[name])])


def _is_long(bone: bpy.types.Bone, length: float, deforming: set[str], size: float) -> bool:
    leads_to_model = any(child.name in deforming for child in bone.children_recursive)
    return length > (1 if leads_to_model else LONG) * size


def put_away(data: bpy.types.Armature, bones: Sequence[bpy.types.Bone]) -> None:
    """Assign bones to the hidden collection, which is created if necessary."""
    if not bones:
        return
    collection = data.collections_all.get(COLLECTION)
    if collection is None:
        collection = data.collections.new(COLLECTION)
        collection.is_visible = False
    for bone in bones:
        collection.assign(bone)
