"""Shape files: real ones against the viewer's numbers, generated ones against a slow reader, and written ones."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import avatar_rest
import numpy as np
import pytest
import second_life_oracle as oracle
import slow_shape
import slow_shape_files
from meshferry.io_formats import api, registry
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.second_life.avatar import joints as avatar_joints
from meshferry.io_formats.second_life.avatar import sliders
from meshferry.io_formats.second_life.shape_file.codec import Shape
from meshferry.io_formats.second_life.shape_file.format import SECOND_LIFE_SHAPE
from meshfuzz import second_life_shape_seeds as made

PAGE_ENDS = {
    "bad_cut_off.bodypart": "The file ends after 2 of 7 parameters",
    "bad_entities.xml": "document type",
    "bad_parameter.bodypart": "In line 25: '38 high' is not a parameter and its value",
    "bad_root.xml": "not a shape",
    "bad_type_skin.bodypart": "This is a skin, not a shape",
    "bad_version_25.bodypart": "Version 25 is newer than 22",
    "franz_023b052a_skin.bodypart": "This is a skin, not a shape",
}
"""Files that are refused, and why."""
WARNED = {
    "odd_values.bodypart": ["outside their range.*'Body Thickness'", "not finite.*'Torso Length'", "twice.*'Height'"],
    "two_archetypes.xml": ["1 archetype after the first is left out.*'Second'"],
}


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "secondlife_shape"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))["shapes"]
    return found


def read(data: bytes) -> Shape:
    assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is SECOND_LIFE_SHAPE
    document: Shape = SECOND_LIFE_SHAPE.read(data)
    return document


def joints(document: Shape) -> dict[str, np.ndarray[Any, Any]]:
    found = sliders.evaluate_shape(document.values)
    return dict(zip(sliders.joint_names(), np.hstack((found.world, found.scale)), strict=True))


def apart(found: dict[str, Any], wanted: dict[str, Any]) -> float:
    assert wanted
    return max(float(np.abs(np.array(found[name]) - values).max()) for name, values in wanted.items())


def shape_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in {".xml", ".dat", ".bodypart"})


def test_every_sample_ends_as_its_table_says(folder: Path, expected: dict[str, Any]):
    seen = 0
    for path in shape_files(folder):
        if path.name in PAGE_ENDS:
            with pytest.raises(FormatError, match=PAGE_ENDS[path.name]):
                api.load(path)
            continue
        loaded = api.load(path)
        assert loaded.format is SECOND_LIFE_SHAPE
        document = loaded.document
        wanted = WARNED.get(path.name, [])
        assert len(document.warnings) == len(wanted)
        assert all(map(re.search, wanted, map(str, document.warnings))), document.warnings
        shape = expected.get(path.name) or expected[path.relative_to(folder).as_posix()]
        facts = SECOND_LIFE_SHAPE.facts(document)
        assert facts["sex"] == shape["sex"]
        assert facts["height"] == pytest.approx(shape["height"], abs=2e-6), path.name
        assert sliders.evaluate_shape(document.values).pelvis_to_foot == pytest.approx(
            shape["pelvis_to_foot"], abs=2e-6
        )
        assert apart(joints(document), shape["joints"]) <= 2e-6, path.name
        if "known_sliders" in shape:
            assert len(document.values) == shape["known_sliders"], path.name
        assert document.values == slow_shape_files.values(loaded.data)
        seen += 1
    assert seen == 20
    assert read((folder / "synthetic/tall.bodypart").read_bytes()).values == (
        read((folder / "synthetic/crlf_blank_lines.bodypart").read_bytes()).values
    )


@pytest.mark.parametrize("name", ["ruth_angela.xml", "roth2_default.xml"])
def test_bones_inside_exports_of_viewers(folder: Path, name: str):
    data = (folder / name).read_bytes()
    found = sliders.evaluate_shape(read(data).values)
    index, seen = sliders.joint_index(), 0
    for element in ET.fromstring(data).iter():
        joint = avatar_joints.canonical(element.get("name", ""))
        if element.tag not in {"bone", "collision_volume"} or joint is None or joint == "mPelvis":
            continue
        tolerance = 1e-4 if joint in {"LEFT_PEC", "RIGHT_PEC"} else 3e-6  # breast physics
        for key, values in (("position", found.position), ("scale", found.scale)):
            stored = np.array(element.get(key, "").split(), float)
            assert np.abs(values[index[joint]] - stored).max() <= tolerance, (joint, key)
        seen += 1
    assert seen == 158


def test_skinned_vertices(folder: Path, samples: Path, expected: dict[str, Any]):
    """The viewer's formula with the bind matrices of the assets, by code that is not the product's."""
    table = avatar_joints.table()
    assets = {
        name: oracle.decode((samples / "secondlife" / name).read_bytes())
        for name in expected["default_female"]["skinned"]
    }
    seen = 0
    for name, shape in expected.items():
        if "skinned" not in shape:
            continue
        values = {int(number): value for number, value in shape.get("values", {}).items()}
        values |= {int(n): sliders.sliders()[int(n)].decoded(code) for n, code in shape.get("u8", {}).items()}
        if "values" not in shape and "u8" not in shape:
            values = read((folder / name).read_bytes()).values
        overrides = {joint: np.array(place) for joint, place in shape["skinned_overrides"].items()}
        for asset, vertices in shape["skinned"].items():
            own = overrides if asset.endswith("synth_rig_overrides.llmesh") else {}
            shaped = sliders.evaluate_shape(values, own, own)
            worlds = {}
            for number, joint in enumerate(sliders.joint_names()):
                turn = table[joint].local[:3, :3]
                turn = turn / np.linalg.norm(turn, axis=0)
                worlds[joint] = np.identity(4)
                worlds[joint][:3, :3] = np.diag(shaped.scale[number]) @ turn.T
                worlds[joint][3, :3] = shaped.world[number]
            found = avatar_rest.skinned(assets[asset], worlds)
            for vertex, place in vertices.items():
                assert np.abs(found[int(vertex)] - place).max() <= 5e-6, (name, asset, vertex)
                seen += 1
    assert seen == 11 * 18


# -- generated files ----------------------------------------------------------------------------


def random_rows(rng: random.Random) -> list[tuple[str, str]]:
    """Return parameters of all kinds, some of them twice, with values in all spellings."""
    numbers = rng.choices(list(slow_shape.PARAMETERS), k=rng.randint(0, 60)) + rng.choices(slow_shape.OWN, k=20)
    numbers += rng.choices([*numbers, 5555, 1_000_000], k=4)
    rows = []
    for number in numbers:
        row = slow_shape.PARAMETERS.get(number, {"min": "0", "max": "1"})
        value = rng.uniform(float(row["min"]) - 0.1, float(row["max"]) + 0.1)
        shown = rng.choice(("%.2f", "%.3f", "%g", "%e", "%+.1f")) % value
        shown = re.sub(r"^(-?)0\.", r"\1.", shown) if rng.random() < 0.5 else shown
        rows.append((str(number), rng.choice(("nan", "-inf", "1e999", "-0")) if rng.random() < 0.05 else shown))
    return rows


def random_body_part(rng: random.Random) -> bytes:
    data = made.body_part(
        random_rows(rng),
        version=rng.choice(("22", "22", "21", "24", "0")),
        kind=rng.choice(("0", "0", "0", "2", "6")),
        name=rng.choice(("", "Ann\u00e9", "type 3", "a & <b>")),
        description=rng.choice(("", "parameters 4", "   ")),
        textures=("0 0a0fd0e2-e9ce-4539-9a47-8a4fbc960460",) * rng.randint(0, 2),
        blank_lines=rng.randint(0, 2),
        line_end=rng.choice(("\n", "\r\n")),
    )
    return rng.choice((b"", b"\xef\xbb\xbf")) + data + rng.choice((b"", b"\n", b"\0"))


def random_appearance(rng: random.Random) -> bytes:
    archetypes: list[list[dict[str, str]]] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        listed = []
        for number, value in random_rows(rng):
            attributes = {"id": number, "name": "x", "display": "X & Y", "value": value, "u8": str(rng.randrange(256))}
            for name in rng.choice(((), ("value",), ("u8",), ("value", "u8"), ("name", "display"))):
                del attributes[name]
            listed.append(attributes)
        archetypes.append(listed)
    data = made.appearance(
        *archetypes,
        names=("Ann\u00e9" if (is_utf8 := rng.random() < 0.5) else "???", "b", "c"),
        root=rng.choice(("", 'metaversion="1.0"')),
        inside=rng.choice(("", "<!-- x --><texture uuid=''/>", "<joint_offset name='mHead' position='0 0 0'/>")),
        line_end=rng.choice(("\n", "\r\n", "\n\n", " ")),
        start="" if is_utf8 else rng.choice(('<?xml version="1.0" encoding="US-ASCII"?>', "<?xml version='1.0'?>")),
    )
    return rng.choice((b"", b"\xef\xbb\xbf")) + data if is_utf8 else data


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [random_body_part, random_appearance])
def test_generated_files(make: Any, count: int):
    rng = random.Random(2626)
    refused = 0
    for _ in range(count):
        data = make(rng)
        try:
            wanted = slow_shape_files.values(data)
        except slow_shape_files.WrongFile:
            with pytest.raises(FormatError):
                read(data)
            refused += 1
            continue
        document = read(data)
        assert document.values == pytest.approx(wanted, abs=1e-7)
        written = SECOND_LIFE_SHAPE.write(document)
        stored = slow_shape_files.values(written)
        rest = {number: float(slow_shape.PARAMETERS[number]["default"]) for number in wanted}
        assert {number: stored.get(number, rest[number]) for number in wanted} == pytest.approx(wanted, abs=1e-6)
        again = read(written)
        assert SECOND_LIFE_SHAPE.same_content(data, written)
        assert apart(joints(again), joints(document)) <= 2e-6
    assert refused <= count / 3


def test_all_combinations_of_attributes():
    """Only ``value``, or else ``u8``, decides; neither counts as missing."""
    for present in itertools.product((False, True), repeat=4):
        given = {"value": "1.5", "u8": "10", "name": "height", "group": "1"}
        kept = itertools.compress(given.items(), present)
        document = read(made.appearance([{"id": "33"} | dict(kept), {"id": "34", "value": "0.1"}]))
        has_value, has_code = present[:2]
        wanted = 1.5 if has_value else slow_shape_files.decoded(33, 10) if has_code else None
        assert document.values.get(33) == wanted
        assert len(document.warnings) == (wanted is None)
        assert len(SECOND_LIFE_SHAPE.check(document)) == (has_code and not has_value)


def test_others_than_those_listed_are_the_default():
    """A shape that lists a few sliders after another one of the other sex."""
    every = [{"id": str(n), "value": row["max"]} for n, row in slow_shape.PARAMETERS.items() if n in slow_shape.OWN]
    before = SECOND_LIFE_SHAPE.to_scene(read(made.appearance(every)), "male").skeletons[0].slider_values
    scene = SECOND_LIFE_SHAPE.to_scene(read(made.body_part((("33", ".5"),))), "few")
    percents = scene.skeletons[0].slider_values
    assert percents is not None
    assert before is not None
    assert percents.keys() == before.keys() == set(slow_shape.OWN)
    for number, percent in (before | percents).items():
        row = slow_shape.PARAMETERS[number]
        low, high = float(row["min"]), float(row["max"])
        wanted = 0.5 if number == 33 else float(row["default"])
        assert percent / 100 * (high - low) + low == pytest.approx(wanted, abs=1e-12)


def test_hair_and_shoes_leave_the_sliders_of_the_shape():
    scene = SECOND_LIFE_SHAPE.to_scene(read(made.FILES["shoes"]), "shoes")
    assert scene.skeletons[0].slider_values is not None
    assert set(scene.skeletons[0].slider_values) == {198, 503}
    with pytest.raises(FormatError, match="no body shape sliders"):
        read(made.body_part((("33", "1"),), kind="6"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (made.body_part(made.TALL, version="x"), "In line 1: the version"),
        (made.body_part(made.TALL, kind="99"), "wearable of type 99, not a shape"),
        (made.body_part(made.TALL, kind="3"), "This is a pair of eyes, not a shape"),
        (made.body_part(made.TALL, kind="x"), "In line 15: the type"),
        (made.body_part(made.TALL, stated=1001), "1,001 parameters; viewers take up to 1,000"),
        (made.body_part(made.TALL, stated=3), "In line 20: the number of textures is missing"),
        (made.body_part((("33", "1_0"),)), "In line 17: '33 1_0'"),
        (made.body_part((("1e1", "1"),)), "In line 17: '1e1 1'"),
        (made.body_part((("33", ""),)), "In line 17: '33 '"),
        (made.body_part(()), "no body shape sliders"),
        (made.appearance(), "no body shape sliders"),
        (made.appearance([{"id": "112", "value": "1", "wearable": "hair"}] * 3), r"no .* sliders \(it has 3 of hair\)"),
        (made.appearance([{"id": "33", "value": "high"}]), "Parameter 33: The value 'high' is not a number"),
        (made.appearance([{"id": "", "value": "1"}]), "The id '' of a parameter is not a number"),
        (made.appearance([{"id": "33", "u8": "1.5"}]), "Parameter 33: The value '1.5'"),
    ],
)
def test_refusals(data: bytes, message: str):
    with pytest.raises(FormatError, match=message):
        read(data)


def test_worn_joint_positions_are_mentioned_once():
    inside = (
        "<joint_offset name='mHead' mesh_id='a'/><joint_offset name='mHead' mesh_id='b'/><joint_offset name='mNeck'/>"
    )
    document = read(made.appearance([{"id": "33", "value": "1"}], inside=inside))
    assert [str(warning) for warning in document.warnings] == ["2 joint positions of worn meshes left out"]


def test_written_files_are_as_viewers_write_them(tmp_path: Path):
    values = {33: 0.32, 36: 1 / 3, 80: 1.0, 31: 1.0, 198: 0.0}
    path = tmp_path / "shape.xml"
    path.write_bytes(SECOND_LIFE_SHAPE.write(Shape(values, 'Ann\u00e9 "A" <\x01>')))
    text = path.read_text("ascii")
    lines = text.splitlines()
    assert lines[:2] == [
        '<?xml version="1.0" encoding="US-ASCII" standalone="yes"?>',
        '<linden_genepool version="1.0">',
    ]
    assert (
        '\t\t<param id="33" name="height" display="Height" value="0.320" u8="155" type="param_skeleton" '
        'wearable="shape" group="0"/>'
    ) in lines
    root = ET.fromstring(text)
    listed = {int(element.get("id", "")): element for element in root.iter("param")}
    assert list(listed) == sorted(listed)
    wearables = {number: row["wearable"] for number, row in slow_shape.PARAMETERS.items() if number in slow_shape.OWN}
    assert set(listed) == {number for number, wearable in wearables.items() if wearable == "shape"} | {31}
    assert np.float32(float(listed[36].get("value", ""))) == np.float32(1 / 3)
    assert all(len(element.get("value", "").partition(".")[2]) >= 3 for element in listed.values())
    assert read(path.read_bytes()).name == 'Ann\u00e9 "A" <>'
    assert read(SECOND_LIFE_SHAPE.write(Shape(values))).name == ""


def test_as_others_see_it():
    scene = SECOND_LIFE_SHAPE.to_scene(read(made.BODY_PART), "tall")
    kept, seen = (SECOND_LIFE_SHAPE.from_scene(scene, {"use_as_others_see": value}).values for value in (False, True))
    for number, value in kept.items():
        row = slow_shape.PARAMETERS[number]
        low, high = float(row["min"]), float(row["max"])
        code = int(np.floor((value - low) / (high - low) * 255 + 1e-9))
        assert seen[number] == pytest.approx(slow_shape_files.decoded(number, code), abs=1e-6), number
    assert seen != kept
