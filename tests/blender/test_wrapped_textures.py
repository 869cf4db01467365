"""What Blender shows of wrapped pixels: against another decoder, and against the images they were made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import texture_oracle as oracle
from load_package import SAMPLES
from meshferry.io_formats.encodings import dds
from meshferry.io_formats.encodings.dds import Layout, Picture
from meshferry.io_formats.encodings.quantization import srgb_to_linear
from meshferry.io_formats.unigine.project import project_textures

bpy = pytest.importorskip("bpy", reason="Blender is absent")
image_decoding = pytest.importorskip("meshferry.blender_data.image_decoding")

pytestmark = pytest.mark.needs_bpy
FOLDER = SAMPLES / "unigine_scenes"
WIDTH, HEIGHT = 13, 6


def shown(data: bytes) -> np.ndarray[Any, Any]:
    """Return what Blender makes of a packed file, (H, W, 4) in 8-bit steps, rows from the top."""
    image = bpy.data.images.new("picture", 1, 1)
    image.source = "FILE"
    image.pack(data=data, data_len=len(data))
    return pixels(image)


def pixels(image: Any) -> np.ndarray[Any, Any]:
    width, height = image.size
    values = np.empty(width * height * 4, np.float32)
    image.pixels.foreach_get(values)
    return values.reshape(height, width, 4)[::-1] * 255


def decoded(layout: Layout, width: int, height: int, blocks: bytes) -> np.ndarray[Any, Any]:
    decoder = pytest.importorskip("texture2ddecoder", reason="texture2ddecoder is absent")
    values = getattr(decoder, f"decode_{layout.value.lower()}")(blocks, width, height)
    return np.frombuffer(values, np.uint8).reshape(height, width, 4)[..., [2, 1, 0, 3]].astype(float)


@pytest.mark.parametrize(
    ("layout", "channels"),
    [(Layout.BC1, "RGBA"), (Layout.BC3, "RGBA"), (Layout.BC4, "R"), (Layout.BC5, "RG"), (Layout.BC7, "RGBA")],
)
def test_blocks_are_decoded(layout: Layout, channels: str) -> None:
    blocks = np.random.default_rng(1).integers(0, 256, layout.size(WIDTH, HEIGHT), np.uint8)
    if layout in (Layout.BC1, Layout.BC3):
        rows = blocks.reshape(-1, layout.unit_size)
        rows[:, -8:] = oracle.mode_of_four_colors(rows[:, -8:])
    found = shown(dds.write(Picture(layout, WIDTH, HEIGHT, blocks.tobytes())))
    assert found.shape == (HEIGHT, WIDTH, 4)
    wanted = decoded(layout, WIDTH, HEIGHT, blocks.tobytes())
    for number, channel in enumerate("RGBA"):
        if channel in channels:
            assert np.abs(found[..., number] - wanted[..., number]).max() < 2.01
    if layout == Layout.BC4:
        assert (found[..., 1] == found[..., 0]).all() and (found[..., 2] == found[..., 0]).all()


@pytest.mark.parametrize("layout", [layout for layout in Layout if not layout.is_compressed])
def test_bytes_are_shown_exactly(layout: Layout) -> None:
    values = np.random.default_rng(2).integers(0, 256, (HEIGHT, WIDTH, layout.unit_size), np.uint8)
    found = shown(dds.write(Picture(layout, WIDTH, HEIGHT, values.tobytes())))
    for number, channel in enumerate(layout.value.rstrip("8")):
        if channel != "X":
            assert np.abs(found[..., "RGBA".index(channel)] - values[..., number]).max() < 0.01


@pytest.mark.parametrize("layout", [*Layout])
def test_means_are_those_of_the_pixels(layout: Layout) -> None:
    """Random endpoints of blocks and random bytes, brighter in red; layouts without red, green and blue have none."""
    values = np.random.default_rng(3).integers(0, 120, layout.size(64, 48), np.uint8)
    if layout.is_compressed:
        rows = values.reshape(-1, layout.unit_size)
        rows[:, [-7, -5]] |= 0x80
        rows[:, -8:] = oracle.mode_of_four_colors(rows[:, -8:])
    elif "R" in layout.value:
        values.reshape(-1, layout.unit_size)[:, layout.value.index("R")] += 100
    picture = Picture(layout, 64, 48, values.tobytes())
    image = bpy.data.images.new("picture", 1, 1)
    image.source, image.filepath_raw = "FILE", "//a.dds"
    data = dds.write(picture)
    image.pack(data=data, data_len=len(data))
    mean = image_decoding.mean_color(image)
    assert not image.has_data, "it was decoded for its mean"
    if layout in {Layout.R8, Layout.RG8} or layout.value in {"BC4", "BC5", "BC6H", "BC6H signed", "BC7"}:
        assert mean is None
        return
    wanted = srgb_to_linear((pixels(image)[..., :3] / 255).astype(np.float32).reshape(-1, 3)).mean(axis=0)
    np.testing.assert_allclose(mean, wanted, atol=0.03)
    np.testing.assert_allclose(image_decoding.mean_color(image), wanted, atol=0.03)  # of the decoded image
    np.testing.assert_allclose(image_decoding.mean_of_dds(data), wanted, atol=0.03)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is absent")
@pytest.mark.slow
def test_real_textures_are_decoded() -> None:
    for path in sorted(FOLDER.rglob("*.texture")):
        picture = project_textures.read_picture(path.read_bytes())
        code, width, height, blocks = oracle.pixels_of_texture(path.read_bytes())
        layout = {21: Layout.BC1, 24: Layout.BC4, 25: Layout.BC5}[code]
        found, wanted = shown(dds.write(picture)), decoded(layout, width, height, blocks)
        channels = {Layout.BC1: 3, Layout.BC4: 1, Layout.BC5: 2}[layout]
        assert np.abs(found[..., :channels] - wanted[..., :channels]).max() < 2.01


PAIRS = {
    "mit_lone_mesh_tx11/data/.runtimes/7e/7ee5c14618f1a7ed2fc1e8689e0930a7ac97f5da.texture": (
        "mit_lone_mesh_tx11/data/template_assets/template_material_ball/material_ball_a.png", "R", 0.9
    ),
    "vr_props_dds_2_8/data/.runtimes/70/7048515fb2cdef32ba1404e92429093452432303.dds": (
        "vr_props_dds_2_8/data/vr_sample/props/household/textures/light_alb.png", "RGB", 3.8
    ),
}  # fmt: skip
"""Textures of the samples, the images they were made from, the channels, and the largest mean error."""


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is absent")
@pytest.mark.parametrize("name", PAIRS)
def test_real_textures_show_their_source(name: str) -> None:
    source, channels, error = PAIRS[name]
    data = Path(FOLDER / name).read_bytes()
    found = shown(dds.write(project_textures.read_picture(data) if name.endswith(".texture") else dds.read(data)))
    wanted = pixels(bpy.data.images.load(str(FOLDER / source)))
    assert found.shape == wanted.shape
    for number in range(len(channels)):
        assert np.abs(found[..., number] - wanted[..., number]).mean() < error
        assert np.abs(found[::-1, :, number] - wanted[..., number]).mean() > 5 * error, "upside down"
