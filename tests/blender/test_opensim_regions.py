"""Regions of OpenSim in Blender: every part of the sample archives against the facts that were stated for them."""

from __future__ import annotations

import itertools
import json
import tarfile
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
import uv_transforms
from helpers_regions import check_face
from helpers_render import render_from_above
from meshferry.blender_data import names
from meshferry.blender_data.importing import importer
from meshferry.blender_data.importing.import_context import ImportResult
from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
from meshferry.io_formats import api
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.second_life.opensim import ground
from meshfuzz import opensim_archive_seeds as made

pytestmark = pytest.mark.needs_bpy

PLACE, SIZE = 1e-4, 1e-6
FIRST_WITH_TWO_COMPONENTS = (5, 2)
REFUSED = {"gzip_cut.oar", "tar_10gb_claim.oar", "not_gzip.oar", "major_2.oar"}
WITHOUT_WARNING = {"self_reference.oar", "self_reference.iar"}
HOSTILE = (
    *("absolute_member.oar", "dotdot_member.oar", "gzip_cut.oar", "j2c_empty.oar", "j2c_huge_tile.oar"),
    *("j2c_subsampled_alpha.oar", "j2c_truncated.oar", "j2c_two_components.oar", "link_member.oar", "major_2.oar"),
    *("nan_position.oar", "no_archive_xml.oar", "not_gzip.oar", "self_reference.iar", "self_reference.oar"),
    *("tar_10gb_claim.oar", "xml_dtd.oar"),
)


def imported(path: Path, **options: Any) -> ImportResult:
    scene = api.read_scene(path, options)
    return importer.import_scene(ImportRequest(bpy.context, scene, ImportOptions.of({"normals": "AUTO"}), str(path)))


def facts(samples: Path, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((samples / "opensim_archives" / "expected.json").read_bytes())[file]
    return found


def object_of(part: dict[str, Any]) -> Any:
    """Return the object of a part, not the empty of its linkset."""
    kind = "EMPTY" if part["asset_missing"] else "MESH"
    wanted = np.array(part["position"])
    named = [obj for obj in bpy.data.objects if obj.type == kind and names.name_in_file(obj) == part["name"]]
    return min(named, key=lambda obj: np.abs(np.array(obj.matrix_world.translation) - wanted).max())


def rotation_of(quaternion: list[float]) -> Any:
    x, y, z, w = quaternion
    return np.array(
        [
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        ]
    )


def check_place(part: dict[str, Any]) -> None:
    obj = object_of(part)
    world = np.array(obj.matrix_world)
    size = np.array(part["size"])
    tolerance = PLACE if np.abs(part["position"]).max() < 1000 else 1e-3
    np.testing.assert_allclose(world[:3, 3], part["position"], atol=tolerance, err_msg=part["name"])
    np.testing.assert_allclose(obj.scale, size, rtol=SIZE, err_msg=part["name"])
    np.testing.assert_allclose(world[:3, :3] / size, rotation_of(part["rotation"]), atol=2e-5, err_msg=part["name"])
    assert obj.rotation_mode == "QUATERNION"
    assert obj.parent is None or (obj.parent.type == "EMPTY" and tuple(obj.parent.scale) == (1, 1, 1))


def images_with_alpha(path: Path) -> set[str]:
    """Return the UUIDs of the pictures of an archive that have four components (byte 40 of a codestream)."""
    with tarfile.open(path) as archive:
        pictures = {member.name[7:43]: archive.extractfile(member) for member in archive if "_texture" in member.name}
        return {uuid for uuid, stream in pictures.items() if stream is not None and stream.read()[40:42] == b"\0\4"}


def test_every_part_of_the_region_stands_at_its_place(samples: Path) -> None:
    imported(samples / "opensim_archives" / "region.oar")
    parts = facts(samples, "region.oar")["parts"]
    for part in parts:
        if part["kind"] != "tree":
            check_place(part)
    meshes = [part for part in parts if part["kind"] != "tree" and not part["asset_missing"]]
    shown = [obj for obj in bpy.data.objects if obj.type == "MESH" and "Ground" not in obj.name and obj.name != "Water"]
    assert len(shown) == len(meshes)
    assert object_of(parts[5]).parent is object_of(parts[1]).parent  # a linkset
    shared = [object_of(part).data for part in parts if part["linkset"] == "shared asset"]
    assert shared[0] == shared[1] == shared[2]


def test_every_face_of_the_region_has_its_look(samples: Path) -> None:
    imported(path := samples / "opensim_archives" / "region.oar")
    with_alpha = images_with_alpha(path)
    for part in facts(samples, "region.oar")["parts"]:
        if part["kind"] != "tree" and not part["asset_missing"]:
            slots = object_of(part).material_slots
            assert len(slots) == len(part["faces"]), part["name"]
            for slot, face in zip(slots, part["faces"], strict=True):
                check_face(slot.material, face, with_alpha)


def test_sculpts_have_the_points_of_their_maps(samples: Path) -> None:
    imported(samples / "opensim_archives" / "region.oar")
    for part in facts(samples, "region.oar")["parts"]:
        if part["kind"] == "sculpt":
            points = np.array([vertex.co for vertex in object_of(part).data.vertices])
            for corner, wanted in ((points.min(axis=0), "bbox_min"), (points.max(axis=0), "bbox_max")):
                np.testing.assert_allclose(corner, part["sculpt"][wanted], atol=2e-6, err_msg=part["name"])


def test_uvs_are_those_of_the_face_parameters(samples: Path) -> None:
    imported(samples / "opensim_archives" / "region.oar")
    stated = facts(samples, "region.oar")
    part = next(part for part in stated["parts"] if part["name"] == "face parameters")
    obj = object_of(part)
    for entry in stated["uv_after_transform"]:
        slot = obj.material_slots[entry["face"]]
        (node,) = (node for node in slot.material.node_tree.nodes if node.type == "MAPPING")
        for vertex in entry["vertices"]:
            shown = uv_transforms.of_node(node, np.array([vertex["uv_stored"]]))
            np.testing.assert_allclose(shown, [vertex["uv"]], atol=1e-5)


def test_what_is_left_out_is_named(samples: Path) -> None:
    result = imported(samples / "opensim_archives" / "region.oar")
    text = "\n".join(map(str, result.warnings))
    stated = facts(samples, "region.oar")
    for name in (*stated["missing_textures"], *stated["missing_meshes"], "1 parcel", "1 script", "1 tree"):
        assert name in text


def test_the_ground_has_the_stated_heights_and_mixture(samples: Path) -> None:
    imported(samples / "opensim_archives" / "region.oar")
    stated = facts(samples, "region.oar")["terrain"]
    check_ground(stated, bpy.data.objects["Sample Region Ground"])
    assert bpy.data.objects["Water"].location.z == stated["water"]
    material = bpy.data.objects["Sample Region Ground"].material_slots[0].material
    used = [node.image.name.split(".")[0] for node in material.node_tree.nodes if node.type == "TEX_IMAGE"]
    assert sorted(used) == sorted((stated["textures"][0], stated["textures"][2]))
    assert sum(node.type == "MIX" for node in material.node_tree.nodes) == 3


def check_ground(stated: dict[str, Any], ground: Any) -> None:
    """Compare the ground of a region; places are stated in the space of all regions."""
    side = stated["points"]
    assert len(ground.data.vertices) == side * side
    mixture = ground.data.attributes["mixture"].data
    for sample in stated["samples"]:
        x, y = (int(sample[axis] - ground.location[at]) for at, axis in enumerate("xy"))
        number = y * side + x
        point = ground.data.vertices[number].co
        np.testing.assert_allclose(point, (x, y, sample["height"]), atol=1e-5)
        assert mixture[number].value == pytest.approx(sample["mix"], abs=1e-5)


def test_the_ground_shows_its_mixture_at_its_corners(tmp_path: Path) -> None:
    """The picture is that of a region of 16 m without textures of its own, from above, without any light."""
    side, colors = 16, np.array(ground.COLORS)
    south_west, south_east, north_west, north_east = 17.5, 32.5, 47.5, 54.0  # the mixture is 0.5, 1.5, 2.5 and 2.93
    y, x = np.mgrid[:side, :side] / (side - 1)
    south, north = south_west + (south_east - south_west) * x, north_west + (north_east - north_west) * x
    heights = (south + (north - south) * y).astype("<f4")
    path = tmp_path / "slope.oar"
    control, settings = made.control(size=f"{side},{side}"), b"<RegionSettings/>"
    files = (("archive.xml", control), ("settings/a.xml", settings), ("terrains/a.r32", heights.tobytes()))
    path.write_bytes(made.packed(*files))
    imported(path, use_water=False)
    (shown,) = bpy.data.objects
    tree = shown.material_slots[0].material.node_tree
    (output,) = (node for node in tree.nodes if node.type == "OUTPUT_MATERIAL")
    (shader,) = (node for node in tree.nodes if node.type == "BSDF_PRINCIPLED")
    emission = tree.nodes.new("ShaderNodeEmission")
    tree.links.new(shader.inputs["Base Color"].links[0].from_socket, emission.inputs["Color"])
    tree.links.new(emission.outputs["Emission"], output.inputs["Surface"])
    shown.location, shown.scale = (-1, -1, 0), (2 / side, 2 / side, 0.01)
    picture = render_from_above(tmp_path, 4 * side, 16)
    for row, column in itertools.product((4, -5), repeat=2):  # the outermost pixels show the border, too
        x, y = (((at % (4 * side)) + 0.5) / 4 / (side - 1) for at in (column, row))
        south, north = south_west + (south_east - south_west) * x, north_west + (north_east - north_west) * x
        mixed = 4 * (south + (north - south) * y - 10) / 60
        first = min(int(mixed), 2)
        expected = colors[first] + (colors[first + 1] - colors[first]) * (mixed - first)
        np.testing.assert_allclose(picture[row, column], expected, atol=1e-3)


def test_several_regions_stand_side_by_side(samples: Path) -> None:
    imported(samples / "opensim_archives" / "two_regions.oar")
    regions = facts(samples, "two_regions.oar")["regions"]
    for region in regions:
        (home,) = (one for one in bpy.data.collections if one.meshferry.source_name == region["name"])
        for part in region["parts"]:
            check_place(part)
            assert object_of(part).name in home.all_objects
        ground = bpy.data.objects[f"{region['name']} Ground"]
        np.testing.assert_allclose(ground.location, region["origin"])
        check_ground(region["terrain"], ground)
    assert {"Ground", "Ground North East"} <= set(bpy.data.collections.keys())


def test_one_of_several_regions(samples: Path) -> None:
    path = samples / "opensim_archives" / "two_regions.oar"
    region = facts(samples, "two_regions.oar")["regions"][1]
    imported(path, region=region["name"].upper(), use_water=False, use_ground=False)
    assert len(bpy.data.objects) == len(region["parts"])
    with pytest.raises(FormatError, match="South West"):
        api.read_scene(path, {"region": "nowhere"})


def test_items_of_an_inventory_stand_in_rows(samples: Path) -> None:
    imported(samples / "opensim_archives" / "inventory.iar")
    for item in facts(samples, "inventory.iar")["items"]:
        parts = [part for one in item["objects"] for part in one["parts"]]
        shift = np.array(object_of(parts[0]).matrix_world.translation) - parts[0]["position"]
        for part in parts:
            obj = object_of(part)
            moved = {**part, "position": np.array(part["position"]) + shift}
            check_place(moved)
            assert obj.users_collection[0].meshferry.source_name == item["folder"]


def test_only_objects_of_a_name(samples: Path) -> None:
    options = {"only_names": "SHARED*", "use_ground": False, "use_water": False}
    imported(samples / "opensim_archives" / "region.oar", **options)
    assert sorted(obj.type for obj in bpy.data.objects) == ["EMPTY", "MESH", "MESH", "MESH"]


@pytest.mark.parametrize("file", HOSTILE)
def test_hostile_archives_end_as_told(samples: Path, file: str) -> None:
    path = samples / "opensim_archives" / "hostile" / file
    if file in REFUSED:
        with pytest.raises(FormatError):
            imported(path)
        assert not bpy.data.objects
        return
    result = imported(path)
    reads_two = file == "j2c_two_components.oar" and bpy.app.version >= FIRST_WITH_TWO_COMPONENTS
    losses = [message for message in result.warnings if not message.is_note and message.code != "default-ground"]
    assert bool(losses) != (file in WITHOUT_WARNING or reads_two), list(map(str, losses))
    shown = {names.name_in_file(obj) for obj in bpy.data.objects if obj.type == "MESH"}
    assert "good object" in shown or file.endswith(".iar")
    for image in bpy.data.images:  # what is left in the file can be decoded
        assert image.size[0] > 0
    for folder in (Path("/tmp"), Path.cwd(), Path.cwd().parent, path.parent, path.parent.parent):
        assert not list(folder.glob("meshferry_escaped*"))


def test_linksets_move_as_a_whole(samples: Path) -> None:
    imported(samples / "opensim_archives" / "region.oar")
    (root,) = (obj for obj in bpy.data.objects if obj.type == "EMPTY" and names.name_in_file(obj) == "linkset of five")
    before = {child: np.linalg.inv(root.matrix_world) @ np.array(child.matrix_world) for child in root.children}
    root.location = (1, 2, 3)
    root.rotation_quaternion = (0.5, 0.5, 0.5, 0.5)
    bpy.context.view_layer.update()
    for child, wanted in before.items():
        moved = np.linalg.inv(root.matrix_world) @ np.array(child.matrix_world)
        np.testing.assert_allclose(moved, wanted, atol=PLACE)
