"""An independent reading of Timbermesh files: protobuf's own parser and the page's table, none of our code.

The message table is written down here a second time on purpose, truthfully (``repeated int32
indices``), so that a mistake in the codec's description shows.
"""

from __future__ import annotations

import functools
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "oracle"

# The table of docs/formats/timbermesh.md, "Messages", as a .proto file would say it.
PROTO = """
message Vector3Float { float x = 1; float y = 2; float z = 3; }
message QuaternionFloat { float x = 1; float y = 2; float z = 3; float w = 4; }
message VertexProperty { string name = 1; int32 scalarType = 2; int32 scalarTypeDimension = 3; bytes data = 4; }
message VertexAnimationFrame { repeated VertexProperty vertexProperties = 1; }
message VertexAnimation {
  string name = 1; float framerate = 2; int32 animatedVertexCount = 3; repeated VertexAnimationFrame frames = 4;
}
message NodeAnimationFrame { Vector3Float position = 1; QuaternionFloat rotation = 2; Vector3Float scale = 3; }
message NodeAnimation { string name = 1; float framerate = 2; repeated NodeAnimationFrame frames = 3; }
message Mesh { repeated int32 indices = 1; string material = 2; }
message Node {
  int32 parent = 1; string name = 2;
  Vector3Float position = 3; QuaternionFloat rotation = 4; Vector3Float scale = 5;
  int32 vertexCount = 6; repeated VertexProperty vertexProperties = 7; repeated Mesh meshes = 8;
  repeated VertexAnimation vertexAnimations = 9; repeated NodeAnimation nodeAnimations = 10;
}
message Model { int32 version = 1; string name = 2; repeated Node nodes = 3; }
"""


WIDTHS = {
    "position": 3,
    "normal": 3,
    "tangent": 4,
    "color": 4,
    "uv0": 2,
    "uv1": 2,
    "uv2": 2,
    "offset": 3,
    "rotation": 4,
}


def file_descriptor(package: str = PACKAGE) -> Any:
    """Describe the messages of the page as the .proto file would, in a package."""
    field_class = descriptor_pb2.FieldDescriptorProto
    described = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, body in re.findall(r"message (\w+) \{(.*?)\}", PROTO, re.DOTALL):
        message = described.message_type.add(name=name)
        for repeated, kind, field_name, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body):
            field = message.field.add(name=field_name, number=int(number))
            field.label = field_class.LABEL_REPEATED if repeated else field_class.LABEL_OPTIONAL
            if kind in ("int32", "float", "string", "bytes"):
                field.type = getattr(field_class, f"TYPE_{kind.upper()}")
            else:
                field.type, field.type_name = field_class.TYPE_MESSAGE, f".{package}.{kind}"
    return described


@functools.cache
def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file_descriptor().SerializeToString())
    return pool


@functools.cache
def message_class(name: str) -> Any:
    """Return protobuf's class of a message of the page."""
    descriptor = _pool().FindMessageTypeByName(f"{PACKAGE}.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_pool()).GetPrototype(descriptor)


def inflate(data: bytes) -> bytes:
    """Inflate as the game does: the header compared exactly, the checksum not looked at."""
    assert data[:2] == b"\x78\x9c"
    stream = zlib.decompressobj(-15)
    content = stream.decompress(data[2:])
    assert stream.eof
    return content


def parse(data: bytes) -> Any:
    """Parse a file to the Model message."""
    model = message_class("Model")()
    model.ParseFromString(inflate(data))
    return model


def values(properties: Any, name: str, count: int | None = None) -> np.ndarray | None:
    """Return the first property of a name as float32 (n, width), as the game reads it."""
    for found in properties:
        if found.name == name and found.data:
            return np.frombuffer(found.data, "<f4").reshape(-1, WIDTHS[name])[:count]
    return None


@dataclass
class Corners:
    """The corners of one material's triangles on one node, three a row: (3 t, width) arrays by property."""

    indices: np.ndarray
    properties: dict[str, np.ndarray]

    def triangles(self, name: str) -> np.ndarray:
        """Return a property as (t, 3, width)."""
        found = self.properties[name]
        return found.reshape(-1, 3, found.shape[1])

    def kept(self, mask: np.ndarray) -> Corners:
        """Return the triangles of a mask."""
        corners = np.repeat(mask, 3)
        return Corners(self.indices[corners], {name: found[corners] for name, found in self.properties.items()})

    @property
    def repeated(self) -> np.ndarray:
        """Tell which triangles use a vertex twice."""
        a, b, c = self.indices.reshape(-1, 3).T
        return (a == b) | (b == c) | (c == a)

    @property
    def flat(self) -> np.ndarray:
        """Tell which triangles have no area, relative to their longest edge."""
        p = self.triangles("position").astype(np.float64)
        edges = np.linalg.norm(p - np.roll(p, 1, axis=1), axis=2).max(axis=1)
        area = np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), axis=1)
        return area <= 1e-4 * edges**2

    @property
    def twins(self) -> np.ndarray:
        """Tell which triangles share their three places with another."""
        p = np.ascontiguousarray(self.triangles("position") + np.float32(0))
        _, place = np.unique(p.view("V12").reshape(-1), return_inverse=True)
        keys = np.sort(place.reshape(-1, 3), axis=1)
        _, triangle, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        return counts[triangle.reshape(-1)] > 1


def corners_of(node: Any) -> dict[str, Corners]:
    """Return the triangles of a node by material, in order."""
    found: dict[str, list[np.ndarray]] = {}
    for mesh in node.meshes:
        if len(mesh.indices):
            found.setdefault(mesh.material, []).append(np.fromiter(mesh.indices, np.int64, len(mesh.indices)))
    result = {}
    for material, runs in found.items():
        indices = np.concatenate(runs)
        properties = {}
        for name in ("position", "normal", "tangent", "color", "uv0", "uv1", "uv2"):
            whole = values(node.vertexProperties, name)
            if whole is not None:
                properties[name] = whole[indices]
        result[material] = Corners(indices, properties)
    return result


def transform(message: Any) -> np.ndarray:
    """Return the (4, 4) matrix of a node or of a frame: translation, normalised rotation, scale."""
    q = np.array([message.rotation.w, message.rotation.x, message.rotation.y, message.rotation.z], float)
    w, x, y, z = q / np.linalg.norm(q)
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix = np.identity(4)
    matrix[:3, :3] = rotation * [message.scale.x, message.scale.y, message.scale.z]
    matrix[:3, 3] = message.position.x, message.position.y, message.position.z
    return matrix


def rotate(quaternions: np.ndarray, vector: tuple[float, float, float]) -> np.ndarray:
    """Turn one vector by quaternions (n, 4; x, y, z, w)."""
    axis, w = quaternions[:, :3].astype(float), quaternions[:, 3:].astype(float)
    v = np.broadcast_to(np.array(vector, float), axis.shape)
    return v + 2 * np.cross(axis, np.cross(axis, v) + w * v)
