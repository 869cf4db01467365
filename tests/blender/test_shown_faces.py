"""Pictures of faces: repeats, offsets, rotation, colour, alpha, full bright and glow, as a formula states them."""

from __future__ import annotations

import math
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import uv_transforms
from helpers_render import render
from meshferry.io_formats.core.scene import Material
from meshferry.io_formats.core.shading import Channel, Factor, ImageMap, Mapping, Opacity, Shading, Texture, Tint
from shading_meaning import png_of

pytestmark = pytest.mark.needs_bpy

SIZE = 32
WORLD = 0.5
"""Brightness of the world around the face."""
BLACK = Tint((0.0, 0.0, 0.0))
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Face:
    """A face as its part states it."""

    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    repeats: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    is_bright: bool = True
    glow: float = 0.0
    has_alpha: bool = True


def pixels_of(face: Face) -> Any:
    """Return the texture (8, 8, channels), the topmost row first."""
    return np.random.default_rng(2).integers(0, 256, (8, 8, 4 if face.has_alpha else 3), np.uint8)


def shading_of(face: Face, texture: Texture) -> Shading:
    sine, cosine = math.sin(face.rotation), math.cos(face.rotation)
    middle = (0.5 * (cosine + sine), 0.5 * (cosine - sine))
    u, v = (o + 0.5 - r * m for o, r, m in zip(face.offsets, face.repeats, middle, strict=True))
    image = ImageMap(texture, is_color=True, mapping=Mapping(scale=face.repeats, offset=(u, v), rotation=face.rotation))
    red, green, blue, alpha = face.color
    color = Tint((red, green, blue), image)
    return Shading(
        BLACK if face.is_bright else color,
        roughness=Factor(1.0),
        specular=Factor(0.0),
        emission=color if face.is_bright or face.glow else None,
        emission_strength=1.0 if face.is_bright else face.glow,
        opacity=Opacity.DITHERED if face.has_alpha or alpha < 1.0 else Opacity.OPAQUE,
        alpha=Factor(alpha, image if face.has_alpha else None, Channel.ALPHA),
        is_two_sided=False,
    )


def rendered(face: Face, content: bytes, folder: Path) -> Array:
    """Import a material and render a plane with it before a grey world; return linear RGB (SIZE, SIZE, 3)."""
    import bpy
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.blender_data.importing.materials import MaterialFinder

    texture = Texture("face", source=str(folder / "region" / "face"), read=lambda: content,
                      has_alpha=face.has_alpha)  # fmt: skip
    material = MaterialFinder(ImportOptions.of(), given=[Material("face", shading=shading_of(face, texture))]).find(
        "face"
    )
    assert material is not None and material.surface_render_method == "DITHERED" and material.use_backface_culling
    for node in material.node_tree.nodes:
        if node.type == "TEX_IMAGE":
            node.interpolation = "Closest"
    scene = bpy.context.scene
    scene.cycles.pixel_filter_type, scene.cycles.filter_width = "GAUSSIAN", 0.01
    scene.world = bpy.data.worlds.new("World")
    if bpy.app.version < (5, 0, 0):
        scene.world.use_nodes = True
    background = next(node for node in scene.world.node_tree.nodes if node.type == "BACKGROUND")
    background.inputs["Color"].default_value = (WORLD, WORLD, WORLD, 1.0)
    return render(material, folder, SIZE, 64).astype(np.float64)


def expected(face: Face, pixels: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the colours of a face, and which of them are not at an edge between two pixels of its texture.

    The pixels (S, S, channels) of the texture begin with the topmost row.
    """
    across = (np.arange(SIZE) + 0.5) / SIZE
    points = np.stack(np.meshgrid(across, across), axis=2).reshape(-1, 2)
    at = uv_transforms.of_face(face.repeats, face.offsets, face.rotation, points) % 1.0 * len(pixels)
    column, row = np.clip(at.astype(int), 0, len(pixels) - 1).T
    found = pixels[::-1][row, column] / 255.0
    linear = np.where(found > 0.04045, ((found + 0.055) / 1.055) ** 2.4, found / 12.92)[:, :3] * face.color[:3]
    alpha = face.color[3] * (found[:, 3:] if face.has_alpha else 1.0)
    shown = linear if face.is_bright else linear * (WORLD + face.glow)  # the world lights a surface evenly
    is_inside = (np.abs(at - np.rint(at)) > 0.06).all(axis=1)
    return (alpha * shown + (1 - alpha) * WORLD).reshape(SIZE, SIZE, 3), is_inside.reshape(SIZE, SIZE)


FACES = {
    "plain": Face(),
    "repeats": Face(repeats=(2.0, 3.5)),
    "offsets": Face(offsets=(0.25, -0.4)),
    "mirrored": Face(repeats=(-1.0, 2.0), offsets=(0.1, 0.2)),
    "rotated": Face(rotation=0.75),
    "rotated unevenly": Face(repeats=(2.0, 0.5), offsets=(0.3, -0.7), rotation=-1.2),
    "rotated and mirrored": Face(repeats=(-3.0, 0.75), offsets=(-0.9, 0.6), rotation=2.5),
    "colour": Face(color=(0.25, 0.5, 1.0, 1.0), has_alpha=False),
    "alpha of the colour": Face(color=(1.0, 0.5, 1.0, 0.25), has_alpha=False),
    "both alphas": Face(color=(1.0, 0.5, 0.25, 0.5), repeats=(2.0, 1.0)),
    "lit": Face(color=(1.0, 0.5, 0.25, 1.0), is_bright=False, has_alpha=False),
    "glow": Face(color=(1.0, 0.5, 0.25, 1.0), is_bright=False, glow=0.4, has_alpha=False, rotation=0.3),
    "glow and alpha": Face(color=(1.0, 0.5, 0.25, 0.5), is_bright=False, glow=1.0),
}


def assert_shown(face: Face, content: bytes, pixels: Any, folder: Path) -> None:
    """Require that Cycles shows a face with an image file as the formula states for its pixels."""
    wanted, is_inside = expected(face, pixels)
    assert is_inside.mean() > 0.5
    errors = np.abs(rendered(face, content, folder) - wanted)[is_inside].max(axis=1)
    is_noisy = face.has_alpha and not face.is_bright  # some rays are lit, others go through
    assert np.quantile(errors, 0.98) < (2e-2 if is_noisy else 1e-3)
    assert errors.max() < 5e-2, "a few rays hit another pixel of the texture"


@pytest.mark.parametrize("name", FACES)
def test_cycles_shows_a_face_as_the_formula_states(tmp_path: Path, name: str) -> None:
    pixels = pixels_of(FACES[name])
    assert_shown(FACES[name], png_of(pixels), pixels, tmp_path)


def test_cycles_shows_a_jpeg_2000_picture_with_alpha(samples: Path, tmp_path: Path) -> None:
    from meshferry.blender_data.image_decoding import decode

    with tarfile.open(samples / "opensim_archives" / "region.oar") as archive:
        stream = archive.extractfile("assets/ac4208ba-a044-57e0-8650-263eca5624f6_texture.jp2")
        assert stream is not None
        content = stream.read()
    pixels = decode(content, "picture")[::-1]
    assert len(np.unique(pixels[..., 3])) > 1
    assert_shown(Face(color=(1.0, 0.5, 0.25, 0.75), offsets=(0.25, 0.0)), content, pixels, tmp_path)
