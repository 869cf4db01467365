"""Image Texture nodes with their coordinates -> neutral image maps, whose pixels are read when they are needed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import bpy
import numpy as np

from ....io_formats.core.messages import Named, Report, Text
from ....io_formats.core.shading import Extension, ImageMap, Mapping, Pixels, Projection, Texture
from ....io_formats.disk.special_files import special_kind
from .material_reading import MOST_PIXELS, file_name_of, image_path, report_still, stored_pixels
from .shader_nodes import LeftOut, Socket, source

_PLAIN_SOURCES = ("FILE", "GENERATED", "TILED")
_DEPTHS_WITH_ALPHA = (32, 64, 128)
"""Values of ``Image.depth`` (bits per pixel) of images with an alpha channel. ``Image.channels`` is 4 even for byte
images without alpha."""
_PNG = ".png"


class ImageReader:
    """Creates the textures of images, each once.

    Parameters
    ----------
    report:
        Receives a message for each image that cannot be read.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._known: dict[bpy.types.Image, Texture | None] = {}

    def texture(self, image: bpy.types.Image) -> Texture | None:
        """Return the texture of an image, or None if it is missing or cannot be read."""
        if image not in self._known:
            self._known[image] = self._make(image)
        return self._known[image]

    def _make(self, image: bpy.types.Image) -> Texture | None:
        """Return an image as a texture that is read on demand; None, with a message, if it cannot be exported."""
        width, height = (int(side) for side in image.size)
        if image.source not in _PLAIN_SOURCES:
            report_still(self._report, image)
            return None
        if not width * height:
            text = "the image is missing or cannot be read, so that materials have their values without it"
            self._report.loss("unreadable-image", text, item=Named("image", image.name))
            return None
        if width * height > MOST_PIXELS:
            text = "the image is too large to be exported; scale it down"
            self._report.loss("image-not-exported", text, item=Named("image", image.name))
            return None
        report_still(self._report, image)
        if image.is_float:
            text = "it has more than 8 bits per channel, of which 8 are exported"
            self._report.change("image-depth-changed", text, item=Named("image", image.name))
        path = image_path(image)
        has_file = not image.is_dirty and image.source != "GENERATED" and image.packed_file is None
        return Texture(
            file_name_of(image, path),
            width=width,
            height=height,
            source=path if has_file else image.name_full,
            read=None if image.is_dirty else partial(_file_of, image, path if has_file else ""),
            pixels=partial(_pixels, image),
        )


def has_alpha(image: bpy.types.Image) -> bool:
    """Return whether an image has an alpha channel."""
    return image.depth in _DEPTHS_WITH_ALPHA


def has_colors(image: bpy.types.Image) -> bool:
    """Return whether the values of an image are colours, not plain numbers."""
    return not image.colorspace_settings.is_data


def _pixels(image: bpy.types.Image) -> Pixels:
    return np.ascontiguousarray(stored_pixels(image))


def _file_of(image: bpy.types.Image, path: str) -> bytes:
    """Return the content of a PNG file or a packed image.

    Empty bytes otherwise, so that the pixels are used instead.
    """
    if image.packed_file is not None:
        return bytes(image.packed_file.data)
    if not path.lower().endswith(_PNG) or special_kind(path):
        return b""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


_EXTENSIONS = {"REPEAT": Extension.REPEAT, "EXTEND": Extension.EXTEND, "CLIP": Extension.CLIP}
_BOXES = {Projection.TOP_OBJECT: Projection.BOX_OBJECT, Projection.TOP_WORLD: Projection.BOX_WORLD}
_NO_SCALE, _NO_MOVE = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
_NO_ANGLE = 1e-6
"""Tolerance for angles that count as 0, in radians."""
_SAME_SCALE = 1e-6
"""Relative tolerance for scales that count as equal."""

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class SurfaceLayers:
    """The layers of a mesh to which the nodes of its materials refer."""

    uvs: tuple[str, ...] = ()
    """Names of the exported UV maps; empty if they are not known."""
    shown_uv: str = ""
    """Name of the UV map that is marked for rendering, on which images without coordinates lie."""
    color_of: Callable[[str], tuple[float, ...] | None] = lambda _name: None
    """Function that returns the value of a colour attribute that is the same on all faces, otherwise None. An empty
    name means the attribute that is marked for rendering."""


class ImageMaps:
    """The image maps of one material.

    Parameters
    ----------
    images:
        The images of all materials.
    layers:
        Layers of a mesh with the material, by which nodes refer to them.
    left_out:
        Collects the settings of nodes that a mapping cannot store.
    """

    def __init__(self, images: ImageReader, layers: SurfaceLayers, left_out: LeftOut) -> None:
        self._images = images
        self.layers = layers
        self._left_out = left_out

    def of(self, found: Socket, *, is_data: bool = False) -> ImageMap | None:
        """Return the image map of an Image Texture node, given by an output; None if its image cannot be read.

        With ``is_data``, an image that Blender treats as colour is reported: Blender converts its values, while other
        programs do not.
        """
        node = found.node
        if node.image is None:
            self._left_out.settings.append("an image node without an image")
            return None
        texture = self._images.texture(node.image)
        if texture is None:
            return None
        if is_data and has_colors(node.image):
            self._left_out.color_spaces.append(node.image.name)
        if node.extension not in _EXTENSIONS:
            self._left_out.mappings.append("mirrored images")
        extension = _EXTENSIONS.get(node.extension, Extension.REPEAT)
        return ImageMap(texture, has_colors(node.image), self._mapping(found), extension)

    def _mapping(self, found: Socket) -> Mapping:
        """Return the mapping of an image onto the surface."""
        node = found.node
        entry = source(found.input("Vector"))
        scale, offset, rotation = _NO_SCALE, _NO_MOVE, 0.0
        is_box = node.projection == "BOX"
        if not entry.is_value and entry.node.type == "MAPPING":
            scale, offset, rotation = self._transform(entry, is_box=is_box)
            entry = source(entry.input("Vector"))
        mapping = self._coordinates(entry)
        if node.projection not in {"FLAT", "BOX"}:
            self._left_out.mappings.append(Text("projection '{}'", node.projection.capitalize()))
        if is_box and mapping.projection in _BOXES:
            mapping = replace(mapping, projection=_BOXES[mapping.projection], blend=node.projection_blend)
            return replace(mapping, scale=(scale[0], scale[2]), offset=offset[:2])
        return replace(mapping, scale=(scale[0], scale[1]), offset=offset[:2], rotation=rotation)

    def _transform(self, entry: Socket, *, is_box: bool) -> tuple[Numbers, Numbers, float]:
        """Return scale, offset and rotation of a Mapping node; report a rotation that a mapping cannot store."""
        node, values = entry.node, {}
        for name, default in (("Location", _NO_MOVE), ("Rotation", _NO_MOVE), ("Scale", _NO_SCALE)):
            socket = node.inputs.get(name)  # types of the node whose location is hidden have none
            found = source(entry.input(name)) if socket is not None else None
            if found is not None and not found.is_value:
                self._left_out.add_node(found.node)
            values[name] = found.numbers() if found is not None and found.is_value else default
        is_inverse = node.vector_type == "TEXTURE"
        scale, offset = values["Scale"], values["Location"]
        if is_inverse:
            scale = tuple(1.0 / part if part else 1.0 for part in scale)
        rotation = _rotation(values["Rotation"], scale, is_inverse=is_inverse, is_box=is_box)
        if rotation is None:
            self._left_out.mappings.append("rotation of images")
            rotation = 0.0
        if is_inverse:
            u, v, w = offset
            sine, cosine = math.sin(rotation), math.cos(rotation)
            turned = (u * cosine + v * sine, v * cosine - u * sine, w)
            return scale, tuple(-part * factor for part, factor in zip(turned, scale, strict=True)), rotation
        return scale, offset if node.vector_type == "POINT" else _NO_MOVE, rotation

    def _coordinates(self, entry: Socket) -> Mapping:
        """Return the mapping of texture coordinates. An unlinked socket uses the UV map for rendering."""
        if entry.is_value:
            return self._uv("")
        node, name = entry.node, entry.socket.name
        if node.type == "UVMAP":
            return self._uv(node.uv_map)
        if node.type == "ATTRIBUTE" and node.attribute_name in self.layers.uvs:
            return self._uv(node.attribute_name)
        if node.type == "TEX_COORD" and name == "UV":
            return self._uv("")
        if node.type == "TEX_COORD" and name == "Object" and node.object is None:
            return Mapping(Projection.TOP_OBJECT)
        if node.type == "NEW_GEOMETRY" and name == "Position":
            return Mapping(Projection.TOP_WORLD)
        self._left_out.mappings.append(Text("coordinates '{}' of the node '{}'", name, node.bl_label))
        return Mapping()

    def _uv(self, name: str) -> Mapping:
        """Return the mapping of a UV map; an empty name means the one that is marked for rendering."""
        name = name or self.layers.shown_uv
        if name in self.layers.uvs:
            return Mapping(uv_layer=self.layers.uvs.index(name))
        if name and self.layers.uvs:
            self._left_out.mappings.append(Text("the UV map '{}'", Named("layer", name)))
        return Mapping()


def _rotation(angles: Numbers, scale: Numbers, *, is_inverse: bool, is_box: bool) -> float | None:
    """Return the rotation before scaling that has the effect of a Mapping node's rotation; None if there is none.

    Nodes of type TEXTURE, which are ``is_inverse``, rotate before they scale, all others afterwards.
    """
    if max(map(abs, angles)) <= _NO_ANGLE:
        return 0.0
    x, y, angle = angles
    if is_box or max(abs(x), abs(y)) > _NO_ANGLE:
        return None
    if is_inverse:
        return angle
    if abs(abs(scale[0]) - abs(scale[1])) > _SAME_SCALE * abs(scale[0]):
        return None
    return -angle if scale[0] * scale[1] > 0.0 else angle
