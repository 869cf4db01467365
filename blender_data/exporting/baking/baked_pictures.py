"""Baked maps -> pictures and values of a shading, and temporary materials that show it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.shading import Channel, Factor, ImageMap, Mapping, NormalMap, Opacity, Shading, Texture, Tint
from ....io_formats.encodings.image_files import encode_png
from ....io_formats.encodings.quantization import linear_to_srgb, to_unorm
from ...shading import shaders
from .cycles_bakes import Baked, Blocks
from .surface_shaders import Map

Numbers = tuple[float, ...]
Values = npt.NDArray[np.float32]

_CHANNELS = {
    Map.COVERAGE: {"Alpha": slice(0, 1), "Specular IOR Level": slice(1, 2)},
    Map.COLOR: {"Base Color": slice(0, 3)},
    Map.SURFACE: {"Roughness": slice(1, 2), "Metallic": slice(2, 3)},
    Map.EMISSION: {"Emission Color": slice(0, 3)},
    Map.NORMAL: {"Normal": slice(0, 3)},
}
_FLAT = ((0.5, 0.5, 1.0),)
_COLORS = {"Base Color", "Emission Color"}
_SAME = 1.0 / 255.0
"""Difference of encoded values below which a picture has one colour."""
_COVERED = 1e-3
"""Least coverage by which colours are divided."""


def pictures_of(maps: dict[Map, Baked], values: dict[str, Numbers]) -> dict[str, Values]:
    """Return the pictures of baked maps, encoded, (H, W, C), the lowest row first, by inputs of a Principled BSDF.

    Inputs that have one value everywhere are added to ``values`` instead.
    """
    pictures: dict[str, Values] = {}
    cover = maps[Map.COVERAGE][0][..., 2:] if Map.COVERAGE in maps else None
    for kind, (found, mask) in maps.items():
        if kind is Map.EMISSION:
            most = found[mask].max()
            found, values["Emission Strength"] = found / (most or 1.0), (float(most),)
        for name, channels in _CHANNELS[kind].items():
            part, inside = found[..., channels], mask
            if cover is not None and name not in {"Alpha", "Emission Color"}:
                part = part / np.maximum(cover, _COVERED) if kind is not Map.NORMAL else part
                inside = mask & (cover[..., 0] > _COVERED)
            shown = linear_to_srgb(part.reshape(-1, 3)).reshape(part.shape) if name in _COLORS else part
            samples = np.concatenate([shown[inside], _FLAT if kind is Map.NORMAL else shown[inside][:1]])
            if np.ptp(samples, axis=0).max(initial=0.0) >= _SAME:
                pictures[name] = filled(shown, inside)
            elif kind is not Map.NORMAL and inside.any():
                values[name] = tuple(part[inside].mean(axis=0, dtype=np.float64).tolist())
    return pictures


def plain_shading(
    name: str, maps: dict[Map, Baked], values: dict[str, Numbers], given: Shading, mapping: Mapping
) -> tuple[Shading, int]:
    """Return the shading with the pictures of baked maps, and the number of these.

    Parameters
    ----------
    name:
        Name of the material.
    values:
        Values of the inputs of a Principled BSDF that were not baked.
    given:
        The shading without bakes, of which the settings are taken that no bake changes.
    """
    values, count = {"Base Color": (0.0, 0.0, 0.0), **values}, 0
    pictures = pictures_of(maps, values)

    def image(suffix: str, *names: str) -> ImageMap | None:
        """Return a picture whose channels are some inputs; None if all of them are constant."""
        nonlocal count
        shown = [pictures[one] for one in names if one in pictures]
        if not shown:
            return None
        parts, is_color = [], names[0] in _COLORS
        for one in names:
            value = np.array([values.get(one, (1.0,))[:3]], np.float32)
            value = linear_to_srgb(value) if one in _COLORS else value
            parts.append(pictures.get(one, np.broadcast_to(value, (*shown[0].shape[:2], value.shape[1]))))
        pixels = to_unorm(np.dstack(parts)[::-1])
        pixels = pixels.repeat(3, axis=2) if len(parts) == 1 and pixels.shape[2] == 1 else pixels
        height, width, channels = pixels.shape
        rgba = np.pad(pixels, ((0, 0), (0, 0), (0, 4 - channels)), constant_values=255)
        has_alpha, read = channels > 3, cache(partial(encode_png, pixels))
        sizes = {"width": width, "height": height, "has_alpha": has_alpha}
        texture = Texture(f"{name}.png", **sizes, read=read, source=f"{name} {suffix}", pixels=lambda: rgba)
        count += 1
        return ImageMap(texture, is_color, mapping)

    def factor(input_name: str, picture: ImageMap | None, channel: Channel = Channel.RED) -> Factor:
        if input_name in pictures:
            return Factor(1.0, picture, channel)
        return Factor(values.get(input_name, (1.0,))[0])

    def tint(input_name: str, picture: ImageMap | None) -> Tint:
        red, green, blue = values.get(input_name, (1.0, 1.0, 1.0))[:3] if picture is None else (1.0, 1.0, 1.0)
        return Tint((red, green, blue), picture)

    base = image("base", "Base Color", *(("Alpha",) if "Alpha" in pictures else ()))
    surface = image("surface", "Occlusion", "Roughness", "Metallic")
    normal, strength = image("normal", "Normal"), values.get("Emission Strength", (0.0,))[0]
    alpha = factor("Alpha", base, Channel.ALPHA)
    return (
        replace(
            given,
            base_color=tint("Base Color", base),
            metallic=factor("Metallic", surface, Channel.BLUE),
            roughness=factor("Roughness", surface, Channel.GREEN),
            specular=factor("Specular IOR Level", image("specular", "Specular IOR Level"))
            if Map.COVERAGE in maps
            else given.specular,
            normal=NormalMap(normal) if normal is not None else None,
            occlusion=None,
            emission=tint("Emission Color", image("emission", "Emission Color")) if strength > 0.0 else None,
            emission_strength=strength,
            opacity=given.opacity if alpha != Factor() else Opacity.OPAQUE,
            alpha=alpha,
            alpha_power=1.0,
            alpha_threshold=0.5,
        ),
        count,
    )


def plain_material(material: bpy.types.Material, name: str, shading: Shading, blocks: Blocks) -> bpy.types.Material:
    """Return a temporary copy of a material with nodes for its shading."""

    def image_of(texture: Texture, is_color: bool) -> bpy.types.Image:
        data = texture.read() if texture.read is not None else b""
        image = bpy.data.images.new(texture.source, 1, 1, is_data=not is_color)
        blocks.append(image)
        image.source, image.filepath_raw = "FILE", f"//{name}.png"
        image.pack(data=data, data_len=len(data))
        image.colorspace_settings.name = "sRGB" if is_color else "Non-Color"
        image.alpha_mode = "CHANNEL_PACKED"
        return image

    made = material.copy()
    blocks.append(made)
    for animated in (made, made.node_tree):
        animated.animation_data_clear()
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
