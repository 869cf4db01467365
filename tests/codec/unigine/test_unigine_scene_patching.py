"""Edits of nodes go back into scene files: nothing else changes, and each edit changes the lines that it must."""

from __future__ import annotations

import copy
import difflib
import functools
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import unigine_nodes
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.core.placement import ModelUse, NodeEdit, Patched, PlacedObject, PlacementPart, SlotMaterial
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.passes.placement_changes import node_edits
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE

GUIDS = [f"{digit}" * 40 for digit in "abcdef"]
SCENE = b"""<?xml version="1.0" encoding="utf-8"?>
<nodes version="2.19.0.3">
\t<node type="NodeDummy" id="10" name="street">
\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 5 0 0 1.0</transform>
\t\t<node type="ObjectMeshStatic" id="20" enabled="0" name="lamp &amp; post">
\t\t\t<mesh_name>guid://0ca0c1a5ee3ac7566265f0da053533cfdadeaaef</mesh_name>
\t\t\t<surface name="light" intersection="1" material="6adcb9d5efc7b6960c3a7db48ef15281db3c2806"/>
\t\t\t<surface name="pole"/>
\t\t\t<body type="BodyRigid" id="7">
\t\t\t\t<shape type="ShapeBox" id="8"/>
\t\t\t\t<joint type="JointFixed" id="9">
\t\t\t\t\t<body_0>7</body_0>
\t\t\t\t</joint>
\t\t\t</body>
\t\t\t<properties>
\t\t\t\t<property guid="ffffffffffffffffffffffffffffffffffffffff"/>
\t\t\t</properties>
\t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 2 3 0.30000001 1.0</transform>
\t\t\t<node type="NodeDummy" id="30" name="bulb">
\t\t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 0 0 2 1.0</transform>
\t\t\t</node>
\t\t</node>
\t\t<node type="NodeDummy" id="40" name="group"/>
\t</node>
</nodes>
"""
INNER = SCENE.replace(b'name="bulb">', b'name="bulb"><body><node id="66" name="in"><node id="67"/></node></body>')

FORCE = b"""<node type="PhysicalForce" name="force">
\t\t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 0 0 4 1.0</transform>
\t\t\t\t<surface name="none"/>
\t\t\t\t<node type="NodeDummy" id="50" name="below"/>
\t\t\t</node>
\t\t\t<node type="ParticlesFieldSpacer" id="" name="field"/>"""
WITHOUT_IDS = SCENE.replace(b'name="group"/>', b'name="group">\n\t\t\t' + FORCE + b"\n\t\t</node>").replace(
    b"\t</node>\n</nodes>", b'\t</node>\n\t<node name="alone"><node id="60"/></node>\n</nodes>'
)
"""Particle systems have such children."""


def part_of(data: bytes) -> tuple[Scene, PlacementPart]:
    scene = UNIGINE_SCENE.to_scene(UNIGINE_SCENE.read(data), "scene")
    return scene, scene.placement.parts[0]


def objects_of(part: PlacementPart) -> list[PlacedObject]:
    """Return the objects that an import of a file makes."""
    hidden: list[bool] = []
    made = []
    for node in part.nodes:
        hidden.append(node.is_hidden or (node.parent >= 0 and hidden[node.parent]))
        slots = node.content.slots if isinstance(node.content, ModelUse) else ()
        materials = tuple(SlotMaterial(number, slot.name) for number, slot in enumerate(slots))
        made.append(
            PlacedObject(
                node.name,
                node.name,
                node.key,
                parent=node.parent,
                given_parent=part.nodes[node.parent].key if node.parent >= 0 else "",
                matrix=node.matrix.copy(),
                is_hidden=hidden[-1],
                materials=materials,
            )
        )
    return made


def edited(data: bytes, objects: list[PlacedObject]) -> tuple[Patched, list[NodeEdit], Report]:
    report = Report()
    edits = node_edits(*part_of(data), objects, report)
    return UNIGINE_SCENE.patch(data, edits), edits, report


def changed_lines(old: bytes, new: bytes) -> list[str]:
    lines = difflib.ndiff(old.decode().splitlines(), new.decode().splitlines())
    return [line for line in lines if line[0] in "+-"]


def after(change: Callable[[dict[str, PlacedObject], list[PlacedObject]], object], data: bytes = SCENE) -> bytes:
    """Return the file after a change of the objects of its import."""
    _scene, part = part_of(data)
    objects = objects_of(part)
    change({placed.key: placed for placed in objects}, objects)
    patched, _edits, _report = edited(data, objects)
    keys = [patched.keys.get(f"+{number}", placed.key) for number, placed in enumerate(objects)]
    for placed, key in zip(objects, keys, strict=True):
        placed.key, placed.source = key, ""
        placed.given_parent = keys[placed.parent] if placed.parent >= 0 else ""
    again, edits, _report = edited(patched.data, objects)
    assert not edits and again.data == patched.data, "the file agrees with the objects afterwards"
    return patched.data


def moved(placed: PlacedObject, *to: float) -> None:
    placed.matrix[:3, 3] = to


def remove(*keys: str) -> Callable[..., None]:
    """Return a change that deletes objects as Blender does: those below keep their own transform."""

    def change(_by_key: dict[str, PlacedObject], objects: list[PlacedObject]) -> None:
        left = [placed for placed in objects if placed.key not in keys]
        for placed in left:
            if placed.parent >= 0:
                above = objects[placed.parent]
                placed.parent = left.index(above) if above in left else -1
        objects[:] = left

    return change


def show_and_hide(by_key: dict[str, PlacedObject], _objects: object) -> None:
    by_key["20"].is_hidden = by_key["30"].is_hidden = False
    by_key["40"].is_hidden = True
    by_key["10"].name = "\"A\" < 'B'"


def move(by_key: dict[str, PlacedObject], _objects: object) -> None:
    moved(by_key["20"], 2, 7.5, np.float64(np.float32(0.30000001)))


def give_parent(by_key: dict[str, PlacedObject], objects: list[PlacedObject]) -> None:
    by_key["20"].parent = objects.index(by_key["40"])


def add_copy(by_key: dict[str, PlacedObject], objects: list[PlacedObject]) -> None:
    added = copy.deepcopy(by_key["20"])
    added.name, added.is_likely_copy, added.is_hidden = "lamp", True, False
    moved(added, 9, 0, 0)
    objects.insert(0, added)
    for placed in objects:
        placed.parent += placed.parent >= 0


CASES = {
    "move": (
        move,
        [
            "- \t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 2 3 0.30000001 1.0</transform>",
            "+ \t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 2 7.5 0.30000001 1.0</transform>",
        ],
    ),
    "attributes": (
        show_and_hide,
        [
            '- \t<node type="NodeDummy" id="10" name="street">',
            '+ \t<node type="NodeDummy" id="10" name="&quot;A&quot; &lt; &apos;B&apos;">',
            '- \t\t<node type="ObjectMeshStatic" id="20" enabled="0" name="lamp &amp; post">',
            '+ \t\t<node type="ObjectMeshStatic" id="20" name="lamp &amp; post">',
            '- \t\t<node type="NodeDummy" id="40" name="group"/>',
            '+ \t\t<node type="NodeDummy" id="40" enabled="0" name="group"/>',
        ],
    ),
    "remove a leaf": (
        remove("30"),
        [
            '- \t\t\t<node type="NodeDummy" id="30" name="bulb">',
            "- \t\t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 0 0 2 1.0</transform>",
            "- \t\t\t</node>",
        ],
    ),
    "copy": (
        add_copy,
        [
            '+ \t\t<node type="ObjectMeshStatic" id="ID" name="lamp">',
            "+ \t\t\t<mesh_name>guid://0ca0c1a5ee3ac7566265f0da053533cfdadeaaef</mesh_name>",
            '+ \t\t\t<surface name="light" intersection="1" material="6adcb9d5efc7b6960c3a7db48ef15281db3c2806"/>',
            '+ \t\t\t<surface name="pole"/>',
            '+ \t\t\t<body type="BodyRigid" id="ID">',
            '+ \t\t\t\t<shape type="ShapeBox" id="ID"/>',
            "+ \t\t\t</body>",
            "+ \t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 9 0 0 1.0</transform>",
            "+ \t\t</node>",
        ],
    ),
}


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", CASES)
def test_edit_changes_only_its_lines(name: str, ending: bytes) -> None:
    change, expected = CASES[name]
    result = after(change, SCENE.replace(b"\n", ending))
    assert result.count(b"\r\n") == (result.count(b"\n") if ending == b"\r\n" else 0)
    known = set(unigine_nodes.read_nodes(SCENE)) | {"7", "8"}
    lines = changed_lines(SCENE, result.replace(b"\r\n", b"\n"))
    ids = [re.search(r' id="(\d+)"', line) for line in lines]
    lines = [
        line if found is None or found[1] in known else line.replace(found[1], "ID")
        for line, found in zip(lines, ids, strict=True)
    ]
    assert lines == expected


def test_new_parent_moves_lines_with_their_indent() -> None:
    result = after(give_parent)
    text = result.decode()
    inner = text[text.index('id="40"') :]
    assert '\n\t\t\t<node type="ObjectMeshStatic" id="20"' in inner
    assert '\n\t\t\t\t<node type="NodeDummy" id="30"' in inner
    assert inner.endswith("\t\t\t</node>\n\t\t</node>\n\t</node>\n</nodes>\n")
    assert "<body_0>7</body_0>" in inner, "a moved node keeps all that it has"


def rename_parent(by_key: dict[str, PlacedObject], _objects: object) -> None:
    by_key["40"].name, by_key["40"].is_hidden = "particles", True
    moved(by_key["40"], 1, 2, 3)


def copy_parent(by_key: dict[str, PlacedObject], objects: list[PlacedObject]) -> None:
    objects.append(copy.deepcopy(by_key["40"]))


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (move, 1),
        (give_parent, 1),
        (add_copy, 1),
        (remove("30"), 1),
        (rename_parent, 1),
        (copy_parent, 2),
        (remove("40"), 0),
    ],
)
def test_nodes_without_ids_stay_as_they_are(change: Callable[..., None], count: int) -> None:
    """They belong to the node above, with the nodes below them; a copy has new ids."""
    assert [node.key for node in part_of(WITHOUT_IDS)[1].nodes] == ["10", "20", "30", "40", *[""] * 5]
    data = after(change, WITHOUT_IDS)
    assert data.count(FORCE) == min(count, 1) and data.count(b'"PhysicalForce"') == count
    assert b'\t<node name="alone"><node id="60"/></node>\n' in data
    assert len(set(found := re.findall(rb' id="(\d+)"', data))) == len(found)


def test_children_of_removed_node_keep_their_world_matrix() -> None:
    old, new = unigine_nodes.read_nodes(SCENE), unigine_nodes.read_nodes(after(remove("20")))
    assert set(new) == {"10", "30", "40"} and new["30"].parent == "10"
    # Blender's Delete leaves the transform, which then is that of the world.
    assert np.allclose(new["30"].world, old["30"].local)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b""])
def test_removed_nodes_are_put_back(newline: bytes) -> None:
    """Each keeps its id and content. No added node gets the id before that."""
    data = WITHOUT_IDS.replace(b"\n", newline)
    keys = ("20", "30", "40")
    patched = UNIGINE_SCENE.patch(data, [NodeEdit(key, key, is_removed=True) for key in keys])
    assert set(unigine_nodes.read_nodes(patched.data)) == {"10", "60", None} and set(patched.removed) == set(keys)
    copy = NodeEdit("+0", "copy", source="10", parent="", name="copy")
    (key,) = UNIGINE_SCENE.patch(patched.data, [copy]).keys.values()
    assert UNIGINE_SCENE.patch(patched.data, [copy], [key]).keys["+0"] not in (key, *keys)
    edits = [NodeEdit(key, key, parent="10", content=patched.removed[key]) for key in keys]
    back = UNIGINE_SCENE.patch(patched.data, edits).data
    old, new = unigine_nodes.read_nodes(data), unigine_nodes.read_nodes(back)
    assert new["30"].parent == "10"
    back = UNIGINE_SCENE.patch(back, [NodeEdit("30", "bulb", parent="20")]).data
    new = unigine_nodes.read_nodes(back)
    assert all((new[key].parent, new[key].rest) == (old[key].parent, old[key].rest) for key in keys)
    assert sorted(back.splitlines()) == sorted(data.splitlines()) or not newline
    assert (b"\r\n" in back) == (newline == b"\r\n")


@pytest.mark.parametrize("text", ["<node", '<node id="21"/>', '<node id="20"/><node id="21"/>', '<node id="20">'])
def test_damaged_nodes_are_not_put_back(text: str) -> None:
    data = UNIGINE_SCENE.patch(SCENE, [NodeEdit(key, key, is_removed=True) for key in ("20", "30")]).data
    with pytest.raises(MeshferryError):
        UNIGINE_SCENE.patch(data, [NodeEdit("20", "lamp", parent="10", content=text)])


def test_materials_are_set_by_surface() -> None:
    patched = UNIGINE_SCENE.patch(SCENE, [NodeEdit("20", "lamp", materials={0: GUIDS[0], 1: GUIDS[1]})])
    assert sorted(changed_lines(SCENE, patched.data)) == [
        '+ \t\t\t<surface name="light" intersection="1" material="' + GUIDS[0] + '"/>',
        '+ \t\t\t<surface name="pole" material="' + GUIDS[1] + '"/>',
        '- \t\t\t<surface name="light" intersection="1" material="6adcb9d5efc7b6960c3a7db48ef15281db3c2806"/>',
        '- \t\t\t<surface name="pole"/>',
    ]


def test_removed_nodes_in_use_are_named() -> None:
    user = b'<parameter name="target">30</parameter><parameter name="player">' + b"f" * 40 + b"</parameter>"
    data = SCENE.replace(b'name="group"/>', b'name="group"><properties>' + user + b"</properties></node>")
    data = data.replace(b'"30"', b'"30300"').replace(b">30<", b">30300<")
    edits = [NodeEdit("30300", "bulb", is_removed=True), NodeEdit("20", "lamp", is_removed=True)]
    (message,) = UNIGINE_SCENE.patch(data, edits).messages
    assert message.code == "removed-node-in-use" and "'lamp', 'bulb'" in message


@pytest.mark.parametrize(
    ("data", "edit", "text"),
    [
        (SCENE.replace(b'id="30"', b'id="20"'), NodeEdit("10", "", name="x"), "not unique"),
        (WITHOUT_IDS, NodeEdit("50", "below", name="x"), "no node with the id '50'"),
        (SCENE.decode().encode("utf-16"), NodeEdit("10", "", name="x"), "UTF-8"),
        (SCENE, NodeEdit("99", "", name="x"), "no node with the id '99'"),
        (SCENE, NodeEdit("20", "", is_removed=True), "'30' would be removed"),
        (INNER, NodeEdit("30", "bulb", is_removed=True), "'bulb' cannot be removed, .* not imported: 'in', '67'"),
        (SCENE, NodeEdit("10", "street", parent="30"), "below itself"),
        (SCENE, NodeEdit("20", "lamp", materials={2: GUIDS[0]}), "no surface 3"),
    ],
)
def test_impossible_edits_are_refused(data: bytes, edit: NodeEdit, text: str) -> None:
    with pytest.raises(MeshferryError, match=text):
        UNIGINE_SCENE.patch(data, [edit])


def test_place_that_an_object_cannot_hold_is_kept() -> None:
    """A sheared matrix stays sheared when its object is moved; a scale of zero and NaN are not written."""
    data = SCENE.replace(b"1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 0 0 2", b"1 0.5 0 0.0 0 1 0 0.0 0 0 1 0.0 0 0 2")
    _scene, part = part_of(data)
    objects = objects_of(part)
    file = objects[2].matrix
    objects[2].matrix = held = np.diag([1.118, 1.0, 1.0, 1.0])
    objects[2].shear = np.linalg.solve(held, file)
    assert edited(data, objects)[0].data == data
    turned = np.array([[0, -1, 0, 4], [1, 0, 0, 0], [0, 0, 1, 2], [0, 0, 0, 1.0]])
    objects[2].matrix = turned @ held
    found = unigine_nodes.read_nodes(edited(data, objects)[0].data)
    assert np.allclose(found["30"].local, turned @ file)
    for scale, text in ((0.0, "scale of zero"), (np.nan, "NaN or infinite"), (np.inf, "NaN or infinite")):
        objects[2].matrix = np.diag([scale, 1, 1, 1])
        patched, _edits, report = edited(data, objects)
        (message,) = report.messages
        assert patched.data == data and message.code == "place-not-written" and text in message


@pytest.fixture
def scenes(samples: Path) -> list[Path]:
    """Return the node and world files of the samples."""
    found = [path for folder in samples.glob("unigine*") for path in folder.rglob("*") if path.is_file()]
    return sorted(path for path in found if path.suffix in (".node", ".world"))


@functools.cache
def content(path: Path) -> bytes:
    return path.read_bytes()


def test_unchanged_samples_keep_their_bytes(scenes: list[Path]) -> None:
    for path in scenes:
        patched, edits, report = edited(content(path), objects_of(part_of(content(path))[1]))
        assert patched.data == content(path) and not edits and not report.messages, path


def test_one_moved_node_is_one_changed_line_in_samples(scenes: list[Path]) -> None:
    for path in scenes:
        objects = objects_of(part_of(content(path))[1])
        objects[-1].matrix[1, 3] += 1.5
        new = edited(content(path), objects)[0].data
        pairs = zip(content(path).split(b"\n"), new.split(b"\n"), strict=True)
        assert [one != other for one, other in pairs].count(True) == 1, path


class Arrangement:
    """A random scene, and objects that stand for its nodes as Blender does, with random edits."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        count = self.random.randint(1, 30)
        parents = [self.random.randint(-1, number - 1) for number in range(count)]
        self.matrices = [self._matrix(is_sheared=self.random.random() < 0.2) for _ in range(count)]
        ending = self.random.choice(["\n", "\r\n", ""])
        self.data = self._file(parents, ending)
        self.objects = objects_of(part_of(self.data)[1])
        self.base = unigine_nodes.read_nodes(self.data)
        for placed in self.objects:
            file = placed.matrix
            scale = np.linalg.norm(file[:3, :3], axis=0) * ([-1, 1, 1] if np.linalg.det(file) < 0 else [1, 1, 1])
            left, _sizes, right = np.linalg.svd(file[:3, :3] / scale)
            placed.matrix = file.copy()
            placed.matrix[:3, :3] = left @ right * scale
            placed.shear = np.linalg.solve(placed.matrix, file)
            placed.matrix = placed.matrix.astype(np.float32).astype(np.float64)

    def _matrix(self, *, is_sheared: bool = False) -> np.ndarray:
        turn = np.linalg.qr(self.numbers.normal(size=(3, 3)))[0]
        matrix = np.identity(4)
        matrix[:3, :3] = turn * self.numbers.choice([0.2, 1, 1, 1, 5, -2], 3)
        matrix[:3, 3] = self.numbers.normal(size=3) * self.random.choice([0, 1, 5000])
        if is_sheared:
            matrix[:3, 0] += 0.3 * matrix[:3, 1]
        return matrix

    def _file(self, parents: list[int], ending: str) -> bytes:
        def element(number: int, depth: int) -> str:
            tabs = "\t" * depth if ending else ""
            numbers = " ".join(f"{value:.8g}" for value in self.matrices[number].T.reshape(-1))
            below = [element(child, depth + 1) for child, parent in enumerate(parents) if parent == number]
            name = self.random.choice(["a", "b.001", "&lt;c&gt;"])
            enabled = ' enabled="0"' if self.random.random() < 0.2 else ""
            inner = [f"{tabs}\t<transform>{numbers}</transform>" if ending else f"<transform>{numbers}</transform>"]
            tag = f'{tabs}<node type="NodeDummy" id="{number + 1}"{enabled} name="{name}">'
            return ending.join([tag, *inner, *below, f"{tabs}</node>"])

        tops = [element(number, 2) for number, parent in enumerate(parents) if parent < 0]
        lines = ['<world version="2.19">', "\t<editor>", *tops, "\t</editor>", "</world>", ""]
        return ending.join(lines).encode()

    def world(self, placed: PlacedObject | None) -> np.ndarray:
        if placed is None:
            return np.identity(4)
        above = self.objects[placed.parent] if placed.parent >= 0 else None
        return self.world(above) @ placed.matrix

    def edit(self) -> None:
        placed = self.random.choice(self.objects)
        kind = self.random.choice(["move", "turn", "rename", "hide", "copy", "remove", "parent"])
        if kind == "move":
            placed.matrix[:3, 3] += self.numbers.normal(size=3)
        elif kind == "turn":
            placed.matrix = placed.matrix @ self._matrix()
        elif kind == "rename":
            placed.name = self.random.choice(["new", "'\"&<", "ä ☃"])
        elif kind == "hide":
            placed.is_hidden = not placed.is_hidden
        elif kind == "copy":
            added = copy.deepcopy(placed)
            added.is_likely_copy = True
            added.matrix[0, 3] += 1
            self.objects.append(added)
        elif kind == "remove" and len(self.objects) > 1:
            keys = [one.key for one in self.objects]
            if keys.count(placed.key) == 1:
                remove(placed.key)({}, self.objects)
        elif kind == "parent":
            self._give_parent(placed)

    def _give_parent(self, placed: PlacedObject) -> None:
        above = self.random.choice(self.objects)
        chain = [above]
        while chain[-1].parent >= 0:
            chain.append(self.objects[chain[-1].parent])
        if not any(one is placed for one in chain):
            placed.matrix = np.linalg.solve(self.world(above), self.world(placed))
            placed.parent = self.objects.index(above)


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 5))])
def test_random_edits_arrive_and_nothing_else_changes(block: int) -> None:
    for seed in range(block * 70, block * 70 + 70):
        made = Arrangement(seed)
        assert edited(made.data, made.objects)[0].data == made.data
        before = [copy.deepcopy(placed) for placed in made.objects]
        for _ in range(made.random.randint(1, 5)):
            made.edit()
        patched, edits, _report = edited(made.data, made.objects)
        found = unigine_nodes.read_nodes(patched.data)
        changed = {edit.key for edit in edits}
        keys = [patched.keys.get(key, key) for key in _keys_of(made, edits)]
        assert set(found) == set(keys), seed
        for placed, key in zip(made.objects, keys, strict=True):
            node = found[key]
            assert node.name == placed.name and node.rest == made.base[placed.key].rest, seed
            above = made.objects[placed.parent] if placed.parent >= 0 else None
            if above is not None:
                assert node.parent == keys[made.objects.index(above)], seed
            above = made.objects[keys.index(node.parent)] if node.parent else None
            wanted = placed.matrix
            if above is not (made.objects[placed.parent] if placed.parent >= 0 else None):
                wanted = np.linalg.solve(made.world(above), made.world(placed))
            wanted = wanted @ placed.shear
            assert np.abs(wanted - node.local).max() <= 1e-5 * max(1, np.abs(wanted).max()), seed
            shown = all(not one.is_hidden for one in [placed])
            is_below = node.parent and not _is_shown(found, node.parent)
            assert is_below or _is_shown(found, key) == shown, seed
        for key in {placed.key for placed in before} & set(found) - changed:
            assert made.base[key].parent == found[key].parent and (made.base[key].local == found[key].local).all()


def _keys_of(made: Arrangement, edits: list[NodeEdit]) -> list[str]:
    """Return the key of each object: added ones have those of their edits."""
    added = {edit.key for edit in edits if edit.source}
    return [f"+{number}" if f"+{number}" in added else one.key for number, one in enumerate(made.objects)]


def _is_shown(found: dict[str, unigine_nodes.OracleNode], key: str) -> bool:
    while key:
        if not found[key].enabled:
            return False
        key = found[key].parent
    return True
