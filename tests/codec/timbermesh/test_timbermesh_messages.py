"""The protobuf messages on the wire: every encoding that protobuf allows, written by hand and read by both parsers."""

from __future__ import annotations

import struct

import models
import numpy as np
import oracle
import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.timbermesh.model import codec
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from oracle import chunk, floats, packed, real, scalar, tag, varint

ROOT = scalar(1, -1) + chunk(2, "Root")


def read_node(content: bytes) -> codec.Node:
    """Read a file of one root node with these further fields."""
    message = chunk(3, ROOT + content)
    document = TIMBERMESH.read(oracle.deflate(message))
    assert len(document.nodes) == len(oracle.parse(message).nodes) == 1
    return document.nodes[0]


def read_mesh(content: bytes) -> codec.Mesh:
    """Read a mesh; its indices must be those that protobuf reads."""
    mesh = read_node(chunk(8, content)).meshes[0]
    assert mesh.indices.tolist() == list(oracle.parse(content, "Mesh").indices)
    return mesh


def test_negative_parent_is_a_ten_byte_varint() -> None:
    assert scalar(1, -1) == bytes.fromhex("08 ff ff ff ff ff ff ff ff ff 01")
    written = codec.serialise(models.model(models.node("Root")))
    assert bytes.fromhex("08 ff ff ff ff ff ff ff ff ff 01") in written
    assert read_node(b"").parent == -1


def test_absent_scalars_are_zero() -> None:
    message = chunk(3, ROOT) + chunk(3, chunk(2, "Child"))
    document = TIMBERMESH.read(oracle.deflate(message))
    child = document.nodes[1]
    assert (child.parent, child.vertex_count, child.name) == (0, 0, "Child")
    assert (child.position, child.rotation, child.scale) == (None, None, None)
    assert (document.version, document.name) == (0, "")


def test_absent_components_are_zero_and_empty_messages_are_present() -> None:
    node = read_node(chunk(3, b"") + chunk(4, real(4, 1.0)) + chunk(5, real(2, 2.0)))
    assert node.position == (0.0, 0.0, 0.0)
    assert node.rotation == (0.0, 0.0, 0.0, 1.0)
    assert node.scale == (0.0, 2.0, 0.0)
    content = codec.serialise(models.model(models.node(position=(0.0, 0.0, 0.0), scale=(0.0, 2.0, 0.0))))
    stored = oracle.parse(content).nodes[0]
    assert stored.HasField("position")
    assert stored.position.ByteSize() == 0
    assert stored.scale.ByteSize() == 5


def test_negative_zero_is_kept() -> None:
    node = read_node(chunk(3, real(1, -0.0)))
    assert node.position is not None
    assert struct.pack("<f", node.position[0]) == struct.pack("<f", -0.0)


@pytest.mark.parametrize(
    "indices",
    [
        pytest.param(chunk(1, packed([0, 1, 300])), id="packed"),
        pytest.param(scalar(1, 0) + scalar(1, 1) + scalar(1, 300), id="one by one"),
        pytest.param(chunk(1, packed([0])) + chunk(1, b"") + chunk(1, packed([1, 300])), id="several chunks"),
        pytest.param(chunk(1, packed([0])) + scalar(1, 1) + chunk(1, packed([300])), id="mixed"),
        pytest.param(scalar(1, 0) + chunk(1, packed([1])) + scalar(1, 300), id="mixed, single first"),
        pytest.param(chunk(1, varint(0, 5) + varint(1, 10) + varint(300, 3)), id="padded varints"),
        pytest.param(chunk(1, packed([0, 1])) + chunk(2, "a") + chunk(1, packed([300])), id="around the material"),
    ],
)
@pytest.mark.parametrize("material", [b"", chunk(2, "Dirt")])
def test_every_encoding_of_indices(indices: bytes, material: bytes) -> None:
    for content in (indices + material, material + indices):
        mesh = read_mesh(content)
        assert mesh.indices.tolist() == [0, 1, 300]
        assert mesh.indices.dtype == np.int32
        if material and content.endswith(material):
            assert mesh.material == "Dirt"
        node = models.node(vertex_count=301, meshes=[mesh])
        message = codec.serialise(models.model(node))
        stored = oracle.parse(message).nodes[0].meshes[0]
        assert list(stored.indices) == [0, 1, 300]
        assert chunk(1, packed([0, 1, 300])) in message  # one packed run


def test_same_content_whatever_the_encoding() -> None:
    one = chunk(3, ROOT + chunk(8, chunk(1, packed([0, 1, 2])) + chunk(2, "m")))
    others = [
        scalar(1, 0) + scalar(1, 1) + scalar(1, 2) + chunk(2, "m"),
        chunk(2, "m") + chunk(1, packed([0, 1])) + scalar(1, 2),
        chunk(1, packed([0])) + chunk(1, packed([1, 2])) + chunk(2, "m"),
        chunk(2, "x") + chunk(1, packed([0, 1, 2])) + chunk(2, "m"),
    ]
    for other in others:
        message = chunk(3, chunk(8, other) + ROOT)
        assert oracle.parse(message) == oracle.parse(one)
        assert TIMBERMESH.same_content(oracle.deflate(one), oracle.deflate(message, 9))
        assert TIMBERMESH.same_content(message, TIMBERMESH.write(TIMBERMESH.read(message)))
    for different in (chunk(1, packed([0, 1, 3])) + chunk(2, "m"), chunk(1, packed([0, 1, 2])), b""):
        message = chunk(3, ROOT + chunk(8, different))
        assert not TIMBERMESH.same_content(oracle.deflate(one), oracle.deflate(message))
    empty = chunk(3, ROOT + chunk(8, chunk(1, b"")))
    assert TIMBERMESH.same_content(empty, chunk(3, ROOT + chunk(8, b"")))


def test_indices_beyond_32_bits_are_cut_as_protobuf_does() -> None:
    for value in (1 << 31, (1 << 32) + 5, (1 << 63) + 7, -1, -(1 << 31), (1 << 64) - 2):
        read_mesh(chunk(1, packed([1, value])))
        read_mesh(scalar(1, 1) + scalar(1, value))


def test_negative_indices_are_read_but_not_written() -> None:
    mesh = read_mesh(chunk(1, packed([0, -1, 2])))
    assert mesh.indices.tolist() == [0, -1, 2]
    with pytest.raises(FormatError, match=r"^node 'Root': A triangle has a negative vertex index$"):
        TIMBERMESH.write(models.model(models.node(meshes=[mesh])))


def test_fields_in_any_order() -> None:
    fields = [
        scalar(1, -1),
        chunk(2, "Root"),
        chunk(3, floats((1, 2, 3))),
        chunk(4, real(4, 1.0)),
        chunk(5, real(3, 1.0) + real(1, 1.0) + real(2, 1.0)),
        scalar(6, 1),
        chunk(7, chunk(4, struct.pack("<3f", 1, 2, 3)) + scalar(3, 3) + chunk(1, "position") + scalar(2, 4)),
        chunk(8, chunk(2, "Dirt")),
    ]
    in_order = TIMBERMESH.read(oracle.deflate(chunk(3, b"".join(fields))))
    backwards = TIMBERMESH.read(oracle.deflate(chunk(3, b"".join(reversed(fields)))))
    assert in_order == backwards
    assert in_order.nodes[0].position == (1.0, 2.0, 3.0)
    assert in_order.nodes[0].scale == (1.0, 1.0, 1.0)
    assert in_order.nodes[0].properties[0].dimension == 3
    expected = oracle.parse(chunk(3, b"".join(fields))).SerializeToString()
    assert codec.serialise(backwards) == expected


def test_last_scalar_wins_and_messages_merge() -> None:
    node = read_node(
        scalar(6, 5)
        + scalar(6, 7)
        + chunk(2, "First")
        + chunk(2, "Last")
        + chunk(3, real(1, 1.0) + real(2, 9.0))
        + chunk(3, real(2, 2.0))
    )
    assert (node.vertex_count, node.name, node.position) == (7, "Last", (1.0, 2.0, 0.0))
    assert read_mesh(chunk(2, "a") + scalar(1, 3) + chunk(2, "b")).material == "b"


UNKNOWN = scalar(15, 300) + chunk(16, "later") + real(17, 1.5) + tag(18, 1) + bytes(8)


def test_unknown_fields_are_kept() -> None:
    prop = chunk(1, "position") + scalar(2, 4) + scalar(3, 3) + UNKNOWN
    node = (
        ROOT
        + chunk(7, prop)
        + chunk(8, chunk(1, packed([0, 1, 2])) + chunk(2, "Dirt") + UNKNOWN)
        + chunk(9, chunk(1, "A") + chunk(4, chunk(1, prop) + UNKNOWN) + UNKNOWN)
        + chunk(10, chunk(1, "B") + chunk(3, chunk(1, b"")) + UNKNOWN)
        + UNKNOWN
    )
    message = chunk(3, node) + UNKNOWN
    data = oracle.deflate(message)
    document = TIMBERMESH.read(data)
    found = document.nodes[0]
    parts = [
        document,
        found,
        found.properties[0],
        found.meshes[0],
        found.vertex_animations[0],
        found.vertex_animations[0].frames[0],
        found.vertex_animations[0].frames[0].properties[0],
        found.node_animations[0],
    ]
    assert all(part.unknown == UNKNOWN for part in parts)
    assert codec.serialise(document) == message
    assert TIMBERMESH.same_content(data, TIMBERMESH.write(document))


def test_unknown_fields_of_meshes_with_unpacked_indices_are_kept() -> None:
    for content in (scalar(1, 4) + scalar(1, 5) + UNKNOWN, UNKNOWN + scalar(1, 4) + scalar(1, 5)):
        mesh = read_mesh(content)
        assert mesh.unknown == UNKNOWN
        message = codec.serialise(models.model(models.node(meshes=[mesh])))
        assert chunk(8, chunk(1, packed([4, 5])) + UNKNOWN) in message
        data = oracle.deflate(chunk(3, ROOT + chunk(8, content)))
        assert TIMBERMESH.same_content(data, TIMBERMESH.write(TIMBERMESH.read(data)))


def test_values_unknown_to_an_enumeration_are_kept() -> None:
    node = read_node(chunk(7, chunk(1, "later") + scalar(2, 77) + scalar(3, -2) + chunk(4, b"abc")))
    found = node.properties[0]
    assert (found.scalar_type, found.dimension, found.data) == (77, -2, b"abc")
    assert oracle.parse(codec.serialise(models.model(node))).nodes[0].vertexProperties[0].scalarType == 77


@pytest.mark.parametrize(
    ("message", "said"),
    [
        pytest.param(b"\x1a", "cut off", id="no length"),
        pytest.param(b"\x1a\x05\x08", "a part of 5 bytes where 1 are left", id="length past the end"),
        pytest.param(b"\x1a" + b"\xff" * 9 + b"\x7f", "bytes where 0 are left", id="huge length"),
        pytest.param(b"\x1a" + b"\x80" * 10 + b"\x01", "more than 10 bytes", id="endless length"),
        pytest.param(b"\x08" + b"\x80" * 10 + b"\x01", "more than 10 bytes", id="endless scalar"),
        pytest.param(b"\x08\x80", "cut off", id="cut scalar"),
        pytest.param(chunk(3, scalar(1, -1) + b"\x0b"), "wire type 3", id="group"),
        pytest.param(chunk(3, b"\x0c"), "wire type 4", id="end of group"),
        pytest.param(chunk(3, b"\x0e"), "wire type 6", id="wire type 6"),
        pytest.param(chunk(3, b"\x0f"), "wire type 7", id="wire type 7"),
        pytest.param(chunk(3, b"\x02\x00"), "without a number", id="field 0"),
        pytest.param(chunk(3, ROOT + b"\x7d\0\0"), "cut off", id="cut fixed32"),
        pytest.param(chunk(3, ROOT + b"\x79\0\0\0\0"), "cut off", id="cut fixed64"),
        pytest.param(chunk(3, ROOT + chunk(3, b"\x0d\0\0")), "malformed", id="cut float in a vector"),
        pytest.param(chunk(3, ROOT + chunk(2, b"\xff\xfe")), "malformed", id="name is not UTF-8"),
        pytest.param(chunk(3, ROOT + chunk(8, chunk(1, b"\x80"))), "indices of a mesh", id="cut index"),
        pytest.param(chunk(3, ROOT + chunk(8, chunk(1, b"\x80" * 10 + b"\0"))), "indices of a mesh", id="long index"),
        pytest.param(chunk(3, ROOT + chunk(8, scalar(1, 1) + b"\x08\x80")), "malformed", id="cut single index"),
        pytest.param(chunk(3, ROOT + chunk(8, scalar(1, 1) + b"\x0f")), "malformed", id="wire type 7 after an index"),
    ],
)
def test_malformed_messages(message: bytes, said: str) -> None:
    for data in (oracle.deflate(message), message):
        with pytest.raises(FormatError, match=said):
            TIMBERMESH.read(data)


def test_errors_name_the_place() -> None:
    message = chunk(3, ROOT + chunk(8, b"\x0f"))
    with pytest.raises(FormatError, match=rf"wire type 7 \(at byte {len(message) - 1}\)") as caught:
        TIMBERMESH.read(oracle.deflate(message))
    assert caught.value.offset == len(message) - 1
    assert caught.value.item == "Mesh"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        pytest.param(b"\x1a\x00" * 100_000, "More than 8,192 Node", id="nodes"),
        pytest.param(chunk(3, b"\x3a\x00" * 200_000), "VertexProperty", id="properties"),
        pytest.param(chunk(3, b"\x42\x00" * 100_000), "Mesh", id="meshes"),
        pytest.param(chunk(3, chunk(9, b"\x22\x00" * 100_000)), "VertexAnimationFrame", id="vertex frames"),
        pytest.param(chunk(3, chunk(10, b"\x1a\x00" * 400_000)), "NodeAnimationFrame", id="node frames"),
        pytest.param(chunk(3, chunk(8, b"\x0a\x00" * 3_000_000)), "Far more parts", id="empty chunks"),
        pytest.param(chunk(3, b"\x78\x00" * 3_000_000), "Far more parts", id="unknown fields"),
    ],
)
def test_crowds_are_refused_before_anything_is_made_of_them(message: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        TIMBERMESH.read(oracle.deflate(message))


def test_every_field_of_the_page_comes_back() -> None:
    """A message with every field filled, made by protobuf, is written byte for byte as protobuf writes it."""
    model = oracle.message_class("Model")(version=3, name="Lodge")
    node = model.nodes.add(parent=-1, name="Root", vertexCount=2)
    for vector in (node.position, node.scale):
        vector.x, vector.y, vector.z = 1.5, -2.0, 1e-42
    node.rotation.x, node.rotation.y, node.rotation.z, node.rotation.w = 0.5, 0.5, -0.5, 0.5
    node.vertexProperties.add(name="position", scalarType=4, scalarTypeDimension=3, data=bytes(range(24)))
    node.vertexProperties.add(name="weird", scalarType=5, scalarTypeDimension=1, data=bytes(16))
    node.meshes.add(indices=[0, 1, 0, 127, 128, 16383, 16384, 2097151, 2097152, 2**31 - 1], material="Dirt")
    moved = node.vertexAnimations.add(name="Wave", framerate=24, animatedVertexCount=1)
    moved.frames.add().vertexProperties.add(name="offset", scalarType=4, scalarTypeDimension=3, data=bytes(12))
    keyed = node.nodeAnimations.add(name="Spin", framerate=29.97)
    for number in range(3):
        frame = keyed.frames.add()
        frame.position.x = number
        frame.rotation.w = 1
        frame.scale.SetInParent()
    model.nodes.add(name="Child").position.SetInParent()
    content = model.SerializeToString()
    document = TIMBERMESH.read(oracle.deflate(content))
    assert (document.version, document.name) == (3, "Lodge")
    assert document.nodes[0].node_animations[0].present.tolist() == [[True, True, True]] * 3
    assert document.nodes[1].rotation is None
    assert codec.serialise(document) == content


def test_texts_of_the_whole_unicode() -> None:
    for name in ("Łódź", "木造小屋", "🦫", "a\0b", "'\"\\", " ", "x" * 5000):
        node = models.node(name)
        node.meshes = [codec.Mesh(np.empty(0, np.int32), name)]
        again = TIMBERMESH.read(TIMBERMESH.write(models.model(node))).nodes[0]
        assert (again.name, again.meshes[0].material) == (name, name)


@pytest.mark.parametrize(
    "node",
    [
        models.node("\ud800"),
        models.node(parent=1 << 40),
        models.node(vertex_count=-(1 << 31) - 1),
        models.node(position=(1.0, 2.0)),
        models.node(unknown=b"\x0a"),
        models.node(node_animations=[models.node_animation(scales=np.ones((1, 3), np.float32))]),
    ],
)
def test_documents_that_no_file_can_hold(node: codec.Node) -> None:
    with pytest.raises(FormatError):
        TIMBERMESH.write(models.model(node))
