"""The protobuf messages, described at run time in a descriptor pool of this package.

The official exporter puts protobuf 4.21.7 on the path of every add-on and registers the package ``protoblog`` in the
default pool. So neither a generated module (it rejects older runtimes) nor the default pool can be used. See
docs/formats/timbermesh.md, messages.

``Mesh.indices`` is described as ``repeated bytes``: packed integers and bytes share wire type 2, so that NumPy can
decode the run of varints. Each packed chunk is one element. ``PackedMesh`` is the same message with its true types; it
converts indices that a file stores one by one into packed ones.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

from ...core.errors import FormatError, MissingLibraryError

_PACKAGE = "meshferry.timbermesh"

# name: (number, type, repeated); a capitalised type is a message
_SCHEMA: dict[str, dict[str, tuple[int, str, bool]]] = {
    "Model": {"version": (1, "int32", False), "name": (2, "string", False), "nodes": (3, "Node", True)},
    "Node": {
        "parent": (1, "int32", False),
        "name": (2, "string", False),
        "position": (3, "Vector3Float", False),
        "rotation": (4, "QuaternionFloat", False),
        "scale": (5, "Vector3Float", False),
        "vertexCount": (6, "int32", False),
        "vertexProperties": (7, "VertexProperty", True),
        "meshes": (8, "Mesh", True),
        "vertexAnimations": (9, "VertexAnimation", True),
        "nodeAnimations": (10, "NodeAnimation", True),
    },
    "Mesh": {"indices": (1, "bytes", True), "material": (2, "string", False)},
    "PackedMesh": {"indices": (1, "int32", True), "material": (2, "string", False)},
    "VertexAnimation": {
        "name": (1, "string", False),
        "framerate": (2, "float", False),
        "animatedVertexCount": (3, "int32", False),
        "frames": (4, "VertexAnimationFrame", True),
    },
    "VertexAnimationFrame": {"vertexProperties": (1, "VertexProperty", True)},
    "NodeAnimation": {
        "name": (1, "string", False),
        "framerate": (2, "float", False),
        "frames": (3, "NodeAnimationFrame", True),
    },
    "NodeAnimationFrame": {
        "position": (1, "Vector3Float", False),
        "rotation": (2, "QuaternionFloat", False),
        "scale": (3, "Vector3Float", False),
    },
    "VertexProperty": {
        "name": (1, "string", False),
        # The enum ScalarType, described as a number so that unknown values are written back unchanged.
        "scalarType": (2, "int32", False),
        "scalarTypeDimension": (3, "int32", False),
        "data": (4, "bytes", False),
    },
    "Vector3Float": {"x": (1, "float", False), "y": (2, "float", False), "z": (3, "float", False)},
    "QuaternionFloat": {
        "x": (1, "float", False),
        "y": (2, "float", False),
        "z": (3, "float", False),
        "w": (4, "float", False),
    },
}


@dataclass(frozen=True)
class Messages:
    """The message classes, and the exceptions that parsing and serialising raise."""

    model: Any
    mesh: Any
    packed_mesh: Any
    errors: tuple[type[Exception], ...]


def child_messages(message: str) -> dict[int, str]:
    """Return the message type of each field of a message that holds messages, by field number."""
    return {number: kind for number, kind, _ in _SCHEMA[message].values() if kind in _SCHEMA}


def field_wires(message: str) -> dict[int, int]:
    """Return the wire type of each field of a message.

    Protobuf takes a field with another wire type for an unknown field.
    """
    return {number: {"int32": 0, "float": 5}.get(kind, 2) for number, kind, _ in _SCHEMA[message].values()}


@functools.cache
def message_classes() -> Messages:
    """Build the message classes; later calls return the same ones.

    Raises
    ------
    MissingLibraryError
        The ``protobuf`` library is not installed.
    """
    try:
        library = _protobuf()
    except ImportError:
        raise MissingLibraryError(
            "Timbermesh needs the library 'protobuf'. The installed extension includes it; "
            "elsewhere: python -m pip install protobuf"
        ) from None
    except _VERSION_CONFLICTS:
        library = _protobuf_without_compiled_part()
    descriptor_pb2, descriptor_pool, message, message_factory = library
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file_descriptor(descriptor_pb2).SerializeToString())
    get_class: Any = getattr(message_factory, "GetMessageClass", None)
    if get_class is None:  # protobuf before 4.22
        factory: Any = message_factory.MessageFactory(pool)
        get_class = factory.GetPrototype

    def class_of(name: str) -> Any:
        return get_class(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))

    return Messages(
        model=class_of("Model"),
        mesh=class_of("Mesh"),
        packed_mesh=class_of("PackedMesh"),
        # The pure-Python runtime raises ValueError for invalid UTF-8.
        errors=(message.Error, ValueError, IndexError, OverflowError, TypeError),
    )


_VERSION_CONFLICTS = (SystemError, AttributeError, TypeError)
"""Exceptions that importing protobuf raises if it finds the compiled part of another version."""

_COMPILED_PART = "google._upb._message"


def _protobuf() -> tuple[Any, ...]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    return descriptor_pb2, descriptor_pool, message, message_factory


def _protobuf_without_compiled_part() -> tuple[Any, ...]:
    """Import protobuf in pure Python, because its compiled part on the path belongs to another version.

    ``google`` is a namespace package that extends over the whole path: the official exporter's 4.21.7 imports the
    ``google._upb`` of any newer protobuf as its own and fails.
    """
    sys.modules[_COMPILED_PART] = None  # type: ignore[assignment]
    try:
        return _protobuf()
    except (ImportError, *_VERSION_CONFLICTS) as problem:
        raise MissingLibraryError(
            "Timbermesh needs the library 'protobuf', but two versions of it are on the path ({}); "
            "disable other add-ons that include one",
            protobuf_reason(problem),
        ) from None
    finally:
        sys.modules.pop(_COMPILED_PART, None)


def _file_descriptor(descriptor_pb2: Any) -> Any:
    described = descriptor_pb2.FileDescriptorProto(name="meshferry/timbermesh.proto", package=_PACKAGE, syntax="proto3")
    field_class = descriptor_pb2.FieldDescriptorProto
    for message_name, fields in _SCHEMA.items():
        message = described.message_type.add(name=message_name)
        for name, (number, kind, repeated) in fields.items():
            field = message.field.add(name=name, number=number)
            field.label = field_class.LABEL_REPEATED if repeated else field_class.LABEL_OPTIONAL
            if kind in _SCHEMA:
                field.type = field_class.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = getattr(field_class, f"TYPE_{kind.upper()}")
    return described


def protobuf_reason(problem: Exception) -> str:
    """Return the first line of a protobuf error message."""
    return (str(problem) or type(problem).__name__).splitlines()[0][:120]


def parse_model(content: bytes) -> Any:
    """Parse a Model message.

    Raises
    ------
    FormatError
        The message is malformed.
    """
    known = message_classes()
    model = known.model()
    try:
        model.ParseFromString(content)
    except known.errors as problem:
        raise FormatError("The model's data is malformed ({})", protobuf_reason(problem)) from None
    return model


def packed_indices(mesh: Any) -> bytes:
    """Return the indices of a mesh whose indices are all packed, as one run of varints."""
    chunks = mesh.indices
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def pack_mesh(one_by_one: bytes) -> tuple[bytes, bytes]:
    """Return the indices of a mesh as one run of varints, and its unknown fields.

    ``one_by_one`` is the mesh's own slice of the file; at least some of its indices are not packed.
    """
    known = message_classes()
    with_types = known.packed_mesh()
    packed = known.mesh()
    try:
        with_types.ParseFromString(one_by_one)
        packed.ParseFromString(with_types.SerializeToString())
        with_types.ClearField("indices")
        with_types.ClearField("material")
        unknown: bytes = with_types.SerializeToString()
    except known.errors as problem:
        raise FormatError("The indices of a mesh are malformed ({})", protobuf_reason(problem)) from None
    return packed_indices(packed), unknown


def unknown_fields(message: Any) -> bytes:
    """Return the serialised unknown fields of a message."""
    rest = type(message)()
    rest.CopyFrom(message)
    for known in message.DESCRIPTOR.fields:
        rest.ClearField(known.name)
    serialised: bytes = rest.SerializeToString()
    return serialised
