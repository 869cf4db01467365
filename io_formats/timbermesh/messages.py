"""The protobuf messages, described at run time in a descriptor pool of our own.

The official exporter puts protobuf 4.21.7 on the path of every add-on and registers the package
``protoblog`` in the default pool, so neither a generated module (which refuses older runtimes) nor
the default pool will do. Page docs/formats/timbermesh.md, messages.

``Mesh.indices`` is described as ``repeated bytes``: packed integers and bytes share wire type 2, so
the run of varints arrives whole for NumPy to decode, one element a packed chunk. ``PackedMesh`` is
the same message described truthfully; it turns what one-by-one encoding a file may hold into packed.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

from ..core.errors import FormatError, MissingLibraryError

_PACKAGE = "meshferry.timbermesh"

# name: (number, type, repeated); a type in capitals is a message
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
        # The enum ScalarType; described as a number so that values unknown to us come back as they were.
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
    """The message classes, and the errors that parsing and writing raise."""

    model: Any
    mesh: Any
    packed_mesh: Any
    errors: tuple[type[Exception], ...]


def child_messages(message: str) -> dict[int, str]:
    """Return the message type behind each field number of a message."""
    return {number: kind for number, kind, _ in _SCHEMA[message].values() if kind in _SCHEMA}


def field_wires(message: str) -> dict[int, int]:
    """Return the wire type of each field that a message knows; with another one, protobuf takes it for unknown."""
    return {number: {"int32": 0, "float": 5}.get(kind, 2) for number, kind, _ in _SCHEMA[message].values()}


@functools.cache
def messages() -> Messages:
    """Build the message classes, once.

    Raises
    ------
    MissingLibraryError
        The ``protobuf`` library is not installed.
    """
    try:
        library = _protobuf()
    except ImportError:
        raise MissingLibraryError(
            "Timbermesh needs the library 'protobuf'. The installed extension brings it; "
            "elsewhere: python -m pip install protobuf"
        ) from None
    except _MIXED_UP:
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
        # The pure-Python runtime lets a ValueError out for broken UTF-8.
        errors=(message.Error, ValueError, IndexError, OverflowError, TypeError),
    )


_MIXED_UP = (SystemError, AttributeError, TypeError)
"""What importing a protobuf raises that finds the compiled part of another version."""

_COMPILED_PART = "google._upb._message"


def _protobuf() -> tuple[Any, ...]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    return descriptor_pb2, descriptor_pool, message, message_factory


def _protobuf_without_compiled_part() -> tuple[Any, ...]:
    """Import a protobuf in pure Python that found the compiled part of another one behind it on the path.

    ``google`` is a namespace that spreads over the path: the official exporter's 4.21.7 takes the
    ``google._upb`` of any newer protobuf for its own, and fails.
    """
    sys.modules[_COMPILED_PART] = None  # type: ignore[assignment]
    try:
        return _protobuf()
    except (ImportError, *_MIXED_UP) as problem:
        raise MissingLibraryError(
            f"Timbermesh needs the library 'protobuf', but two versions of it are mixed up here ({reason(problem)}); "
            "disable other add-ons that bring one"
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


def reason(problem: Exception) -> str:
    """Return the first line of what protobuf says is wrong."""
    return (str(problem) or type(problem).__name__).splitlines()[0][:120]


def parse(content: bytes) -> Any:
    """Parse a Model message.

    Raises
    ------
    FormatError
        The message is malformed.
    """
    known = messages()
    model = known.model()
    try:
        model.ParseFromString(content)
    except known.errors as problem:
        raise FormatError(f"The model's data is malformed ({reason(problem)})") from None
    return model


def packed_indices(mesh: Any) -> bytes:
    """Return a mesh's indices as one run of varints where all of them are packed."""
    chunks = mesh.indices
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def pack_mesh(one_by_one: bytes) -> tuple[bytes, bytes]:
    """Return the indices, as one run of varints, and the unknown fields of a mesh.

    ``one_by_one`` is the mesh's own slice of the file, where its indices are not (all) packed.
    """
    known = messages()
    truthful = known.packed_mesh()
    again = known.mesh()
    try:
        truthful.ParseFromString(one_by_one)
        again.ParseFromString(truthful.SerializeToString())
        truthful.ClearField("indices")
        truthful.ClearField("material")
        unknown: bytes = truthful.SerializeToString()
    except known.errors as problem:
        raise FormatError(f"The indices of a mesh are malformed ({reason(problem)})") from None
    return packed_indices(again), unknown


def unknown_fields(message: Any) -> bytes:
    """Return the serialised fields of a message that its description does not know."""
    rest = type(message)()
    rest.CopyFrom(message)
    for known in message.DESCRIPTOR.fields:
        rest.ClearField(known.name)
    serialised: bytes = rest.SerializeToString()
    return serialised
