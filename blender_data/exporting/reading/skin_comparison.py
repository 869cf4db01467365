"""Comparison of skinned meshes with what Blender shows, which further modifiers make different from the file."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ....io_formats.core.messages import Report
from ....io_formats.core.scene import FloatArray, Mesh
from ... import arrays, scene_state
from ...animated_blocks import action_holders, dependencies
from ...animation.scene_time import SceneTime
from ...armature_modifiers import deforming_parent, is_of_binding
from ...rigging.armature_reading import ReadSkeleton

_MOST_APART = 1e-3
"""Distance of points, relative to the size of the mesh, up to which a skinned mesh counts as equal."""


@dataclass
class SkinnedMesh:
    """An object with its exported weights and the skeleton to which they refer."""

    obj: bpy.types.Object
    mesh: Mesh
    read: ReadSkeleton

    def skinned(self, points: FloatArray, depsgraph: bpy.types.Depsgraph) -> FloatArray | None:
        """Move undeformed points (P, 3) by the current pose as the target program does; None for other points."""
        joints, weights = self.mesh.joint_indices, self.mesh.joint_weights
        if joints is None or weights is None or len(joints) != len(points):
            return None
        armature = self.read.obj.evaluated_get(depsgraph)
        mesh_world = np.array(self.obj.evaluated_get(depsgraph).matrix_world, np.float64)
        to_armature = np.linalg.pinv(np.array(armature.matrix_world, np.float64)) @ mesh_world
        pose = np.array([armature.pose.bones[name].matrix for name in self.read.bones], np.float64).reshape(-1, 4, 4)
        bones = np.linalg.pinv(to_armature) @ pose @ np.linalg.inv(self.read.rest) @ to_armature
        total = weights.sum(axis=1)
        moved = np.where(total > 0, 0.0, 1.0)[:, None] * points
        for joint, share in zip(joints.T, (weights / np.where(total > 0, total, 1.0)[:, None]).T, strict=True):
            matrix = bones[joint]
            moved += share[:, None] * (np.einsum("pij,pj->pi", matrix[:, :3, :3], points) + matrix[:, :3, 3])
        return moved


def is_deformed_further(obj: bpy.types.Object) -> bool:
    """Return whether something changes an object after its first armature: modifiers, also further armatures."""
    if any(map(is_of_binding, obj.modifiers)):
        return False  # it is shown as its file binds it
    shown = [modifier.type for modifier in obj.modifiers if modifier.show_viewport]
    if deforming_parent(obj) == "ARMATURE":  # Blender applies it before the modifiers
        return bool(shown)
    return "ARMATURE" in shown[:-1]


def report_differences(context: bpy.types.Context, compared: Sequence[SkinnedMesh], report: Report) -> None:
    """Report objects that the weights in the file deform otherwise than Blender at three frames of the animation."""
    if not compared:
        return
    objects = [skin.obj for skin in compared]
    apart = [0.0] * len(compared)
    with scene_state.kept(context, dependencies(objects).animated, {}):
        for frame in _frames(context.scene, [skin.read.obj for skin in compared]):
            scene_state.set_frame(context.scene, frame)
            shown = _points(context, objects)
            with scene_state.changed(context, scene_state.undeformed(objects)):
                undeformed = _points(context, objects)
            for number, (skin, posed, (rest, rest_corners)) in enumerate(zip(compared, shown, undeformed, strict=True)):
                points, corners = posed
                moved = skin.skinned(rest, context.evaluated_depsgraph_get())
                if moved is not None and len(moved) != len(points) and len(corners) == len(rest_corners):
                    moved, points = moved[rest_corners], points[corners]  # Edge Split splits a pose at other edges
                if moved is None or len(moved) != len(points):
                    apart[number] = np.inf
                elif len(points):
                    size = max(1e-6, float(np.ptp(points, axis=0).max()))
                    apart[number] = max(apart[number], float(np.abs(moved - points).max()) / size)
    for skin, distance in zip(compared, apart, strict=True):
        if distance > _MOST_APART:
            text = (
                "posed, it differs from Blender, since modifiers follow its Armature modifier; "
                "make the Armature modifier the last, or apply the others"
            )
            report.loss("modifiers-after-armature", text, item=skin.obj.name)


def _points(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object]
) -> list[tuple[FloatArray, arrays.IntArray]]:
    """Return the points of evaluated objects in their own spaces, and the point of each corner of their faces."""
    depsgraph = context.evaluated_depsgraph_get()
    found = []
    for obj in objects:
        with arrays.mesh_of(obj.evaluated_get(depsgraph)) as data:
            if data is None:
                found.append((np.empty((0, 3), np.float32), np.empty(0, np.int32)))
            else:
                found.append((arrays.points_of(data), arrays.corner_vertices(data)))
    return found


def _frames(scene: bpy.types.Scene, armatures: Sequence[bpy.types.Object]) -> list[float]:
    """Return three frames of the animation of armatures, or the current frame if nothing moves them."""
    if not dependencies(armatures).any_change:
        return [scene.frame_current_final]
    holders = [holder for armature in armatures for holder in action_holders(armature)]
    ranges = [
        (holder.frame_start, holder.frame_end) if isinstance(holder, bpy.types.NlaStrip) else holder.action.frame_range
        for holder in holders
    ]
    start, end = (scene.frame_start, scene.frame_end)
    if ranges:
        time = SceneTime.of(scene)
        start, end = (time.scene_frame(frame) for frame in (min(ranges)[0], max(last for _, last in ranges)))
    return [start + (end - start) * share for share in (1 / 3, 2 / 3, 1.0)]
