"""The protobuf messages of a file, their wire structure and packed varints.

The official exporter puts protobuf 4.21.7 on the path of every add-on and registers the package ``protoblog`` in the
default pool. So neither a generated module (it rejects older runtimes) nor the default pool can be used. See
docs/formats/timbermesh.md, messages.

``Mesh.indices`` is described as ``repeated bytes``: packed integers and bytes share wire type 2, so that NumPy can
decode the run of varints. Each packed chunk is one element. ``PackedMesh`` is the same message with its true types; it
converts indices that a file stores one by one into packed ones.

Protobuf would create an object for every two bytes of a hostile file. This pass counts first, reports the offset at
which the structure is broken, and finds meshes whose indices are not packed. It does not visit vertices, indices or
keyframes, only messages, of which real files have a few hundred.
"""

import functools
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError, MissingLibraryError

_PACKAGE = "meshferry.timbermesh"

# Fields in the order of their numbers, which count from 1. Each has a name and a type; a capitalised type is a message,
# and * marks a repeated field. The enum ScalarType is described as a number, so that unknown values are written back.
_FIELDS_OF_MESSAGES = {
    "Model": "version int32, name string, nodes Node*",
    "Node": "parent int32, name string, position Vector3Float, rotation QuaternionFloat, scale Vector3Float, "
    "vertexCount int32, vertexProperties VertexProperty*, meshes Mesh*, vertexAnimations VertexAnimation*, "
    "nodeAnimations NodeAnimation*",
    "Mesh": "indices bytes*, material string",
    "PackedMesh": "indices int32*, material string",
    "VertexAnimation": "name string, framerate float, animatedVertexCount int32, frames VertexAnimationFrame*",
    "VertexAnimationFrame": "vertexProperties VertexProperty*",
    "NodeAnimation": "name string, framerate float, frames NodeAnimationFrame*",
    "NodeAnimationFrame": "position Vector3Float, rotation QuaternionFloat, scale Vector3Float",
    "VertexProperty": "name string, scalarType int32, scalarTypeDimension int32, data bytes",
    "Vector3Float": "x float, y float, z float",
    "QuaternionFloat": "x float, y float, z float, w float",
}


def _fields(described: str) -> dict[str, tuple[int, str, bool]]:
    """Return the fields of a message by name: number, type, and whether it is repeated."""
    pairs = (field.split() for field in described.split(", "))
    return {name: (number, kind.rstrip("*"), kind.endswith("*")) for number, (name, kind) in enumerate(pairs, 1)}


_SCHEMA = {message: _fields(described) for message, described in _FIELDS_OF_MESSAGES.items()}


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
    """Return the schema as the description of a protobuf file."""
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


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_SINGLE_INDEX = ("Mesh", 1, _VARINT)
"""Message, field and wire type of a mesh index that is stored by itself instead of in a packed run."""

_BYTES_PER_STEP = 48

_MOST = {
    "Node": 8_192,
    "VertexProperty": 131_072,
    "Mesh": 16_384,
    "VertexAnimation": 16_384,
    "VertexAnimationFrame": 16_384,
    "NodeAnimation": 8_192,
    "NodeAnimationFrame": 250_000,
}
"""Maximum number of each message: far above any real model (964 real files hold 1,314 nodes and 8,852 keyframes in
all), and low enough that a file with so many opens and saves within two seconds."""

_WALKED = ("Model", "Node", "Mesh", "VertexProperty", "VertexAnimation", "VertexAnimationFrame", "NodeAnimation")
_CHILDREN = {name: child_messages(name) for name in _WALKED}
_FIELDS = {name: field_wires(name) for name in _WALKED}


@dataclass
class Structure:
    """The result of the walk."""

    has_unknown_fields: bool = False
    unpacked_meshes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Slices (start, end) of the meshes whose indices are stored one by one, by the number of the mesh in the file."""
    counts: Counter[str] = field(default_factory=Counter)


def check_structure(content: bytes) -> Structure:
    """Check the wire structure of a Model message.

    Raises
    ------
    FormatError
        A varint of more than 10 bytes, a length past the end, an obsolete wire type, or more messages than any
        real model has; with the byte offset.
    """
    walker = _Walker(content)
    walker.walk("Model", 0, len(content))
    return walker.found


def check_mesh(content: bytes) -> None:
    """Check the fields of one mesh that :func:`check_structure` did not visit; raise the same errors."""
    _Walker(content).walk("Mesh", 0, len(content))


class _Walker:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.found = Structure()
        self.steps_left = 1_000_000 + len(content) // _BYTES_PER_STEP

    def walk(self, message: str, start: int, end: int) -> None:
        """Walk one message in ``content[start:end]`` and the messages in it."""
        children, known = _CHILDREN[message], _FIELDS[message]
        position = start
        while position < end:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise FormatError(
                    "Far more parts than any real model has; the file is damaged or hostile", offset=position
                )
            tag_at = position
            tag, position = self.varint(position, end)
            number, wire = tag >> 3, tag & 7
            if number == 0:
                raise FormatError("Damaged data: a field without a number", offset=tag_at)
            if known.get(number) != wire and (message, number, wire) != _SINGLE_INDEX:
                self.found.has_unknown_fields = True
            if wire == _BYTES:
                length, position = self.varint(position, end)
                if length > end - position:
                    raise FormatError(
                        "Damaged data: a part of {:,} bytes where {:,} are left",
                        length,
                        end - position,
                        offset=tag_at,
                        item=message,
                    )
                if number in children:
                    self.enter(children[number], position, position + length)
                position += length
            elif wire == _VARINT:
                if (message, number, wire) == _SINGLE_INDEX:
                    self.found.unpacked_meshes[self.found.counts["Mesh"] - 1] = (start, end)
                    return  # skip the rest: it may hold millions of indices, which protobuf checks
                _, position = self.varint(position, end)
            elif wire in (_FIXED32, _FIXED64):
                position += 4 if wire == _FIXED32 else 8
                if position > end:
                    raise FormatError("Damaged data: a number is cut off", offset=tag_at, item=message)
            else:
                raise FormatError("Damaged data: unknown wire type {}", wire, offset=tag_at, item=message)

    def enter(self, message: str, start: int, end: int) -> None:
        """Count a message, and walk it if it can hold other messages."""
        counts = self.found.counts
        counts[message] += 1
        if counts[message] > _MOST.get(message, counts[message]):
            raise FormatError(
                "More than {:,} {} parts; the file is damaged or hostile", _MOST[message], message, offset=start
            )
        if message in _CHILDREN:
            self.walk(message, start, end)

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """Decode one varint; return its value and the position after it."""
        content = self.content
        if position < end and content[position] < 128:
            return content[position], position + 1
        value = 0
        for count in range(10):
            if position + count >= end:
                raise FormatError("Damaged data: a number is cut off", offset=position)
            byte = content[position + count]
            value |= (byte & 127) << (7 * count)
            if byte < 128:
                return value, position + count + 1
        raise FormatError("Damaged data: a number of more than 10 bytes", offset=position)


_BLOCK = 1 << 18
"""Values for each pass. A block fits the processor's cache, which makes the passes several times faster."""


def decode_varints(packed: bytes) -> npt.NDArray[np.int32]:
    """Decode a run of varints to (n,) int32. Like protobuf, keep the low 32 bits of larger values.

    Raises
    ------
    FormatError
        The last varint is cut off, or one has more than 10 bytes.
    """
    raw = np.frombuffer(packed, np.uint8)
    if not len(raw):
        return np.empty(0, np.int32)
    last = raw < 128
    if not last[-1]:
        raise FormatError("The indices of a mesh are cut off")
    count = int(np.count_nonzero(last))
    if count == len(raw):
        return raw.astype(np.int32)
    values = np.empty(count, np.int32)
    done = 0
    ends = np.flatnonzero(last)
    for first in range(0, count, _BLOCK):
        block_ends = ends[first : first + _BLOCK] + 1
        stop = int(block_ends[-1])
        values[first : first + len(block_ends)] = _decode_block(raw[done:stop], block_ends - done)
        done = stop
    return values


def _decode_block(raw: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
    """Decode the varints of ``raw``; ``ends`` are the offsets after each."""
    lengths = np.diff(ends, prepend=0)
    longest = int(lengths.max())
    if longest > 10:
        raise FormatError("The indices of a mesh hold a number of more than 10 bytes")
    starts = ends - lengths
    values = raw[starts].astype(np.uint32)
    values &= 127
    all_longer = int(lengths.min())
    for byte in range(1, min(longest, 5)):
        if byte < all_longer:
            values |= (raw[starts + byte].astype(np.uint32) & 127) << np.uint32(7 * byte)
        else:
            longer = np.flatnonzero(lengths > byte)
            values[longer] |= (raw[starts[longer] + byte].astype(np.uint32) & 127) << np.uint32(7 * byte)
    return values.view(np.int32)


def encode_varints(values: npt.NDArray[np.int32]) -> bytes:
    """Encode (n,) non-negative int32 as packed varints."""
    return b"".join(_encode_block(values[first : first + _BLOCK]) for first in range(0, len(values), _BLOCK))


def _encode_block(values: npt.NDArray[np.int32]) -> bytes:
    """Encode integers as varints, one after the other, without a loop over the values."""
    unsigned = values.astype(np.uint32)
    highest = int(unsigned.max(initial=0))
    width = max(1, (highest.bit_length() + 6) // 7)
    if width == 1:
        return unsigned.astype(np.uint8).tobytes()
    table = np.empty((len(unsigned), width), np.uint8)
    keep = np.empty((len(unsigned), width), bool)
    for byte in range(width):
        rest = unsigned >> np.uint32(7 * byte)
        more = rest > 127
        table[:, byte] = rest & 127
        table[:, byte] |= more.view(np.uint8) << 7
        keep[:, byte] = rest > 0
    keep[:, 0] = True
    return table[keep].tobytes()
