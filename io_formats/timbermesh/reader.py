"""Bytes -> document (docs/formats/timbermesh.md: container, messages, read rules)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import FormatError
from ..core.messages import Text
from ..geometry.hierarchy import own_ancestor
from .document import (
    Mesh,
    Model,
    Node,
    NodeAnimation,
    VertexAnimation,
    VertexAnimationFrame,
    VertexProperty,
)
from .wire import container, messages, structure, varints

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
    messages.message_classes()
    unpacked = container.unpack(data, inflated_limit)
    found = structure.check_structure(unpacked.content)
    parsed = messages.parse_model(unpacked.content)
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
    found = structure.check_structure(content)
    parsed = messages.parse_model(content)
    number = -1
    for node in parsed.nodes:
        for mesh in node.meshes:
            number += 1
            span = found.unpacked_meshes.get(number)
            if span is not None:
                packed, unknown = messages.pack_mesh(content[span[0] : span[1]])
                material = mesh.material
                mesh.Clear()
                mesh.MergeFromString(unknown)
                mesh.material = material
            elif len(mesh.indices) == 1 and mesh.indices[0]:
                continue
            else:
                packed = messages.packed_indices(mesh)
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
        return messages.unknown_fields(message) if self.keep_unknown else b""

    def model(self, parsed: Any) -> Model:
        nodes = []
        for index in range(len(parsed.nodes)):
            nodes.append(self.node(parsed.nodes[index]))
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
            packed, unknown = messages.packed_indices(parsed), self.unknown(parsed)
        else:
            packed, unknown = messages.pack_mesh(one_by_one)
            structure.check_mesh(unknown)
        return Mesh(varints.decode_varints(packed), parsed.material, unknown)

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
