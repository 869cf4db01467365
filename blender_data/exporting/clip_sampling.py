"""Play clips in Blender and sample them: nodes as transforms, deforming meshes as points."""

import contextlib
from collections.abc import Container, Iterator, Mapping, Sequence

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.scene import Clip, Scene, TransformTrack, VertexTrack
from ...io_formats.geometry.transforms import continuous_rotations
from .. import animated_blocks, scene_state
from ..animation.clip_sources import ClipSource, played
from ..animation.scene_time import SceneTime
from ..export_options import ExportOptions
from ..steps import Step, Steps
from . import node_plan
from .node_plan import NodeMesh, NodeMeshes, PlannedNode

FloatArray = npt.NDArray[np.float32]

_MOVED = 1e-6
"""Movement, relative to the size of the object, below which it counts as rounding of single precision."""


def deforming_objects(
    scene: bpy.types.Scene, clips: Sequence[ClipSource], animated: Sequence[bpy.types.ID]
) -> Steps[set[bpy.types.Object]]:
    """Return the objects whose shape may change with time in one of the clips, also if only instances show them.

    Blender evaluates their geometry again at each new frame. The caller restores the frame and the played animation.
    """
    found: set[bpy.types.Object] = set()
    channels, time = scene_state.animated_values(animated, played(clips)), SceneTime.of(scene)
    for number, clip in enumerate(clips):
        yield Step("Sampling animation", number / len(clips))
        clip.play(animated)
        scene_state.set_frame(scene, time.scene_frame(clip.start))  # updates everything that is animated
        with _updated_geometry(found):
            scene_state.set_frame(scene, time.scene_frame(clip.start + 1.0))
    for channel in channels:
        channel.restore()
    return found


@contextlib.contextmanager
def _updated_geometry(found: set[bpy.types.Object]) -> Iterator[None]:
    """Collect the objects whose geometry Blender updates when a ``with`` block sets a frame."""

    def collect(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
        for update in depsgraph.updates:  # Blender only fills this list for handlers
            if update.is_updated_geometry and isinstance(update.id, bpy.types.Object):
                found.add(update.id.original)

    bpy.app.handlers.frame_change_post.append(collect)
    try:
        yield
    finally:
        bpy.app.handlers.frame_change_post.remove(collect)


class ClipSampler:
    """Samples the clips of one export."""

    def __init__(
        self,
        context: bpy.types.Context,
        nodes: list[PlannedNode],
        scene: Scene,
        meshes: NodeMeshes,
        options: ExportOptions,
        deforming: Container[bpy.types.Object],
    ) -> None:
        self.context = context
        self.nodes = nodes
        self.rests = scene.nodes
        self.report = scene.report
        self.meshes = meshes
        self.options = options
        self.deforming = deforming

    def sample(self, source: ClipSource, node_meshes: Mapping[int, NodeMesh]) -> Steps[Clip | None]:
        """Play and sample a clip; return None if nothing moves."""
        kind = self.options.animation_kind
        deforming = {index: found for index, found in node_meshes.items() if found.layouts and kind != "NODE"}
        poses: list[list[node_plan.Transform]] = []
        shapes: dict[int, list[tuple[FloatArray, FloatArray, FloatArray]]] = {index: [] for index in deforming}
        time = SceneTime.of(self.context.scene)
        frames = source.frames(time)
        for number, frame in enumerate(frames):
            yield Step("Sampling animation", number / len(frames))
            scene_state.set_frame(self.context.scene, time.scene_frame(frame))
            poses.append([self.meshes.local(node) for node in self.nodes])
            self._watch_instances()
            # Keep each message once, since most are repeated in each frame.
            self.report.messages[:] = dict.fromkeys(self.report.messages)
            for index in list(deforming):
                shape = self._shape(index, deforming[index])
                if shape is None:
                    del deforming[index]
                else:
                    shapes[index].append(shape)
        clip = Clip(source.name, source.fps, len(poses), has_own_rate=source.has_own_rate)
        if kind != "VERTEX":
            clip.transforms = [
                track
                for index in range(len(self.nodes))
                if (track := self._transform_track(index, poses, source)) is not None
            ]
        clip.vertices = [
            track
            for index, found in deforming.items()
            if (track := _vertex_track(index, found, shapes[index], source)) is not None
        ]
        if not clip.transforms and not clip.vertices:
            return None
        drop_repeated_pose(clip, self.options.loop, is_cyclic=source.is_cyclic)
        return clip

    def _watch_instances(self) -> None:
        """Report instances that move within their node or deform, since they are exported as at rest."""
        for owner in self.meshes.changed_instances(self.nodes, self.deforming):
            text = "what it shows as instances moves; make instances real to export their animation"
            self.report.loss("moving-instances", text, item=owner.name)

    def _shape(self, index: int, found: NodeMesh) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the current points, normals and tangents (K, 3) of a node's moving parts."""
        node = self.nodes[index]
        points, normals, tangents = [], [], []
        for part, layout in found.layouts.items():
            mesh = self.meshes.part_mesh(node, part, layout)
            if mesh is None or len(mesh.corner_point) != layout.corners or len(mesh.points) != layout.points:
                self.report.loss(
                    "changing-vertex-count",
                    "its number of vertices changes with time, which a vertex animation cannot hold; "
                    "its rest shape was exported",
                    item=part.name,
                )
                return None
            corner, point = layout.corner, mesh.corner_point[layout.corner]
            points.append(mesh.points[point])
            normals.append(
                mesh.normal.at_vertices(corner, point) if mesh.normal else np.zeros((len(corner), 3), np.float32)
            )
            tangents.append(
                mesh.tangent.at_vertices(corner, point)[:, :3] if mesh.tangent else layout.edge_directions(mesh)
            )
        return np.concatenate(points), np.concatenate(normals), np.concatenate(tangents)

    def _transform_track(
        self, index: int, poses: list[list[node_plan.Transform]], source: ClipSource
    ) -> TransformTrack | None:
        """Return the transform track of a node; None if the node stays at rest and no imported action keys it."""
        obj = self.nodes[index].obj
        if obj is None:
            return None
        own = [pose[index] for pose in poses]
        track = TransformTrack(
            index,
            np.array([pose.translation for pose in own], np.float32),
            continuous_rotations(np.array([pose.rotation for pose in own], np.float32)),
            np.array([pose.scale for pose in own], np.float32),
        )
        if any(pose.sheared for pose in own):
            text = "its movement shears it, which the file cannot hold; the nearest without shear was exported"
            self.report.change("sheared-movement", text, item=obj.name)
        size = max(1.0, float(np.abs(track.translation).max()))
        # A constant pose is exported if it differs from the rest pose.
        rest = self.rests[index]
        ranges = (
            np.vstack([track.translation, rest.translation]),
            continuous_rotations(np.vstack([track.rotation, rest.rotation])),
            np.vstack([track.scale, rest.scale]),
        )
        moves = any(np.ptp(values, axis=0).max() > _MOVED * size for values in ranges)
        return track if moves or (source.from_file and is_keyed(obj)) else None


def drop_repeated_pose(clip: Clip, mode: str, *, is_cyclic: bool) -> None:
    """Remove the last frame of a loop if it repeats the first; ``mode`` is the value of the export option."""
    if clip.frame_count < 2 or mode == "KEEP" or (mode == "AUTO" and not is_cyclic) or not _closes(clip):
        return
    clip.frame_count -= 1
    for track in clip.transforms:
        track.translation, track.rotation, track.scale = (track.translation[:-1], track.rotation[:-1], track.scale[:-1])
    for moved in clip.vertices:
        moved.points = moved.points[:-1]
        moved.normals = None if moved.normals is None else moved.normals[:-1]
        moved.tangents = None if moved.tangents is None else moved.tangents[:-1]


def is_keyed(obj: bpy.types.Object) -> bool:
    """Return whether the active action of an object keys its transform."""
    data = obj.animation_data
    if data is None or data.action is None:
        return False
    paths = {curve.data_path for curve in animated_blocks.action_curves(data.action, data.action_slot)}
    return bool(paths & {"location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale"})


def _vertex_track(
    index: int, found: NodeMesh, shapes: list[tuple[FloatArray, FloatArray, FloatArray]], source: ClipSource
) -> VertexTrack | None:
    """Return the vertex animation of a node.

    Return None if its shape stays at rest and the clip was not imported.
    """
    if not shapes:
        return None
    points = np.stack([shape[0] for shape in shapes])
    rest = found.mesh.points[: found.moving_points]
    size = max(1e-6, float(np.ptp(rest, axis=0).max(initial=0)))
    if float(np.abs(points - rest).max(initial=0)) <= _MOVED * size and not source.from_file:
        return None
    return VertexTrack(
        index, points, np.stack([shape[1] for shape in shapes]), np.stack([shape[2] for shape in shapes])
    )


def _closes(clip: Clip) -> bool:
    """Return whether the last frame of a clip equals the first."""
    for track in clip.transforms:
        size = max(1.0, float(np.abs(track.translation).max()))
        for values in (track.translation, track.scale):
            if np.abs(values[-1] - values[0]).max() > 1e-4 * size:
                return False
        if abs(float(np.dot(track.rotation[-1], track.rotation[0]))) < 1 - 1e-6:
            return False
    for moved in clip.vertices:
        size = max(1e-6, float(np.ptp(moved.points[0], axis=0).max()))
        if np.abs(moved.points[-1] - moved.points[0]).max() > 1e-4 * size:
            return False
    return True
