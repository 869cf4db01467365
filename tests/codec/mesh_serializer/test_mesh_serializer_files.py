"""Files of the family: counted as the samples' README counts them, byte for byte back, damaged ones refused."""

from __future__ import annotations

import hashlib
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from meshferry.io_formats import api, registry
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.mesh_serializer.document import Document, Variant
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER
from meshfuzz import mesh_serializer_seeds as made

ROW = re.compile(r"^\| (\w+\.(?:data|bin)) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", re.MULTILINE)
HASH = re.compile(r"^\| (\w+\.(?:data|bin)) \|.*\| ([0-9a-f]{64}) \|$", re.MULTILINE)
FAMILY = made.family()
VARIANTS = {"2": Variant.CURRENT, "submeshes": Variant.SUBMESHES, "cache": Variant.CACHED, "1": Variant.FIRST}


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    if not (samples / "unity_meshserializer").is_dir():
        pytest.skip(f"no real MeshSerializer2 files in {samples}")
    return samples / "unity_meshserializer"


def loaded(data: bytes) -> Document:
    """Recognise and read."""
    assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is MESH_SERIALIZER
    document = MESH_SERIALIZER.read(data)
    assert isinstance(document, Document)
    return document


def refused(data: bytes) -> str:
    with pytest.raises(FormatError) as refusal:
        api.load("mesh.data", data=data)
    assert not str(refusal.value).endswith(".")
    return str(refusal.value)


def test_samples_are_counted_and_come_back(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    hashes = dict(HASH.findall(text))
    rows = ROW.findall(text)
    assert len(rows) == len(hashes) == 6
    for name, size, vertices, triangles, bits in rows:
        data = (folder / name).read_bytes()
        assert len(data) == int(size)
        assert hashlib.sha256(data).hexdigest() == hashes[name]
        document = loaded(data)
        assert document.variant is Variant.CURRENT
        assert (len(document.positions), len(document.triangles), document.format) == (
            int(vertices),
            int(triangles),
            int(bits),
        ), name
        facts = MESH_SERIALIZER.facts(document)
        assert (facts["vertices"], facts["triangles"], facts["uv_layers"]) == (int(vertices), int(triangles), 1)
        assert MESH_SERIALIZER.write(document) == data, name


@pytest.mark.parametrize("name", FAMILY)
def test_whole_family_comes_back(name: str) -> None:
    data = FAMILY[name]
    document = loaded(data)
    wanted = Variant.FIRST_TEXT if "text" in name else VARIANTS[name.partition(",")[0]]
    assert document.variant is wanted
    assert MESH_SERIALIZER.write(document) == data
    assert MESH_SERIALIZER.same_content(data, bytes(data))
    assert MESH_SERIALIZER.facts(document)["version"] == str(wanted)


@pytest.mark.parametrize("name", FAMILY)
def test_imports_report_the_variant_of_a_file(name: str) -> None:
    scene = MESH_SERIALIZER.to_scene(loaded(FAMILY[name]), "Thing")
    said = [text for text in scene.warnings if "variant of MeshSerializer2" in text]
    words = {
        "2": None,
        "submeshes": "submeshes and bones",
        "cache": "SALT mod cache",
        "1": "first MeshSerializer",
        "1 as text": "as text for the web",
    }[name.partition(",")[0]]
    assert len(said) == (0 if words is None else 1)
    assert words is None or words in said[0]


def test_fields_of_variants() -> None:
    """Fields that only a variant has."""
    submeshes = loaded(made.submeshes([made.TRIANGLES[:2], made.TRIANGLES[2:]], bits=31))
    assert submeshes.submeshes == [2, 1]
    assert submeshes.triangles.tolist() == [list(row) for row in made.TRIANGLES]
    assert submeshes.joint_weights is not None and submeshes.joint_indices is not None
    assert submeshes.joint_weights.tolist() == [[0.5, 0.25, 0.25, 0]] * 7
    assert submeshes.joint_indices.tolist() == [[i % 3, 1, 2, 0] for i in range(7)]
    cached = loaded(made.cached("Ё" * 100))
    assert cached.name == "Ё" * 100
    scene = MESH_SERIALIZER.to_scene(cached, "Thing")
    assert scene.nodes[0].name == "Ё" * 100
    assert "from 2015-03-02" in scene.warnings[0]
    first = loaded(made.as_text(made.first()))
    assert first.positions[3].tolist() == [np.float32(np.sin(3)), 1.5, np.float32(np.cos(6))]
    assert first.triangles.tolist() == [[0, 1, 2], [2, 3, 4]]


def test_submeshes_keep_their_triangles_apart() -> None:
    document = loaded(made.submeshes([made.TRIANGLES[:2], made.TRIANGLES[2:]], bits=27))
    mesh = MESH_SERIALIZER.to_scene(document, "Thing").nodes[0].mesh
    assert mesh is not None
    assert mesh.materials == ["Thing_submesh_1", "Thing_submesh_2"]
    assert mesh.material_index.tolist() == [0, 0, 1]
    assert [layer.name for layer in mesh.custom] == ["bone_weights", "bone_indices"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (made.current(triangles=((0, 1, 7), (0, 1, 2), (9, 8, 7))), "2 triangles refer to vertices that do not exist"),
        (
            made.submeshes([made.TRIANGLES, ((0, 1, 65535),)], vertices=400),
            "submesh 2: The file is damaged: 1 triangle refers",
        ),
        (made.first(triangles=((0, 1, -1),)), "1 triangle refers to vertices that do not exist; there are 5"),
        (made.first(triangles=((0, 1, 5),)), "1 triangle refers to vertices that do not exist"),
        (made.current(bounds=(2, 1, 0, 1, 0, 1)), "the bounds of the positions go from 2 down to 1 in X"),
        (made.current(bounds=(0, 1, 0, 1, 0, np.nan)), "the bounds of the positions are NaN or infinite in Z"),
        (made.current(bounds=(0, 1, -np.inf, 1, 0, 1)), "the bounds of the positions are NaN or infinite in Y"),
        (made.current(uv_bounds=(0, 1, 1, 0)), "the bounds of the UVs go from 1 down to 0 in V"),
    ],
)
def test_damage_is_named(data: bytes, words: str) -> None:
    assert words in refused(data)


@pytest.mark.parametrize("bits", [0, 2, 10, 14, 16, 17, 19, 27, 31, 33, 65, 139])
def test_other_formats_are_refused(bits: int) -> None:
    """Section 5: bit 0 clear, or above 15; the length fits what the lower bits say."""
    data = bytearray(made.current(bits=bits & 15))
    data[4] = bits
    refused(bytes(data))


def test_points_alone_are_read_with_a_warning() -> None:
    scene = MESH_SERIALIZER.to_scene(loaded(FAMILY["2, points"]), "Thing")
    assert scene.warnings == ["Thing: it has no triangles, only points"]
    mesh = scene.nodes[0].mesh
    assert mesh is not None and len(mesh.points) == 7 and not mesh.triangle_count
    empty = MESH_SERIALIZER.to_scene(loaded(FAMILY["2, nothing"]), "Thing")
    assert empty.warnings == ["Thing: it has no vertices"]


def test_triangles_without_vertices_are_refused() -> None:
    refused(struct.pack("<HHB", 0, 1, 1) + bytes(6))


def test_repeated_corners_stay_in_the_document() -> None:
    data = made.current(triangles=((0, 1, 2), (3, 3, 4), (4, 5, 6), (1, 2, 1)))
    document = loaded(data)
    assert len(document.triangles) == 4
    assert MESH_SERIALIZER.write(document) == data
    scene = MESH_SERIALIZER.to_scene(document, "Thing")
    assert scene.warnings == ["Thing: 2 triangles use a vertex twice; left out"]
    assert scene.triangle_count == 2


def test_checks_say_what_the_original_reader_does() -> None:
    large = Document(
        Variant.CURRENT,
        np.zeros((64_001, 3), np.uint16),
        np.zeros((65_535, 3), np.uint16),
        np.array([0, 100, 0, 1, 0, 1], np.float32),
    )
    found = [str(finding) for finding in MESH_SERIALIZER.check(large)]
    assert found[0] == ("64,001 vertices and 65,535 triangles; the original reader refuses more than 64,000 of either")
    assert "64,000 vertices belong to no triangle" in found
    assert "65,535 triangles use a vertex twice" in found
    assert any(text.startswith("positions are rounded to steps of 1.53 mm") for text in found)
    assert MESH_SERIALIZER.check(loaded(FAMILY["2, format 15"])) == []
    assert any("variant" in str(finding) for finding in MESH_SERIALIZER.check(loaded(FAMILY["cache"])))
