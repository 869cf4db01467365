"""Archives of OpenSim as documents: real forms and hostile ones against the facts of the samples, and made ones."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.core.recognition import Match, NearMiss
from meshferry.io_formats.second_life.opensim import codec, container, face_materials, mapping, object_xml
from meshferry.io_formats.second_life.opensim import format as opensim_format
from meshferry.io_formats.second_life.opensim.container import ContentStore
from meshferry.io_formats.second_life.opensim.document import BLANK, TRANSPARENT, Archive, Linkset, Part, TextureFace
from meshferry.io_formats.second_life.opensim.face_materials import MATERIAL, MESH, PICTURE, read_assets
from meshfuzz import opensim_archive_seeds as made

MAPPINGS = {"default": 0, "planar": 2}
SCULPTS = {"sphere": 1, "torus": 2, "plane": 3, "cylinder": 4}
PRIMS = {"box": (1, 16), "cylinder": (0, 16), "sphere": (5, 32)}
ID = "0b0c0e6a-5f3e-4a0e-9d57-1c5e5c5e5c0"


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    if not (samples / "opensim_archives").is_dir():
        pytest.skip(f"no archives of OpenSim in {samples}")
    return samples / "opensim_archives"


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def matrix(w: float, x: float, y: float, z: float) -> Any:
    """Return the rotation matrix of a unit quaternion."""
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def check_parts(linksets: list[Linkset], facts: list[dict[str, Any]], origin: Any) -> None:
    """Compare parts, composed to places in the world, with the facts about them."""
    remaining = iter(facts)
    for linkset in linksets:
        root = linkset.parts[0]
        turned = matrix(*root.rotation)
        for index, part in enumerate(linkset.parts):
            fact = next(remaining)
            position, rotation = np.array(part.position), matrix(*part.rotation)
            if index:
                position, rotation = np.array(root.position) + turned @ position, turned @ rotation
            x, y, z, w = fact["rotation"]
            assert (part.name, index) == (fact["name"], fact["index"])
            assert position + origin == pytest.approx(fact["position"], abs=2e-5), part.name
            assert np.abs(rotation - matrix(w, x, y, z)).max() < 2e-5, part.name
            assert part.size == pytest.approx(fact["size"], abs=1e-6)
            check_kind(part, fact)
            for number, face in enumerate(fact["faces"]):
                check_face(part.entry.face(number), face)
    assert next(remaining, None) is None


def check_kind(part: Part, fact: dict[str, Any]) -> None:
    assert part.pcode == (255 if fact["kind"] == "tree" else 9)
    assert part.is_flexible == (fact.get("variant") == "flexible")
    if fact["kind"] in ("mesh", "sculpt"):
        assert part.sculpt_asset == fact["asset"]
        sculpt = fact.get("sculpt", {"kind": "", "invert": False, "mirror": False})
        kind = SCULPTS.get(sculpt["kind"], 5) | 0x40 * sculpt["invert"] | 0x80 * sculpt["mirror"]
        assert part.sculpt_type == kind, part.name
    else:
        assert (part.sculpt_asset, part.sculpt_type) == ("", 0)
    if fact["kind"] in PRIMS:
        assert (part.shape.profile_curve & 15, part.shape.path_curve) == PRIMS[fact["kind"]]
        assert not (part.shape.profile_hollow or part.shape.path_begin or part.shape.path_twist)


def check_face(face: TextureFace, fact: dict[str, Any]) -> None:
    assert (face.texture, face.material) == (fact["texture"], fact["material"])
    assert face.color == pytest.approx(fact["colour"], abs=1e-6)
    assert face.repeats == pytest.approx(fact["repeats"], abs=1e-6)
    assert face.offsets == pytest.approx(fact["offsets"], abs=1e-6)
    assert face.rotation == pytest.approx(fact["rotation"], abs=1e-6)
    assert face.glow == pytest.approx(fact["glow"], abs=1e-6)
    assert (face.is_full_bright, face.has_media) == (fact["full_bright"], fact["media"])
    assert (face.bump, face.shiny, face.mapping) == (fact["bump"], fact["shiny"], MAPPINGS[fact["mapping"]])


def check_ground(document: Archive, facts: list[dict[str, Any]]) -> None:
    for region, fact in zip(document.groups, facts, strict=True):
        heights = np.frombuffer(region.terrain, "<f4").reshape(region.size[::-1])
        x0, y0, _ = np.array(region.origin, int)
        for point in fact["samples"]:
            x, y = point["x"] - x0, point["y"] - y0
            if max(x, y) < 256:
                assert heights[y, x] == point["height"]
        assert f"<WaterHeight>{fact['water']}</WaterHeight>".encode() in region.settings


def test_region_agrees_with_its_facts(folder: Path, expected: Any) -> None:
    document = codec.read_path(folder / "region.oar")
    facts = expected["region.oar"]
    (region,) = document.groups
    check_parts(region.linksets, facts["parts"], 0)
    assert (document.version, document.is_inventory, document.warnings) == ("0.8", False, [])
    assert (region.name, region.origin, region.folder, region.size) == (facts["region"], (0, 0, 0), "", (256, 256))
    assert len(region.linksets) == len(facts["linksets"])
    assert region.left_out == {"parcel": facts["left_out"]["parcels"], "script": facts["left_out"]["scripts"]}
    check_ground(document, [facts["terrain"]])


def test_all_assets_of_a_region_are_found_but_those_that_are_missing(folder: Path, expected: Any) -> None:
    document = codec.read_path(folder / "region.oar")
    facts = expected["region.oar"]
    parts = [fact for fact in facts["parts"] if fact["asset"]]
    with read_assets(document.open, {fact["asset"] for fact in parts}) as assets:
        for fact in parts:
            found = assets.get(fact["asset"] + (MESH if fact["kind"] == "mesh" else PICTURE))
            assert (found is None) == fact["asset_missing"] == (fact["asset"] in facts["missing_meshes"])
    faces = [face for fact in facts["parts"] for face in fact["faces"]]
    with read_assets(document.open, {face["texture"] for face in faces}) as assets:
        missing = {face["texture"] for face in faces if assets.get(face["texture"] + PICTURE) is None}
    assert set(facts["missing_textures"]) <= missing
    assert {face["texture"] for face in faces if face["texture_missing"]} <= missing


def test_two_regions_have_their_origins_and_holes_count(folder: Path, expected: Any) -> None:
    document = codec.read((folder / "two_regions.oar").read_bytes())
    facts = expected["two_regions.oar"]["regions"]
    assert document.version == "1.0"
    for region, fact in zip(document.groups, facts, strict=True):
        assert (region.name, region.folder) == (fact["name"], f"regions/{fact['dir']}/")
        assert region.origin == pytest.approx(fact["origin"])
        check_parts(region.linksets, fact["parts"], np.array(region.origin))
    check_ground(document, [fact["terrain"] for fact in facts])
    assert not document.warnings


def test_items_of_an_inventory_have_folders_and_offsets(folder: Path, expected: Any) -> None:
    document = codec.read_path(folder / "inventory.iar")
    facts = expected["inventory.iar"]["items"]
    assert document.is_inventory and not document.warnings
    items = [group for group in document.groups if group.linksets]
    for group, fact in zip(items, facts, strict=True):
        assert (document.groups[group.parent].name, group.name) == (fact["folder"], fact["item"])
        assert document.groups[group.parent].parent == -1
        check_parts(group.linksets, [part for found in fact["objects"] for part in found["parts"]], 0)
        assert [found.parts[0].position for found in group.linksets] == [
            pytest.approx(found["offset"]) for found in fact["objects"]
        ]
        assert [len(found.parts) for found in group.linksets] == [len(found["parts"]) for found in fact["objects"]]
    assert len(document.groups) == len(items) + 2


GOOD = ["good object"]
HOSTILE = {
    "absolute_member.oar": (GOOD, "meshferry_escaped"),
    "dotdot_member.oar": (GOOD, "meshferry_escaped"),
    "link_member.oar": (GOOD, "it is a link"),
    "j2c_two_components.oar": ([*GOOD, "object with two_components"], ""),
    "j2c_subsampled_alpha.oar": ([*GOOD, "object with subsampled_alpha"], ""),
    "j2c_huge_tile.oar": ([*GOOD, "object with huge_tile"], ""),
    "j2c_truncated.oar": ([*GOOD, "object with truncated"], ""),
    "j2c_empty.oar": ([*GOOD, "object with empty"], ""),
    "xml_dtd.oar": (GOOD, "'dtd'"),
    "nan_position.oar": ([*GOOD, "root is good"], "child not a number"),
    "self_reference.oar": ([*GOOD, "root and child of one id"], ""),
    "self_reference.iar": (["holds itself"], ""),
    "gzip_cut.oar": (None, "cut off"),
    "tar_10gb_claim.oar": (None, "cut off"),
    "not_gzip.oar": (None, "not a gzipped tar file"),
    "no_archive_xml.oar": (GOOD, "no archive.xml"),
    "major_2.oar": (None, "newer"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_end_as_their_page_says(folder: Path, name: str) -> None:
    names, said = HOSTILE[name]
    path = folder / "hostile" / name
    if names is None:
        for attempt in (lambda: codec.read_path(path), lambda: codec.read(path.read_bytes())):
            with pytest.raises(FormatError, match=said):
                attempt()
        with pytest.raises(FormatError, match=name):
            codec.read_path(path)
        return
    document = codec.read_path(path)
    linksets = [linkset for group in document.groups for linkset in group.linksets]
    assert [linkset.name for linkset in linksets] == names
    if name == "nan_position.oar":
        assert [len(linkset.parts) for linkset in linksets] == [1, 1]
        assert [message.code for message in document.warnings] == ["object-without-place", "part-without-place"]
    if name == "self_reference.oar":
        assert len(linksets[1].parts) == 2
    assert any(said in message for message in document.warnings) if said else not document.warnings


def test_every_hostile_archive_of_the_samples_is_tested(folder: Path) -> None:
    assert {path.name for path in (folder / "hostile").iterdir()} == set(HOSTILE)


def test_claimed_sizes_take_no_memory(folder: Path, tmp_path: Path) -> None:
    claims = made.v7_entry(f"objects/{'x' * 40}.xml".encode(), b"<a/>", size=b"%011o" % (60 * 2**20))
    path = tmp_path / "claims.oar"
    for data in ((folder / "hostile/tar_10gb_claim.oar").read_bytes(), gzip.compress(claims), claims):
        path.write_bytes(data)
        tracemalloc.start()
        for attempt in (lambda data=data: codec.read(data), lambda: codec.read_path(path)):
            with pytest.raises(FormatError, match="cut off"):
                attempt()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5_000_000


def region(*members: tuple[str, bytes], **settings: Any) -> Archive:
    return codec.read(made.packed(("archive.xml", made.control()), *members), **settings)


def names_of(document: Archive) -> list[list[str]]:
    return [[part.name for part in linkset.parts] for group in document.groups for linkset in group.linksets]


def codes(document: Archive) -> list[str]:
    return [message.code for message in document.warnings]


def test_parts_without_a_name_of_their_own_are_called_like_their_object() -> None:
    children = [made.part(name, is_root=False) for name in ("Object", "Door", "")]
    shed = made.linkset(made.part("Shed"), *children)
    bare = made.linkset(made.part("Object"), made.part("", is_root=False), made.part("Primitive", is_root=False))
    document = region(
        ("objects/Shed_1-2-3__" + ID + "1.xml", shed),
        ("objects/Old barn/north_001--02-003__" + ID + "2.xml", bare),
        ("objects/Object_128-128-025__" + ID + "3.xml", bare),
    )
    assert names_of(document) == [["Shed", "Shed", "Door", "Shed"], ["Old barn/north"] * 3, ["Object"] * 3]
    assert not document.warnings


def test_places_sizes_and_rotations_are_made_valid() -> None:
    far = made.linkset(made.part("far", position=("1e6", 0, 0)), made.part("child", is_root=False))
    mixed = made.linkset(
        made.part("root", position=(-100_000, "1E-05", 0), size=(0, "-INF", "1e40"), rotation=(0, 0, 0, 0)),
        made.part("lost", is_root=False, position=(0, "Infinity", 0)),
        made.part("lost, too", is_root=False, position=(0, 0, "1,5")),
        made.part("small", is_root=False, size=("0.0009999999", "NaN", 2), rotation=("1e300", 0, 0, "1e300")),
        made.part("odd", is_root=False, rotation=("NaN", 0, 0, 1), position=(" -.5", "", "-0")),
    )
    document = region(("objects/far.xml", far), ("objects/mixed.xml", mixed))
    (linkset,) = document.groups[0].linksets
    root, small, odd = linkset.parts
    assert (root.position, root.size, root.rotation) == ((-100_000, 1e-5, 0), (0.001, 0.001, 100_000), (1, 0, 0, 0))
    assert small.size == (0.001, 0.001, 2)
    assert small.rotation == pytest.approx((0.5**0.5, 0.5**0.5, 0, 0))
    assert (odd.position, odd.rotation) == ((-0.5, 0, 0), (1, 0, 0, 0))
    assert codes(document) == [
        "object-without-place",
        "part-without-place",
        "part-size-invalid",
        "part-rotation-invalid",
    ]
    assert "'far'" in document.warnings[0] and "'lost', 'lost, too'" in document.warnings[1]


def test_objects_beyond_the_largest_number_of_parts_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_xml, "MOST_PARTS", 5)
    three = [made.part("root"), *[made.part("child", is_root=False)] * 2]
    document = region(*((f"objects/{name}_1-1-1__{ID}1.xml", made.linkset(*three)) for name in ("a", "b", "c")))
    assert [len(linkset.parts) for linkset in document.groups[0].linksets] == [3]
    assert codes(document) == ["parts-beyond-limit"]
    assert "2 objects are" in document.warnings[0]


def test_shapes_are_read_as_the_server_reads_them() -> None:
    values = "".join(
        f"<{name}>{value}</{name}>"
        for name, value in {
            "ProfileCurve": 0x35,
            "PathCurve": 32,
            "ProfileBegin": 65535,
            "ProfileEnd": 65537,
            "ProfileHollow": "many",
            "PathShearX": 251,
            "PathShearY": -5,
            "PathTwist": -100,
            "PathTwistBegin": 200,
            "PathTaperX": 300,
            "PathRevolutions": 255,
            "PathSkew": "9" * 5000,
            "PCode": 111,
            "State": 20,
        }.items()
    )
    (linkset,) = region(("objects/a.xml", made.linkset(made.part(shape=values)))).groups[0].linksets
    shape = linkset.parts[0].shape
    assert (shape.profile_curve, shape.path_curve, shape.path_scale_x) == (0x35, 32, 100)
    assert (shape.profile_begin, shape.profile_end, shape.profile_hollow) == (65535, 1, 0)
    assert (shape.path_shear_x, shape.path_shear_y) == (251, 251)
    assert (shape.path_twist, shape.path_twist_begin, shape.path_taper_x, shape.path_skew) == (-100, -56, 44, 0)
    assert shape.path_revolutions == 255
    assert (linkset.parts[0].pcode, linkset.parts[0].state) == (111, 20)


def sculpt(kind: int, asset: str, *more: str) -> str:
    return f"<SculptType>{kind}</SculptType><SculptTexture><Guid>{asset.upper()}</Guid></SculptTexture>{''.join(more)}"


def test_sculpts_are_told_from_prims_by_their_parameter() -> None:
    raw = bytes.fromhex((ID + "9").replace("-", ""))
    plain, missing = sculpt(5, ID + "1"), sculpt(0, made.NULL)
    flag = "<SculptEntry>{}</SculptEntry>"
    cases = [
        (plain, b"\0", (ID + "1", 5)),
        (plain, made.extra((0x30, raw + b"\5")), (ID + "1", 5)),
        (plain + flag.format("false"), b"\0", ("", 0)),  # a prim that was a mesh
        (missing, made.extra((0x30, raw + b"\x42")), (ID + "9", 0x42)),
        (missing, made.extra((0x60, raw + b"\5")), (ID + "9", 5)),
        (missing, made.extra((0x30, raw + b"\0")), (ID + "9", 3)),  # stitched like a plane
        (missing, made.extra((0x30, raw + b"\x80")), (ID + "9", 0x83)),
        (missing + flag.format("true"), b"\0", (made.NULL, 3)),
        (missing + flag.format("false"), b"\0", ("", 0)),
    ]
    parts = [made.part(shape=shape, params=params) for shape, params, _ in cases]
    (linkset,) = region(("objects/a.xml", made.linkset(*parts))).groups[0].linksets
    assert [(part.sculpt_asset, part.sculpt_type) for part in linkset.parts] == [result for *_, result in cases]


def test_forbidden_characters_and_wrong_declarations_do_not_lose_an_object() -> None:
    texts = {
        "control": made.linkset(made.part("Shed", more="<Description>&#x1;&#31;&#xFFFE;\x0b</Description>")),
        "bytes": made.linkset(made.part("Shed")).replace(b"Shed", b"Sh\xe9ed"),
        "declared": b'<?xml version="1.0" encoding="utf-16"?>' + made.linkset(made.part("Größe")),
        "prefixes": made.linkset(made.part("Barn")).replace(
            b"<SceneObjectPart", b'<SceneObjectPart xmlns:xmlns:xsi="a" xmlns:xmlns:xmlns:xsd="b"'
        ),
    }
    document = region(*((f"objects/{name}.xml", data) for name, data in texts.items()))
    assert names_of(document) == [["Shed"], ["Sh\ufffded"], ["Größe"], ["Barn"]]
    assert not document.warnings


def test_unreadable_objects_are_named_with_the_first_cause() -> None:
    nested = b"<a>" * 2000 + b"</a>" * 2000
    document = region(
        ("objects/deep.xml", nested), ("objects/none.xml", b"<SceneObjectGroup/>"), ("objects/x.xml", b"<")
    )
    assert names_of(document) == []
    assert codes(document) == ["objects-unreadable"]
    assert "3 unreadable objects are left out: 'deep', 'none', 'x' (The XML is nested" in document.warnings[0]


def test_xml_of_all_objects_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "Allowance", lambda: container.Allowance(tags=300, attributes=100))
    shed = made.linkset(made.part("Shed"))
    attributes = b" ".join(b"b%d='x'" % number for number in range(99))
    for many in (made.linkset(*[made.part()] * 9), b"<a " + attributes + b"/>"):
        document = region(("objects/a.xml", shed), ("objects/many.xml", many), ("objects/b.xml", shed))
        assert names_of(document) == [["Shed"]]
        assert "2 unreadable objects are left out: 'many', 'b' (The XML in the archive" in document.warnings[0]
    monkeypatch.setattr(container, "_MOST_TAGS", 100)
    monkeypatch.setattr(container, "_MOST_ATTRIBUTES", 50)
    document = region(("objects/a.xml", made.linkset(*[made.part()] * 9)), ("objects/b.xml", shed))
    assert names_of(document) == [["Shed"]] and "'a' (The XML file is too large)" in document.warnings[0]
    document = region(("objects/a.xml", b"<a " + attributes + b"/>"), ("objects/b.xml", shed))
    assert names_of(document) == [["Shed"]] and "'a' (The XML file is too large)" in document.warnings[0]


def test_regions_without_control_file_are_placed_by_their_folders() -> None:
    shed = made.linkset(made.part("Shed"))
    data = made.packed(
        ("./regions/3_2_Old_Town/objects/a.xml", shed),
        ("./regions/odd/objects/a.xml", shed),
        ("./regions/3_2_Old_Town/terrains/Old T?wn.r32", bytes(7)),
        ("./objects/a.xml", shed),
    )
    document = codec.read(data)
    assert [(group.name, group.origin, group.folder) for group in document.groups] == [
        ("Old T?wn", (512, 256, 0), "regions/3_2_Old_Town/"),
        ("odd", (0, 0, 0), "regions/odd/"),
        ("Region", (0, 0, 0), ""),
    ]
    assert codes(document) == ["terrain-size", "control-file-missing"]


def test_rows_of_regions_run_from_south_to_north() -> None:
    rows = made.control("1.0", [["", "1_1_A"], [], ["1_3_B"]], size="512,300")
    shed = made.linkset(made.part("Shed"))
    data = made.packed(
        ("regions/1_3_B/objects/a.xml", shed), ("archive.xml", rows), ("regions/new/objects/a.xml", shed)
    )
    document = codec.read(data)
    assert [(group.name, group.origin, group.size) for group in document.groups] == [
        ("A", (256, 0, 0), (512, 300)),
        ("B", (0, 512, 0), (512, 300)),
        ("new", (0, 0, 0), (256, 256)),
    ]
    assert [len(group.linksets) for group in document.groups] == [0, 1, 1]


@pytest.mark.parametrize("version", ["2.0", "-1.0", "x.1"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(UnsupportedFormatError, match="newer"):
        codec.read(made.packed(("archive.xml", made.control(version))))


def test_other_archives_are_refused() -> None:
    with pytest.raises(UnsupportedFormatError, match="no objects or items"):
        codec.read(made.packed(("src/a.c", b""), ("assets/logo.png", b"")))


def test_objects_of_items_may_come_before_them_and_be_used_twice() -> None:
    chair = made.linkset(made.part("Object", position=("NaN", 0, 0)))
    script = "<TaskInventory><TaskInventoryItem><Type>10</Type></TaskInventoryItem></TaskInventory>"
    data = made.packed(
        (f"assets/{ID}1_object.xml", chair),
        (f"assets/{ID}2_object.xml", made.linkset(made.part("Lamp", more=script))),
        (f"inventory/A &amp; B&#47;C__{ID}3/D__{ID}4/one__{ID}5.xml", made.item("chair <1>", ID + "1")),
        (f"inventory/A &amp; B&#47;C__{ID}3/two__{ID}6.xml", made.item("", ID + "1")),
        (f"inventory/gone__{ID}7.xml", made.item("gone", ID + "8")),
        (f"inventory/lamp__{ID}9.xml", made.item("lamp", ID + "2")),
        (f"inventory/shirt__{ID}a.xml", made.item("shirt", ID + "b", 5)),
    )
    document = codec.read(data)
    assert [(group.name, group.parent) for group in document.groups] == [
        *(("A & B/C", -1), ("D", 0), ("chair <1>", 1), ("two", 0), ("lamp", -1))
    ]
    assert names_of(document) == [["chair <1>"], ["two"], ["Lamp"]]
    assert document.groups[2].linksets[0].parts[0].position == (0, 0, 0)
    assert [group.left_out for group in document.groups] == [{}, {}, {}, {}, {"script": 1}]
    assert codes(document) == ["item-object-missing", "items-left-out", "control-file-missing"]
    assert "'gone'" in document.warnings[0] and "'shirt'" in document.warnings[1]


def test_number_of_inventory_folders_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(codec, "_MOST_GROUPS", 3)
    path = "inventory/" + "".join(f"{number}__{ID}0/" for number in range(9))
    chair = (f"assets/{ID}1_object.xml", made.linkset(made.part()))
    document = codec.read(made.packed((path + "chair.xml", made.item("chair", ID + "1")), chair))
    assert [(group.name, group.parent) for group in document.groups] == [("0", -1), ("1", 0), ("2", 1), ("chair", 2)]


def test_members_with_long_and_foreign_names(tmp_path: Path) -> None:
    """Other packers write other headers; OpenSim replaces letters, so only the XML has the name."""
    shed = made.linkset(made.part("Häuschen/Süd" + "x" * 100))
    for number in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = tmp_path / "packed.oar"
        with tarfile.open(path, "w:gz", format=number) as tar:
            for name in ("./objects/Häuschen/Süd" + "x" * 60 + ".xml", "objects/" + "y/" * 40 + "z.xml"):
                info = tarfile.TarInfo(name)
                info.size = len(shed)
                tar.addfile(info, io.BytesIO(shed))
        assert names_of(codec.read_path(path)) == [["Häuschen/Süd" + "x" * 100]] * 2
    document = region(("objects/" + "?" * 300 + ".xml", shed), ("objects/H\udcfctte\\a.xml", b"<"))
    assert names_of(document) == [["Häuschen/Süd" + "x" * 100]]
    assert "'H\ufffdtte\\a'" in document.warnings[0]


def test_every_truncation_is_refused() -> None:
    """A cut archive is refused before anything is made of it; the checksum at the end of gzip counts."""
    members = (("archive.xml", made.control()), ("objects/a.xml", made.linkset(made.part("Shed"))))
    plain, data = made.opensim_tar(*members), made.packed(*members)
    assert names_of(codec.read(plain)) == names_of(codec.read(data)) == [["Shed"]]
    for length in (*range(0, len(data), 7), *range(len(data) - 9, len(data))):
        with pytest.raises(FormatError):
            codec.read(data[:length])
        with pytest.raises(FormatError):
            read_assets(lambda cut=data[:length]: io.BytesIO(cut), ())  # type: ignore[misc]
    for length in range(0, len(plain) - 1023, 256):
        with pytest.raises(FormatError):
            codec.read(plain[:length])
    damaged = bytearray(data)
    damaged[-6] ^= 1  # in the checksum
    with pytest.raises(FormatError, match="damaged"):
        codec.read(bytes(damaged))


def test_bytes_after_the_archive_are_reported() -> None:
    data = made.packed(("archive.xml", made.control()), ("objects/a.xml", made.linkset(made.part("Shed"))))
    for rest in (b"\0", b"\x1f", b"bytes" * 50_000):
        document = codec.read(data + rest)
        assert (names_of(document), codes(document)) == ([["Shed"]], ["bytes-after-end"])
        assert f"{len(rest):,} byte{'s' * (len(rest) > 1)} after" in document.warnings[0]
    pieces = made.opensim_tar(("objects/a.xml", made.linkset(made.part("Shed"))))
    data = b"".join(gzip.compress(pieces[start : start + 99]) for start in range(0, len(pieces), 99))
    assert codes(codec.read(data)) == ["control-file-missing"]


def test_inflated_size_is_bounded() -> None:
    data = made.packed(("objects/a.xml", made.linkset(made.part())), ("assets/zeros", bytes(100_000)))
    assert names_of(codec.read(data, inflated_limit=110_000)) == [["a"]]
    with pytest.raises(FormatError, match="more than 90,000 bytes"):
        codec.read(data, inflated_limit=90_000)


def assets(count: int = 4) -> list[tuple[str, bytes]]:
    return [(f"assets/{ID}{number}_mesh.llmesh", bytes([number]) * 1000) for number in range(count)]


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.iterdir())


def test_only_wanted_assets_are_held_and_beyond_a_limit_in_a_file(temporary_folder: Path) -> None:
    data = made.packed(
        *assets(),
        (f"assets/{ID}1_texture.jp2", b"picture"),
        (f"./assets/{ID.upper()}2_material.xml", b"material"),
        (f"assets/{ID}3_animation.bvh", b"dance"),
        (f"assets/{ID}1_mesh.llmesh", b"another"),
    )
    wanted = {ID + str(number) for number in (1, 2, 3, 7)}
    for memory in (10**9, 1500, 0):
        with read_assets(lambda: io.BytesIO(data), wanted, memory_limit=memory) as found:
            assert [found.get(f"{ID}{number}{MESH}") for number in range(4)] == [
                *(None, b"\1" * 1000, b"\2" * 1000, b"\3" * 1000)
            ]
            assert (found.get(f"{ID}1{PICTURE}"), found.get(f"{ID}2{PICTURE}")) == (b"picture", None)
            assert (found.get(f"{ID}2{MATERIAL}"), found.get(f"{ID}7{MESH}")) == (b"material", None)
        assert found.get(f"{ID}1{MESH}") is None


def test_temporary_file_is_deleted_after_an_error(temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(ContentStore, "close", lambda self, close=ContentStore.close: (closed.append(1), close(self)))
    data = made.packed(*assets())[:-5]
    with pytest.raises(FormatError, match="cut off"):
        read_assets(lambda: io.BytesIO(data), {ID + "1"}, memory_limit=0)
    assert closed


def test_full_disk_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    with pytest.raises(FormatError, match="cannot be written: No space left"):
        read_assets(lambda: io.BytesIO(made.packed(*assets())), {ID + "1"}, memory_limit=0)


def test_contents_of_a_key_are_held_once(temporary_folder: Path) -> None:
    with ContentStore(10) as store:
        for key, content in (("a", b"1234567"), ("b", b"89abc"), ("a", b"other"), ("b", b"other"), ("c", b"def")):
            store.add(key, content)
        assert [store.get(key) for key in "abcd"] == [b"1234567", b"89abc", b"def", None]
        assert sum(isinstance(content, bytes) for content in store._contents.values()) == 2


def test_unplaced_assets_add_no_memory() -> None:
    assets = [(f"assets/{ID}{number}_mesh.llmesh", bytes(3_000_000)) for number in range(5)]
    content = (f"assets/{ID}7_object.xml", bytes(3_000_000))
    small = [(f"assets/{number}.txt", b"") for number in range(3_000)]
    data = made.packed(("archive.xml", made.control()), ("settings/a.xml", b""), *assets, content, *small)
    tracemalloc.start()
    codec.read(made.packed(("archive.xml", made.control())))  # imports
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    codec.read(data)
    read_assets(lambda: io.BytesIO(data), {ID + "9"}).close()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < 1_000_000


def test_older_materials_have_the_mode_of_their_alpha() -> None:
    start = '<?xml version="1.0" encoding="utf-8"?><llsd><map><key>DiffuseAlphaMode</key>'
    rest = f"<integer>2</integer><key>AlphaMaskCutoff</key><integer>51</integer><key>SpecMap</key><uuid>{ID}1</uuid>"
    null = f"<key>NormMap</key><uuid>{made.NULL}</uuid></map></llsd>"
    found = face_materials.read_older_material(f"{start}{rest}{null}".encode())
    assert found == face_materials.OlderMaterial(face_materials.MASK, 0.2, False, True)
    odd = face_materials.read_older_material(
        f"{start}<integer>9</integer><key>NormMap</key><uuid>{ID}1</uuid></map></llsd>".encode()
    )
    assert odd == face_materials.OlderMaterial(face_materials.BLEND, 0.0, True, False)
    for text in (b"<llsd><array/></llsd>", b"", b'<!DOCTYPE a [<!ENTITY b "c">]><llsd><map/></llsd>'):
        with pytest.raises(FormatError):
            face_materials.read_older_material(text)


def test_same_content_compares_the_files_in_archives() -> None:
    members = (("archive.xml", made.control()), *assets(2))
    assert codec.same_content(made.packed(*members), made.opensim_tar(*members))
    assert not codec.same_content(made.packed(*members), made.packed(*members[:-1]))
    assert not codec.same_content(made.packed(*members), made.packed(*members[:-1], (members[-1][0], b"x")))


def test_two_archives_are_read_by_path_and_by_content_alike(tmp_path: Path) -> None:
    path = tmp_path / "a.oar"
    path.write_bytes(made.packed(("objects/a.xml", made.linkset(made.part("Shed")))))
    by_path, by_content = codec.read_path(path), codec.read(path.read_bytes())
    assert by_path.groups == by_content.groups and codes(by_path) == codes(by_content)
    with by_path.open() as stream:
        assert stream.read() == path.read_bytes()
    path.unlink()
    with pytest.raises(FormatError, match=r"a\.oar: The archive cannot be read"):
        codec.read_path(path)
    path.mkdir()
    with pytest.raises(FormatError, match=r"a\.oar: This is not a file"):
        codec.read_path(path)


def sniffed(data: bytes) -> Match | NearMiss:
    return opensim_format.sniff(data[:4096], len(data))


def test_archives_are_recognised_by_their_first_file(folder: Path) -> None:
    for path in (*folder.glob("*.?ar"), *folder.glob("hostile/*.?ar")):
        is_archive = path.name != "not_gzip.oar"
        assert sniffed(path.read_bytes()) == (Match.SIGNATURE if is_archive else Match.NONE), path
        if is_archive and path.name != "gzip_cut.oar":
            assert sniffed(gzip.decompress(path.read_bytes())) == Match.SIGNATURE


def test_repacked_archives_are_recognised(tmp_path: Path) -> None:
    whole = f"{ID}1"
    for name in (
        *("./archive.xml", "objects/a/b.xml", f"assets/{whole}_texture.jp2", f"landdata/{whole}.xml"),
        *("regions/1_2_A b/objects/a.xml", "settings/A.xml", "terrains/A.r32"),
        *(f"inventory/A__{whole}/b__{whole}.xml", f"objects/{'A' * 90}/b.xml"),
    ):
        for number in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            path = tmp_path / "packed.tgz"
            with tarfile.open(path, "w:gz", format=number, pax_headers={"comment": "repacked"}) as tar:
                for above in ("./", "assets/", "objects/"):
                    info = tarfile.TarInfo(above)
                    info.type = tarfile.DIRTYPE
                    tar.addfile(info)
                info = tarfile.TarInfo(name)
                data = made.control()
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            assert sniffed(path.read_bytes()) == Match.SIGNATURE, name


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("archive.xml", b"<archive version='1'/>"),
        ("assets/logo.png", b""),
        ("objects/a.c", b""),
        ("settings/a.json", b""),
        ("regions/europe/objects/a.xml", b""),
        ("inventory/list.xml", b""),
    ],
)
def test_similar_archives_are_explained_and_not_claimed(name: str, content: bytes) -> None:
    found = sniffed(made.packed((name, content)))
    assert isinstance(found, NearMiss) and "'meshferry batch'" in found.text and found.has_signature


@pytest.mark.parametrize(
    "data",
    [
        made.packed(("myarchive.xml", made.control())),
        made.packed(("src/objects/a.xml", b"")),
        made.packed(("objects/", b""), ("src/a.xml", b"")),
        made.v7_entry(b"objects/a.xml", b"").replace(b"objects", b"objectz"),
        made.v7_entry(b"objects/a.xml", b"", size=b"0000zz00000"),
        gzip.compress(b"objects/a.xml" * 100, mtime=0),
        gzip.compress(b"", mtime=0),
        b"\x1f\x8b\x08 not gzip",
        bytes(4096),
        b"",
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_other_files_are_not_claimed(data: bytes) -> None:
    assert sniffed(data) == Match.NONE


def test_facts_count_what_the_archives_place(folder: Path, expected: Any) -> None:
    parts = expected["region.oar"]["parts"]
    kinds = {"box": "prim", "cylinder": "prim", "sphere": "prim", "other prim": "prim"}
    types = [kinds.get(part["kind"], part["kind"]) for part in parts]
    found = mapping.facts(codec.read_path(folder / "region.oar"))
    assert (found["version"], found["nodes"], found["objects"], found["regions"]) == ("0.8", 47, 9, 1)
    assert found["types"] == {kind: types.count(kind) for kind in ("sculpt", "mesh", "prim", "tree")}
    assert found["meshes"] == len({part["asset"] for part in parts if part["kind"] == "mesh"})
    looks = {json.dumps(face) for part in parts for face in part["faces"]}
    assert found["materials"] == len(looks)
    # no face of two parts has the default look
    assert found["surfaces"] == sum(len({json.dumps(face) for face in part["faces"]}) for part in parts) + 2
    assert (found["parcels"], found["scripts"]) == (1, 1)
    textures = {face["texture"] for part in parts for face in part["faces"]}
    assert found["textures"] == len(textures - {made.NULL, BLANK, TRANSPARENT})
    found = mapping.facts(codec.read_path(folder / "two_regions.oar"))
    assert (found["nodes"], found["regions"], found["parcels"]) == (2, 2, 2)
    found = mapping.facts(codec.read_path(folder / "inventory.iar"))
    assert (found["nodes"], found["objects"], found["items"]) == (6, 4, 3)
    assert "regions" not in found


def test_checks_name_parts_without_shape_or_texture(folder: Path, expected: Any) -> None:
    found = mapping.check(codec.read_path(folder / "region.oar"))
    assert [message.code for message in found] == ["shape-asset-missing", "texture-asset-missing"]
    assert "1 part has" in found[0] and "'missing mesh'" in found[0]
    parts = expected["region.oar"]["parts"]
    lacking = [part["name"] for part in parts if any(face["texture_missing"] for face in part["faces"])]
    assert lacking == ["missing texture"] and "'missing texture'" in found[1]
    assert not mapping.check(codec.read_path(folder / "inventory.iar"))
