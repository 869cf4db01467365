"""Scene -> document (docs/formats/timbermesh.md: write rules, vertex properties, animations)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Named
from ...core.scene import Clip, Layer, Mesh, Node, Scene, TransformTrack, VertexTrack
from ...encodings.quantization import from_unorm, linear_to_srgb, srgb_to_linear, to_unorm
from ...geometry import normals as normal_repair
from ...geometry.normals import any_perpendicular, vertex_tangents
from ...geometry.transforms import matrices_to_quaternions
from ...geometry.vertices import Split, layer_keys, points_first, split
from ..game_names import without_suffix
from . import codec
from .codec import BLENDER_TO_FILE, UV_NAMES
from .format import WriteOptions

FloatArray = npt.NDArray[np.float32]

_SAME_COLOR = 1e-5
"""Relative difference of linear colours that rounding in different implementations of the conversion can cause."""


class ModelBuilder:
    """Map one scene to a model."""

    def __init__(self, scene: Scene, options: WriteOptions) -> None:
        self.scene = scene
        self.options = options
        self.tolerance = scene.tolerance
        self.splits: dict[int, tuple[Split, FloatArray, FloatArray]] = {}
        self.model = codec.Model(name=scene.source_name, compression=options.compression)
        self.moving = self.animated_points()

    def build(self) -> codec.Model:
        """Return the model."""
        self.model.nodes = [self.node(index, node) for index, node in enumerate(self.scene.nodes)]
        for clip in self.scene.clips:
            self.clip(clip)
        return self.model

    def animated_points(self) -> dict[int, int]:
        """Return, for each node with vertex animation, the smallest number of leading points that its clips move."""
        moving: dict[int, int] = {}
        for clip in self.scene.clips:
            for track in clip.vertices:
                fewest = moving.get(track.target, track.points.shape[1])
                moving[track.target] = min(fewest, track.points.shape[1])
        return moving

    def node(self, index: int, node: Node) -> codec.Node:
        """Return the node of the file for a node of the scene."""
        w, x, y, z = node.rotation
        rotation = BLENDER_TO_FILE.quaternions_to_xyzw(np.asarray([(w, x, y, z)], np.float32))[0].tolist()
        mapped = codec.Node(
            parent=node.parent,
            name=node.name,
            position=_vector(BLENDER_TO_FILE.vectors(np.asarray(node.translation))),
            rotation=(rotation[0], rotation[1], rotation[2], rotation[3]),
            scale=_vector(BLENDER_TO_FILE.scales(np.asarray(node.scale))),
        )
        if node.mesh is None or not len(node.mesh.corner_point):
            # The official exporter writes these three properties, empty, for nodes without vertices.
            mapped.properties = [
                codec.VertexProperty.of(name, np.empty((0, k), np.float32))
                for name, k in (("position", 3), ("normal", 3), ("tangent", 4))
            ]
            if node.mesh is not None:
                mapped.meshes = [codec.Mesh(np.empty(0, np.int32), name) for name in node.mesh.materials[:1]]
            return mapped
        self.fill_mesh(index, node, node.mesh, mapped)
        return mapped

    def fill_mesh(self, index: int, node: Node, mesh: Mesh, mapped: codec.Node) -> None:
        """Split corners into vertices; write the vertex properties and one submesh for each material."""
        if not np.isfinite(mesh.points).all():
            raise ExportError("'{}' has vertices with NaN or infinite coordinates; delete them", node.name)
        vertices = self.split(index, mesh)
        corner = vertices.vertex_corner
        point = mesh.corner_point[corner]
        positions = mesh.points[point]
        normals = self.vertex_normals(mesh, corner, point)
        uvs = [self.finite_uv(node, layer.at_vertices(corner, point)) for layer in mesh.uvs[: len(UV_NAMES)]]
        tangents = self.vertex_tangents(mesh, vertices, positions, normals, uvs)
        self.splits[index] = (vertices, normals, tangents)
        mapped.vertex_count = len(corner)
        turned = BLENDER_TO_FILE.vectors(tangents)
        # The official exporter writes -0 for a mesh without UV layer, which has no tangents.
        turned[:, 3] = np.where(tangents[:, 3] == 0, -1.0 if uvs else -0.0, -tangents[:, 3])
        properties = [
            codec.VertexProperty.of("position", BLENDER_TO_FILE.vectors(positions)),
            codec.VertexProperty.of("normal", BLENDER_TO_FILE.vectors(normals)),
            codec.VertexProperty.of("tangent", turned),
        ]
        if mesh.colors:
            properties.append(
                codec.VertexProperty.of("color", _encoded_colors(mesh.colors[0].on_vertices(corner, point)))
            )
        properties += [
            codec.VertexProperty.of(name, values.astype(np.float32, copy=False))
            for name, values in zip(UV_NAMES, uvs, strict=False)
        ]
        for layer in mesh.custom:
            values = layer.at_vertices(corner, point)
            scalar_type = next((kind for kind, dtype in codec.DTYPES.items() if kind and dtype == values.dtype), None)
            if scalar_type is None:
                template = "the attribute '{}' has a type that the format does not support; left out"
                name = Named("layer", layer.name)
                self.scene.report.loss("unsupported-attribute-type", template, name, item=node.name)
            else:
                properties.append(codec.VertexProperty.of(layer.name, values, scalar_type))
        mapped.properties = properties
        mapped.meshes = self.submeshes(mesh, vertices)

    def split(self, index: int, mesh: Mesh) -> Split:
        """Split corners into unique vertices, the animated ones first."""
        vertices = split(mesh.corner_point, len(mesh.points), layer_keys(mesh, self.tolerance))
        if self.moving.get(index, len(mesh.points)) < len(mesh.points):
            vertices = points_first(vertices, mesh.corner_point)
        return vertices

    def finite_uv(self, node: Node, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        finite = np.isfinite(values)
        if finite.all():
            return values
        self.scene.report.change("nan-uv-coordinates", "NaN or infinite UVs were written as 0", item=node.name)
        return np.where(finite, values, np.float32(0))

    def vertex_normals(self, mesh: Mesh, corner: npt.NDArray[np.intp], point: npt.NDArray[np.int32]) -> FloatArray:
        if mesh.normal is None:
            return normal_repair.vertex_normals(mesh.points, mesh.corner_point)[point]
        values = mesh.normal.at_vertices(corner, point).astype(np.float32, copy=False)
        broken = normal_repair.without_direction(values)
        if broken.any():
            values = values.copy()
            values[broken] = normal_repair.vertex_normals(mesh.points, mesh.corner_point)[point[broken]]
        return normal_repair.unit(values)

    def vertex_tangents(
        self, mesh: Mesh, vertices: Split, positions: FloatArray, normals: FloatArray, uvs: list[npt.NDArray[Any]]
    ) -> FloatArray:
        """Return tangents (V, 4); zero without a UV layer, as the official exporter writes them."""
        if mesh.tangent is not None:
            return mesh.tangent.at_vertices(vertices.vertex_corner, mesh.corner_point[vertices.vertex_corner])
        if not uvs:
            return np.zeros((len(positions), 4), np.float32)
        return vertex_tangents(positions, normals, uvs[0].astype(np.float32, copy=False), vertices.corner_vertex)

    def submeshes(self, mesh: Mesh, vertices: Split) -> list[codec.Mesh]:
        """Return one submesh for each material name, with triangles in order and corners in the file's winding."""
        names = [self.material_name(name) for name in mesh.materials] or [""]
        slots: dict[str, list[int]] = {}
        for slot, name in enumerate(names):
            slots.setdefault(name, []).append(slot)
        triangles = vertices.corner_vertex.reshape(-1, 3)[:, ::-1]
        found: list[codec.Mesh] = []
        for name, indices in slots.items():
            if len(slots) == 1:
                chosen = triangles
            else:
                wanted = np.zeros(len(names), bool)
                wanted[indices] = True
                chosen = triangles[wanted[mesh.material_index]]
            if len(chosen) or len(slots) == 1:
                found.append(codec.Mesh(np.ascontiguousarray(chosen).reshape(-1), name))
        return found

    def material_name(self, name: str) -> str:
        return without_suffix(name) if self.options.use_strip_suffixes else name

    # -- animations -----------------------------------------------------------------------------

    def clip(self, clip: Clip) -> None:
        """Write a clip's tracks into the nodes that they move."""
        if not clip.name:
            raise ExportError("An animation has no name; the game does not load such a file")
        if clip.frame_count < 1:
            name = Named("animation", clip.name)
            raise ExportError("Animation '{}' has no frames; the game does not load such a file", name)
        for transform in clip.transforms:
            if transform.skeleton is None:
                self.model.nodes[transform.target].node_animations.append(_node_animation(clip, transform))
        for track in clip.vertices:
            node = self.model.nodes[track.target]
            if track.target in self.splits:
                node.vertex_animations.append(self.vertex_animation(clip, track))

    def vertex_animation(self, clip: Clip, track: VertexTrack) -> codec.VertexAnimation:
        """Return the offsets and frame rotations of all vertices; the first ``animated_vertex_count`` vertices move."""
        mesh = self.scene.nodes[track.target].mesh
        if mesh is None:
            raise AssertionError("only nodes with a mesh were split")
        vertices, normals, tangents = self.splits[track.target]
        point = mesh.corner_point[vertices.vertex_corner]
        moving = int(np.count_nonzero(point < track.points.shape[1]))
        moving_point = point[:moving]
        frames = []
        for number, points in enumerate(track.points):
            offsets = np.zeros((len(point), 3), np.float32)
            offsets[:moving] = points[moving_point] - mesh.points[moving_point]
            frame_normals, frame_tangents = normals.copy(), tangents[:, :3].copy()
            if track.normals is not None:
                frame_normals[:moving] = track.normals[number][moving_point]
            if track.tangents is not None:
                frame_tangents[:moving] = track.tangents[number][moving_point]
            frames.append(
                codec.VertexAnimationFrame(
                    [
                        codec.VertexProperty.of("offset", BLENDER_TO_FILE.vectors(offsets)),
                        codec.VertexProperty.of("rotation", frame_rotations(frame_normals, frame_tangents)),
                    ]
                )
            )
        return codec.VertexAnimation(clip.name, clip.fps, moving, frames)


def _node_animation(clip: Clip, track: TransformTrack) -> codec.NodeAnimation:
    return codec.NodeAnimation(
        name=clip.name,
        framerate=clip.fps,
        positions=BLENDER_TO_FILE.vectors(track.translation),
        rotations=BLENDER_TO_FILE.quaternions_to_xyzw(track.rotation),
        scales=BLENDER_TO_FILE.scales(track.scale),
        present=np.ones((len(track.translation), 3), bool),
    )


def frame_rotations(normals: FloatArray, tangents: FloatArray) -> FloatArray:
    """Return vertex frames as file quaternions (n, 4; x, y, z, w) from Blender's normals and tangents (n, 3).

    The matrix with columns n, t, n x t becomes (w, x, y, z), stored as (x, -z, y, w), so that in the
    file ``normal = q * (-1, 0, 0)`` and ``tangent = q * (0, 0, -1)`` (page, vertex animation).
    """
    n = normal_repair.unit(np.ascontiguousarray(normals)).astype(np.float64)
    t = tangents.astype(np.float64)
    t = t - n * np.einsum("ij,ij->i", n, t)[:, None]
    length = np.linalg.norm(t, axis=1)
    flat = ~(length > 1e-9)
    t[flat] = any_perpendicular(n[flat])
    length[flat] = 1.0
    t /= length[:, None]
    b = np.cross(n, t)
    quaternion = matrices_to_quaternions(np.stack((n, t, b), axis=2))
    w, x, y, z = quaternion.T
    return np.column_stack((x, -z, y, w)).astype(np.float32)


def _encoded_colors(layer: Layer) -> FloatArray:
    """Return colours as sRGB-encoded float32, as the file stores them.

    They are multiples of 1/255 unless the imported file had other values. Colours unchanged since the import are
    exactly those of the file.
    """
    if layer.values.dtype == np.uint8:
        return from_unorm(layer.values)
    if layer.stored is None or layer.stored.dtype != np.float32:
        return from_unorm(to_unorm(linear_to_srgb(layer.values)))
    encoded = linear_to_srgb(layer.values, keep_negative=True)
    with np.errstate(over="ignore"):
        original = srgb_to_linear(layer.stored, keep_negative=True)
    limit = np.finfo(np.float32).max
    unchanged = np.isclose(np.clip(original, -limit, limit), layer.values[:, :3], rtol=_SAME_COLOR, atol=0)
    encoded[:, :3] = np.where(unchanged, layer.stored, encoded[:, :3])
    return encoded


def _vector(values: npt.NDArray[np.floating]) -> codec.Vector3:
    x, y, z = values.tolist()
    return (x, y, z)
