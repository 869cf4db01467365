"""Pictures that Blender decodes: exact pixels, and models that are made of them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.placement import (
    EncodedPicture,
    ModelUse,
    PlacedModel,
    PlacedNode,
    Placement,
    PlacementPart,
)
from meshferry.io_formats.core.scene import Mesh, Node, Scene
from shading_meaning import png_of

pytestmark = pytest.mark.needs_bpy


def pixels(size: tuple[int, int], channels: int) -> Any:
    return np.random.default_rng(3).integers(0, 256, (*size, channels), np.uint8)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pictures_of_eight_bits_are_decoded_exactly_from_the_bottom(channels: int) -> None:
    import bpy
    from meshferry.blender_data.image_decoding import decode

    stored = pixels((5, 7), channels)
    stored[0, :, -1] = 0  # transparent in one case, with colours that must remain
    found = decode(png_of(stored), "noise.png")
    expected = np.full((5, 7, 4), 255, np.uint8)
    expected[..., : max(channels, 3)] = stored
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected[::-1])
    assert not bpy.data.images


@pytest.mark.parametrize(
    "content",
    [b"", b"no picture", png_of(pixels((4, 4), 3))[:40], b"\xff\x4f\xff\x51\0\x29"],
    ids=["empty", "text", "cut-png", "cut-j2c"],
)
def test_what_is_not_a_picture_is_an_error_with_its_name(content: bytes) -> None:
    import bpy
    from meshferry.blender_data.image_decoding import decode

    with pytest.raises(FormatError, match=r"cannot decode the image 'map\.j2c'"):
        decode(content, "map.j2c")
    assert not bpy.data.images


def test_codestreams_of_jpeg_2000_are_decoded_exactly(samples: Path) -> None:
    """The named points of a sculpt of 64 by 64 pixels state the colours of every other pixel."""
    from meshferry.blender_data.image_decoding import decode

    folder = samples / "opensim_archives"
    parts = json.loads((folder / "expected.json").read_text("utf-8"))["region.oar"]["parts"]
    (part,) = [part for part in parts if part["name"] == "cylinder plain"]
    with tarfile.open(folder / "region.oar") as archive:
        stream = archive.extractfile(f"assets/{part['asset']}_texture.jp2")
        assert stream is not None
        found = decode(stream.read(), part["name"])
    assert list(found.shape) == [*part["sculpt"]["map"][::-1], 4] == [64, 64, 4]
    for name, point in part["sculpt"]["named_points"].items():
        row, column = min(point["row"] * 2, 63), point["column"] * 2 % 64
        np.testing.assert_allclose(found[row, column, :3] / 255 - 0.5, point["position"], atol=1e-6, err_msg=name)


# -- models made of pictures --------------------------------------------------------------------


def model_of(name: str, content: bytes) -> PlacedModel:
    """Return a model with a triangle whose first point is the first pixel of a picture."""

    def load() -> bytes:
        if not content:
            raise FormatError("the archive ends early")
        return content

    picture = EncodedPicture(f"{name}.png", load)

    def read() -> Scene:
        assert picture.pixels is not None, "not decoded yet"
        points = np.array([picture.pixels[0, 0, :3], (0, 0, 0), (1, 0, 0)], np.float32)
        corners = np.arange(3, dtype=np.int32)
        return Scene(name, [Node(name, mesh=Mesh(points, corners, np.zeros(1, np.int32), [""]))])

    return PlacedModel(name, read, picture=picture)


def test_models_are_made_of_decoded_pictures_and_broken_ones_are_named() -> None:
    import bpy
    from meshferry.blender_data.importing import import_options, importer

    stored = pixels((4, 4), 3)
    models = [model_of("good", png_of(stored)), model_of("bad", b"no picture"), model_of("cut", b"")]
    nodes = [PlacedNode(model.name, content=ModelUse(number)) for number, model in enumerate(models)]
    scene = Scene("map", placement=Placement([PlacementPart("map", nodes)], models))
    result = importer.import_scene(import_options.ImportRequest(bpy.context, scene, import_options.ImportOptions.of()))
    types = {obj.name: obj.type for obj in result.collection.objects}
    assert types == {"good": "MESH", "bad": "EMPTY", "cut": "EMPTY"}
    assert tuple(bpy.data.objects["good"].data.vertices[0].co) == tuple(stored[-1, 0])
    (message,) = result.warnings
    assert message.code == "unreadable-meshes"
    assert message.startswith("2 meshes cannot be read") and "'bad.png'" in message and "ends early" in message
    assert all(model.picture is not None and model.picture.pixels is None for model in models)
    assert not bpy.data.images
