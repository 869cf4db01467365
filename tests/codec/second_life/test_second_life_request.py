"""Upload requests, read back by the ``llsd`` library and put through the checks that OpenSim makes (section 9)."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import upload_scenes
from load_package import SAMPLES
from meshferry.io_formats import api
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core import shading
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.messages import Kind
from meshferry.io_formats.encodings import jpeg2000
from meshferry.io_formats.encodings.quantization import srgb_to_linear
from meshferry.io_formats.second_life.request import codec, mapping
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST

llsd = pytest.importorskip("llsd")

CODESTREAM = b"\xff\x4f\xff\x51" + b"\0\x29\0\0" + b"".join(v.to_bytes(4, "big") for v in (300, 200, 44, 72)) + b"rest"


def boxed(stream: bytes, *, long: bool = False) -> bytes:
    """Return a codestream in the container of ``.jp2`` files."""
    signature = b"\0\0\0\x0cjP  \r\n\x87\n"
    kind = b"\0\0\0\x14ftypjp2 \0\0\0\0jp2 "
    if long:
        return signature + kind + b"\0\0\0\x01jp2c" + (len(stream) + 16).to_bytes(8, "big") + stream
    return signature + kind + (len(stream) + 8).to_bytes(4, "big") + b"jp2c" + stream


def bodies(scene: sc.Scene, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fee request and the body of the upload."""
    outputs = SECOND_LIFE_REQUEST.write_files(SECOND_LIFE_REQUEST.from_scene(scene, options), "hut")
    assert [output.name for output in outputs] == ["hut.fee.llsd", "hut.llsd"]
    assert all(output.data.startswith(b'<?xml version="1.0" ?><llsd>') for output in outputs)
    fee, upload = (llsd.parse_xml(output.data) for output in outputs)
    return fee, upload


def opensim_refuses(body: dict[str, Any]) -> list[str]:
    """Return why OpenSim would not take a body (section 9, "OpenSim checks"), written after the page alone."""
    found: list[str] = []
    instances = body["instance_list"]
    if not instances:
        found.append("no instance")
    if len(instances) > 512:
        found.append("more than a linkset")
    for number, data in enumerate(body["mesh_list"]):
        found += [f"mesh {number}: {text}" for text in mesh_problems(data)]
    small = 0
    for number, instance in enumerate(instances):
        if not 0 <= instance["mesh"] < len(body["mesh_list"]):
            found.append(f"instance {number}: no such mesh")
        if not all(type(value) is float for value in instance["scale"]):
            found.append(f"instance {number}: a size that is not a real")
        if max(instance["scale"]) > 256:
            found.append(f"instance {number}: too large")
        small += min(instance["scale"]) < 0.001
        images = [face["image"] for face in instance["face_list"] if "image" in face]
        if any(not 0 <= image < len(body["texture_list"]) for image in images):
            found.append(f"instance {number}: no such texture")
    if small * 2 > len(instances):
        found.append("too many tiny ones")
    return found


def block(data: bytes, key: str) -> Any:
    """Return an unpacked block of a mesh asset."""
    import io

    stream = io.BytesIO(data)
    header = llsd.LLSDBinaryParser().parse(stream)
    start = stream.tell()
    place = header[key]
    packed = data[start + place["offset"] : start + place["offset"] + place["size"]]
    return llsd.parse_binary(zlib.decompress(packed))


def mesh_problems(data: bytes) -> list[str]:
    try:
        convex = block(data, "physics_convex")
        faces = block(data, "high_lod")
    except KeyError as missing:
        return [f"no {missing}"]
    found: list[str] = []
    if not isinstance(convex, dict) or "BoundingVerts" not in convex:
        found.append("no BoundingVerts")
    if not faces or not all("NoGeometry" in face or {"Position", "TriangleList"} <= face.keys() for face in faces):
        found.append("a face without triangles")
    return found


def test_the_fee_request() -> None:
    scene = upload_scenes.static_scene()
    fee, upload = bodies(scene)
    assert fee.pop("asset_resources") == {**upload, "texture_info": []}
    assert fee == {
        "folder_id": uuid.UUID(int=0),
        "texture_folder_id": uuid.UUID(int=0),
        "asset_type": "mesh",
        "inventory_type": "object",
        "name": "hut",
        "description": "(No Description)",
        "next_owner_mask": 0x8E000,
        "group_mask": 0,
        "everyone_mask": 0,
    }
    assert upload.keys() == {"mesh_list", "texture_list", "instance_list", "metric"}
    assert upload["metric"] == "MUT_Unspecified"
    assert scene.warnings == []


def test_opensim_takes_it() -> None:
    for scene in (upload_scenes.static_scene(), upload_scenes.rigged_scene()):
        _fee, upload = bodies(scene)
        assert opensim_refuses(upload) == []


def test_what_opensim_refuses_is_seen() -> None:
    """The tests' own checks find what is wrong."""
    _fee, upload = bodies(upload_scenes.static_scene())
    upload["instance_list"][0]["scale"] = [1, 2.0, 300.0]
    upload["instance_list"][1]["mesh"] = 2
    upload["instance_list"][1]["face_list"][0]["image"] = 0
    assert opensim_refuses(upload) == [
        "instance 0: a size that is not a real",
        "instance 0: too large",
        "instance 1: no such mesh",
        "instance 1: no such texture",
    ]


def test_objects_in_their_places_the_root_first() -> None:
    _fee, upload = bodies(upload_scenes.static_scene())
    hut, door = upload["instance_list"]
    assert (hut["mesh"], hut["mesh_name"], door["mesh"], door["mesh_name"]) == (0, "garden hut", 1, "door")
    assert hut["position"] == pytest.approx((1.0, -2.0, 0.5))
    assert hut["rotation"] == pytest.approx((0, 0, np.sqrt(0.5), np.sqrt(0.5)))  # x, y, z, w
    assert hut["scale"] == pytest.approx((2.0, 1.0, 3.0))
    assert door["scale"] == pytest.approx((0.9, 0.1, 2.0))
    assert door["position"] == pytest.approx((0, 0, 1))
    assert hut["material"] == 3
    assert (hut["physics_shape_type"], door["physics_shape_type"]) == (0, 2)  # a model of its own; its hull


def test_places_are_of_the_box_not_of_the_origin() -> None:
    mesh = upload_scenes.box()
    mesh.points += np.float32((1, 0, 0))
    turn = {"rotation": (np.sqrt(0.5), 0, 0, np.sqrt(0.5)), "scale": (2, 2, 2), "translation": (0, 0, 5)}
    _fee, upload = bodies(sc.Scene("x", [sc.Node("x", mesh=mesh, **turn)]))
    assert upload["instance_list"][0]["position"] == pytest.approx((0, 2, 5), abs=1e-6)
    assert upload["instance_list"][0]["scale"] == pytest.approx((2, 2, 2))


def test_hulls_are_a_physics_model() -> None:
    scene = upload_scenes.static_scene()
    hull = sc.Node("hull", mesh=upload_scenes.box((0.5, 0.5, 0.5), []), role=sc.Role.HULL)
    hull.translation, hull.shape_of = scene.nodes[5].translation, 5
    scene.nodes.append(hull)
    _fee, upload = bodies(scene)
    assert [found["physics_shape_type"] for found in upload["instance_list"]] == [0, 0]
    assert "HullList" in block(upload["mesh_list"][1], "physics_convex")


def test_faces_look_as_their_materials() -> None:
    _fee, upload = bodies(upload_scenes.static_scene())
    wood, stone = upload["instance_list"][0]["face_list"]
    assert wood["diffuse_color"] == [188.01 / 255, 137.01 / 255, 99.01 / 255, 1.0] and wood["fullbright"] is False
    assert stone["diffuse_color"] == [124.01 / 255] * 3 + [128.01 / 255] and stone["fullbright"] is True
    scene = upload_scenes.static_scene()
    scene.materials = []
    assert bodies(scene)[1]["instance_list"][1]["face_list"] == [{"diffuse_color": [1.0] * 4, "fullbright": False}]


def test_all_colours_arrive_where_bytes_are_truncated() -> None:
    """OpenSim keeps single precision and truncates to bytes."""
    codes = np.arange(256)
    linear = srgb_to_linear((codes / 255).astype(np.float32)[:, None].repeat(3, axis=1))
    scene = quilt(256)
    scene.materials = [sc.Material(f"m{code:03}", (*linear[code].tolist(), code / 255)) for code in codes]
    faces = [face for instance in bodies(scene)[1]["instance_list"] for face in instance["face_list"]]
    sent = np.array([face["diffuse_color"] for face in faces], np.float32) * np.float32(255)
    np.testing.assert_array_equal(sent.astype(np.uint8), codes[:, None].repeat(4, axis=1))


def quilt(count: int) -> sc.Scene:
    """Return a mesh with one material a triangle."""
    mesh = sc.Mesh(
        np.random.default_rng(1).random((3 * count, 3)).astype(np.float32),
        np.arange(3 * count, dtype=np.int32),
        np.arange(count, dtype=np.int32),
        [f"m{number:03}" for number in range(count)],
    )
    return sc.Scene("x", [sc.Node("quilt", mesh=mesh)])


def test_many_materials_become_further_objects_at_the_end() -> None:
    nodes = [*quilt(17).nodes, sc.Node("box", mesh=upload_scenes.box())]
    _fee, upload = bodies(sc.Scene("x", nodes))
    assert opensim_refuses(upload) == []
    found = upload["instance_list"]
    assert [instance["mesh_name"] for instance in found] == ["quilt", "box", "quiltb", "quiltc"]
    assert [len(instance["face_list"]) for instance in found] == [8, 2, 8, 1]
    assert [instance["physics_shape_type"] for instance in found] == [2, 2, 1, 1]
    assert [instance["mesh"] for instance in found] == [0, 1, 2, 3]
    with pytest.raises(ExportError, match="quilt"):
        bodies(sc.Scene("x", nodes), many_materials="REFUSE")


def test_meshes_do_not_carry_what_only_bundles_do() -> None:
    import io

    _fee, upload = bodies(upload_scenes.rigged_scene())
    header = llsd.LLSDBinaryParser().parse(io.BytesIO(upload["mesh_list"][0]))
    assert "material_list" not in header
    assert {"skin", "high_lod", "medium_lod", "low_lod", "lowest_lod", "physics_convex"} <= header.keys()


# -- textures -----------------------------------------------------------------------------------


def textured(*textures: shading.Texture) -> sc.Scene:
    scene = upload_scenes.static_scene()
    for material, texture in zip(scene.materials, textures, strict=False):
        material.texture = texture
    return scene


def test_jpeg2000_is_embedded_in_the_upload_and_told_in_the_fee_request(tmp_path: Path) -> None:
    (tmp_path / "wood.jp2").write_bytes(boxed(CODESTREAM))
    other = CODESTREAM + b"other"
    scene = textured(shading.Texture("wood", str(tmp_path / "wood.jp2")), shading.Texture("stone", data=other))
    fee, upload = bodies(scene)
    assert upload["texture_list"] == [CODESTREAM, other]
    assert fee["asset_resources"]["texture_list"] == [b"", b""]
    assert fee["asset_resources"]["texture_info"] == [{"width": 256, "height": 128}] * 2
    wood, stone = upload["instance_list"][0]["face_list"]
    assert wood == {
        "diffuse_color": [1.0] * 4,
        "fullbright": False,
        "image": 0,
        "scales": 1.0,
        "scalet": 1.0,
        "offsets": 0.0,
        "offsett": 0.0,
        "imagerot": 0.0,
    }
    assert stone["image"] == 1
    assert upload["instance_list"][1]["face_list"][0]["image"] == 0
    assert opensim_refuses(upload) == []
    assert scene.warnings == []


def test_a_texture_of_two_materials_is_sent_once() -> None:
    _fee, upload = bodies(textured(shading.Texture("a", data=CODESTREAM), shading.Texture("b", data=bytes(CODESTREAM))))
    assert len(upload["texture_list"]) == 1


@pytest.mark.parametrize(
    ("texture", "said"),
    [
        (shading.Texture("wood.png", data=b"\x89PNG"), "not JPEG 2000 files (.j2c, .jp2) are left out: 'wood.png'"),
        (shading.Texture("new"), "Texture 'new' was never saved, nor is it packed; left out"),
        (
            shading.Texture("gone", "/nowhere/gone.j2c"),
            "Texture 'gone' is left out: /nowhere/gone.j2c: The file cannot",
        ),
        (shading.Texture("odd", "a\0b"), "Texture 'odd' is left out"),
    ],
)
def test_other_textures_are_named_and_left_out(texture: shading.Texture, said: str) -> None:
    scene = textured(texture)
    _fee, upload = bodies(scene)
    assert upload["texture_list"] == []
    assert all("image" not in face for instance in upload["instance_list"] for face in instance["face_list"])
    assert said in "\n".join(scene.warnings)


@pytest.mark.parametrize("long", [False, True])
def test_codestreams_come_out_of_their_containers(long: bool) -> None:
    whole = boxed(CODESTREAM, long=long)
    assert jpeg2000.codestream(whole) == CODESTREAM
    assert jpeg2000.codestream(CODESTREAM) == CODESTREAM
    assert jpeg2000.size_of(CODESTREAM) == (256, 128)
    assert jpeg2000.codestream(boxed(b"no stream", long=long)) is None
    for length in range(len(whole)):
        found = jpeg2000.codestream(whole[:length])
        assert found is None
    last = boxed(CODESTREAM).replace((len(CODESTREAM) + 8).to_bytes(4, "big") + b"jp2c", b"\0\0\0\0jp2c")
    assert jpeg2000.codestream(last) == CODESTREAM  # size 0: to the end


def test_boxes_without_end() -> None:
    assert jpeg2000.codestream(b"\0\0\0\x0cjP  \r\n\x87\n" + b"\0\0\0\x08free" * 1000) is None
    assert jpeg2000.codestream(b"\0\0\0\x0cjP  " + b"\0\0\0\x01jp2c" + b"\xff" * 8) is None
    assert jpeg2000.size_of(b"\xff\x4f") == (0, 0)


# -- samples, checks, the library ---------------------------------------------------------------


def _samples() -> list[str]:
    folder = SAMPLES / "secondlife"
    found = [*folder.glob("*.llmesh"), *folder.glob("*.mesh"), *folder.glob("synthetic/*.*")]
    return sorted(str(path.relative_to(folder)) for path in found)


@pytest.mark.parametrize("name", _samples())
def test_sample_assets_become_requests_that_opensim_takes(samples: Path, name: str) -> None:
    scene = api.read_scene(samples / "secondlife" / name)
    _fee, upload = bodies(scene)
    assert opensim_refuses(upload) == []


def test_a_scene_is_one_request() -> None:
    scene = upload_scenes.static_scene()
    assert api.files_of(scene, SECOND_LIFE_REQUEST) == [scene]
    with pytest.raises(ExportError, match="There is nothing in 'empty'"):
        api.files_of(sc.Scene("empty"), SECOND_LIFE_REQUEST)


def test_through_the_file_system(tmp_path: Path) -> None:
    api.write_scene(upload_scenes.static_scene(), tmp_path / "my hut.llsd", SECOND_LIFE_REQUEST)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my hut.fee.llsd", "my hut.llsd"]


def test_the_same_scene_gives_the_same_bytes() -> None:
    one, other = (
        SECOND_LIFE_REQUEST.write_files(SECOND_LIFE_REQUEST.from_scene(upload_scenes.rigged_scene()), "x")
        for _time in range(2)
    )
    assert one == other


def messages(request: codec.UploadRequest) -> list[tuple[Kind, str]]:
    return [(finding.kind, finding.message) for finding in mapping.check(request)]


def test_checks_of_sizes_and_numbers() -> None:
    made = SECOND_LIFE_REQUEST.from_scene(upload_scenes.static_scene())
    assert messages(made) == []
    made.instances[0].scale = (1.0, 300.0, 1.0)
    made.instances[1].scale = (1.0, 0.0001, 1.0)
    assert messages(made) == [
        (Kind.ERROR, "it is longer than 256 m"),
        (Kind.WARNING, "it is thinner than 1 mm; OpenSim leaves it out"),
    ]
    made.instances[0].scale = (0.0001, 1.0, 1.0)
    assert messages(made)[-1][1].startswith("more than half of the objects are thinner")
    made.instances = made.instances[1:] * 513
    assert any("513 objects; a linkset has 512 at most" in text for _severity, text in messages(made))
    assert messages(codec.UploadRequest("x")) == [(Kind.ERROR, "there is no object to upload")]


def test_checks_of_meshes() -> None:
    made = SECOND_LIFE_REQUEST.from_scene(upload_scenes.static_scene())
    del made.meshes[1].blocks["physics_convex"]
    found = [finding for finding in mapping.check(made) if finding.kind is Kind.ERROR]
    assert [finding.item for finding in found] == ["Object 'door'"]
    assert "physics_convex" in found[0].message


WITHOUT = """
import json, sys
sys.modules["llsd"] = None
from load_package import load_package
load_package()
import upload_scenes
from meshferry.io_formats.core.errors import MissingLibraryError
from meshferry.io_formats.encodings import jpeg2000
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST
made = SECOND_LIFE_REQUEST.from_scene(upload_scenes.static_scene())
try:
    SECOND_LIFE_REQUEST.write_files(made, "x")
except MissingLibraryError as problem:
    print(json.dumps(str(problem)))
"""


def test_without_the_library() -> None:
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=oracle.environment(),
        cwd=root / "tests",
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said.startswith("Upload requests need the library 'llsd'")
    assert "pip install llsd" in said
