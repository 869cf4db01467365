"""Collada files -> documents: real files against values of an independent reader, and each oddity by hand."""

from __future__ import annotations

import io
import json
import re
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.messages import Kind
from meshferry.io_formats.core.recognition import Match
from meshferry.io_formats.second_life.collada import codec, elements, mapping
from meshferry.io_formats.second_life.collada import format as collada_format
from meshferry.io_formats.second_life.collada.document import Collada, Group, Instance, Node
from meshfuzz import collada_seeds as seeds

AXES = {
    "Z_UP": np.identity(4),
    "Y_UP": np.array(((1, 0, 0, 0), (0, 0, -1, 0), (0, 1, 0, 0), (0, 0, 0, 1))),
    "X_UP": np.array(((0, -1, 0, 0), (0, 0, -1, 0), (1, 0, 0, 0), (0, 0, 0, 1))),
}
SAMPLES = (
    *("avastar232_head", "avastar241_moved_joints", "avastar241_toenails", "avastar281_eyelashes", "avastar281_eyes"),
    *("avastar281_phys", "blender277_ears", "blender401_cube", "fbx_male_skeleton", "firestorm_linkset"),
    *("mesh_generator_button", "opencollada_max_2uv"),
    *(f"meshferry_set/tunic{suffix}" for suffix in ("", "_LOD0", "_LOD1", "_LOD2", "_PHYS")),
)


def objects(document: Collada) -> list[tuple[Node, Instance, np.ndarray]]:
    """Return the nodes with meshes, and their matrices in the world of the file."""
    worlds: list[np.ndarray] = []
    for node in document.nodes:
        worlds.append((worlds[node.parent] if node.parent >= 0 else np.identity(4)) @ node.matrix)
    return [
        (node, instance, world)
        for node, world in zip(document.nodes, worlds, strict=True)
        for instance in node.instances
    ]


def group_of(document: Collada, group: Group, instance: Instance) -> dict[str, Any]:
    """Return a group in the form of ``expected.json``."""
    found = {
        "kind": group.kind,
        "symbol": group.symbol,
        "triangles": int((group.sizes - 2).sum()),
        "uv_sets": len(group.uvs),
        "normals": group.normals is not None,
        "colors": len(group.colors),
    }
    if group.symbol in instance.materials:
        material = document.materials[instance.materials[group.symbol]]
        color = None if material.image else np.round(material.color, 5).tolist()
        found["material"] = material.name, material.image, color
    return found


def expected_group(group: dict[str, Any]) -> dict[str, Any]:
    found = dict(group)
    if "material" in group:
        material = group["material"]
        color = None if material.get("image") else np.round(material.get("color", (0.8, 0.8, 0.8, 1.0)), 5).tolist()
        found["material"] = material["name"], material.get("image", ""), color
    return found


def expect_skin(document: Collada, instance: Instance, expected: dict[str, Any]) -> None:
    skin = document.skins[instance.skin]
    owners = np.repeat(np.arange(len(skin.counts)), skin.counts)
    assert len(skin.joint_names) == expected["joints"]
    assert len(np.unique(skin.joints)) == expected["used_joints"]
    assert int(skin.counts.max()) == expected["most_influences"]
    assert int((skin.counts == 0).sum()) == expected["unweighted_vertices"]
    assert skin.usable.all()
    assert np.allclose(skin.bind_shape.ravel(), expected["bind_shape"], atol=1e-5)
    positions = document.geometries[skin.geometry].positions
    for number, vertex in expected["vertices"].items():
        own = owners == int(number)
        weights = {skin.joint_names[j]: w for j, w in zip(skin.joints[own], skin.weights[own], strict=True)}
        # Weights below 5e-7 are not named in the file of expected values; the oracle counts joint -1 as weight 0.
        named = {name: weight for name, weight in vertex["file"] if weight > 0}
        assert {name for name, weight in weights.items() if weight > 5e-7} == set(named)
        assert all(abs(weights[name] - weight) < 1e-5 for name, weight in named.items())
        place = np.array(vertex["position"], np.float64)
        assert np.abs(positions[int(number)] - (place if np.isfinite(place).all() else 0)).max() < 1e-5
    for name, head in expected["heads"].items():
        joints = [node for node in document.nodes if name in (node.sid, node.id, node.name)]
        if head["node_position"] is None:
            assert not joints or joints[0].position is None
        else:
            assert joints[0].is_joint
            assert np.allclose(joints[0].position, head["node_position"], atol=2e-5)


def expect_objects(document: Collada, expected: dict[str, Any]) -> None:
    found = objects(document)
    assert [node.name for node, _, _ in found] == [one["node"] or one["geometry"] for one in expected["objects"]]
    unit = np.diag((document.meter,) * 3 + (1.0,)) @ AXES[document.up_axis]
    for (_, instance, world), one in zip(found, expected["objects"], strict=True):
        geometry = document.geometries[instance.geometry]
        groups = [group_of(document, group, instance) for group in geometry.groups]
        assert groups == [expected_group(group) for group in one["groups"]]
        assert (geometry.name, len(geometry.positions)) == (one["geometry"], one["vertices"])
        assert sum(len(group.sizes) for group in geometry.groups) == one["polygons"]
        used = np.unique(np.concatenate([group.points for group in geometry.groups]))
        assert len(used) == one["vertices_used"]
        assert np.allclose((unit @ world).ravel(), one["node_matrix_world"], atol=1e-4)
        assert (instance.skin >= 0) == ("skin" in one)
        if "skin" in one:
            expect_skin(document, instance, one["skin"])


def expect_file(samples: Path, name: str) -> Collada:
    path = samples / "collada" / f"{name}.dae"
    data = path.read_bytes()
    assert collada_format.sniff(data[:4096], len(data)) is Match.SIGNATURE
    document = codec.read(data)
    expected = json.loads((samples / "collada" / "expected.json").read_text("utf-8"))[f"{name}.dae"]
    for key in ("tool", "version", "meter", "up_axis"):
        assert getattr(document, key) == pytest.approx(expected[key])
    expect_objects(document, expected)
    found = mapping.facts(document)
    assert found["triangles"] == sum(group["triangles"] for one in expected["objects"] for group in one["groups"])
    return document


@pytest.mark.parametrize("name", SAMPLES)
def test_real_files(samples: Path, name: str) -> None:
    document = expect_file(samples, name)
    left_out = ["1 light left out"] if name == "blender277_ears" else []
    assert document.warnings == left_out


MESSAGES = {
    "cut_lists": "1 list of polygons is shorter than stated; the whole polygons were imported: 'box'",
    "index_out": "1 polygon was left out, for vertices that do not exist or fewer than 3 different ones: 'box'",
    "latin1_undeclared": "The text cannot be decoded as stated; read as Windows-1252",
    "nan": "2 vertices have NaN, infinite or huge coordinates; moved to the origin: 'box'",
    "nodes_nested": "1 node stops where it holds itself: 'loop'",
    "strips_fans_holes": "1 hole in polygons left out: 'box'; 1 list of lines left out: 'box'",
    "weights_odd": "",
}
REFUSED = {
    "bad_cut_off": "not well-formed: unclosed token",
    "bad_doctype": "has a document type, which is refused",
    "bad_other_xml": "its root element is 'svg'",
}


def test_synthetic_files(samples: Path) -> None:
    for path in sorted((samples / "collada" / "synthetic").glob("*.dae")):
        if path.stem in REFUSED:
            with pytest.raises(FormatError, match=REFUSED[path.stem]):
                codec.read(path.read_bytes())
        else:
            document = expect_file(samples, f"synthetic/{path.stem}")
            assert "; ".join(document.warnings) == MESSAGES.get(path.stem, ""), path.stem


@pytest.mark.parametrize("name", sorted(seeds.files()))
def test_whole_files(name: str) -> None:
    document = codec.read(seeds.files()[name])
    assert [message for message in document.warnings if not message.is_note] == []
    assert document.geometries[0].name == "box"


def read(nodes: str = seeds.STATIC, geometries: str = seeds.BOX, **parts: str) -> Collada:
    return codec.read(seeds.document(nodes, geometries, **parts))


def rigged(**parts: str) -> Collada:
    return codec.read(seeds.document(seeds.RIGGED, controllers=seeds.skin(**parts)))


def codes(document: Collada) -> dict[str, Kind]:
    return {message.code: message.kind for message in document.warnings}


# -- encodings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name", "encoding"),
    [
        (seeds.document().decode().encode("utf-16"), "my box", "UTF-16"),
        (seeds.document().replace(b"my box", b"b\xf6x"), "böx", "Windows-1252"),
    ],
)
def test_encodings_that_are_not_the_stated_one(data: bytes, name: str, encoding: str) -> None:
    document = codec.read(data)
    assert document.nodes[0].name == name
    assert document.warnings == [f"The text cannot be decoded as stated; read as {encoding}"]


# -- recognition ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"<COLLADA>", Match.SIGNATURE),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <svg> -->\n<c:COLLADA xmlns:c='x'>", Match.SIGNATURE),
        ("\ufeff<?xml version='1.0'?><COLLADA version='1.5.0'>".encode("utf-16-le"), Match.SIGNATURE),
        ("\ufeff<COLLADA>".encode("utf-16-be"), Match.SIGNATURE),
        ("<?xml version='1.0'?><COLLADA>".encode("utf-16-le"), Match.SIGNATURE),
        ("<COLLADA>".encode("utf-16-be"), Match.SIGNATURE),
        (b"<?a?><!-- -->" * 300 + b"<COLLADA>", Match.SIGNATURE),
        (b"<?a?>" * 24 + b"<svg>", Match.NONE),
        (b"<!DOCTYPE COLLADA [<!ENTITY a 'b'>]><COLLADA>", Match.SIGNATURE),
        (b"<svg><COLLADA>", Match.NONE),
        (b"<!-- <COLLADA> --><svg>", Match.NONE),
        (b"<COLLADAX>", Match.NONE),
        (b"", Match.NONE),
    ],
)
def test_recognition(data: bytes, match: Match) -> None:
    assert collada_format.sniff(data, len(data)) is match


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.create_system = method, 3  # Linux, on every system
            archive.writestr(entry, data)
    return stream.getvalue()


BOMB = b"<COLLADA>" + bytes(10_000_000)
ZAE = zipped({"manifest.xml": b"<dae_root>./a/Box.DAE</dae_root>", "a/Box.DAE": seeds.document(), "a/wood.png": b"png"})


def test_compressed_files_are_read() -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        data = zipped({"box.dae": seeds.document()}, method)
        assert collada_format.sniff(data[:200], len(data)) is Match.SIGNATURE
        assert codec.read(data).nodes[0].name == codec.read(ZAE).nodes[0].name == read().nodes[0].name
        assert codec.same_content(data, seeds.document())
    head = b"PK\x03\x04" + bytes(22) + b"\x0c\0\0\0manifest.xml"
    assert collada_format.sniff(head, 100) is Match.SIGNATURE
    assert collada_format.sniff(head.replace(b"manifest.xml", b"manifest.txt"), 100) is Match.NONE


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (zipped({"a.txt": b""}), "has 0 .dae files; one is expected"),
        (zipped({"a.dae": b"", "b.dae": b""}), "has 2 .dae files; one is expected"),
        (zipped({"a.dae": b"<svg/>"}), "root element is 'svg'"),
        (zipped({"a.dae": seeds.document()}, zipfile.ZIP_BZIP2), "unusual compression"),
        (zipped({"a.dae": BOMB}), "has more than 1,000,000 bytes"),
        (
            zipped({"a.dae": BOMB}).replace(struct.pack("<I", len(BOMB)), struct.pack("<I", 10)),
            "damaged|not well-formed",
        ),
        (ZAE[:-30], "The zip file is damaged"),
        (ZAE[:80] + bytes(40) + ZAE[120:], "The zip file is damaged"),
        (ZAE.replace(b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0"), "encrypted"),
    ],
)
def test_compressed_files_that_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        codec.read(data, inflated_limit=1_000_000)


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, []),
        (" \n", []),
        (" 1.5\t-2e3\n+.25 1E-2\r\n-0 ", [1.5, -2000, 0.25, 0.01, -0.0]),
        ("1,5 -0,25", [1.5, -0.25]),
        ("1 -1.#IND 1.#QNAN 2", [1, np.nan, np.nan, 2]),
        ("1 x 1-2 --1 1.2.3 e5 5e 1e2.5 . 2", [1, *[np.nan] * 8, 2]),
        ("0.1234567890123456789012 1e30 12345678901234567890", [0.12345679, 1e30, 1.2345679e19]),
        ("5 \u0665 6\u00a07\u2003\u0085", [5, np.nan, np.nan]),
    ],
)
def test_numbers(text: str | None, expected: list[float]) -> None:
    for parse, kind in ((elements.floats, np.float32), (elements.exact_floats, np.float64)):
        found = parse(text)
        assert found.dtype == kind
        assert np.allclose(found, np.array(expected, kind), rtol=1e-6, atol=0, equal_nan=True)
        assert list(np.signbit(found[np.isfinite(found)])) == list(np.signbit([x for x in expected if np.isfinite(x)]))


def test_integers() -> None:
    found = elements.integers(" 0 7 -1 +3 x 1-2 2.0 99999999999999999999 1e400 nan\n")
    assert found.dtype == np.int32
    assert found.tolist() == [0, 7, -1, 3, -1, -1, 2, 2**31 - 1, -1, -1]
    text = "1 " * (elements._PIECE // 2) + "1\u00a02 3"  # the word with the no-break space begins the second piece
    assert len(elements.integers(text)) == elements._PIECE // 2 + 2


@pytest.mark.parametrize("form", ["%.6f", "%.9g", "%.5e", "%.17g"])
def test_long_texts_give_the_numbers_of_python(form: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=60_000) * 10.0 ** rng.integers(-12, 12, size=60_000)
    words = [form % value for value in values.tolist()]
    words[40_000] = "1,5"  # only its piece is repaired
    expected = np.array([float(word.replace(",", ".")) for word in words], np.float32)
    assert np.array_equal(elements.floats("\n".join(words)), expected)
    whole = rng.integers(0, 10**6, size=60_000)
    assert np.array_equal(elements.integers(" ".join(map(str, whole.tolist()))), whole)


# -- geometry -------------------------------------------------------------------------------------


def test_polygons_stay_polygons() -> None:
    groups = read().geometries[0].groups
    assert [group.symbol for group in groups] == ["red", "Blue"]
    assert groups[0].sizes.tolist() == [4, 4, 4]
    assert groups[0].points.tolist() == [point for quad in seeds.QUADS[:3] for point in quad]
    assert groups[0].normals is not None and groups[0].normals.index.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert groups[0].uvs[0].index.tolist() == [0, 1, 2, 3] * 3
    assert groups[0].uvs[0].values.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
    assert groups[1].normals is not None and groups[1].normals.values is groups[0].normals.values


def test_strips_and_fans_become_triangles() -> None:
    document = codec.read(seeds.files()["shapes"])
    groups = {group.kind: group for group in document.geometries[0].groups}
    assert groups["tristrips"].points.reshape(-1, 3).tolist() == [[0, 1, 2], [2, 1, 3], [4, 5, 6]]
    assert groups["trifans"].points.reshape(-1, 3).tolist() == [[4, 5, 7], [4, 7, 6]]
    assert groups["polygons"].sizes.tolist() == [4, 4]
    assert codes(document) == {"holes-left-out": Kind.NOTE, "lines-left-out": Kind.NOTE}


@pytest.mark.parametrize(
    ("primitive", "points", "code"),
    [
        ('<triangles count="1">{}<p>0 1 2 3 4</p></triangles>', [0, 1, 2], "lists-cut-off"),
        ('<triangles count="9">{}<p>0 1 2</p></triangles>', [0, 1, 2], "lists-cut-off"),
        ('<triangles count="1">{}<p>0 1 2</p><p>2 3 4</p></triangles>', [0, 1, 2, 2, 3, 4], ""),
        ('<triangles count="2">{}<p>0 1 8 2 1 3</p></triangles>', [2, 1, 3], "polygons-skipped"),
        ('<triangles count="2">{}<p>0 1 x 2 1 3</p></triangles>', [2, 1, 3], "polygons-skipped"),
        ('<triangles count="2">{}<p>0 1 0 2 1 3</p></triangles>', [2, 1, 3], "polygons-skipped"),
        ('<polylist count="9">{}<vcount>4 3</vcount><p>0 1 0 1 2 1 3</p></polylist>', [2, 1, 3], "polygons-skipped"),
        ("<polylist>{}<vcount>-1 2 0 3</vcount><p>0 1 2 1 3</p></polylist>", [2, 1, 3], "polygons-skipped"),
        ("<polylist>{}<vcount>3 3 99999999999</vcount><p>0 1 2 1</p></polylist>", [0, 1, 2], "lists-cut-off"),
        ("<polygons>{}<p>0 1 2 3</p><p/><p>2 1 3</p></polygons>", [0, 1, 2, 3, 2, 1, 3], "polygons-skipped"),
        ("<polygons>{}<p>0 1\u00a07 2</p><p>2 1 3</p></polygons>", [2, 1, 3], "polygons-skipped"),
        ("<triangles>{}<p>0 1 2</p></triangles><polylist/><triangles/>", [0, 1, 2], ""),
        ("<triangles>{0}<p>0 1 2</p></triangles><polylist>{0}<p>2 1 3</p></polylist>", [0, 1, 2], "lists-cut-off"),
    ],
)
def test_damaged_polygons(primitive: str, points: list[int], code: str) -> None:
    given = primitive.format(seeds.inputs(VERTEX="box-v"))
    document = read(geometries=seeds.geometry(given))
    (group,) = document.geometries[0].groups
    assert group.points.tolist() == points
    assert list(codes(document)) == ([code] if code else [])
    assert all(message.is_loss for message in document.warnings)


def test_groups_without_vertices_are_named() -> None:
    lost = seeds.polylist(seeds.QUADS[3:], "Blue").replace('semantic="VERTEX"', 'semantic="OTHER"')
    document = read(geometries=seeds.geometry(seeds.polylist(seeds.QUADS[:3]) + lost))
    (message,) = [message for message in document.warnings if message.code == "group-without-vertices"]
    assert message.is_loss and "3 polygons" in message and "'box: Blue'" in message
    with pytest.raises(
        FormatError, match="mesh with polygons: 3 polygons were left out, since the group has no VERTEX"
    ):
        read(geometries=seeds.geometry(lost))


def test_polygons_with_incomplete_corners() -> None:
    given = seeds.inputs(VERTEX="box-v", NORMAL="box-n")
    primitive = f"<polygons>{given}<p>0 0 1 1 2 2 3</p><p>4 3 5 4 6 5</p></polygons>"
    (group,) = read(geometries=seeds.geometry(primitive)).geometries[0].groups
    assert (group.points.tolist(), group.sizes.tolist()) == ([0, 1, 2, 4, 5, 6], [3, 3])
    assert group.normals is not None and group.normals.index.tolist() == [0, 1, 2, 3, 4, 5]


def test_values_of_corners_that_do_not_exist() -> None:
    extra = seeds.floats("c", "1 0 0 0 1 0 nan 0 0", 3, "RGB") + seeds.floats("zero", "0 0 1 0 0 0 nan 0 0", 3, "XYZ")
    given = seeds.inputs(VERTEX="box-v", NORMAL="zero", COLOR="c")
    primitive = f"<triangles>{given}<p>0 0 0 1 1 1 2 2 2 2 -1 -1 1 7 1 3 0 9</p></triangles>"
    document = read(geometries=seeds.geometry(primitive, extra))
    (group,) = document.geometries[0].groups
    assert group.normals is not None
    assert group.normals.index.tolist() == [0, -1, -1, -1, -1, 0]
    (colors,) = group.colors
    assert (colors.index.tolist(), colors.stride) == ([0, 1, -1, -1, 1, -1], 3)
    assert colors.values.tolist() == [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 0]]
    assert codes(document) == {"corner-values-skipped": Kind.LOSS}
    assert "2 corners use" in document.warnings[0]


def test_inputs_of_vertices_and_shared_offsets() -> None:
    box = seeds.geometry(f"<triangles>{seeds.inputs(VERTEX='box-v')}<p>0 1 2</p></triangles>")
    box = box.replace("</vertices>", '<input semantic="NORMAL" source="#box-n"/></vertices>')
    more = '<input semantic="TEXCOORD" source="#box-t" offset="0" set="3"/>'
    box = box.replace('offset="0"/>', f'offset="0"/>{more}').replace("0 1 2</p>", "0 1 7</p>")
    (group,) = read(geometries=box).geometries[0].groups
    assert group.points.tolist() == [0, 1, 7]
    assert group.normals is not None and group.normals.index.tolist() == [0, 1, -1]
    assert (group.uvs[0].set_number, group.uvs[0].index.tolist()) == (3, [0, 1, -1])


@pytest.mark.parametrize(
    ("accessor", "positions", "fewer"),
    [
        ('count="2" offset="1" stride="4"><param name="X"/><param name="Y"/><param name="Z"/>', "1 2 3, 5 6 7", False),
        ('count="2" stride="4"><param/><param name="X"/><param name="Y"/><param name="Z"/>', "1 2 3, 5 6 7", False),
        ('count="9" stride="4"><param name="X"/><param name="Y"/>', "0 1 0, 4 5 0, 8 9 0", True),
        ('count="9" stride="4" offset="99">', "", True),
        ('count="3" stride="3" offset="2">', "2 3 4, 5 6 7, 8 9 10", False),
        ('stride="0">', "0 1 2, 3 4 5, 6 7 8, 9 10 11", False),
        ('count="x" stride="-3">', "0 1 2, 3 4 5, 6 7 8, 9 10 11", False),
        ('count="1" stride="99999999999999999999">', "0 1 2", False),
    ],
)
def test_accessors(accessor: str, positions: str, fewer: bool) -> None:
    array = '<float_array id="p-array">0 1 2 3 4 5 6 7 8 9 10 11</float_array>'
    source = f'<source id="p">{array}<technique_common><accessor source="#p-array" {accessor}'
    source += "</accessor></technique_common></source>"
    primitive = f"<triangles>{seeds.inputs(VERTEX='box-v')}<p>0 1 2</p></triangles>"
    box = seeds.geometry(primitive, source).replace('"POSITION" source="#box-p"', '"POSITION" source="#p"')
    other = seeds.BOX.replace("box", "other")
    nodes = f'{seeds.STATIC}<node><instance_geometry url="#other-mesh"/></node>'
    document = read(nodes, other + box)
    found = [geometry for geometry in document.geometries if geometry.name == "box"]
    expected = [list(map(float, row.split())) for row in positions.split(",") if row]
    assert [geometry.positions.tolist() for geometry in found] == ([expected] if expected else [])
    assert ("values-fewer-than-stated" in codes(document)) == fewer


def test_source_without_accessor() -> None:
    box = re.sub(r"<technique_common>.*?</technique_common>", "", seeds.BOX)
    assert np.array_equal(read(geometries=box).geometries[0].positions, read().geometries[0].positions)


# -- links and nodes ------------------------------------------------------------------------------


def test_links_without_hash_with_spaces_and_to_other_files() -> None:
    box = seeds.BOX.replace('id="box-mesh"', 'id="box_mesh"')
    for link, count in (("box_mesh", 1), ("#box mesh", 1), ("#box_mesh", 1), ("#box%5Fmesh", 1)):
        document = read(f'<node><instance_geometry url="{link}"/></node>', box)
        assert (len(objects(document)), document.warnings) == (count, [])
    nodes = f'{seeds.STATIC}<node name="far"><instance_geometry url="b.dae#x"/></node>'
    document = read(nodes)
    assert len(objects(document)) == 1
    assert document.warnings == ["1 link leads to nothing in this file: 'far'"]


def test_doubled_ids_lead_to_the_first() -> None:
    box = seeds.BOX + seeds.BOX.replace('name="box"', 'name="other"')
    document = read(geometries=box)
    assert [geometry.name for geometry in document.geometries] == ["box"]


def test_transforms_are_multiplied_in_order() -> None:
    document = codec.read(seeds.files()["nested"])
    (first, _, world), (second, _, mirrored) = objects(document)
    assert (first.name, second.name, first.instances == second.instances) == ("part", "part", True)
    assert np.allclose(world @ (1, 0, 0, 1), (1, 2, 2, 1)) and np.allclose(world @ (0, 1, 0, 1), (-1, 0, 2, 1))
    assert np.allclose(mirrored @ (1, 0, 0, 1), (1, -2, 2, 1))
    assert (document.meter, document.up_axis, document.tool) == (0.01, "Y_UP", "seed")


def test_invalid_transforms() -> None:
    document = read(
        f'<node name="a"><scale>1 x 1</scale>{seeds.OBJECT}</node><node name="b"><matrix>1 2</matrix></node>'
        '<node name="c"><matrix>1 0 0 0 0 1 0 0 0 0 1 0 5 6 7 1</matrix></node>'
        f'<node name="d"><skew>45 1 0 0 0 1 0</skew>{seeds.OBJECT}</node>'
        '<node name="camera"><lookat>5 0 0 0 0 0 0 0 1</lookat></node>'
    )
    assert all(np.array_equal(node.matrix, np.identity(4)) for node in document.nodes)
    assert document.warnings == [
        "3 nodes without a valid transform, kept at the parent's place: 'a', 'b', 'c'",
        "1 node without its look-at or skew transform, which is left out: 'd'",
    ]
    nested = "<node name='huge'><scale>1e9 1 1</scale>" * 40 + seeds.OBJECT + "</node>" * 40  # valid alone
    document = read(nested)
    assert document.warnings == ["39 nodes without a valid transform, kept at the parent's place: 'huge'"]
    assert np.abs(document.worlds).max() == 1e9


@pytest.mark.parametrize(
    ("transforms", "skeleton", "place"),
    [
        ('<translate>1 0 0</translate><translate sid="location">2 0 0</translate>', True, 2),
        ('<translate sid="location">2 0 0</translate><translate sid="translate">3 0 0</translate>', True, 3),
        (f'<matrix sid="matrix">{seeds.IDENTITY}</matrix><translate>1 0 0</translate>', True, 1),
        ('<matrix sid="transform">1 0 0 4 0 1 0 0 0 0 1 0 0 0 0 1</matrix>', True, 4),
        ('<matrix sid="transform">1 0 0 4 0 1 0 0 0 0 1 0 0 0 0 1</matrix>', False, None),
        ('<matrix sid="matrix">1 0 0 4 0 1 0 0 0 0 1 0 0 0 0 1</matrix>', False, 4),
    ],
)
def test_position_of_a_joint_is_what_the_viewer_takes(transforms: str, skeleton: bool, place: float | None) -> None:
    joint = f'<node sid="mPelvis">{transforms}</node>'
    nodes = joint + seeds.RIGGED[seeds.RIGGED.index('<node id="box"') :]
    nodes = nodes if skeleton else nodes.replace("<skeleton>#mPelvis</skeleton>", "")
    node = codec.read(seeds.document(nodes, controllers=seeds.skin())).nodes[0]
    assert node.is_joint
    assert (None if node.position is None else node.position.tolist()) == (None if place is None else [place, 0, 0])


def test_a_file_without_a_scene_has_its_geometries() -> None:
    data = re.sub(rb"<library_visual_scenes>.*</scene>", b"", seeds.document())
    document = codec.read(data)
    assert [(node.name, node.instances[0].geometry) for node in document.nodes] == [("box", 0)]


def test_a_scene_without_a_link_is_the_first() -> None:
    document = codec.read(re.sub(rb"<scene>.*</scene>", b"", seeds.document()))
    assert [node.name for node, _, _ in objects(document)] == ["my box"]


def test_what_is_left_out_is_listed_once() -> None:
    extra = (
        "<library_cameras><camera id='c'/><camera id='c'/></library_cameras><library_lights><light/></library_lights>"
    )
    extra += "<library_animations><animation><animation><channel/></animation></animation></library_animations>"
    unused = seeds.BOX.replace('id="box-mesh" name="box"', 'id="o" name="spare"')
    document = read(geometries=seeds.BOX + unused, extra=extra)
    assert list(document.warnings) == [
        "1 mesh was left out, which no object uses: 'spare'",
        "2 cameras, 1 light, 1 animation left out",
    ]
    assert all(message.is_note for message in document.warnings)


# -- materials ------------------------------------------------------------------------------------


def test_materials() -> None:
    red, blue = read().materials
    assert (red.name, red.image, red.color, red.emission) == ("Red wood", "wood%20a.png", (1, 1, 1, 1), 0.5)
    assert (blue.name, blue.image, blue.color, blue.has_transparency) == ("Blue-id", "", (0.1, 0.2, 0.8, 1.0), False)


@pytest.mark.parametrize(
    ("parts", "clear"),
    [
        ("<transparent><color>1 1 1 1</color></transparent><transparency><float>1</float></transparency>", False),
        ("<transparent><color>1 1 1 0.5</color></transparent>", True),
        ('<transparent opaque="RGB_ZERO"><color>0 0 0 1</color></transparent>', False),
        ('<transparent opaque="RGB_ZERO"><color>.5 .5 .5 1</color></transparent>', True),
        ('<transparent><texture texture="wood"/></transparent>', True),
        ("<transparency><float>0.5</float></transparency>", True),
    ],
)
def test_transparency_is_noticed(parts: str, clear: bool) -> None:
    data = seeds.document().replace(b"</diffuse></phong>", f"</diffuse>{parts}</phong>".encode())
    assert codec.read(data).materials[1].has_transparency is clear


@pytest.mark.parametrize(
    ("parameter", "given", "color"),
    [
        ('<newparam sid="paint"><float4>0.5 0.25 1 0.5</float4></newparam>', "", (0.5, 0.25, 1.0, 0.5)),
        ('<newparam sid="paint"><float3>0.5 0.25 1</float3></newparam>', "", (0.5, 0.25, 1.0, 1.0)),
        ('<newparam sid="paint"><float4>1 1 1 1</float4></newparam>',
         '<setparam ref="paint"><float4>0 1 0 1</float4></setparam>', (0.0, 1.0, 0.0, 1.0)),
        ("", "", (0.8, 0.8, 0.8, 1.0)),
    ],
)  # fmt: skip
def test_colours_by_parameters(parameter: str, given: str, color: tuple[float, ...]) -> None:
    data = seeds.document().replace(b"<color>0.1 0.2 0.8 1</color>", b'<param ref="paint"/>')
    start = data.index(b"<profile_COMMON>", data.index(b'id="Blue-fx"')) + len(b"<profile_COMMON>")
    data = data[:start] + parameter.encode() + data[start:]
    link = b'<instance_effect url="#Blue-fx"'
    data = data.replace(link + b"/>", link + b">" + given.encode() + b"</instance_effect>")
    assert codec.read(data).materials[1].color == color


@pytest.mark.parametrize(
    ("before", "after", "image"),
    [
        ('texture="wood-sampler"', 'texture="wood"', "wood%20a.png"),
        ("<init_from>wood%20a.png</init_from>", "<init_from><ref>b.png</ref></init_from>", "b.png"),
        ("<source>wood-surface</source>", '<instance_image url="#wood"/>', "wood%20a.png"),
        ("<source>wood-surface</source>", "<source>wood-sampler</source>", ""),
        ("<init_from>wood</init_from>", "<init_from>gone</init_from>", ""),
    ],
)
def test_textures_lead_to_images(before: str, after: str, image: str) -> None:
    assert read().materials[0].image == "wood%20a.png"
    data = seeds.document().replace(before.encode(), after.encode())
    assert codec.read(data).materials[0].image == image


# -- skins ----------------------------------------------------------------------------------------


def test_skins() -> None:
    (skin,) = rigged().skins
    assert (skin.joint_names, skin.is_reversed, skin.usable.tolist()) == (["mPelvis", "mTorso"], False, [True, True])
    assert skin.inverse_bind[:, 2, 3].tolist() == [-1.067, -1.151]
    assert skin.counts.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
    assert skin.joints.tolist() == [0, 0, 0, 0, *[0, 1] * 4]
    assert skin.weights.tolist() == [1, 1, 1, 1, *[0.5] * 8]
    assert skin.weights.tolist()[:4] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("lists", "counts", "joints", "code"),
    [
        ("<vcount>1 1 1 1 1 1 1 1</vcount><v>-1 0 0 1 1 1 0 0 1 0 1 0 0 0 0 0</v>", [0] + [1] * 7, "0101100", ""),
        (
            "<vcount>1 1 1 1 1 1 1 1</vcount><v>2 0 0 9 1 1 0 0 1 0 1 0 0 0 0 -1</v>",
            [0, 0, *[1] * 5, 0],
            "10110",
            "influences-skipped",
        ),
        ("<vcount>1 1 1 1 1 1 1 1</vcount><v>0 2 0 3 1 4 0 0 1 0 1 0 0 0 0 0</v>", [0, 0, 0, *[1] * 5], "01100", ""),
        ("<vcount>2 1</vcount><v>0 0 1 0 1 0</v>", [2, 1, *[0] * 6], "011", "weights-disagree"),
        (
            "<vcount>1 1 1 1 1 1 1 1 1</vcount><v>0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0</v>",
            [1] * 8,
            "0" * 8,
            "weights-disagree",
        ),
        ("<vcount>3 99999999999 1 1 1 1 1 1</vcount><v>0 0 1 0 1 1</v>", [3, *[0] * 7], "011", "weights-disagree"),
        ("<vcount>1 1 1 1 -1 1 1 1</vcount><v>0 0 0 0 1 0</v>", [1, 1, 1, *[0] * 5], "001", "weights-disagree"),
        ("", [0] * 8, "", "weights-disagree"),
    ],
)
def test_lists_of_weights(lists: str, counts: list[int], joints: str, code: str) -> None:
    document = rigged(weights=seeds.inputs(JOINT="box-j", WEIGHT="box-w") + lists, values="1 0.5 0 -1 nan")
    (skin,) = document.skins
    assert skin.counts.tolist() == counts
    assert "".join(map(str, skin.joints.tolist())) == joints
    assert len(skin.weights) == len(skin.joints) and (skin.weights > 0).all()
    assert list(codes(document)) == ([code] if code else [])


def test_weights_before_joints() -> None:
    swapped = re.sub(r"(\d) (\d)", r"\2 \1", seeds.PAIRS)
    given = seeds.inputs(WEIGHT="box-w", JOINT="box-j")
    (skin,) = rigged(weights=f"{given}<vcount>1 1 1 1 2 2 2 2</vcount><v>{swapped}</v>").skins
    assert skin.is_reversed
    assert skin.joints.tolist() == rigged().skins[0].joints.tolist()


@pytest.mark.parametrize(
    ("matrix", "usable"),
    [
        ("1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1", True),
        ("0.001 0 0 5 0 0.001 0 0 0 0 0.001 0 0 0 0 1", True),
        ("1 0 0 0 0 1 0 0 0 0 0 0 0 0 0 1", False),
        ("1 0 0 0 0 1 0 0 0 0 nan 0 0 0 0 1", False),
        ("1 0 0 0 0 1 0 0 0 0 1 0 0 0 5 1", False),
        ("1 0 0 0", False),
    ],
)
def test_bind_matrices_that_cannot_be_used(matrix: str, usable: bool) -> None:
    document = rigged(binds=f"{seeds.IDENTITY} {matrix}", shape=f"<bind_shape_matrix>{matrix}</bind_shape_matrix>")
    (skin,) = document.skins
    assert skin.usable.tolist() == [True, usable]
    assert np.isfinite(skin.inverse_bind).all() and (usable or np.array_equal(skin.inverse_bind[1], np.identity(4)))
    assert ("bind-shape-unusable" in codes(document)) != usable
    assert ("bind-matrix-unusable" in codes(document)) != usable
    assert "rig-turned-or-scaled" not in {message.code for message in mapping.check(document)}
    assert np.array_equal(skin.bind_shape, np.identity(4)) or usable


def test_a_check_warns_of_what_an_import_only_notes() -> None:
    lists = "<vcount>5 1 1 1 1 1 1 1</vcount><v>" + "0 0 " * 12 + "</v>"
    document = rigged(weights=seeds.inputs(JOINT="box-j", WEIGHT="box-w") + lists)
    kinds = {message.code: message.kind for message in mapping.check(document)}
    assert kinds == {"more-than-4-weights": Kind.WARNING}


def test_names_of_joints() -> None:
    words = seeds.names("box-j", "mPelvis Left Hand").replace('count="3"', 'count="2"')
    assert rigged(joints=words).skins[0].joint_names == ["mPelvis", "Left Hand"]
    assert rigged(joints=seeds.names("box-j", "mPelvis L\u00a0Hand")).skins[0].joint_names == ["mPelvis", "L\u00a0Hand"]
    ids = seeds.names("box-j", "a b", "IDREF_array")
    nodes = seeds.RIGGED.replace('id="mPelvis"', 'id="a"').replace('id="mTorso" sid="mTorso"', 'id="b" sid="x"')
    document = codec.read(seeds.document(nodes, controllers=seeds.skin(joints=ids)))
    assert document.skins[0].joint_names == ["mPelvis", "mTorso"]
    nodes = nodes.replace('sid="x"', 'sid="y"').replace("mTorso", "Bone")
    for more, found in (("", "y"), ('<node id="c" sid="y" type="JOINT"/>', "b")):
        document = codec.read(seeds.document(more + nodes, controllers=seeds.skin(joints=ids)))
        assert document.skins[0].joint_names == ["mPelvis", found]
    assert codes(rigged(joints=seeds.names("box-j", ""))) == {"skin-without-joints": Kind.LOSS}
    assert rigged(joints=seeds.names("box-j", "")).nodes[-1].instances[0].skin == -1


def test_the_base_of_a_morph_is_read() -> None:
    morph = '<controller id="m"><morph source="#box-mesh"/></controller>'
    document = read('<node><instance_controller url="#m"/></node>', controllers=morph)
    assert len(objects(document)) == 1 and "1 morph left out" in document.warnings
    controllers = morph + seeds.skin().replace('source="#box-mesh"', 'source="#m"', 1)
    assert codec.read(seeds.document(seeds.RIGGED, controllers=controllers)).skins[0].geometry == 0
    controllers = seeds.skin() + morph.replace("box-mesh", "box-skin")
    nodes = seeds.RIGGED.replace('url="#box-skin"', 'url="#m"')
    (skin,) = codec.read(seeds.document(nodes, controllers=controllers)).skins
    assert skin.joint_names == list(seeds.BOUND)


# -- refused files --------------------------------------------------------------------------------

TWICE = "".join(
    f'<node id="n{n}"><instance_node url="#n{n + 1}"/><instance_node url="#n{n + 1}"/></node>' for n in range(40)
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "The file is empty"),
        (seeds.document()[:-200], "not well-formed"),
        (seeds.document().replace(b"<COLLADA", b"<!DOCTYPE a><COLLADA", 1), "document type"),
        (b"<svg/>", "root element is 'svg'"),
        (b"<COLLADA>" + b"<a>" * 1500 + b"</a>" * 1500 + b"</COLLADA>", "nested more than 1,000 levels"),
        (seeds.document("<node>" * 201 + seeds.OBJECT + "</node>" * 201), "nested more than 200 levels"),
        (seeds.document(extra=f'<library_nodes>{TWICE}<node id="n40"/></library_nodes>',
                        nodes=f'{seeds.STATIC}<node><instance_node url="#n0"/></node>'), "more than 50,000 nodes"),
        (seeds.document("<node/>"), "mesh with polygons: 1 mesh was left out, which no object uses: 'box'"),
        (seeds.document('<node name="far"><instance_geometry url="b.dae#x"/></node>'),
                        "mesh with polygons: 1 link leads to nothing in this file: 'far'"),
        (seeds.document(geometries=seeds.geometry("")), "No object in the file has a mesh with polygons$"),
    ],
    ids=["empty", "cut", "doctype", "root", "elements", "levels", "copies", "objects", "links", "polygons"],
)  # fmt: skip
def test_refused_files(data: bytes, said: str) -> None:
    started = time.monotonic()
    with pytest.raises(FormatError, match=said):
        codec.read(data)
    assert time.monotonic() - started < 5


def test_one_long_array_cannot_fill_the_memory() -> None:
    """A file of 3 MB would take 12 GB if each of 1,000 sources copied its array."""
    array = f'<source id="s"><float_array id="s-array">{"0 " * 600_000}</float_array></source>'
    accessor = '<technique_common><accessor source="#s-array" stride="1"/></technique_common>'
    copies = "".join(f'<source id="s{n}">{accessor}</source>' for n in range(1000))
    uses = "".join(
        f'<geometry id="g{n}"><mesh><vertices id="v{n}"><input semantic="POSITION" source="#s{n}"/></vertices>'
        f'<triangles><input semantic="VERTEX" source="#v{n}"/><p>0 1 2</p></triangles></mesh></geometry>'
        for n in range(1000)
    )
    nodes = "".join(f'<node><instance_geometry url="#g{n}"/></node>' for n in range(1000))
    with pytest.raises(FormatError, match="more than"):
        read(nodes, uses + seeds.geometry("", array + copies))
