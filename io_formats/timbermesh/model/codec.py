"""Bytes <-> document (docs/formats/timbermesh.md: container, messages, read rules, write rules)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Text
from ...geometry.hierarchy import own_ancestor
from ...geometry.transforms import Basis
from . import container, wire

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
"""(x, y, z, w), as stored."""


class ScalarType(IntEnum):
    """Type of a vertex property's components; all real files use FLOAT32."""

    UNSPECIFIED = 0
    UINT8 = 1
    UINT32 = 2
    INT32 = 3
    FLOAT32 = 4
    FLOAT64 = 5


DTYPES: dict[int, np.dtype[np.generic]] = {
    # The game reads float32 whatever the type is, so "unspecified" means float32.
    ScalarType.UNSPECIFIED: np.dtype("<f4"),
    ScalarType.UINT8: np.dtype("u1"),
    ScalarType.UINT32: np.dtype("<u4"),
    ScalarType.INT32: np.dtype("<i4"),
    ScalarType.FLOAT32: np.dtype("<f4"),
    ScalarType.FLOAT64: np.dtype("<f8"),
}


class _Arrays:
    """Bitwise equality of dataclasses with arrays, for comparing documents."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(getattr(self, one.name), getattr(other, one.name)) for one in fields(self))  # type: ignore[arg-type]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return bool(one == other)


@dataclass
class VertexProperty:
    """Raw values of all vertices: ``dimension`` little-endian scalars each."""

    name: str
    scalar_type: int = ScalarType.FLOAT32
    dimension: int = 0
    data: bytes = b""
    unknown: bytes = b""

    @classmethod
    def of(cls, name: str, values: npt.NDArray[np.generic], scalar_type: int = ScalarType.FLOAT32) -> VertexProperty:
        """Return a property with the values of an (n, k) array."""
        return cls(name, scalar_type, values.shape[1], values.astype(DTYPES[scalar_type], copy=False).tobytes())

    def values(self, count: int) -> npt.NDArray[np.generic] | None:
        """Return the (count, dimension) values as a view, or None if the length of the data does not match."""
        dtype = DTYPES.get(self.scalar_type)
        if dtype is None or self.dimension <= 0 or len(self.data) != count * self.dimension * dtype.itemsize:
            return None
        return np.frombuffer(self.data, dtype).reshape(count, self.dimension)


@dataclass(eq=False)
class Mesh(_Arrays):
    """Triangles of one material: ``indices`` (3 t,) int32 into the node's vertices."""

    indices: npt.NDArray[np.int32]
    material: str = ""
    unknown: bytes = b""


@dataclass
class VertexAnimationFrame:
    """One frame: the vertex properties ``offset`` and ``rotation``."""

    properties: list[VertexProperty] = field(default_factory=list)
    unknown: bytes = b""


@dataclass
class VertexAnimation:
    """Frames of ``offset`` and ``rotation`` for the node's first ``animated_vertex_count`` vertices."""

    name: str
    framerate: float = 0.0
    animated_vertex_count: int = 0
    frames: list[VertexAnimationFrame] = field(default_factory=list)
    unknown: bytes = b""


@dataclass(eq=False)
class NodeAnimation(_Arrays):
    """The local transform of the node in each frame.

    ``positions`` (F, 3), ``rotations`` (F, 4; x, y, z, w) and ``scales`` (F, 3) are float32. ``present`` (F, 3) bool
    marks which of the three a frame stores; the others are zero.
    """

    name: str
    framerate: float
    positions: npt.NDArray[np.float32]
    rotations: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    present: npt.NDArray[np.bool_]
    unknown: bytes = b""

    @property
    def frame_count(self) -> int:
        return len(self.positions)


@dataclass
class Node:
    """A node. ``parent`` is an index into the model's nodes, -1 for a root. None means that the message is absent."""

    parent: int = 0
    name: str = ""
    position: Vector3 | None = None
    rotation: Quaternion | None = None
    scale: Vector3 | None = None
    vertex_count: int = 0
    properties: list[VertexProperty] = field(default_factory=list)
    meshes: list[Mesh] = field(default_factory=list)
    vertex_animations: list[VertexAnimation] = field(default_factory=list)
    node_animations: list[NodeAnimation] = field(default_factory=list)
    unknown: bytes = b""

    def find(self, name: str) -> VertexProperty | None:
        """Return the first property with this name, which is the one that the game uses."""
        return next((found for found in self.properties if found.name == name), None)


@dataclass
class Model:
    """A whole file. ``warnings`` has the warnings of the reader and is not part of the file."""

    version: int = 0
    name: str = ""
    nodes: list[Node] = field(default_factory=list)
    unknown: bytes = b""
    warnings: list[Any] = field(default_factory=list, compare=False)
    compression: str = field(default="BALANCED", compare=False)


_MANY_CORNERS = 1_000_000
_MOST_CORNERS_A_VERTEX = 32
"""Largest accepted number of corners for each vertex; vertices of a closed surface have six on average."""


def read(data: bytes, *, inflated_limit: int | None = None) -> Model:
    """Decode a ``.timbermesh`` file.

    Parameters
    ----------
    data:
        The file, in any supported container.
    inflated_limit:
        Maximum size of the inflated message in bytes (default: the larger of 64 MiB and 64 times the file size).

    Raises
    ------
    FormatError
        The container or the messages are damaged, or the parents do not form a tree.
    MissingLibraryError
        The ``protobuf`` library is not installed.
    """
    wire.message_classes()
    unpacked = container.unpack(data, inflated_limit)
    found = wire.check_structure(unpacked.content)
    parsed = wire.parse_model(unpacked.content)
    # Copy only the slices of meshes with unpacked indices, so that the inflated message can be freed.
    one_by_one = {number: unpacked.content[start:end] for number, (start, end) in found.unpacked_meshes.items()}
    warnings = unpacked.report.messages
    del unpacked
    model = _ModelReader(one_by_one, found.has_unknown_fields).model(parsed)
    model.warnings = warnings
    _check_tree(model.nodes)
    _check_triangles(model.nodes)
    return model


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files hold the same message: the same bytes or, with unpacked indices, equal messages."""
    first, second = container.unpack(one).content, container.unpack(other).content
    return first == second or _normalised(first) == _normalised(second)


def _normalised(content: bytes) -> bytes:
    """Serialise a message as a protobuf library would: indices in one packed run, fields in ascending order."""
    found = wire.check_structure(content)
    parsed = wire.parse_model(content)
    number = -1
    for node in parsed.nodes:
        for mesh in node.meshes:
            number += 1
            span = found.unpacked_meshes.get(number)
            if span is not None:
                packed, unknown = wire.pack_mesh(content[span[0] : span[1]])
                material = mesh.material
                mesh.Clear()
                mesh.MergeFromString(unknown)
                mesh.material = material
            elif len(mesh.indices) == 1 and mesh.indices[0]:
                continue
            else:
                packed = wire.packed_indices(mesh)
                mesh.ClearField("indices")
            if packed:
                mesh.indices.append(packed)
    normalised: bytes = parsed.SerializeToString()
    return normalised


class _ModelReader:
    """Convert the parsed messages of one file to document classes."""

    def __init__(self, one_by_one: dict[int, bytes], keep_unknown: bool) -> None:
        self.one_by_one = one_by_one
        self.keep_unknown = keep_unknown
        self.mesh_number = -1

    def unknown(self, message: Any) -> bytes:
        return wire.unknown_fields(message) if self.keep_unknown else b""

    def model(self, parsed: Any) -> Model:
        nodes = [self.node(parsed.nodes[index]) for index in range(len(parsed.nodes))]
        return Model(version=parsed.version, name=parsed.name, nodes=nodes, unknown=self.unknown(parsed))

    def node(self, parsed: Any) -> Node:
        position, rotation, scale = parsed.position, parsed.rotation, parsed.scale
        return Node(
            parent=parsed.parent,
            name=parsed.name,
            position=(position.x, position.y, position.z) if parsed.HasField("position") else None,
            rotation=(rotation.x, rotation.y, rotation.z, rotation.w) if parsed.HasField("rotation") else None,
            scale=(scale.x, scale.y, scale.z) if parsed.HasField("scale") else None,
            vertex_count=parsed.vertexCount,
            properties=[self.vertex_property(found) for found in parsed.vertexProperties],
            meshes=[self.mesh(found) for found in parsed.meshes],
            vertex_animations=[self.vertex_animation(found) for found in parsed.vertexAnimations],
            node_animations=[self.node_animation(found) for found in parsed.nodeAnimations],
            unknown=self.unknown(parsed),
        )

    def vertex_property(self, parsed: Any) -> VertexProperty:
        return VertexProperty(
            parsed.name, parsed.scalarType, parsed.scalarTypeDimension, parsed.data, self.unknown(parsed)
        )

    def mesh(self, parsed: Any) -> Mesh:
        self.mesh_number += 1
        one_by_one = self.one_by_one.get(self.mesh_number)
        if one_by_one is None:
            packed, unknown = wire.packed_indices(parsed), self.unknown(parsed)
        else:
            packed, unknown = wire.pack_mesh(one_by_one)
            wire.check_mesh(unknown)
        return Mesh(wire.decode_varints(packed), parsed.material, unknown)

    def vertex_animation(self, parsed: Any) -> VertexAnimation:
        return VertexAnimation(
            name=parsed.name,
            framerate=parsed.framerate,
            animated_vertex_count=parsed.animatedVertexCount,
            frames=[
                VertexAnimationFrame(
                    [self.vertex_property(found) for found in frame.vertexProperties], self.unknown(frame)
                )
                for frame in parsed.frames
            ],
            unknown=self.unknown(parsed),
        )

    def node_animation(self, parsed: Any) -> NodeAnimation:
        # Zero components are not stored, so keyframes differ in length and cannot be decoded as an array.
        frames = parsed.frames
        count = len(frames)
        positions = np.array([(p.x, p.y, p.z) for p in (f.position for f in frames)], np.float32)
        rotations = np.array([(r.x, r.y, r.z, r.w) for r in (f.rotation for f in frames)], np.float32)
        scales = np.array([(s.x, s.y, s.z) for s in (f.scale for f in frames)], np.float32)
        present = np.array(
            [(f.HasField("position"), f.HasField("rotation"), f.HasField("scale")) for f in frames], bool
        )
        return NodeAnimation(
            name=parsed.name,
            framerate=parsed.framerate,
            positions=positions.reshape(count, 3),
            rotations=rotations.reshape(count, 4),
            scales=scales.reshape(count, 3),
            present=present.reshape(count, 3),
            unknown=self.unknown(parsed),
        )


def _check_tree(nodes: list[Node]) -> None:
    """Raise FormatError for parents that do not exist and for cycles; forward references are valid."""
    for index, node in enumerate(nodes):
        if not -1 <= node.parent < len(nodes):
            raise FormatError(
                "The parent is node {}, but only nodes 0 to {} exist",
                node.parent,
                len(nodes) - 1,
                item=_label(index, node),
            )
    index = own_ancestor([node.parent for node in nodes])
    if index >= 0:
        raise FormatError("The node is its own ancestor", item=_label(index, nodes[index]))


def _check_triangles(nodes: list[Node]) -> None:
    """Raise FormatError for millions of triangles on few vertices, which some kilobytes of zeros inflate to."""
    for index, node in enumerate(nodes):
        corners = sum(len(mesh.indices) for mesh in node.meshes)
        if corners > _MANY_CORNERS and corners > _MOST_CORNERS_A_VERTEX * max(0, node.vertex_count):
            template = "{:,} triangles over {:,} vertices; the file is damaged or hostile"
            raise FormatError(template, corners // 3, node.vertex_count, item=_label(index, node))


def _label(index: int, node: Node) -> Text:
    return Text("node {} '{}'", index, node.name)


FILE_TO_BLENDER = Basis(order=(0, 2, 1), signs=(-1, -1, 1))
"""(x, y, z) = (-X, -Z, Y). It mirrors, so winding and bitangent signs are flipped (format page, space)."""

BLENDER_TO_FILE = FILE_TO_BLENDER.inverse

GAME_DIMENSIONS = {"position": 3, "normal": 3, "tangent": 4, "color": 4, "uv0": 2, "uv1": 2, "uv2": 2}
"""The vertex properties that the game reads, with the dimension that it assumes."""

UV_NAMES = ("uv0", "uv1", "uv2")

DEFAULT_CLIP = "Default"
"""Name of the single animation that the official exporter writes."""

MOST_ANIMATED = 16_384
"""Most animated vertices, and most frames, that the game's texture holds: the usual size limit of graphics cards."""


def write(model: Model) -> bytes:
    """Encode a model as a file that the game loads: ``78 9C``, deflate, Adler-32, packed indices.

    Raises
    ------
    FormatError
        A value that the format cannot hold: a negative index or text that is not valid Unicode.
    """
    return container.pack(serialise(model), model.compression)


def serialise(model: Model) -> bytes:
    """Encode a model as the bare protobuf message."""
    known = wire.message_classes()
    message = known.model()
    try:
        message.version = model.version
        message.name = model.name
        for node in model.nodes:
            _fill_node(message.nodes.add(), node)
        _add_unknown(message, model.unknown)
        content: bytes = message.SerializeToString()
    except FormatError:
        raise
    except known.errors as problem:
        raise FormatError("The model cannot be encoded ({})", wire.protobuf_reason(problem)) from None
    return content


def _add_unknown(message: Any, unknown: bytes) -> None:
    if unknown:
        message.MergeFromString(unknown)


def _fill_node(message: Any, node: Node) -> None:
    message.parent = node.parent
    message.name = node.name
    for name, values, axes in (
        ("position", node.position, "xyz"),
        ("rotation", node.rotation, "xyzw"),
        ("scale", node.scale, "xyz"),
    ):
        if values is not None:
            _fill_vector(getattr(message, name), values, axes)
    message.vertexCount = node.vertex_count
    for found in node.properties:
        _fill_property(message.vertexProperties.add(), found)
    for mesh in node.meshes:
        _fill_mesh(message.meshes.add(), mesh, node)
    for vertex_animation in node.vertex_animations:
        _fill_vertex_animation(message.vertexAnimations.add(), vertex_animation)
    for node_animation in node.node_animations:
        _fill_node_animation(message.nodeAnimations.add(), node_animation)
    _add_unknown(message, node.unknown)


def _fill_vector(message: Any, values: tuple[float, ...], axes: str) -> None:
    message.SetInParent()  # an all-zero vector is present, but has no components in the encoded message
    for axis, value in zip(axes, values, strict=True):
        setattr(message, axis, value)


def _fill_property(message: Any, found: VertexProperty) -> None:
    message.name = found.name
    message.scalarType = found.scalar_type
    message.scalarTypeDimension = found.dimension
    message.data = found.data
    _add_unknown(message, found.unknown)


def _fill_mesh(message: Any, mesh: Mesh, node: Node) -> None:
    if len(mesh.indices):
        if int(mesh.indices.min()) < 0:
            # Negative indices take ten-byte varints, which occur only in damaged files.
            raise FormatError("A triangle has a negative vertex index", item=Text("node '{}'", node.name))
        message.indices.append(wire.encode_varints(np.ascontiguousarray(mesh.indices)))
    message.material = mesh.material
    _add_unknown(message, mesh.unknown)


def _fill_vertex_animation(message: Any, animation: VertexAnimation) -> None:
    message.name = animation.name
    message.framerate = animation.framerate
    message.animatedVertexCount = animation.animated_vertex_count
    for frame in animation.frames:
        frame_message = message.frames.add()
        for found in frame.properties:
            _fill_property(frame_message.vertexProperties.add(), found)
        _add_unknown(frame_message, frame.unknown)
    _add_unknown(message, animation.unknown)


def _fill_node_animation(message: Any, animation: NodeAnimation) -> None:
    message.name = animation.name
    message.framerate = animation.framerate
    rows = zip(
        animation.positions.tolist(),
        animation.rotations.tolist(),
        animation.scales.tolist(),
        animation.present.tolist(),
        strict=True,
    )
    for position, rotation, scale, present in rows:
        frame = message.frames.add()
        if present[0]:
            _fill_vector(frame.position, position, "xyz")
        if present[1]:
            _fill_vector(frame.rotation, rotation, "xyzw")
        if present[2]:
            _fill_vector(frame.scale, scale, "xyz")
    _add_unknown(message, animation.unknown)
