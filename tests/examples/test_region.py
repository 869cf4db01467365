"""The example region: the same on every run, a plain tar file, pictures without loss, and its import in Blender."""

from __future__ import annotations

import gzip
import io
import tarfile
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import example_scripts
import numpy as np
import pytest
from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
from meshferry.blender_data.importing.importer import import_scene
from meshferry.io_formats import api
from meshferry.io_formats.second_life.opensim.format import OPENSIM_ARCHIVE

pytestmark = pytest.mark.needs_bpy

LINKSETS = {"House": 17, "Fountain": 8, "Gate": 5, "Stall": 9, "Column": 3, "Lamp": 4}
"""Number of parts of each linkset."""
SINGLE = {"Square": 1, "Vase": 4, "Rock": 5, "Tree": 6}
"""Number of objects of one part."""
COLUMNS, LAMPS = 4, 3


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("bpy", reason="Blender is absent")
    for name in ("make_project", "make_vase"):  # which it imports
        example_scripts.script(name)
    return example_scripts.script("make_region")


@pytest.fixture(scope="module")
def archive(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("region") / "region.oar"
    script.main(path)
    return path


@pytest.fixture(scope="module")
def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: read.read() for member in tar if (read := tar.extractfile(member)) is not None}


def test_it_is_the_same_on_every_run(script: ModuleType, archive: Path, tmp_path: Path) -> None:
    script.main(tmp_path / "again" / "region.oar")
    assert (tmp_path / "again" / "region.oar").read_bytes() == archive.read_bytes()
    assert archive.stat().st_size < 500_000


def test_it_is_a_tar_file_of_the_oldest_layout(archive: Path, members: dict[str, bytes]) -> None:
    plain = gzip.decompress(archive.read_bytes())
    assert b"ustar" not in plain[:512] and len(plain) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert all(member.isreg() and len(member.name) < 100 for member in tar)
    assert next(iter(members)) == "archive.xml"
    assert [len(data) for name, data in members.items() if name.endswith(".r32")] == [256 * 256 * 4]


def test_its_objects_name_assets_that_are_in_it(script: ModuleType, members: dict[str, bytes]) -> None:
    roots = [ET.fromstring(data) for name, data in members.items() if name.startswith("objects/")]
    counts: dict[str, list[int]] = {name: [] for name in LINKSETS | SINGLE}
    for root in roots:
        parts = list(root.iter("SceneObjectPart"))
        counts[parts[0].findtext("Name", "")].append(len(parts))
    found = {name: set(numbers) for name, numbers in counts.items()}
    assert found == {name: {number} for name, number in LINKSETS.items()} | {name: {1} for name in SINGLE}
    assert {name: len(counts[name]) for name in SINGLE} == SINGLE
    assert (len(counts["Column"]), len(counts["Lamp"])) == (COLUMNS, LAMPS)
    uuids = [element.text for root in roots for element in root.findall(".//SceneObjectPart/UUID/UUID")]
    assert len(set(uuids)) == len(uuids) == sum(map(sum, counts.values()))
    shapes = {element.text for root in roots for element in root.findall(".//SculptTexture/UUID")}
    files = {name.partition("_")[0].removeprefix("assets/") for name in members if name.startswith("assets/")}
    assert shapes - {str(uuid.UUID(int=0))} == {str(script.identifier(name)) for name in ("vase", "rock map")}
    assert {str(script.identifier(name)) for name in (*script.pictures(), "vase")} == files


def test_its_pictures_show_what_was_drawn(script: ModuleType, members: dict[str, bytes], clean_blender: Any) -> None:
    for name, drawn in script.pictures().items():
        data = members[f"assets/{script.identifier(name)}_texture.jp2"]
        image = clean_blender.data.images.new(name, 1, 1)
        image.pack(data=data, data_len=len(data))
        image.source, image.alpha_mode = "FILE", "CHANNEL_PACKED"
        image.colorspace_settings.name = "Non-Color"
        height, width, channels = drawn.shape
        assert tuple(image.size) == (width, height)
        pixels = np.empty(width * height * 4, np.float32)
        image.pixels.foreach_get(pixels)
        shown = np.rint(pixels.reshape(height, width, 4)[::-1, :, :channels] * 255)
        assert np.array_equal(shown, drawn)


def imported(bpy: Any, archive: Path, **options: Any) -> list[str]:
    """Import the region; return the warnings."""
    scene = api.read_scene(archive, options)
    made = import_scene(ImportRequest(bpy.context, scene, ImportOptions.of(), str(archive)))
    bpy.context.view_layer.update()
    return [str(message) for message in (*scene.warnings, *made.warnings)]


def named(bpy: Any, name: str, kind: str = "MESH") -> list[Any]:
    return [obj for obj in bpy.data.objects if obj.name.partition(".")[0] == name and obj.type == kind]


def test_blender_shows_every_part_at_its_place(script: ModuleType, archive: Path, clean_blender: Any) -> None:
    assert api.load(archive).format is OPENSIM_ARCHIVE
    imported(clean_blender, archive)
    parts = sum(LINKSETS.values()) + 3 * (COLUMNS - 1) + 4 * (LAMPS - 1) + sum(SINGLE.values()) - SINGLE["Tree"]
    meshes = [obj for obj in clean_blender.data.objects if obj.type == "MESH"]
    assert len(meshes) == parts + len(("ground", "water"))
    (house,) = named(clean_blender, "House", "EMPTY")
    assert len(house.children) == LINKSETS["House"] and tuple(house.scale) == (1, 1, 1)
    for placed in script.objects():
        kind = "EMPTY" if len(placed.parts) > 1 else "MESH"
        if placed.pcode == 9:
            distances = [
                np.abs(np.array(obj.matrix_world.translation) - placed.position).max()
                for obj in named(clean_blender, placed.parts[0].name, kind)
            ]
            assert min(distances) < 1e-4
    (roof,) = (obj for obj in named(clean_blender, "Roof") if obj.parent == house)
    corners = np.array([roof.matrix_world @ vertex.co for vertex in roof.data.vertices])
    low, high = corners.min(axis=0), corners.max(axis=0)
    assert np.allclose(roof.scale, (4, 9.2, 10))
    # A triangle of 3/4 of the size, whose ridge is 2 m above its middle: 4.4 m above the floor
    np.testing.assert_allclose((low[2], high[2]), house.location.z + 4.4 + np.array((-1, 2)), atol=1e-3)
    assert 10 < high[0] - low[0] < 12 and 7.5 < high[1] - low[1] < 10


def test_blender_shows_the_looks_of_faces(script: ModuleType, archive: Path, clean_blender: Any) -> None:
    warnings = imported(clean_blender, archive)
    assert not [text for text in warnings if "not in the archive" in text or "left out;" in text]
    vases = named(clean_blender, "Vase")
    assert len({obj.data for obj in vases}) == 1 and len({obj.material_slots[0].material for obj in vases}) > 3
    assert len({obj.material_slots[1].material for obj in vases if obj.parent is None}) == 1
    (barrier,) = named(clean_blender, "Barrier")
    assert [collection.name for collection in barrier.users_collection] == ["Invisible"] and not barrier.visible_get()
    images = {image.meshferry.source_path.rpartition("/")[2][:36] for image in clean_blender.data.images}
    seen = {str(script.identifier(name)) for name in script.pictures() if name != "rock map"}
    assert seen <= images
    pieces = {obj.name.partition(".")[0] for obj in clean_blender.data.objects if obj.type == "LIGHT"}
    assert pieces == {"Glass Light"} and len(clean_blender.data.lights) == LAMPS


def test_only_wanted_objects_are_imported(archive: Path, clean_blender: Any) -> None:
    imported(clean_blender, archive, only_names="FOUNTA*", use_ground=False, use_water=False)
    assert len([obj for obj in clean_blender.data.objects if obj.type == "MESH"]) == LINKSETS["Fountain"]
