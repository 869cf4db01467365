"""Document -> Scene (docs/formats/timbermesh.md: space, vertex properties, animations, read rules)."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...core.messages import Named, Report, Text, counted
from ...core.scene import Clip, Layer, Mesh, Node, Scene, TransformTrack, VertexTrack
from ...encodings.quantization import from_unorm, srgb_to_linear, to_unorm
from ...geometry import normals as normal_repair
from ...geometry.transforms import continuous_rotations, flip_winding, rotated_xyzw, unit_quaternions
from . import codec
from .codec import FILE_TO_BLENDER, GAME_DIMENSIONS, UV_NAMES

FloatArray = npt.NDArray[np.float32]
_Animation = codec.NodeAnimation | codec.VertexAnimation

_MOST_TRACK_BYTES = 1 << 30
"""Limit of the decoded vertex animations of a file, in bytes.

A frame stores only the moving vertices, but in Blender it has all points of the mesh, so a file of some kilobytes could
need terabytes. The largest of 964 real files needs 320 kB.
"""


def build_scene(model: codec.Model, name: str) -> Scene:
    """Map one model to a scene, with warnings."""
    scene = Scene(name, warnings=list(model.warnings))
    if model.name and model.name != name:
        scene.source_name = model.name
    clips = _ClipBuilder(scene)
    for index, node in enumerate(model.nodes):
        report = scene.report.about(node.name or Text("Unnamed node"))
        scene.nodes.append(_NodeBuilder(node, report).build(index))
        clips.add(index, node, report)
    clips.finish()
    return scene


class _NodeBuilder:
    """Map one node with its transform and mesh."""

    def __init__(self, node: codec.Node, report: Report) -> None:
        self.node = node
        self.report = report

    def build(self, index: int) -> Node:
        node = self.node
        mapped = Node(
            name=node.name or f"Node {index}",
            parent=node.parent,
            translation=self.vector(node.position, "position", (0.0, 0.0, 0.0)),
            rotation=self.rotation(),
            scale=self.scale(),
            mesh=self.mesh(),
        )
        if node.parent == -1:
            mapped.is_root = True
        return mapped

    def vector(self, value: codec.Vector3 | None, what: str, default: codec.Vector3) -> codec.Vector3:
        if value is None:
            return default
        if not all(map(math.isfinite, value)):
            self.report.change("nan-transform", "its {} holds NaN or infinite values; replaced by {}", what, default)
            return default
        return _triple(FILE_TO_BLENDER.vectors(np.asarray(value)))

    def rotation(self) -> tuple[float, float, float, float]:
        if self.node.rotation is None:
            return (1.0, 0.0, 0.0, 0.0)
        turned, odd = unit_quaternions(FILE_TO_BLENDER.quaternions_from_xyzw(np.asarray([self.node.rotation])))
        if odd:
            self.report.change("not-unit-rotation", "its rotation is not a unit quaternion; normalised")
        w, x, y, z = turned[0].tolist()
        return (w, x, y, z)

    def scale(self) -> codec.Vector3:
        if self.node.scale is None:
            self.report.change("missing-transform", "it has no scale; replaced by 1")
            return (1.0, 1.0, 1.0)
        if not all(map(math.isfinite, self.node.scale)):
            self.report.change("nan-transform", "its scale holds NaN or infinite values; replaced by 1")
            return (1.0, 1.0, 1.0)
        if not all(self.node.scale):
            self.report.change("zero-scale", "its scale is zero; the game does not show it")
        return _triple(FILE_TO_BLENDER.scales(np.asarray(self.node.scale)))

    # -- meshes ---------------------------------------------------------------------------------

    def mesh(self) -> Mesh | None:
        """Map a node's vertices and submeshes. Return None if it has no vertices or no usable positions."""
        count = self.node.vertex_count
        if count <= 0:
            if any(len(submesh.indices) for submesh in self.node.meshes):
                self.report.loss("triangles-without-vertices", "it has triangles but no vertices; its mesh is left out")
            return None
        positions = self.property_values("position", count)
        if positions is None:
            self.report.loss("no-positions", "its vertices have no usable position; its mesh is left out")
            return None
        finite = np.asarray(np.isfinite(positions).all(axis=1))
        if not finite.all():
            template = "{} NaN or infinite coordinates; moved to the origin"
            number = counted(int(np.count_nonzero(~finite)), "vertex has", "vertices have")
            self.report.change("nan-coordinates", template, number)
            positions = np.where(finite[:, None], positions, np.float32(0))
        corner_point, material_index, materials = self.triangles(count)
        points = FILE_TO_BLENDER.vectors(positions)
        mesh = Mesh(points, corner_point, material_index, materials)
        mesh.normal = self.normals(mesh)
        tangents = self.property_values("tangent", count)
        if tangents is not None:
            mapped = FILE_TO_BLENDER.vectors(tangents)
            with np.errstate(invalid="ignore"):  # NumPy warns about signalling NaN
                mapped[:, 3] *= -1
            mesh.tangent = Layer("tangent", mapped)
        colors = self.property_values("color", count)
        if colors is not None:
            mesh.colors.append(self.colors(colors))
        for name in UV_NAMES:
            values = self.property_values(name, count)
            if values is not None:
                mesh.uvs.append(Layer(name, self.finite_uv(name, values)))
        mesh.custom = self.custom_layers(count)
        return mesh

    def property_values(self, name: str, count: int) -> FloatArray | None:
        """Return one of the game's properties as (count, dimension) float32. Warn and return None if it is unusable."""
        found = self.node.find(name)
        if found is None or (not found.data and count):
            return None
        dimension = GAME_DIMENSIONS[name]
        values = found.values(count)
        if values is None and len(found.data) == count * dimension * 4:
            # The game ignores the stored type and reads float32 of its own dimension.
            values = np.frombuffer(found.data, "<f4").reshape(count, dimension)
        if values is None or values.shape[1] != dimension:
            template = "its vertex property '{}' does not fit its {:,} vertices; left out"
            self.report.loss("property-size", template, Named("layer", name), count)
            return None
        if values.dtype != np.float32:
            template = "its vertex property '{}' is {}; read as float32"
            self.report.change("property-type", template, Named("layer", name), values.dtype.name)
            if name == "color" and values.dtype == np.uint8:
                return from_unorm(values)
        with np.errstate(over="ignore"):
            return values.astype(np.float32, copy=False)

    def triangles(self, count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], list[str]]:
        """Join the submeshes: corners (C,) in Blender's winding, material index (T,), material names."""
        runs: list[npt.NDArray[np.int32]] = []
        materials: dict[str, int] = {}
        of_run: list[int] = []
        for submesh in self.node.meshes:
            indices = submesh.indices
            if len(indices) % 3:
                template = "submesh '{}' has {} indices, not a multiple of 3; left out"
                self.report.loss("incomplete-triangles", template, Named("layer", submesh.material), len(indices))
                continue
            if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= count):
                template = "submesh '{}' refers to vertices that do not exist; left out"
                self.report.loss("no-such-vertex", template, Named("layer", submesh.material))
                continue
            runs.append(indices)
            of_run.append(materials.setdefault(submesh.material, len(materials)))
        corners = np.concatenate(runs) if runs else np.empty(0, np.int32)
        material_index = np.repeat(np.asarray(of_run, np.int32), [len(run) // 3 for run in runs])
        return flip_winding(corners), material_index, list(materials)

    def normals(self, mesh: Mesh) -> Layer | None:
        values = self.property_values("normal", len(mesh.points))
        if values is None:
            return None
        mended, count = normal_repair.repair(FILE_TO_BLENDER.vectors(values), mesh.points, mesh.corner_point)
        if count:
            text = "{} zero, NaN or infinite; computed from the faces"
            self.report.change("normals-without-direction", text, counted(int(count), "normal was", "normals were"))
        return Layer("normal", mended)

    def colors(self, colors: FloatArray) -> Layer:
        """Return colours as bytes if all are multiples of 1/255, otherwise as linear floats."""
        finite = np.isfinite(colors)
        if not finite.all():
            template = "{} colour values are NaN or infinite; replaced by 0"
            self.report.change("nan-colours", template, int((~finite).sum()))
            colors = np.where(finite, colors, np.float32(0))
        rounded = to_unorm(colors)
        if np.array_equal(from_unorm(rounded), colors):
            return Layer("color", rounded)
        with np.errstate(over="ignore"):
            linear = srgb_to_linear(colors, keep_negative=True)
        limit = np.finfo(np.float32).max
        return Layer("color", np.clip(linear, -limit, limit), stored=np.ascontiguousarray(colors[:, :3]))

    def finite_uv(self, name: str, values: FloatArray) -> FloatArray:
        finite = np.isfinite(values)
        if finite.all():
            return values
        template = "its UV layer '{}' holds NaN or infinite values; replaced by 0"
        self.report.change("nan-uv-coordinates", template, Named("layer", name))
        return np.where(finite, values, np.float32(0))

    def custom_layers(self, count: int) -> list[Layer]:
        """Return the properties that the game ignores, with their own names and types."""
        layers: list[Layer] = []
        times = Counter(found.name for found in self.node.properties)
        for name in (name for name, number in times.items() if number > 1):
            template = "vertex property '{}' occurs {:,} times; only the first is kept, as in the game"
            self.report.loss("repeated-property", template, Named("layer", name), times[name])
        first = {found.name: found for found in reversed(self.node.properties)}
        for found in (first[name] for name in times if name not in GAME_DIMENSIONS):
            values = found.values(count)
            if values is None:
                template = "its vertex property '{}' does not fit its {:,} vertices; left out"
                self.report.loss("property-size", template, Named("layer", found.name), count)
            else:
                layers.append(Layer(found.name, values))
        return layers


class _ClipBuilder:
    """Map the animations of all nodes to the clips of a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clips: dict[tuple[str, float, int], Clip] = {}
        self.track_bytes_left = _MOST_TRACK_BYTES

    def add(self, index: int, node: codec.Node, report: Report) -> None:
        """Collect animations by name. Animations of one name with different lengths or rates become separate clips."""
        seen: set[str] = set()
        for animation in node.node_animations:
            if _usable(animation, animation.frame_count, seen, report):
                clip = self.clip(animation, animation.frame_count)
                clip.transforms.append(self.transform_track(index, animation, report))
        seen.clear()
        for moving in node.vertex_animations:
            if _usable(moving, len(moving.frames), seen, report):
                track = self.vertex_track(index, moving, report)
                if track is not None:
                    self.clip(moving, len(track.points)).vertices.append(track)

    def finish(self) -> None:
        """Give the scene its clips."""
        self.scene.clips = list(self.clips.values())
        names = Counter(clip.name for clip in self.scene.clips)
        for name in sorted(name for name, count in names.items() if count > 1):
            template = "Animation '{}' has different lengths or rates on some nodes; imported as separate clips"
            self.scene.report.change("clip-of-different-lengths", template, Named("animation", name))

    def clip(self, animation: _Animation, frames: int) -> Clip:
        name, fps = animation.name, animation.framerate
        return self.clips.setdefault((name, fps, frames), Clip(name or "Unnamed", fps, frames))

    def transform_track(self, index: int, animation: codec.NodeAnimation, report: Report) -> TransformTrack:
        """Return the track of a node; frames without a usable value are at rest."""
        if not animation.present.all():
            template = "animation '{}' has frames without position, rotation or scale; the game does not load it"
            report.change("incomplete-frames", template, Named("animation", animation.name))
        rest = self.scene.nodes[index]
        present = animation.present
        translation = FILE_TO_BLENDER.vectors(animation.positions)
        rotation, odd = unit_quaternions(FILE_TO_BLENDER.quaternions_from_xyzw(animation.rotations))
        scale = FILE_TO_BLENDER.scales(animation.scales)
        all_finite = True
        for column, (values, stored, default) in enumerate(
            (
                (translation, animation.positions, rest.translation),
                (rotation, animation.rotations, rest.rotation),
                (scale, animation.scales, rest.scale),
            )
        ):
            finite = np.isfinite(stored).all(axis=1)
            all_finite &= bool(finite.all())
            values[~(finite & present[:, column])] = default
        if not all_finite:
            template = "animation '{}' holds NaN or infinite values; replaced by the rest pose"
            report.change("nan-animation", template, Named("animation", animation.name))
        if odd and present[:, 1].all():
            template = "animation '{}' has {} not of unit length; normalised"
            report.change(
                "not-unit-rotation", template, Named("animation", animation.name), counted(int(odd), "rotation")
            )
        return TransformTrack(index, translation, continuous_rotations(rotation), scale)

    def vertex_track(self, index: int, animation: codec.VertexAnimation, report: Report) -> VertexTrack | None:
        """Convert offsets to absolute points (F, k, 3) of the k moving vertices (format page, vertex animation)."""
        mesh = self.scene.nodes[index].mesh
        count = animation.animated_vertex_count
        if mesh is None or not 0 < count <= len(mesh.points):
            template = "vertex animation '{}' moves {} vertices, which do not exist; left out"
            report.loss("no-such-vertex", template, Named("animation", animation.name), count)
            return None
        self.track_bytes_left -= len(animation.frames) * mesh.points.nbytes
        if self.track_bytes_left < 0:
            template = "vertex animation '{}' has {:,} frames of {:,} vertices, more than fit in memory; left out"
            name = Named("animation", animation.name)
            report.loss("clip-too-large", template, name, len(animation.frames), len(mesh.points))
            return None
        offsets = np.empty((len(animation.frames), count, 3), np.float32)
        for frame, found in zip(offsets, animation.frames, strict=True):
            values = _values_of(found, "offset", count * 3)
            if values is None:
                template = "vertex animation '{}' has a frame without its {} offsets; left out"
                report.loss("incomplete-frames", template, Named("animation", animation.name), count)
                return None
            frame[:] = values.reshape(count, 3)
        rest = mesh.points[:count]
        with np.errstate(invalid="ignore", over="ignore"):  # the result is tested below
            points = FILE_TO_BLENDER.vectors(offsets) + rest
        finite = np.isfinite(points).all(axis=2, keepdims=True)
        if not finite.all():
            template = "vertex animation '{}' has NaN or infinite coordinates; those vertices do not move"
            report.change("nan-animation", template, Named("animation", animation.name))
            points = np.where(finite, points, rest)
        track = VertexTrack(index, points, mesh=replace(mesh))
        stored = [_values_of(found, "rotation", count * 4) for found in animation.frames]
        frames = [frame for frame in stored if frame is not None and np.isfinite(frame).all()]
        if len(frames) == len(stored):
            rotations = np.stack(frames).reshape(len(frames), count, 4)
            track.normals = FILE_TO_BLENDER.vectors(rotated_xyzw(rotations, (-1, 0, 0)))
            track.tangents = FILE_TO_BLENDER.vectors(rotated_xyzw(rotations, (0, 0, -1)))
        else:
            template = "vertex animation '{}' has a frame without its {} rotations; ignored"
            report.loss("incomplete-frames", template, Named("animation", animation.name), count)
        return track


def _usable(animation: _Animation, frames: int, seen: set[str], report: Report) -> bool:
    """Return whether an animation can be imported, and add its name to ``seen``; report the reason otherwise."""
    name, framerate = Named("animation", animation.name), animation.framerate
    if name in seen:
        template = "a second animation '{}' is left out; the game does not load such a file"
        report.loss("repeated-animation", template, name)
        return False
    seen.add(name)
    if frames == 0:
        report.loss("no-frames", "animation '{}' has no frames; left out", name)
        return False
    if not (math.isfinite(framerate) and framerate > 0):
        report.loss("invalid-frame-rate", "animation '{}' has a frame rate of {:g}; left out", name, framerate)
        return False
    return True


def _values_of(frame: codec.VertexAnimationFrame, name: str, count: int) -> FloatArray | None:
    """Return the first ``count`` float32 values of a frame's property, or None if it has fewer."""
    raw = next((found.data for found in frame.properties if found.name == name), b"")
    return None if len(raw) < count * 4 or len(raw) % 4 else np.frombuffer(raw, "<f4", count)


def _triple(values: npt.NDArray[np.floating]) -> codec.Vector3:
    x, y, z = values.tolist()
    return (x, y, z)
