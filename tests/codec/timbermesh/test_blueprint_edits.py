"""Random edits of every kind in the text of blueprints: each changes exactly its numbers, or nothing at all.

Python's own parser reads the results, and the matrices are computed by other code than the product's.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import blueprint_oracle as oracle
import numpy as np
import pytest
import timber_mod
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.placement import Channels, NodeEdit, Patched
from meshferry.io_formats.timbermesh.blueprint.components import to_channels
from meshferry.io_formats.timbermesh.blueprint.patching import patch

NUMBER = re.compile(r"(?<=[\s:\[,])-?\d[\d.]*(?:[eE][-+]?\d+)?(?=[\s,}\]/])")
SEEDS = 340
FAST = 51
FIELDS = ("location", "rotation", "scale")


def pointer(path: tuple[str, ...]) -> str:
    return "".join("/Children/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def styled(content: Any, rng: random.Random) -> bytes:
    """Return content as the text of a file: any indent and line ends, BOM, comments, trailing commas."""
    text = json.dumps(content, indent=rng.choice([2, 4, "\t"]), ensure_ascii=False)
    if rng.random() < 0.3:  # points in one line
        text = re.sub(r"\{\s*(\"X\": [^{}]*?)\s*\}", lambda found: "{ " + re.sub(r"\s+", " ", found[1]) + " }", text)
    if rng.random() < 0.4:
        text = re.sub(r"(?<=[^\s{\[,])(?=\s*\n\s*[}\]])", lambda _found: rng.choice(["", ","]), text)
    if rng.random() < 0.4:
        comments = ["", "", "", " // a, }", " /* { */", '\n// "X": 1,', "\n\n"]
        text = re.sub(r"(?=\n)", lambda _found: rng.choice(comments), text)
    if rng.random() < 0.1:
        text = json.dumps(content)
    text = (text + rng.choice(["", "\n"])).replace("\n", rng.choice(["\n", "\r\n"]))
    return rng.choice([b"", b"\xef\xbb\xbf"]) + text.encode()


def base(rng: random.Random) -> Any:
    """Return a building with every kind of child, its numbers at random."""
    content = oracle.read(timber_mod.BLUEPRINT.encode())
    finished = content["Children"]["#Finished"]["Children"]
    finished["Bare#nested"] = {"BlueprintPath": "M.blueprint", "Modification": {"BuildingSpec#delete": {}}}
    finished["Fixed#nested"] = {"BlueprintPath": "M.blueprint", "Modification": {"TransformSpec#delete": {}}}
    finished["Slash/~"] = {
        "TransformSpec": spec(rng),
        "Children": {"Inner": {}},
        "CollidersSpec": {"SphereColliders": [{"Center": {"X": 0, "Y": 1.0, "Z": 0.0}, "Radius": 0.5}]},
    }
    for _path, child, _inside in [*oracle.children(content)]:
        if "Position" in child.get("TransformSpec", {}) and len(child["TransformSpec"]) == 3:
            child["TransformSpec"] = spec(rng)
    return content


def laid_out(content: Any, indent: Any, newline: bytes) -> bytes:
    return json.dumps(content, indent=indent, ensure_ascii=False).encode().replace(b"\n", newline)


def number(rng: random.Random) -> float:
    return rng.choice([0.0, 1.0, -0.5, 1e-7, rng.uniform(-5, 5), round(rng.uniform(-50, 50), rng.randrange(5)), -3e-05])


def spec(rng: random.Random) -> Any:
    fields = {"Position": number, "Rotation": lambda rng: rng.choice([0, 90.0, 270, rng.uniform(-400, 400)])}
    fields["Scale"] = lambda rng: rng.choice([1.0, 2, round(rng.uniform(0.1, 3), 3)])
    return {name: {axis: made(rng) for axis in "XYZ"} for name, made in fields.items()}


def single(value: float) -> float:
    return float(np.float32(value))


def changed(before: Channels, rng: random.Random, fields: tuple[str, ...] = FIELDS) -> Channels:
    """Return channels with one to three other numbers."""
    values = {name: list(getattr(before, name)) for name in FIELDS}
    for _ in range(rng.randrange(1, 4)):
        name, axis = rng.choice(fields), rng.randrange(3)
        new = single(rng.uniform(0.1, 4.0) if name == "scale" else rng.choice([rng.uniform(-7, 7), math.pi / 2 + 2e-4]))
        values[name][axis] = new if new != values[name][axis] else new + 1.0
    return replace(before, **{name: tuple(triple) for name, triple in values.items()})


class Case:
    """One edit of a random file."""

    def __init__(self, data: bytes, rng: random.Random) -> None:
        self.data, self.rng = data, rng
        self.content = oracle.read(data)
        self.nodes = [*oracle.children(self.content)]

    def pick(self, wanted: Callable[[tuple[str, ...], Any, bool], Any]) -> tuple[tuple[str, ...], Any]:
        """Return one of the children of a kind."""
        found = [(path, child) for path, child, inside in self.nodes if wanted(path, child, inside)]
        if not found:
            pytest.skip("the file has no child of this kind")
        return self.rng.choice(found)

    def edit(self, path: tuple[str, ...], child: Any, **changes: Any) -> NodeEdit:
        before = to_channels(*oracle.numbers(oracle.spec_of(child, path[-1])))
        return NodeEdit(pointer(path), path[-1], channels=changed(before, self.rng), before=before, **changes)

    def patched(self, *edits: NodeEdit) -> Patched:
        """Return the changed file. One that was strict JSON with a regular layout is so afterwards."""
        found = patch(self.data, edits)
        for indent in (2, 4, "\t", None):
            newline = b"\r\n" if b"\r" in self.data else b"\n"
            body, result = (
                data.removeprefix(b"\xef\xbb\xbf").removesuffix(newline) for data in (self.data, found.data)
            )
            if body == laid_out(self.content, indent, newline):
                wanted = laid_out(json.loads(result), indent, newline).decode()
                if indent is not None:
                    one, other = (NUMBER.sub("#", re.sub(r"\{\s+\}", "{}", text)) for text in (result.decode(), wanted))
                    assert one == other
        return found

    def refused(self, *edits: NodeEdit) -> None:
        with pytest.raises(ExportError) as caught:
            self.patched(*edits)
        assert all(edit.title in str(caught.value) for edit in edits)

    def moved(self, path: tuple[str, ...], child: Any) -> None:
        """Move a child; check the numbers that differ, the text, and the matrix in the world."""
        edit = self.edit(path, child)
        result = self.patched(edit).data
        now = oracle.read(result)
        old, new = dict(oracle.flat(self.content)), dict(oracle.flat(now))
        differing = {key for key in {*old, *new} if old.get(key) != new.get(key)}
        assert edit.channels is not None and edit.before is not None
        pairs = [zip(getattr(edit.channels, name), getattr(edit.before, name), strict=True) for name in FIELDS]
        count = sum(one != other for pair in pairs for one, other in pair)
        is_nested = "#nested" in path[-1]
        given = oracle.spec_of(child, path[-1])
        wanted = count if given or is_nested else 9
        written = [key for key in differing if key in new and re.search(r"/(Position|Rotation|Scale)/[XYZ]$", key)]
        assert len(written) == wanted and all("/TransformSpec/" in key for key in written)
        assert_inserted_or_replaced(self.data, result, wanted)
        above = np.array(oracle.world(now, path[:-1]))
        matrix = above @ edit.channels.matrix()
        assert np.allclose(
            oracle.world(now, path), matrix, rtol=2e-6, atol=2e-6 * max(1.0, float(np.abs(matrix).max()))
        )


def assert_inserted_or_replaced(old: bytes, new: bytes, numbers: int) -> None:
    """Check that only numbers were replaced, or that only text was inserted or both."""
    one, other = old.decode(), new.decode()
    if NUMBER.sub("#", one) == NUMBER.sub("#", other):
        pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
        assert sum(before != after for before, after in pairs) == numbers
    else:
        assert is_part(NUMBER.sub("#", one), NUMBER.sub("#", other))
    assert other.count("\r\n") == other.count("\n") or "\r\n" not in one
    assert (one[:1] == "\ufeff") == (other[:1] == "\ufeff")


def is_part(short: str, long: str) -> bool:
    """Return whether a text is another one without some characters."""
    rest = iter(long)
    return all(letter in rest for letter in short)


def with_spec(case: Case) -> None:
    case.moved(*case.pick(lambda path, child, inside: "TransformSpec" in child and not inside))


def without_spec(case: Case) -> None:
    case.moved(
        *case.pick(
            lambda path, child, inside: "TransformSpec" not in child and "#nested" not in path[-1] and not inside
        )
    )


def nested_with_spec(case: Case) -> None:
    case.moved(*case.pick(lambda path, child, inside: oracle.spec_of(child, path[-1]) and "#nested" in path[-1]))


def nested_without_spec(case: Case) -> None:
    case.moved(*case.pick(lambda path, child, inside: "Bare#nested" in path[-1] and not inside))


def nested_without_modification(case: Case) -> None:
    case.moved(*case.pick(lambda path, child, inside: "#nested" in path[-1] and "Modification" not in child))


def below_nested(case: Case) -> None:
    case.moved(*case.pick(lambda path, child, inside: inside and "TransformSpec" in child))


def nested_deleted(case: Case) -> None:
    case.refused(
        case.edit(*case.pick(lambda path, child, inside: "TransformSpec#delete" in child.get("Modification", {})))
    )


def inside_nested(case: Case) -> None:
    path, _child = case.pick(lambda path, child, inside: "#nested" in path[-1])
    case.refused(case.edit((*path, "Elsewhere"), {}))


def model_path(case: Case) -> None:
    path, _child = case.pick(lambda path, child, inside: "TimbermeshSpec" in child and not inside)
    name = case.rng.choice(["A/B.Model", 'quoted "x"', "größe\\x"])
    result = case.patched(NodeEdit(pointer(path), path[-1], properties={"Model": name})).data
    expected = copy.deepcopy(case.content)
    at = expected
    for part in path:
        at = at["Children"][part]
    at["TimbermeshSpec"]["Model"] = name
    assert oracle.read(result) == expected and result.count(b"\n") == case.data.count(b"\n")


def collider(case: Case) -> None:
    path, child = case.pick(lambda path, child, inside: child.get("CollidersSpec") and not inside)
    lists = {name: found for name, found in child["CollidersSpec"].items() if found}
    if not lists:
        pytest.skip("no colliders")
    kind = case.rng.choice([*lists])
    index = case.rng.randrange(len(lists[kind]))
    center = tuple(lists[kind][index]["Center"][axis] for axis in "XYZ")
    size = lists[kind][index].get("Size")
    sizes = tuple(size[axis] for axis in "XYZ") if size else (lists[kind][index]["Radius"],) * 3
    before = to_channels(center, (0.0, 0.0, 0.0), sizes)
    way = case.rng.choice(["move", "size", "turn", "uneven"])
    title = f"{kind} {index}"
    key = f"{pointer(path)}/CollidersSpec/{kind}/{index}"
    if way == "turn" or (way == "uneven" and not size):
        now = changed(before, case.rng, ("rotation",) if way == "turn" else ("location",))
        if way == "uneven":
            now = replace(now, scale=(now.scale[0], now.scale[1] * 2 + 1, now.scale[2]))
        case.refused(NodeEdit(key, title, channels=now, before=before))
        return
    factor = case.rng.choice([0.5, 2.0, 3.0])
    now = changed(before, case.rng, ("location",)) if way == "move" else before
    if way != "move":
        now = replace(before, scale=tuple(single(value * factor) for value in before.scale))
    result = oracle.read(case.patched(NodeEdit(key, title, channels=now, before=before)).data)
    at = result
    for part in path:
        at = at["Children"][part]
    found = at["CollidersSpec"][kind][index]
    assert [single(found["Center"][axis]) for axis in "XYZ"] == [
        single(-now.location[0]) + 0.0,
        now.location[2],
        -now.location[1],
    ]
    if size:
        assert [single(found["Size"][axis]) for axis in "XYZ"] == [now.scale[0], now.scale[2], now.scale[1]]
    else:
        assert single(found["Radius"]) == now.scale[0]
        if way != "move" and "Height" in found:
            assert found["Height"] == pytest.approx(lists[kind][index]["Height"] * factor, rel=1e-6)
        assert way != "move" or found["Radius"] == lists[kind][index]["Radius"]


def attachment(case: Case) -> None:
    found = case.content.get("TemplateAttachmentsSpec", {}).get("Attachments")
    if not found:
        pytest.skip("no attachments")
    before = to_channels(*oracle.numbers(found[0]))
    now = changed(before, case.rng)
    edit = NodeEdit("/TemplateAttachmentsSpec/Attachments/0", "it", channels=now, before=before)
    result = oracle.read(case.patched(edit).data)
    there = result["TemplateAttachmentsSpec"]["Attachments"][0]
    matrix = oracle.to_blender(oracle.local(there))
    assert np.allclose(matrix, now.matrix(), rtol=2e-6, atol=1e-5)


def footprint(case: Case) -> None:
    key = case.rng.choice(["/BlockObjectSpec", "/BlockObjectSpec/Entrance"])
    case.refused(NodeEdit(key, key, matrix=np.identity(4)))


def added(case: Case) -> None:
    allowed = case.rng.random() < 0.7
    path, child = case.pick(lambda path, child, inside: len(path) > 1 and path[0] == "#Finished" and not inside)
    parents = [one for one, _child, inside in case.nodes if not inside and "#nested" not in one[-1]]
    place = case.rng.choice(
        [one for one in parents if (one[0] == "#Finished") == allowed and (allowed or len(one) < 2)]
    )
    edit = case.edit(path, child, source=pointer(path), parent=pointer(place), name=path[-1].replace("#nested", ""))
    edit.key = "+0"
    if path[-1] == "Fixed#nested":
        edit.channels = edit.before
    if case.rng.random() < 0.3:
        edit.source, edit.properties, edit.before = "", {"Model": "A/B"}, to_channels()
    if place[0] == "#Underground":
        allowed = True
    if not allowed:
        case.refused(edit)
        return
    found = case.patched(edit)
    now = oracle.read(found.data)
    assert is_part(case.data.decode(), found.data.decode())
    name = found.keys["+0"].rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    assert edit.channels is not None
    matrix = np.array(oracle.world(now, place)) @ edit.channels.matrix()
    assert np.allclose(oracle.world(now, (*place, name)), matrix, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(matrix).max()))
    at = now
    for part in place:
        at = at["Children"][part]
    new = at["Children"].pop(name)
    if not at["Children"]:
        del at["Children"]
    assert edit.source == "" or new.get("Children") == child.get("Children")
    assert now == case.content or now == without_empty(case.content, place)


def without_empty(content: Any, path: tuple[str, ...]) -> Any:
    at = content = copy.deepcopy(content)
    for part in path:
        at = at["Children"][part]
    at.pop("Children", None)
    return content


def removed(case: Case) -> None:
    last = {path[:-1]: path for path, _child, _inside in case.nodes}
    path, _child = case.pick(lambda path, child, inside: True)
    path = case.rng.choice([path, last[path[:-1]]])
    edit = NodeEdit(pointer(path), path[-1], is_removed=True)
    is_allowed = path[0] == "#Finished" and len(path) > 1 and path[-1] != "Roof" and "#nested" not in "".join(path[:-1])
    if not is_allowed:
        case.refused(edit)
        return
    found = case.patched(edit)
    result = found.data
    expected = copy.deepcopy(case.content)
    at = expected
    for part in path[:-1]:
        at = at["Children"][part]
    del at["Children"][path[-1]]
    assert oracle.read(result) == expected and is_part(result.decode(), case.data.decode())
    back = Case(result, case.rng).patched(NodeEdit(edit.key, path[-1], content=found.removed[edit.key])).data
    assert oracle.read(back) == case.content and is_part(result.decode(), back.decode())
    new = NodeEdit("+0", "new", parent=pointer(path[:-1]), name=path[-1], properties={"Model": "A/B"})
    for reserved, is_same in (((), "#nested" not in path[-1]), ((edit.key,), False)):
        added = patch(result, [new], reserved).keys["+0"]
        assert (added == edit.key) == is_same


def renamed(case: Case) -> None:
    path, _child = case.pick(lambda path, child, inside: True)
    assert case.patched(NodeEdit(pointer(path), "it", name="other")).data == case.data


def reparented(case: Case) -> None:
    path, _child = case.pick(lambda path, child, inside: True)
    case.refused(NodeEdit(pointer(path), path[-1], parent="/"))


def underground(case: Case) -> None:
    path, child = case.pick(lambda path, child, inside: path == ("#Underground",))
    edit = case.edit(path, child)
    edit.channels = replace(edit.channels or to_channels(), location=(0.0, 0.0, single(case.rng.uniform(1, 2))))
    assert "underground-height" in [message.code for message in case.patched(edit).messages]


ROWS = (with_spec, without_spec, nested_with_spec, nested_without_spec, nested_without_modification, below_nested)
ROWS += (nested_deleted, inside_nested, model_path, collider, attachment, footprint, added, removed, renamed)
ROWS += (reparented, underground)


@pytest.mark.parametrize(
    "seed", [*range(FAST), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(FAST, SEEDS))]
)
def test_random_edits(seed: int) -> None:
    rng = random.Random(seed)
    ROWS[seed % len(ROWS)](Case(styled(base(rng), rng), rng))


def test_samples(samples: Path) -> None:
    """Unchanged files are built from their parts; each row is tried on each sample."""
    paths = sorted((samples / "timberborn_blueprints").rglob("*.blueprint.json"))
    assert len(paths) > 10
    for number, path in enumerate(paths):
        data = path.read_bytes()
        assert patch(data, []).data == data
        rng = random.Random(number)
        for text in (data, data.replace(b"\n", b"\r\n")):
            for row in (with_spec, without_spec, nested_with_spec, model_path, collider, attachment):
                try:
                    row(Case(text, rng))
                except pytest.skip.Exception:
                    continue
