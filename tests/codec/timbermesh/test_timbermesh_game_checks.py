"""The rules of Timberborn's loader: one minimal document for each, and a clean model that breaks none."""

from __future__ import annotations

from typing import Any

import models
import numpy as np
import pytest
from meshferry.io_formats.core.messages import Kind, Message, errors_of, warnings_of
from meshferry.io_formats.timbermesh.game_names import material_names
from meshferry.io_formats.timbermesh.model import codec
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from models import mesh_node, model, node, node_animation, replaced, vertex_animation, with_values

NAN = float("nan")


def findings(*nodes: codec.Node) -> list[Message]:
    return TIMBERMESH.check(model(*nodes))


def only(*nodes: codec.Node) -> Message:
    found = findings(*nodes)
    assert len(found) == 1, [str(one) for one in found]
    return found[0]


def test_clean_models_have_no_finding() -> None:
    assert findings(mesh_node()) == []
    assert (
        findings(
            node("Lodge"),
            mesh_node("Body", 0),
            node("#Slot#Entrance", 0),
            node("#Slot#Seat2.001", 0),
            node("#Slot#BotCharging", 0),
            node("Between", 0),
            node("#Attachment", 5),
            mesh_node("#Spinning", 0, node_animations=[node_animation(), node_animation(name="Other")]),
            mesh_node("#Waving", 0, vertex_animations=[vertex_animation()], node_animations=[node_animation()]),
            node("#MiscStart", 0),
            node("#MiscEnd", 0),
        )
        == []
    )


def test_severities_are_sorted_out() -> None:
    found = findings(node("", 0, scale=None), node("leaf", 0))
    assert {one.kind for one in found} == {Kind.ERROR, Kind.WARNING}
    assert len(errors_of(found)) + len(warnings_of(found)) == len(found)
    assert all(str(one).startswith(one.item) for one in found)


def test_nothing_at_all() -> None:
    (found,) = TIMBERMESH.check(codec.Model())
    assert (found.kind, str(found)) == (Kind.ERROR, "the model has no nodes")


def changed(name: str, **fields: Any) -> codec.Node:
    """Return the mesh node with one vertex property changed."""

    def change(found: codec.VertexProperty) -> codec.VertexProperty:
        for field, value in fields.items():
            setattr(found, field, value)
        return found

    return replaced(mesh_node(), name, change)


def without(name: str) -> codec.Node:
    return replaced(mesh_node(), name, lambda _: None)


def bad_frames(*properties: codec.VertexProperty) -> codec.Node:
    return mesh_node(vertex_animations=[vertex_animation(frames=0)]) if not properties else _with_frame(*properties)


def _with_frame(*properties: codec.VertexProperty) -> codec.Node:
    animation = vertex_animation(frames=2)
    animation.frames[1].properties = list(properties)
    return mesh_node(vertex_animations=[animation])


def offset(rows: int, value: float = 0.0) -> codec.VertexProperty:
    return codec.VertexProperty.of("offset", np.full((rows, 3), value, np.float32))


def rotation(rows: int) -> codec.VertexProperty:
    return codec.VertexProperty.of("rotation", np.zeros((rows, 4), np.float32))


ERRORS: list[tuple[str, codec.Node, str]] = [
    # section 8: material names are the game's own affair; the rest of its table in order
    ("short position", changed("position", data=bytes(47)), "'position' is shorter than its 4 vertices"),
    ("short normal", changed("normal", data=b""), "'normal' is shorter"),
    ("short uv", changed("uv0", data=bytes(31)), "'uv0' is shorter"),
    ("no position", without("position"), "its vertices have no position"),
    ("wrong type", changed("normal", scalar_type=codec.ScalarType.FLOAT64), "not 3 × float32"),
    ("wrong dimension", changed("uv0", dimension=4), "not 2 × float32"),
    (
        "NaN position",
        with_values(mesh_node(), "position", np.full((4, 3), NAN)),
        "some vertices have NaN or infinite positions",
    ),
    (
        "infinite position",
        with_values(mesh_node(), "position", np.full((4, 3), np.inf)),
        "some vertices have NaN or infinite positions",
    ),
    ("negative vertex count", mesh_node(vertex_count=-1, meshes=[]), "its vertex count is -1"),
    (
        "index beyond",
        mesh_node(meshes=[codec.Mesh(np.array([0, 1, 4], np.int32), "Dirt")]),
        "vertices that do not exist",
    ),
    (
        "negative index",
        mesh_node(meshes=[codec.Mesh(np.array([0, 1, -1], np.int32), "Dirt")]),
        "vertices that do not exist",
    ),
    (
        "no triangle list",
        mesh_node(meshes=[codec.Mesh(np.array([0, 1], np.int32), "Dirt")]),
        "2 indices are not a multiple",
    ),
    ("parent beyond", mesh_node(parent=1), "its parent 1 does not exist"),
    ("parent below", mesh_node(parent=-2), "its parent -2 does not exist"),
    ("no position message", mesh_node(position=None), "its position is missing"),
    ("no rotation message", mesh_node(rotation=None), "its rotation is missing"),
    ("no scale message", mesh_node(scale=None), "its scale is missing"),
    ("place is NaN or infinite", mesh_node(position=(NAN, 0.0, 0.0)), "its position is NaN or infinite"),
    ("infinite scale", mesh_node(scale=(np.inf, 1.0, 1.0)), "its scale is NaN or infinite"),
    ("zero scale", mesh_node(scale=(1.0, 0.0, 1.0)), "its scale is zero"),
    ("zero rotation", mesh_node(rotation=(0.0, 0.0, 0.0, 0.0)), "rotation is all zero"),
    ("no name", mesh_node(""), "it has no name"),
    ("node animation without frames", mesh_node(node_animations=[node_animation(0)]), "it has no frames"),
    (
        "frame without scale",
        mesh_node(node_animations=[node_animation(present=np.array([[True, True, False]] * 3))]),
        "frames without position, rotation or scale",
    ),
    (
        "frame is NaN or infinite",
        mesh_node(node_animations=[node_animation(positions=np.full((3, 3), NAN, np.float32))]),
        "some frames hold NaN or infinite values",
    ),
    ("vertex animation without frames", bad_frames(), "it has no frames"),
    ("no moving vertex", mesh_node(vertex_animations=[vertex_animation(moving=0)]), "0 animated vertices of 4"),
    ("too many move", mesh_node(vertex_animations=[vertex_animation(moving=5, vertices=5)]), "5 animated vertices of"),
    ("frame without rotation", bad_frames(offset(4)), "lacks offset or rotation for its 4 vertices"),
    ("frame without offset", bad_frames(rotation(4)), "lacks offset or rotation"),
    ("short offsets", bad_frames(offset(3), rotation(4)), "lacks offset or rotation"),
    ("short rotations", bad_frames(offset(4), rotation(3)), "lacks offset or rotation"),
    ("first offset wins", bad_frames(offset(3), offset(4), rotation(4)), "lacks offset or rotation"),
    ("offset is NaN or infinite", bad_frames(offset(4, NAN), rotation(4)), "some frames hold NaN or infinite values"),
    ("unnamed animation", mesh_node(node_animations=[node_animation(name="")]), "it has no name"),
    ("unnamed vertex animation", mesh_node(vertex_animations=[vertex_animation(name="")]), "it has no name"),
    (
        "animations of one name",
        mesh_node(node_animations=[node_animation(), node_animation()]),
        "two animations of the node have this name",
    ),
    (
        "vertex animations of one name",
        mesh_node(vertex_animations=[vertex_animation(), vertex_animation()]),
        "two animations of the node have this name",
    ),
    ("frame rate 0", mesh_node(node_animations=[node_animation(framerate=0.0)]), "frame rate is 0"),
    ("frame rate below 0", mesh_node(node_animations=[node_animation(framerate=-1.0)]), "frame rate is -1"),
    ("no frame rate", mesh_node(vertex_animations=[vertex_animation(framerate=NAN)]), "frame rate is nan"),
    ("infinite frame rate", mesh_node(vertex_animations=[vertex_animation(framerate=np.inf)]), "frame rate is inf"),
]


@pytest.mark.parametrize(("broken", "said"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors(broken: codec.Node, said: str) -> None:
    found = only(broken)
    assert found.kind is Kind.ERROR
    assert said in found.message
    assert broken.name in found.item


def named(material: str) -> codec.Node:
    return mesh_node(meshes=[codec.Mesh(np.array([0, 1, 2], np.int32), material)])


def slot(name: str) -> tuple[codec.Node, codec.Node]:
    return mesh_node(), node(name, 0)


MANY = 16_385


def _many_vertices() -> codec.Node:
    animation = vertex_animation(1, MANY, MANY)
    properties = models.vertex_properties(MANY)
    return mesh_node(vertex_count=MANY, properties=properties, vertex_animations=[animation])


WARNINGS: list[tuple[str, tuple[codec.Node, ...], str]] = [
    ("empty leaf", (mesh_node(), node("Middle", 0)), "the game deletes it"),
    ("no normals", (without("normal"),), "will look unlit"),
    ("no triangles", (mesh_node(meshes=[codec.Mesh(np.empty(0, np.int32), "Dirt")]),), "it has no triangles"),
    (
        "second property of a name",
        (mesh_node(properties=[*models.vertex_properties(), models.vertex_properties()[0]]),),
        "'position' occurs 2 times",
    ),
    (
        "several materials move",
        (
            mesh_node(
                meshes=[codec.Mesh(np.array([0, 1, 2], np.int32), name) for name in ("Dirt", "Water")],
                vertex_animations=[vertex_animation()],
            ),
        ),
        "only its first material of 2 will move",
    ),
    ("more vertices than a texture is wide", (_many_vertices(),), "more than 16,384"),
    (
        "more frames than a texture is high",
        (mesh_node(vertex_animations=[vertex_animation(MANY)]),),
        "more than 16,384",
    ),
    ("two starts", (mesh_node(), node("#MiscStart", 0), node("#MiscStart", 0)), "2 nodes have this name"),
    ("two ends", (mesh_node(), node("#MiscEnd", 0), node("#MiscEnd", 0)), "2 nodes have this name"),
    ("unknown slot", slot("#Slot#Enterance"), "unknown slot; the game knows Entrance, Bot, Seat"),
    ("slot in small letters", slot("#slot#Entrance"), "in exactly this spelling"),
    ("one edit", (named("BaseWod_Brown.Folktails"),), "unknown material, perhaps 'BaseWood_Brown.Folktails'"),
    ("swapped letters", (named("BaseWood_Borwn.Folktails"),), "unknown material, perhaps 'BaseWood_Brown.Folktails'"),
    ("separators", (named("BaseWood.Brown.Folktails"),), "unknown material, perhaps 'BaseWood_Brown.Folktails'"),
    ("separator of the faction", (named("BaseMetal_IronTeeth"),), "unknown material, perhaps 'BaseMetal.IronTeeth'"),
]


@pytest.mark.parametrize(("nodes", "said"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_warnings(nodes: tuple[codec.Node, ...], said: str) -> None:
    found = only(*nodes)
    assert found.kind is Kind.WARNING
    assert said in found.message


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "Dirt",
        "Paper.IronTeeth",
        "Plaster_White.Folktails",
        "BaseWood_Brown.Emberpelts",
        "MyOwn_Thing.Folktails",
        "PlasteredWood.Whitepaws",
    ],
)
def test_names_that_are_no_misspelling(name: str) -> None:
    assert findings(named(name)) == []


def test_every_stock_material_is_known() -> None:
    names = material_names()
    known = names.names
    assert len(known) == len(set(known)) == 25 + 23 + 4
    for name in known:
        assert names.is_known(name)
        if len(name) > 6:
            assert names.nearest(name[:-1]) is not None
            assert names.nearest(name + "x") is not None
            assert names.nearest(name.lower()) == name


def test_leaf_rules() -> None:
    """Empty inner nodes, roots and # nodes stay; a node whose only submesh is empty counts as empty."""
    assert findings(node("Root")) == []
    assert findings(node("Root"), node("Inner", 0), mesh_node("Leaf", 1)) == []
    assert findings(node("Root"), node("#Leaf", 0)) == []
    hollow = mesh_node("Hollow", 0, meshes=[codec.Mesh(np.empty(0, np.int32), "")])
    assert any("deletes it" in str(found) for found in findings(node("Root"), hollow))


def test_exactly_as_much_as_the_texture_holds() -> None:
    animation = vertex_animation(1, MANY - 1, MANY - 1)
    properties = models.vertex_properties(MANY - 1)
    assert findings(mesh_node(vertex_count=MANY - 1, properties=properties, vertex_animations=[animation])) == []


def test_longer_frames_and_properties_are_fine() -> None:
    longer = changed("uv0", data=bytes(33))
    assert findings(longer) == []
    assert findings(mesh_node(vertex_animations=[vertex_animation(moving=2, vertices=9)])) == []


def test_checks_take_any_readable_document() -> None:
    wild = mesh_node(
        vertex_count=-5,
        properties=[codec.VertexProperty("position", 99, -3, b"12345"), codec.VertexProperty("offset")],
        vertex_animations=[vertex_animation(moving=-7)],
        meshes=[codec.Mesh(np.array([-1], np.int32), "")],
    )
    assert len(errors_of(findings(wild))) >= 3
    TIMBERMESH.to_scene(model(wild), "x")
    TIMBERMESH.facts(model(wild))
