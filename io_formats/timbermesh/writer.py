"""Document -> bytes (docs/formats/timbermesh.md, write rules)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import FormatError
from ..core.messages import Text
from .document import Mesh, Model, Node, NodeAnimation, VertexAnimation, VertexProperty
from .wire import container, messages, varints


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
    known = messages.message_classes()
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
        raise FormatError("The model cannot be encoded ({})", messages.protobuf_reason(problem)) from None
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
        message.indices.append(varints.encode_varints(np.ascontiguousarray(mesh.indices)))
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
