"""Sculpts: facts of the sample archive, and a slow construction written from the format page alone."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_sculpts
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.second_life.opensim import part_models
from meshferry.io_formats.second_life.opensim.part_models import sculpt_face
from shape_checks import require_same_face

KINDS = {
    "sphere": part_models.SPHERE,
    "torus": part_models.TORUS,
    "plane": part_models.PLANE,
    "cylinder": part_models.CYLINDER,
}
FLAGS = ((False, False), (True, False), (False, True), (True, True))


@cache
def noise(width: int, height: int, components: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(width * height).integers(0, 256, (height, width, components), np.uint8)


def type_of(kind: str, invert: bool, mirror: bool) -> int:
    return KINDS[kind] | part_models.INVERTED * invert | part_models.MIRRORED * mirror


def require_same(size: tuple[int, int], kind: str, invert: bool, mirror: bool) -> None:
    pixels = noise(*size)
    face = sculpt_face(pixels, type_of(kind, invert, mirror))
    assert face.role == "sculpt"
    require_same_face(face, slow_sculpts.sculpt(pixels.tolist(), kind, invert, mirror), (size, kind, invert, mirror))


@pytest.mark.parametrize("kind", KINDS)
def test_sculpts_are_as_the_page_says(kind: str) -> None:
    for invert, mirror in FLAGS:
        require_same((32, 32), kind, invert, mirror)
    # The flags only choose and negate columns.
    for number, size in enumerate(((8, 8), (64, 128), (2, 3), (1, 1), (16, 32))):
        require_same(size, kind, *FLAGS[number % 4])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sculpts_of_all_sizes_are_as_the_page_says(kind: str) -> None:
    sizes = ((32, 32), (64, 64), (128, 128), (64, 128), (128, 64), (8, 8), (8, 64), (64, 8), (32, 256), (256, 32))
    sizes += ((16, 512), (512, 16), (1024, 256), (256, 1024), (1, 1), (2, 3), (3, 2), (1, 2048), (20, 33))
    for number, size in enumerate(sizes):
        require_same(size, kind, *FLAGS[number % 4])


@pytest.mark.parametrize(
    ("size", "rows", "columns"),
    [
        ((32, 32), 17, 17),
        ((64, 64), 33, 33),
        ((2048, 2048), 33, 33),
        ((128, 64), 23, 47),
        ((64, 128), 48, 23),
        ((128, 256), 48, 23),
        ((32, 256), 95, 12),
        ((16, 512), 206, 6),
        ((512, 16), 6, 206),
        ((2, 3), 2, 5),
    ],
)
def test_grids_have_the_viewers_rows_and_columns(size: tuple[int, int], rows: int, columns: int) -> None:
    face = sculpt_face(noise(*size), part_models.PLANE)
    assert len(face.points) == rows * columns
    assert len(np.unique(face.uvs[:, 0])) == columns
    # Of a row that rounding adds, v is less than one step of a 32-bit number away from 1.
    assert len(np.unique(face.uvs[:, 1])) == rows


def test_poles_have_one_triangle_for_each_column() -> None:
    face = sculpt_face(noise(64, 64), part_models.SPHERE)
    assert len(face.triangles) == 2 * 32 * 32 - 2 * 32
    assert len(np.unique(face.points[:33], axis=0)) == 1
    assert len(np.unique(face.normals[:33], axis=0)) == 1


def test_other_kinds_are_stitched_like_planes() -> None:
    plane = sculpt_face(noise(32, 32), part_models.PLANE)
    for sculpt_type in (0, 5, 6, 7, part_models.PLANE | 0x38):
        assert np.array_equal(sculpt_face(noise(32, 32), sculpt_type).normals, plane.normals)


def test_further_components_are_ignored() -> None:
    pixels = noise(32, 32, 5)
    assert np.array_equal(sculpt_face(pixels, 1).points, sculpt_face(pixels[..., :3], 1).points)


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 8, 2), (0, 8, 3), (8, 0, 3), (1, 2049, 3), (2049, 1, 3)])
def test_unusable_maps_are_format_errors(shape: tuple[int, int, int]) -> None:
    with pytest.raises(FormatError, match="map of the sculpt"):
        sculpt_face(np.zeros(shape, np.uint8), 1)


@pytest.mark.needs_bpy
def test_sculpts_of_the_sample_archive_have_the_stated_points(samples: Path, tmp_path: Path) -> None:
    import bpy

    folder = samples / "opensim_archives"
    parts = json.loads((folder / "expected.json").read_text("utf-8"))["region.oar"]["parts"]
    sculpts = [part for part in parts if part["kind"] == "sculpt"]
    assert len(sculpts) == 20
    maps = {}
    with tarfile.open(folder / "region.oar") as archive:
        for uuid in {part["asset"] for part in sculpts}:
            member = archive.extractfile(f"assets/{uuid}_texture.jp2")
            assert member is not None
            path = tmp_path / f"{uuid}.jp2"
            path.write_bytes(member.read())
            image = bpy.data.images.load(str(path))
            image.colorspace_settings.name = "Non-Color"
            colors = np.empty(len(image.pixels), np.float32)
            image.pixels.foreach_get(colors)
            width, height = image.size
            maps[uuid] = np.round(colors * 255).astype(np.uint8).reshape(height, width, -1)
    for part in sculpts:
        facts = part["sculpt"]
        pixels = maps[part["asset"]]
        assert [pixels.shape[1], pixels.shape[0]] == facts["map"]
        face = sculpt_face(pixels, type_of(facts["kind"], facts["invert"], facts["mirror"]))
        assert len(face.points) == facts["points"] == facts["rows"] * facts["columns"]
        bounds = face.points.min(axis=0), face.points.max(axis=0)
        assert np.abs(np.array(bounds) - (facts["bbox_min"], facts["bbox_max"])).max() < 1e-6, part["name"]
        for name, point in facts["named_points"].items():
            index = point["row"] * facts["columns"] + point["column"]
            assert np.abs(face.points[index] - point["position"]).max() < 1e-6, (part["name"], name)
            assert np.abs(face.uvs[index] - point["uv"]).max() < 1e-6, (part["name"], name)
