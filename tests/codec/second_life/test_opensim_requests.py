"""Upload requests for OpenSim, as its servers take them: one mesh for each object, and every face as its material."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import opensim_uploads
import pytest
import second_life_oracle
import upload_scenes
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core import shading
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.encodings import jpeg2000
from meshferry.io_formats.encodings.quantization import srgb_to_linear
from meshferry.io_formats.second_life.request import mapping
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST

pytest.importorskip("llsd")

WOOD = b"\xff\x4f\xff\x51" + b"\0\x29\0\0" + b"".join(v.to_bytes(4, "big") for v in (300, 200, 44, 72)) + b"wood"
WHITE = mapping._WHITE
OPAQUE_WHITE = (255, 255, 255, 255)
SERVERS = pytest.mark.parametrize("is_released", [True, False], ids=["released", "newest"])

MATERIALS = {
    "plain": sc.Material("plain", (1.0, 1.0, 1.0, 1.0)),
    "red": sc.Material("red", (1.0, 0.0, 0.0, 1.0)),
    "wood": sc.Material("wood", (0.2, 0.2, 0.2, 1.0), texture=shading.Texture("wood", data=WOOD)),
    "lamp": sc.Material("lamp", (1.0, 1.0, 1.0, 1.0), emission=1.0),
    "ember": sc.Material("ember", (1.0, 0.0, 0.0, 1.0), emission=1.0),
}
LOOKS = {"plain": OPAQUE_WHITE, "red": (255, 0, 0, 255), "wood": OPAQUE_WHITE, "lamp": OPAQUE_WHITE}
LOOKS["ember"] = LOOKS["red"]


def bodies(scene: sc.Scene, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fee request and the body of the upload."""
    outputs = SECOND_LIFE_REQUEST.write_files(SECOND_LIFE_REQUEST.from_scene(scene, options), "x")
    fee, body = (opensim_uploads.parse(output.data) for output in outputs)
    return fee, body


def for_opensim(scene: sc.Scene, **options: Any) -> dict[str, Any]:
    return bodies(scene, server="OPENSIM", **options)[1]


def strip(names: Sequence[str]) -> sc.Mesh:
    """Return a triangle for each name, with the material of this name."""
    points = np.random.default_rng(len(names)).random((3 * len(names), 3)).astype(np.float32)
    corners = np.arange(3 * len(names), dtype=np.int32)
    return sc.Mesh(points, corners, np.arange(len(names), dtype=np.int32), list(names))


def scene_of(*nodes: sc.Node) -> sc.Scene:
    return sc.Scene("x", list(nodes), materials=list(MATERIALS.values()))


def copies() -> sc.Scene:
    shared = upload_scenes.box((1, 2, 3), ["wood", "red"])
    places = [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0), (0.0, 3.0, 1.0)]
    return scene_of(*(sc.Node(f"box {x}{y}", mesh=shared, translation=(x, y, z)) for x, y, z in places))


def mirrored_copies() -> sc.Scene:
    scene = copies()
    scene.nodes[1].scale = (-2.0, 1.0, 0.5)
    scene.nodes[2].scale = (3.0, -1.0, -1.0)
    return scene


def split_copies() -> sc.Scene:
    shared = strip([f"m{number:02}" for number in range(17)])
    return scene_of(sc.Node("box", mesh=upload_scenes.box()), *(sc.Node(f"quilt{n}", mesh=shared) for n in range(2)))


SCENES = {"copies": copies, "mirrored": mirrored_copies, "split": split_copies, "rigged": upload_scenes.rigged_scene}


@SERVERS
@pytest.mark.parametrize("name", SCENES)
def test_every_object_has_its_own_mesh_in_the_order_of_objects(name: str, is_released: bool) -> None:
    body = for_opensim(SCENES[name]())
    assert [instance["mesh"] for instance in body["instance_list"]] == list(range(len(body["mesh_list"])))
    prims = opensim_uploads.upload(body, is_released=is_released)
    shared = opensim_uploads.upload(bodies(SCENES[name]())[1], is_released=False)
    assert len(prims) == len(shared) == {"split": 7, "rigged": 1}.get(name, 3)
    for prim, other in zip(prims, shared, strict=True):
        assert (prim.name, prim.mesh) == (other.name, other.mesh)
        assert (prim.position, prim.rotation, prim.scale) == (other.position, other.rotation, other.scale)
        assert len(prim.looks) == len(second_life_oracle.decode(prim.mesh).levels["high_lod"])


def test_released_servers_fail_where_objects_share_a_mesh() -> None:
    """The simulated server has the error that the option avoids."""
    body = bodies(copies())[1]
    assert len(body["mesh_list"]) == 1
    with pytest.raises(IndexError):
        opensim_uploads.upload(body, is_released=True)


@SERVERS
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_face_looks_as_its_material(count: int, is_released: bool) -> None:
    """All orders of white, coloured, textured and bright faces: the last face decides what released servers confuse."""
    for names in itertools.product(MATERIALS, repeat=count):
        # A material in two slots would become one face.
        slots = [f"{name}{number}" for number, name in enumerate(names)]
        scene = scene_of(sc.Node("a", mesh=strip(slots)))
        scene.materials = [sc.Material(**{**vars(MATERIALS[n]), "name": s}) for n, s in zip(names, slots, strict=True)]
        body = for_opensim(scene)
        assert body["texture_list"] == [
            *([WOOD] if "wood" in names else []),
            *([WHITE] if set(names) != {"wood"} else []),
        ]
        (prim,) = opensim_uploads.upload(body, is_released=is_released)
        assert prim.looks == [
            (WOOD if name == "wood" else WHITE, LOOKS[name], name in ("lamp", "ember")) for name in names
        ]


def test_released_servers_confuse_faces_of_other_requests() -> None:
    """The simulated server has the errors that the option avoids."""
    scene = scene_of(sc.Node("a", mesh=strip(["wood", "plain", "ember"])))
    (prim,) = opensim_uploads.upload(bodies(scene)[1], is_released=True)
    assert prim.looks == [(WOOD, LOOKS["red"], True)] * 3


@SERVERS
def test_all_colours_arrive(is_released: bool) -> None:
    codes = np.arange(256)
    linear = srgb_to_linear((codes / 255).astype(np.float32)[:, None].repeat(3, axis=1))
    names = [f"m{code:03}" for code in codes]
    scene = sc.Scene("x", [sc.Node("quilt", mesh=strip(names))])
    scene.materials = [sc.Material(f"m{code:03}", (*linear[code].tolist(), code / 255)) for code in codes]
    prims = opensim_uploads.upload(for_opensim(scene), is_released=is_released)
    assert [look[1] for prim in prims for look in prim.looks] == [(code,) * 4 for code in range(256)]


def test_the_fee_request_counts_the_white_texture() -> None:
    scene = scene_of(sc.Node("a", mesh=upload_scenes.box(materials=["wood", "red"])), *copies().nodes)
    fee, body = bodies(scene, server="OPENSIM")
    assert body["texture_list"] == [WOOD, WHITE]
    assert fee["asset_resources"] == {
        **body,
        "texture_list": [b"", b""],
        "texture_info": [{"width": 256, "height": 128}, {"width": 32, "height": 32}],
    }


def test_the_marked_node_is_the_root() -> None:
    scene = mirrored_copies()
    scene.nodes[2].is_linkset_root = True
    names = [instance["mesh_name"] for instance in for_opensim(scene)["instance_list"]]
    assert names == ["box 0.03.0", "box 0.00.0", "box 3.00.0"]
    assert bodies(scene) == bodies(mirrored_copies())  # Second Life keeps the order of the scene


def test_second_life_is_the_default() -> None:
    for make in SCENES.values():
        assert bodies(make()) == bodies(make(), server="SECOND_LIFE")
    with pytest.raises(MeshferryError, match="'server' cannot be 'NEITHER'"):
        bodies(copies(), server="NEITHER")


def test_the_white_texture_passes_the_check_of_untrusted_pictures() -> None:
    found = jpeg2000.examine(WHITE)
    assert isinstance(found, jpeg2000.Jpeg2000Info)
    assert (found.width, found.height, found.components, found.stream) == (32, 32, 3, WHITE)
    assert jpeg2000.size_of(WHITE) == (mapping._WHITE_SIDE,) * 2


@pytest.mark.needs_bpy
def test_blender_decodes_the_white_texture_as_white(tmp_path: Path) -> None:
    import bpy

    path = tmp_path / "white.j2c"
    path.write_bytes(WHITE)
    image = bpy.data.images.load(str(path))
    assert (tuple(image.size), image.channels) == ((32, 32), 4)
    assert set(image.pixels[:]) == {1.0}
