"""Baked maps -> pictures and values of a shading, and temporary materials that show it."""

import zlib
from dataclasses import replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.shading import Channel, Factor, ImageMap, Mapping, NormalMap, Opacity, Shading, Texture, Tint
from ....io_formats.encodings.image_files import encode_png
from ....io_formats.encodings.quantization import linear_to_srgb, to_unorm
from ...shading import shaders
from .cycles_bakes import Baked, Blocks
from .surface_shaders import Map

Values = npt.NDArray[np.float32]

_CHANNELS = {
    Map.COVERAGE: {"Alpha": slice(0, 1), "Specular IOR Level": slice(1, 2)},
    Map.COLOR: {"Base Color": slice(0, 3)},
    Map.SURFACE: {"Roughness": slice(1, 2), "Metallic": slice(2, 3)},
    Map.EMISSION: {"Emission Color": slice(0, 3)},
    Map.NORMAL: {"Normal": slice(0, 3)},
}
_WHITE = (1.0, 1.0, 1.0)
_FLAT = ((0.5, 0.5, 1.0),)
_COLORS = {"Base Color", "Emission Color"}
_SAME = 1.0 / 255.0
"""Difference of encoded values below which a picture has one colour."""
_COVERED = 1e-3
"""Least coverage by which colours are divided."""


def pictures_of(maps: dict[Map, Baked], values: dict[str, Any]) -> dict[str, Values]:
    """Return the pictures of baked maps, encoded, (H, W, C), the lowest row first, by inputs of a Principled BSDF.

    Inputs that have one value everywhere are added to ``values`` instead.
    """
    pictures: dict[str, Values] = {}
    cover = maps[Map.COVERAGE][0][..., 2:] if Map.COVERAGE in maps else None
    for kind, (found, mask) in maps.items():
        for name, channels in _CHANNELS[kind].items():
            part, inside = found[..., channels], mask
            if kind is Map.EMISSION:
                values["Emission Strength"] = (float(part[mask].max()),)
                part = part / (values["Emission Strength"][0] or 1.0)
            if cover is not None and name not in {"Alpha", "Emission Color"}:
                part = part / np.maximum(cover, _COVERED) if kind is not Map.NORMAL else part
                inside = mask & (cover[..., 0] > _COVERED)
            shown = _encoded(name, part)
            samples = np.concatenate([shown[inside], _FLAT if kind is Map.NORMAL else shown[inside][:1]])
            if np.ptp(samples, axis=0).max(initial=0.0) >= _SAME:
                pictures[name] = filled(shown, inside)
            elif kind is not Map.NORMAL and inside.any():
                values[name] = tuple(part[inside].mean(axis=0, dtype=np.float64).tolist())
    return pictures


def _encoded(name: str, values: Values) -> Values:
    return linear_to_srgb(values.reshape(-1, 3)).reshape(values.shape) if name in _COLORS else values


def plain_shading(
    name: str, maps: dict[Map, Baked], values: dict[str, Any], given: Shading, mapping: Mapping
) -> Shading:
    """Return the shading with the pictures of baked maps.

    Parameters
    ----------
    name:
        Name of the material.
    values:
        Values of the inputs of a Principled BSDF that were not baked.
    given:
        The shading without bakes, of which the settings are taken that no bake changes.
    """
    values = {"Base Color": (0.0, 0.0, 0.0), **values}
    pictures = pictures_of(maps, values)

    def image(*names: str) -> ImageMap | None:
        """Return a picture whose channels are some inputs; None if all of them are constant."""
        shape = next((pictures[one].shape[:2] for one in names if one in pictures), None)
        if shape is None:
            return None
        plain = {one: values.get(one, (1.0,))[:3] for one in names if one not in pictures}
        parts = [_encoded(one, np.array([[plain[one]]], "f4")) if one in plain else pictures[one] for one in names]
        pixels = to_unorm(np.dstack([np.broadcast_to(part, (*shape, part.shape[2])) for part in parts])[::-1])
        height, width, channels = pixels.shape
        packed = zlib.compress(np.pad(pixels, ((0, 0), (0, 0), (0, 4 - channels)), constant_values=255).tobytes(), 1)

        def stored() -> npt.NDArray[np.uint8]:
            return np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width, 4)

        texture = Texture(f"{name}.png", "", None, width, height, channels > 3, source=f"{name} {names[-1]}")
        texture = replace(texture, read=lambda: encode_png(stored()[..., :channels]), pixels=stored)
        return ImageMap(texture, names[0] in _COLORS, mapping)

    def factor(one: str, picture: ImageMap | None, channel: Channel = Channel.RED) -> Factor:
        return Factor(1.0, picture, channel) if one in pictures else Factor(values.get(one, (1.0,))[0])

    def tint(one: str, picture: ImageMap | None) -> Tint:
        return Tint(values.get(one, _WHITE)[:3] if picture is None else _WHITE, picture)

    base = image("Base Color", *(("Alpha",) if "Alpha" in pictures else ()))
    surface, normals = image("Occlusion", "Roughness", "Metallic"), image("Normal")
    metallic, roughness = factor("Metallic", surface, Channel.BLUE), factor("Roughness", surface, Channel.GREEN)
    specular = factor("Specular IOR Level", image(*["Specular IOR Level"] * 3))
    specular = specular if Map.COVERAGE in maps else given.specular
    normal = NormalMap(normals) if normals is not None else None
    strength, alpha = values.get("Emission Strength", (0.0,))[0], factor("Alpha", base, Channel.ALPHA)
    light = tint("Emission Color", image("Emission Color")) if strength > 0.0 else None
    opacity = given.opacity if alpha != Factor() else Opacity.OPAQUE
    inputs = (tint("Base Color", base), metallic, roughness, specular, given.specular_tint, normal, None)
    return Shading(*inputs, light, strength, opacity, alpha, is_two_sided=given.is_two_sided)


def picture_count(shading: Shading) -> int:
    """Return the number of pictures of a shading."""
    return len({part.image for part in vars(shading).values() if getattr(part, "image", None) is not None})


def plain_material(name: str, shading: Shading, blocks: Blocks) -> bpy.types.Material:
    """Return a temporary material with nodes for a shading."""

    def image_of(texture: Texture, is_color: bool) -> bpy.types.Image:
        data = texture.read() if texture.read is not None else b""
        image = bpy.data.images.new(texture.source, 1, 1, is_data=not is_color)
        blocks.append(image)
        image.source, image.filepath_raw = "FILE", f"//{name}.png"
        image.pack(data=data, data_len=len(data))
        image.colorspace_settings.name = "sRGB" if is_color else "Non-Color"
        image.alpha_mode = "CHANNEL_PACKED"
        return image

    made: bpy.types.Material = bpy.data.materials.new(name)
    blocks.append(made)
    shaders.show(made, shading, shaders.MeshLayers(), image_of)
    return made


def filled(values: Values, mask: npt.NDArray[np.bool_]) -> Values:
    """Return values (H, W, C) with the pixels outside of a mask filled from their surroundings, coarse to fine."""
    values = np.where(mask[..., None], values, np.float32(0.0))
    if mask.all() or not mask.any():
        return values
    height, width = mask.shape
    sums = np.pad(np.dstack([values, mask]), ((0, height % 2), (0, width % 2), (0, 0)))
    sums = sums.reshape(-(-height // 2), 2, -(-width // 2), 2, -1).sum(axis=(1, 3))
    coarse = filled(sums[..., :-1] / np.maximum(sums[..., -1:], 1.0), sums[..., -1] > 0)
    return np.where(mask[..., None], values, coarse.repeat(2, axis=0).repeat(2, axis=1)[:height, :width])
