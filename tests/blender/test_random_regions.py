"""Random regions of OpenSim in Blender, against facts from their descriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from helpers_regions import TRANSPARENT, check_face
from meshfuzz import opensim_archive_seeds as made
from random_regions import Fact, RandomRegion

pytestmark = pytest.mark.needs_bpy

MAP, OPAQUE, CLEAR = (made.identity(number) for number in (900, 901, 902))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the pixels of a sculpt map, and the codestreams of all pictures, encoded by Blender."""
    folder = tmp_path_factory.mktemp("pictures")
    maps, streams = {}, {}
    settings = bpy.context.scene.render.image_settings
    for uuid, mode in ((MAP, "RGB"), (OPAQUE, "RGB"), (CLEAR, "RGBA")):
        image = bpy.data.images.new("noise", 32, 32, alpha=True)
        colours = np.random.default_rng(len(streams)).random((32 * 32 * 4), np.float32)
        image.pixels.foreach_set(colours)
        path = folder / f"{uuid}.j2c"
        settings.file_format, settings.jpeg2k_codec, settings.quality = "JPEG2000", "J2K", 100
        settings.color_mode, settings.color_depth = mode, "8"
        image.save_render(str(path))
        streams[uuid] = path.read_bytes()
        bpy.data.images.remove(image)
    stored = bpy.data.images.load(str(folder / f"{MAP}.j2c"))
    stored.colorspace_settings.name = "Non-Color"
    pixels = np.array(stored.pixels[:]).reshape(32, 32, 4)[..., :3]
    maps[MAP] = np.rint(pixels * 255)
    bpy.data.images.remove(stored)
    return maps, streams


def check_part(fact: Fact) -> None:
    """Compare the object of a part with its facts."""
    (obj,) = (found for found in bpy.data.objects if found.type == "MESH" and found.name.split(".")[0] == fact.name)
    world = np.array(obj.matrix_world)
    np.testing.assert_allclose(world[:3, 3], fact.world[:3, 3], atol=1e-4, err_msg=fact.name)
    np.testing.assert_allclose(world[:3, :3], fact.world[:3, :3], rtol=1e-5, atol=max(fact.size) * 2e-6)
    np.testing.assert_allclose(obj.scale, fact.size, rtol=1e-6)
    assert (obj.parent is not None) == fact.is_linked
    assert obj.parent is None or tuple(obj.parent.scale) == (1, 1, 1)
    points = np.array([vertex.co for vertex in obj.data.vertices])
    if fact.kind.points is not None:  # each point is among those of the facts, and each of theirs among the points
        distances = np.linalg.norm(points[:, None] - fact.kind.points, axis=2)
        assert distances.min(axis=0).max() < 2e-6
        assert len(fact.kind.points) == 8 or distances.min(axis=1).max() < 2e-6
    assert len(obj.material_slots) == fact.kind.faces
    for number, direction in fact.kind.directions.items():
        sides = [side for side in obj.data.polygons if side.material_index == number]
        assert sides
        for side in sides:
            np.testing.assert_allclose(side.normal, direction, atol=1e-5)
            np.testing.assert_allclose(np.dot(side.center, direction), 0.5, atol=1e-5)
    for slot, face in zip(obj.material_slots, fact.faces, strict=True):
        check_face(slot.material, face, {CLEAR})
    is_invisible = all(face["colour"][3] == 0 or face["texture"] == TRANSPARENT for face in fact.faces)
    assert obj.users_collection[0].name.startswith("Invisible") == is_invisible


def check_region(seed: int, pictures: tuple[dict[str, Any], dict[str, bytes]], path: Path) -> None:
    bpy.ops.wm.read_homefile(use_empty=True)
    region = RandomRegion(seed, *pictures)
    path.write_bytes(region.archive)
    assert bpy.ops.import_scene.second_life(filepath=str(path), use_ground=False, use_water=False) == {"FINISHED"}
    bpy.context.view_layer.update()
    for fact in region.facts:
        check_part(fact)
    shown = sum(obj.type == "MESH" for obj in bpy.data.objects)
    assert shown == len(region.facts)


@pytest.mark.parametrize("seed", range(4))
def test_random_regions_are_what_they_describe(
    clean_blender: Any, pictures: tuple[dict[str, Any], dict[str, bytes]], tmp_path: Path, seed: int
) -> None:
    check_region(seed, pictures, tmp_path / "region.oar")


@pytest.mark.slow
@pytest.mark.any_version
def test_many_random_regions_are_what_they_describe(
    clean_blender: Any, pictures: tuple[dict[str, Any], dict[str, bytes]], tmp_path: Path
) -> None:
    for seed in range(100, 140):
        check_region(seed, pictures, tmp_path / "region.oar")
