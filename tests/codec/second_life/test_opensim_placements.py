"""Archives of OpenSim -> placements, where no sample shows it: looks, bounds, odd meshes, lights, trees, ground."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.messages import Message
from meshferry.io_formats.core.placement import Light, LightKind, Marker, ModelUse, PlacedNode
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.core.shading import Channel, Opacity
from meshferry.io_formats.second_life.opensim import codec, face_materials, ground, part_models
from meshferry.io_formats.second_life.opensim.document import Group
from meshferry.io_formats.second_life.opensim.format import OPENSIM_ARCHIVE
from meshfuzz import opensim_archive_seeds as made
from meshfuzz import second_life_seeds

BARE = {"use_ground": False, "use_water": False}
MESH, PICTURE, MATERIAL = (made.identity(number) for number in (70, 71, 72))
CORNERS = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])


def scene_of(files: dict[str, bytes], **options: Any) -> Scene:
    document = codec.read(made.packed(("archive.xml", made.control()), *files.items()))
    return OPENSIM_ARCHIVE.to_scene(document, "region", {**BARE, **options})


def of_parts(*parts: str, assets: dict[str, bytes] | None = None) -> Scene:
    objects = {f"objects/{number}.xml": made.linkset(part) for number, part in enumerate(parts)}
    return scene_of({**objects, **(assets or {})})


def nodes_of(scene: Scene) -> list[PlacedNode]:
    assert scene.placement is not None
    return scene.placement.parts[0].nodes


def messages(scene: Scene) -> dict[str, Message]:
    return {message.code: message for message in scene.warnings}


def mesh_asset(**blocks: Any) -> bytes:
    levels = {level: [second_life_seeds.square()] for level in ("high_lod", "lowest_lod")}
    return second_life_seeds.asset({**levels, **blocks})


def uuid_bytes(uuid: str) -> bytes:
    return bytes.fromhex(uuid.replace("-", ""))


def look(**changes: bytes) -> bytes:
    """Return a texture entry with these properties for all faces."""
    values = {
        "texture": bytes(16),
        "color": bytes(4),
        "repeat_u": struct.pack("<f", 1),
        "repeat_v": struct.pack("<f", 1),
        "offset_u": bytes(2),
        "offset_v": bytes(2),
        "rotation": bytes(2),
        "bump": bytes(1),
        "media": bytes(1),
        "glow": bytes(1),
        "material": bytes(16),
    }
    return made.texture_entry([(value, ()) for value in {**values, **changes}.values()])


CLEAR = look(color=bytes((0, 0, 0, 255)))


@pytest.mark.parametrize(
    ("mode", "opacity", "uses_picture"),
    [(0, Opacity.OPAQUE, False), (1, Opacity.DITHERED, True), (2, Opacity.CLIP, True), (3, Opacity.OPAQUE, False)],
)
def test_older_materials_tell_what_the_alpha_of_a_picture_means(
    mode: int, opacity: Opacity, uses_picture: bool
) -> None:
    entry = look(texture=uuid_bytes(PICTURE), material=uuid_bytes(MATERIAL))
    assets = {
        f"assets/{PICTURE}_texture.jp2": made.picture(components=4),
        f"assets/{MATERIAL}_material.xml": made.material(mode, 51),
    }
    scene = of_parts(made.part(entry=entry), assets=assets)
    (material,) = scene.materials
    shading = material.shading
    assert shading is not None and shading.opacity is opacity
    assert (shading.alpha.image is not None) == uses_picture
    if uses_picture:
        assert shading.alpha.channel is Channel.ALPHA
    if opacity is Opacity.CLIP:
        assert shading.alpha_threshold == pytest.approx(0.2)


def test_the_alpha_of_the_colour_counts_beside_that_of_the_picture() -> None:
    entry = look(texture=uuid_bytes(PICTURE), color=bytes((0, 0, 0, 255 - 51)))
    scene = of_parts(made.part(entry=entry), assets={f"assets/{PICTURE}_texture.jp2": made.picture(components=5)})
    shading = scene.materials[0].shading
    assert shading is not None and shading.alpha.value == pytest.approx(0.2) and shading.alpha.image is not None


def test_missing_and_damaged_materials_are_named() -> None:
    entries = [look(material=uuid_bytes(uuid)) for uuid in (MATERIAL, PICTURE)]
    scene = of_parts(
        *(made.part(entry=entry) for entry in entries), assets={f"assets/{MATERIAL}_material.xml": b"<llsd>"}
    )
    text = str(messages(scene)["damaged-materials"])
    assert MATERIAL in text and PICTURE in text


def test_equal_looks_share_a_material_named_after_the_picture() -> None:
    red = look(texture=uuid_bytes(PICTURE), color=bytes((0, 255, 255, 0)))
    shiny = look(texture=uuid_bytes(PICTURE), color=bytes((0, 255, 255, 0)), bump=b"\x41")
    parts = [made.part(entry=red), made.part(entry=shiny), made.part(entry=look(texture=uuid_bytes(PICTURE)))]
    scene = of_parts(*parts, assets={f"assets/{PICTURE}_texture.jp2": made.picture()})
    assert [material.name for material in scene.materials] == [PICTURE[:8], f"{PICTURE[:8]}_2"]
    assert "bumps of 6 faces, shine of 6 faces" in str(messages(scene)["looks-not-carried-over"])


def test_beyond_the_largest_number_of_materials_faces_have_plain_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(face_materials, "MOST_MATERIALS", 3)
    colors = [bytes((number * 9, 0, 0, 0)) for number in range(8)]
    scene = of_parts(*(made.part(entry=look(color=color, glow=b"\x80")) for color in colors))
    assert "30 faces have a plain colour" in str(messages(scene)["too-many-materials"])
    plain = [material.shading for material in scene.materials[3:]]
    assert 0 < len(plain) < 5 and not any(shading.emission for shading in plain if shading is not None)


def test_beyond_the_largest_number_of_pixels_pictures_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(face_materials, "MOST_PIXELS", 5000)
    ids = [made.identity(80 + number) for number in range(3)]
    parts = [made.part(entry=look(texture=uuid_bytes(uuid))) for uuid in ids]
    scene = of_parts(*parts, assets={f"assets/{uuid}_texture.jp2": made.picture() for uuid in ids})
    text = str(messages(scene)["pictures-left-out"])
    assert "2 pictures left out" in text and ids[1] in text and ids[2] in text and ids[0] not in text


def test_beyond_the_largest_number_of_prims_parts_are_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_models, "MOST_PRIMS", 2)
    shapes = [f"<ProfileCurve>1</ProfileCurve><PathTwist>{number}</PathTwist>" for number in (0, 10, 20, 20, 30)]
    scene = of_parts(*(made.part(shape=shape) for shape in shapes))
    assert "3 parts shown as boxes" in str(messages(scene)["too-many-prims"])


def test_rigged_meshes_are_counted_and_stand_unposed() -> None:
    asset = {f"assets/{MESH}_mesh.llmesh": mesh_asset(skin=second_life_seeds.skin())}
    scene = of_parts(*(made.part(shape=made.sculpt(5, MESH)) for _ in range(2)), assets=asset)
    assert "2 rigged meshes stand unposed" in str(messages(scene)["rigged-meshes-unposed"])
    assert scene.placement is not None and len(scene.placement.models) == 1
    model = scene.placement.models[0].read()
    assert not model.skeletons and model.nodes[0].mesh is not None and model.nodes[0].mesh.joint_weights is None


def test_only_the_highest_level_is_decoded() -> None:
    asset = second_life_seeds.asset({"high_lod": [second_life_seeds.square()], "lowest_lod": "not a list of faces"})
    scene = of_parts(made.part(shape=made.sculpt(5, MESH)), assets={f"assets/{MESH}_mesh.llmesh": asset})
    assert scene.placement is not None and len(scene.placement.models) == 1


def test_damaged_meshes_are_empties_of_their_size() -> None:
    scene = of_parts(
        made.part(shape=made.sculpt(5, MESH), size=(2, 3, 4)), assets={f"assets/{MESH}_mesh.llmesh": b"damaged"}
    )
    (node,) = nodes_of(scene)
    assert isinstance(node.content, Marker) and node.channels is not None and node.channels.scale == (2, 3, 4)
    assert MESH in str(messages(scene)["parts-without-mesh"])


def test_what_is_repaired_or_left_out_of_a_mesh_is_reported_with_its_asset() -> None:
    face = second_life_seeds.square(
        Normal=second_life_seeds.shorts(*(32767,) * 12), TriangleList=second_life_seeds.shorts(0, 1, 2, 0, 2, 9)
    )
    asset = {f"assets/{MESH}_mesh.llmesh": mesh_asset(high_lod=[face])}
    scene = of_parts(made.part(shape=made.sculpt(5, MESH)), assets=asset)
    assert scene.placement is not None
    (model,) = scene.placement.models
    for _ in range(2):
        found = {message.code: str(message.item) for message in model.read().warnings}
        assert found == {"triangles-beyond-vertices": f"{MESH}, face 1", "normals-without-direction": MESH}


@pytest.mark.parametrize(("flags", "sign", "is_turned"), [(0x40, 1, True), (0x80, -1, True), (0xC0, -1, False)])
def test_mirrored_and_inverted_meshes(flags: int, sign: int, is_turned: bool) -> None:
    """Mirroring negates all axes, which turns triangles over; both flags swap their order."""
    asset = {f"assets/{MESH}_mesh.llmesh": mesh_asset()}
    plain, turned = (
        of_parts(made.part(shape=made.sculpt(5 | bits, MESH)), assets=asset).placement for bits in (0, flags)
    )
    assert plain is not None and turned is not None
    before, after = (placement.models[0].read().nodes[0].mesh for placement in (plain, turned))
    assert before is not None and after is not None
    np.testing.assert_array_equal(after.points, before.points * sign)
    corners = before.corner_point.reshape(-1, 3)
    expected = corners[:, ::-1] if is_turned else corners
    np.testing.assert_array_equal(after.corner_point.reshape(-1, 3), expected)


def test_planar_faces_have_a_mesh_of_their_own_with_uvs_in_metres() -> None:
    entry = made.texture_entry(
        [
            *((value, ()) for value in (bytes(16), bytes(4), struct.pack("<f", 1), struct.pack("<f", 1), bytes(2))),
            *((value, ()) for value in (bytes(2), bytes(2), bytes(1))),
            (b"\0", [(0b1, b"\2")]),
            (b"\0", ()),
            (bytes(16), ()),
        ]
    )
    scene = of_parts(made.part(size=(4, 6, 1), entry=entry), made.part(size=(4, 6, 1)))
    assert scene.placement is not None
    planar, plain = (model.read().nodes[0].mesh for model in scene.placement.models)
    assert planar is not None and plain is not None
    top = np.unique(planar.corner_point.reshape(-1, 3)[planar.material_index == 0])
    x, y = planar.points[top, :2].T * ((4,), (6,))
    # the normal is (0, 0, 1): the binormal is (1, 0, 0), and the tangent binormal x normal (0, -1, 0)
    np.testing.assert_allclose(planar.uvs[0].values[top], np.stack((0.5 + 2 * x, 0.5 + 2 * y), axis=1), atol=1e-6)
    others = np.unique(planar.corner_point.reshape(-1, 3)[planar.material_index > 0])
    np.testing.assert_array_equal(planar.uvs[0].values[others], plain.uvs[0].values[others])


def test_lights_hang_below_their_parts_without_their_size() -> None:
    point = made.extra((0x20, bytes((255, 0, 0, 128)) + struct.pack("<3f", 20, 0, 0.75)))
    spot = made.extra(
        (0x20, bytes((255, 255, 255, 255)) + struct.pack("<3f", 10, 0, 0.75)),
        (0x40, bytes(16) + struct.pack("<3f", 1.5, 0, 0)),
    )
    scene = of_parts(made.part("a", params=point, size=(2, 4, 8)), made.part("b", params=spot))
    lamp, light, _, other = nodes_of(scene)
    assert isinstance(light.content, Light) and light.content.kind is LightKind.POINT and light.parent == 0
    assert light.content.color == (1.0, 0.0, 0.0)
    assert light.content.intensity == pytest.approx(128 / 255 * 4)
    np.testing.assert_allclose((lamp.matrix @ light.matrix)[:3, :3], np.identity(3))
    assert isinstance(other.content, Light)
    assert (other.content.kind, other.content.cone) == (LightKind.SPOT, pytest.approx(1.5))
    clear = of_parts(
        made.part("c", params=made.extra((0x20, bytes((9, 9, 9, 255)) + struct.pack("<3f", 3e38, 0, 0))), entry=CLEAR)
    )
    hidden, shown = nodes_of(clear)
    assert (hidden.collection, shown.collection) == (0, -1)
    assert isinstance(shown.content, Light) and shown.content.intensity <= 4
    off = scene_of({"objects/a.xml": made.linkset(made.part("a", params=point))}, use_region_lights=False)
    assert len(nodes_of(off)) == 1


def test_materials_of_missing_pictures_are_not_those_of_the_pictures() -> None:
    part, asset = made.part(entry=look(texture=uuid_bytes(PICTURE))), f"assets/{PICTURE}_texture.jp2"
    without, whole = of_parts(part).materials[0], of_parts(part, assets={asset: made.picture()}).materials[0]
    assert without.name == whole.name and without.identity != whole.identity


def test_trees_are_as_high_as_the_viewer_grows_them() -> None:
    shape = "<PCode>255</PCode><State>3</State>"
    scene = of_parts(made.part("palm", shape=shape, size=(2, 3, 6), position=(1, 2, 3)))
    (node,) = nodes_of(scene)
    assert isinstance(node.content, Marker) and node.content.size == pytest.approx(13.25 * 7 * 0.05)
    assert node.channels is not None and node.channels.location == (1, 2, pytest.approx(2.9))
    assert node.name == node.properties["Species"] == "Palm 1"


def test_a_linkset_is_an_empty_with_all_its_parts_below() -> None:
    child = made.part("child", is_root=False, position=(0, 0, 1), rotation=(0, 0, 1, 1), size=(3, 3, 3))
    objects = {"objects/a.xml": made.linkset(made.part("root", rotation=(1, 0, 0, 1), size=(5, 5, 5)), child)}
    above, root, below = nodes_of(scene_of(objects))
    assert (above.content, root.parent, below.parent) == (None, 0, 0)
    assert above.channels is not None and above.channels.scale == (1, 1, 1)
    assert root.channels is not None and root.channels.location == (0, 0, 0)
    assert isinstance(root.content, ModelUse) and isinstance(below.content, ModelUse)
    half = math.sqrt(0.5)
    assert below.channels is not None
    np.testing.assert_allclose(below.channels.quaternion, (half, 0, 0, half))  # type: ignore[arg-type]


def test_nodes_are_known_by_the_uuids_of_their_parts() -> None:
    named = made.part("root").replace(made.NULL, made.identity(90), 1)
    files = {"objects/a.xml": made.linkset(named, made.part("child", is_root=False))}
    uuid = made.identity(90)
    assert [node.key for node in nodes_of(scene_of(files))] == [f"linkset {uuid}", f"part {uuid}", ""]


def test_names_choose_objects_and_not_their_parts() -> None:
    files = {
        "objects/a.xml": made.linkset(made.part("Barn [old]"), made.part("door", is_root=False)),
        "objects/b.xml": made.linkset(made.part("door")),
    }
    found: Callable[[str], list[str]] = lambda text: [node.name for node in nodes_of(scene_of(files, only_names=text))]  # noqa: E731
    assert found("BARN*") == ["Barn [old]", "Barn [old]", "door"]
    assert found("door") == ["door"]
    assert found("barn [old]") == found("barn*")
    with pytest.raises(FormatError, match="no object whose name matches 'nothing'"):
        found("nothing")


def heights_of(*rows: tuple[float, ...]) -> bytes:
    return np.array(rows, "<f4").tobytes()


def test_the_ground_goes_on_to_the_next_region_or_ends_in_copies() -> None:
    west = Group("west", size=(2, 2), terrain=heights_of((1, 2), (3, 4)))
    east = Group("east", origin=(2.0, 0.0, 0.0), size=(2, 2), terrain=heights_of((5, 6), (7, 8)))
    built = ground.Ground([west, east])
    found = [built.mesh(group) for group in (west, east)]
    heights = [mesh.points[:, 2].reshape(3, 3).tolist() for mesh in found if mesh is not None]
    assert heights == [[[1, 2, 5], [3, 4, 7], [3, 4, 7]], [[5, 6, 6], [7, 8, 8], [7, 8, 8]]]


def test_heights_that_are_not_valid_are_replaced_and_counted() -> None:
    group = Group("odd", size=(2, 1), terrain=heights_of((math.nan, 1e30)))
    built, scene = ground.Ground([group]), Scene("region")
    mesh = built.mesh(group)
    built.report(scene.report)
    assert mesh is not None and not mesh.points[:, 2].any()
    assert "2 heights of the ground are not valid" in str(messages(scene)["invalid-heights"])


def test_ground_that_is_too_large_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "_LARGEST_SIDE", 1)
    group = Group("wide", size=(2, 1), terrain=heights_of((1, 2)))
    built, scene = ground.Ground([group]), Scene("region")
    built.report(scene.report)
    assert built.mesh(group) is None and "'wide'" in str(messages(scene)["ground-left-out"])


def test_regions_of_one_name_and_place_keep_their_own_grounds_and_collections() -> None:
    files = {"archive.xml": made.control(size="1,1")}
    for number, folder in enumerate(("first", "second")):
        files[f"regions/{folder}/objects/a.xml"] = made.linkset(made.part(folder))
        files[f"regions/{folder}/terrains/Same.r32"] = heights_of((number,))
    scene = OPENSIM_ARCHIVE.to_scene(codec.read(made.packed(*files.items())), "both", {"use_water": False})
    assert scene.placement is not None
    (part,) = scene.placement.parts
    assert [home.name for home in part.collections if home.parent < 0] == ["Same", "Same"]
    assert {node.name: part.collections[node.collection].name for node in part.nodes} == {
        "first": "Same",
        "second": "Same",
        "Same Ground": "Ground",
    }
    homes = {node.name: node.collection for node in part.nodes}
    assert homes["first"] != homes["second"]
    grounds = [model.read() for model in scene.placement.models if model.name == "Same Ground"]
    meshes = [found.nodes[0].mesh for found in grounds]
    assert [mesh.points[:, 2].tolist() for mesh in meshes if mesh is not None] == [[0.0] * 4, [1.0] * 4]


def test_folders_of_an_inventory_are_not_the_collections_of_kinds() -> None:
    paths = [f"inventory/{name}__{made.identity(number)}/" for number, name in enumerate(("Dup", "Dup"), 80)]
    files = {"archive.xml": made.control("0.3")}
    for number, path in enumerate([*paths, f"inventory/Invisible__{made.identity(82)}/", "inventory/"]):
        files[f"{path}item__{made.identity(90 + number)}.xml"] = made.item("item", made.identity(100 + number))
        entry = CLEAR if path == "inventory/" else look()
        files[f"assets/{made.identity(100 + number)}_object.xml"] = made.linkset(made.part("item", entry=entry))
    scene = OPENSIM_ARCHIVE.to_scene(codec.read(made.packed(*files.items())), "mine", BARE)
    assert scene.placement is not None
    (part,) = scene.placement.parts
    assert [(home.name, home.is_hidden) for home in part.collections] == [
        ("Dup", False),
        ("Dup", False),
        ("Invisible", False),
        ("Invisible", True),
    ]
    assert [node.collection for node in part.nodes] == [0, 1, 2, 3]


def test_the_ground_faces_up_and_its_cells_are_split_from_south_west_to_north_east() -> None:
    group = Group("plain", size=(1, 1), terrain=heights_of((1,)))
    mesh = ground.Ground([group]).mesh(group)
    assert mesh is not None
    triangles = mesh.points[mesh.corner_point.reshape(-1, 3)]
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    assert (normals[:, 2] > 0).all()
    assert all({(0, 0), (1, 1)} <= {tuple(corner[:2]) for corner in triangle.tolist()} for triangle in triangles)


def test_an_archive_is_opened_anew_for_its_assets() -> None:
    opened = []
    data = made.FILES["region"]
    document = codec.read(data)
    document.open = lambda: opened.append(1) or io.BytesIO(data)  # type: ignore[func-returns-value]
    OPENSIM_ARCHIVE.to_scene(document, "region", BARE)
    assert opened == [1]
