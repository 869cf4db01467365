"""What a neutral shading shows, by the pixels of its images; and PNG files, without the code under test."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from meshferry.io_formats.core.shading import (
    Extension,
    Factor,
    ImageMap,
    Mapping,
    NormalMap,
    Opacity,
    Shading,
    Texture,
    Tint,
)

Array = npt.NDArray[Any]


def picture(name: str, size: tuple[int, int] = (8, 8)) -> Texture:
    """Return a texture with random pixels, without a file."""
    pixels = np.random.default_rng(zlib.crc32(name.encode())).integers(0, 256, (*size, 4), np.uint8)
    return Texture(name, width=size[1], height=size[0], source=name, pixels=lambda: pixels)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(pixels: Array, bits: int = 8, more: bytes = b"") -> bytes:
    """Return a PNG file whose rows are stored as differences to the pixel on the left."""
    channels = pixels.shape[2]
    step = channels * bits // 8
    raw = pixels.astype(f">u{bits // 8}").tobytes()
    rows = np.frombuffer(raw, np.uint8).reshape(len(pixels), -1)
    shifted = np.concatenate([np.zeros((len(rows), step), np.uint8), rows[:, :-step]], axis=1)
    data = b"".join(b"\1" + row.tobytes() for row in rows - shifted)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], bits, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    )


def decoded(data: bytes) -> Array:
    """Return the pixels (H, W, 4) of a PNG file whose rows have no filter or that to the left."""
    width, height, bits, kind = struct.unpack_from(">IIBB", data, 16)
    assert bits == 8
    channels = {2: 3, 6: 4}[kind]
    body = zlib.decompress(data[data.index(b"IDAT") + 4 : -16])
    rows = np.frombuffer(body, np.uint8).reshape(height, -1)
    assert set(rows[:, 0]) <= {0, 1}
    values = rows[:, 1:].reshape(height, width, channels)
    values = np.where(rows[:, :1, None] == 1, np.cumsum(values, axis=1, dtype=np.uint8), values)
    return np.concatenate([values, np.full((height, width, 4 - channels), 255, np.uint8)], axis=2)


# -- what a shading means -----------------------------------------------------------------------


def pixels_of(image: ImageMap) -> Array:
    """Return the pixels of an image, 8 by 8, from 0 to 1."""
    texture = image.texture
    stored = texture.pixels() if texture.pixels is not None else decoded(texture.read() if texture.read else b"")
    rows, columns = (np.arange(8) * side // 8 for side in stored.shape[:2])
    return stored[rows[:, None], columns] / 255.0


def factor(value: Factor | None) -> Array:
    if value is None:
        return np.ones((8, 8))
    image = pixels_of(value.image)[..., "RGBA".index(value.channel.value)] if value.image else np.ones((8, 8))
    return 1.0 - value.value * image if value.is_inverted else value.value * image


def tint(value: Tint | None) -> Array:
    """Return colours, of images as they are stored, times the colour."""
    if value is None:
        return np.zeros((8, 8, 3))
    image = pixels_of(value.image)[..., :3] if value.image else np.ones((8, 8, 3))
    return image * value.value


def normals(value: NormalMap | None) -> Array:
    if value is None:
        return np.tile((0.5, 0.5, 1.0, 1.0), (8, 8, 1))
    found = pixels_of(value.image)[..., :3].copy()
    if not value.has_blue:
        flat = 2.0 * found[..., :2] - 1.0
        found[..., 2] = 0.5 + 0.5 * np.sqrt(np.clip(1.0 - np.square(flat).sum(axis=2), 0.0, None))
    if value.is_green_down:
        found[..., 1] = 1.0 - found[..., 1]
    return np.concatenate([found, np.full((8, 8, 1), value.strength)], axis=2)


def opacity(value: Shading) -> Array:
    if value.opacity is Opacity.OPAQUE:
        return np.ones((8, 8))
    alpha = factor(value.alpha) ** value.alpha_power
    return (alpha >= value.alpha_threshold) * 1.0 if value.opacity is Opacity.CLIP else alpha


def meaning(value: Shading) -> dict[str, Any]:
    """Return all that a shading states, images by their pixels."""
    emission = value.emission if value.emission_strength > 0 else None
    return {
        "base colour": tint(value.base_color),
        "vertex colour": value.base_color.uses_vertex_color,
        "metallic": factor(value.metallic),
        "roughness": factor(value.roughness),
        "specular": factor(value.specular),
        "normal": normals(value.normal),
        "space": value.normal is not None and value.normal.is_object_space,
        "occlusion": factor(value.occlusion),
        "emission": tint(emission) * value.emission_strength,
        "mode": value.opacity,
        "opacity": opacity(value),
        "two-sided": value.is_two_sided,
    }


def settings_of(value: Shading) -> dict[str, tuple[Mapping, Extension]]:
    """Return mapping and extension of the images that have an effect."""
    found = {}
    for name, part in vars(value).items():
        image = getattr(part, "image", None)
        is_off = {"alpha": value.opacity is Opacity.OPAQUE, "emission": value.emission_strength == 0.0}.get(name, False)
        if image is not None and not is_off and not (isinstance(part, Factor) and part.value == 0.0):
            found[name] = (image.mapping, image.extension)
    return found


def assert_same(read: Shading, given: Shading) -> None:
    expected = meaning(given)
    for name, found in meaning(read).items():
        if isinstance(found, np.ndarray):
            np.testing.assert_allclose(
                found, expected[name], atol=1.01 / 255 * max(1.0, expected[name].max()), err_msg=name
            )
        else:
            assert found == expected[name], name
    settings = settings_of(read)
    for name, (mapping, extension) in settings_of(given).items():
        assert settings[name][1] is extension, name
        assert settings[name][0].projection is mapping.projection and settings[name][0].uv_layer == mapping.uv_layer, (
            name
        )
        found = settings[name][0]
        assert (*found.scale, *found.offset, found.rotation) == pytest.approx(
            (*mapping.scale, *mapping.offset, mapping.rotation), abs=1e-6
        )
