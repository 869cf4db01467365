"""Materials by name: existing ones, ones linked from a library, and new ones with distinct colours."""

import colorsys
import itertools
import re
import zlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Named, Report
from ...io_formats.core.scene import Material, plain_shading
from ...io_formats.core.shading import Shading, Texture
from ...io_formats.disk.reach import Reach
from ...io_formats.disk.special_files import special_kind
from ...io_formats.encodings.quantization import linear_to_srgb
from .. import names
from ..image_decoding import mean_color
from ..mesh_data.checksums import material_checksum
from ..shading import shaders
from ..shading.shaders import MeshLayers
from .import_options import ImportOptions
from .project_images import ProjectImages
from .textures import TextureLoader

_NO_LAYERS = MeshLayers()

_COLORS = {
    "black": (0.03, 0.03, 0.03),
    "white": (0.8, 0.8, 0.78),
    "grey": (0.35, 0.35, 0.35),
    "gray": (0.35, 0.35, 0.35),
    "darkbrown": (0.09, 0.045, 0.02),
    "lightbrown": (0.42, 0.25, 0.12),
    "brown": (0.22, 0.11, 0.05),
    "darkred": (0.25, 0.02, 0.02),
    "red": (0.55, 0.05, 0.04),
    "orange": (0.7, 0.25, 0.04),
    "yellow": (0.75, 0.55, 0.08),
    "green": (0.12, 0.35, 0.08),
    "mossy": (0.16, 0.22, 0.06),
    "indigo": (0.1, 0.08, 0.35),
    "blue": (0.06, 0.15, 0.55),
}
_SUBSTANCES = {
    "thatched": (0.5, 0.36, 0.12),
    "roof": (0.3, 0.1, 0.06),
    "wood": (0.28, 0.15, 0.07),
    "planks": (0.28, 0.15, 0.07),
    "metal": (0.3, 0.31, 0.33),
    "plaster": (0.6, 0.55, 0.45),
    "paper": (0.7, 0.65, 0.52),
    "water": (0.05, 0.2, 0.4),
    "dirt": (0.2, 0.12, 0.06),
}


def steady_color(name: str) -> tuple[float, float, float]:
    """Return a fixed linear colour for a name.

    It is that of a colour or substance named in it, otherwise one derived from a hash.
    """
    words = [word.lower() for word in re.findall("[A-Z]?[a-z]+", name)]
    pairs = [one + other for one, other in itertools.pairwise(words)]
    for known in (_COLORS, _SUBSTANCES):
        for word in (*pairs, *words):
            if word in known:
                return known[word]
    seed = zlib.crc32(name.encode("utf-8"))
    hue, saturation, value = seed % 360 / 360, 0.35 + seed // 360 % 30 / 100, 0.45 + seed // 10800 % 30 / 100
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return (red**2.2, green**2.2, blue**2.2)


class MaterialFinder:
    """Find or create the materials of one import; ``made`` are the created data blocks.

    Parameters
    ----------
    options:
        Import options for materials and textures.
    given:
        Properties of materials in the file; existing materials are not changed.
    folder:
        Folder of the file, in which textures are searched.
    reach:
        The folders from which the file may bring in textures; None for all.
    report:
        Gets messages about missing or damaged textures.
    keep_file:
        Called with each file that is written, so that it is removed if the import fails.
    """

    def __init__(
        self,
        options: ImportOptions,
        *,
        given: Iterable[Material] = (),
        folder: Path | None = None,
        reach: Reach | None = None,
        report: Report | None = None,
        keep_file: Callable[[Path], None] = lambda _path: None,
    ) -> None:
        self.options = options
        self.library = bpy.path.abspath(options.material_library) if options.material_library else ""
        self.made: list[Any] = []
        self._known: dict[str, bpy.types.Material] = {}
        self._shown: dict[Hashable, bpy.types.Material] = {}
        """The last new material of each likeness and layers."""
        self._by_identity: dict[str, bpy.types.Material] = {}
        """Materials that existed before the import, by identity."""
        self._by_name: dict[str, list[bpy.types.Material]] | None = None
        """The same by their name in the file that they came from; None until it is needed."""
        self._given = {material.name: material for material in given}
        is_linked = options.project_textures == "LINK"
        report = report or Report()
        self._project_images = ProjectImages(is_linked=is_linked, keep=self.keep, keep_file=keep_file, report=report)
        self._textures = TextureLoader(folder, self.keep, report, self._project_images, reach)

    def keep(self, block: Any) -> Any:
        """Register a data block as created by this import."""
        self.made.append(block)
        return block

    def report_textures(self) -> None:
        """Report the textures that were not found or could not be read."""
        self._textures.report_missing()
        self._project_images.report()

    def link_from_library(self, wanted: Iterable[str]) -> None:
        """Link the materials with these names from the material library.

        Raises
        ------
        MeshferryError
            The library is not a readable .blend file.
        """
        if not self.library:
            return
        missing = {name for name in wanted if not (self.options.use_existing_materials and self._existing(name))}
        library_name = Named("file", Path(self.library).name)
        if kind := special_kind(self.library):
            raise MeshferryError("Material library '{}' is a {}, not a .blend file", library_name, kind)
        libraries = set(bpy.data.libraries)
        try:
            with bpy.data.libraries.load(self.library, link=True) as (source, target):
                target.materials = [name for name in source.materials if name in missing]
        except OSError as problem:
            raise MeshferryError("Material library '{}' cannot be opened: {}", library_name, problem) from None
        finally:
            self.made += [library for library in bpy.data.libraries if library not in libraries]
        for material in target.materials:
            if material is not None:
                self._known[material.name] = material

    def _existing(self, name: str) -> bpy.types.Material | None:
        """Return the material of this .blend for a name in the file.

        A material with the same identity is preferred; a material with another identity is not used.
        """
        given = self._given.get(name)
        identity = given.identity if given is not None else ""
        if self._by_name is None:
            self._by_name = {}
            for material in bpy.data.materials:
                self._by_identity.setdefault(material.meshferry.identity, material)
                self._by_name.setdefault(names.name_in_file(material), []).append(material)
        if identity in self._by_identity and identity:
            return self._by_identity[identity]
        fitting = names.fit(name)
        candidates = sorted(self._by_name.get(name, ()), key=lambda material: material.name != fitting)
        return next((m for m in candidates if not identity or m.meshferry.identity in ("", identity)), None)

    def find(self, name: str, layers: MeshLayers = _NO_LAYERS) -> bpy.types.Material | None:
        """Return the material with that name, created if necessary; None for an empty name.

        ``layers`` are the layers of the first mesh with the material, to which a new material refers by name.
        """
        if not name:
            return None
        if name not in self._known:
            found = self._existing(name) if self.options.use_existing_materials else None
            self._known[name] = found or self._new(name, layers)
        return self._known[name]

    def _new(self, name: str, layers: MeshLayers) -> bpy.types.Material:
        """Create a material, from a copy if the import has created a similar one."""
        given = self._given.get(name) or Material(name, (*steady_color(name), 1.0))
        key = shaders.likeness(self._shading(given, layers)), layers
        alike = self._shown.get(key)
        fitting = names.fit(name)
        material: bpy.types.Material = self.keep(alike.copy() if alike is not None else bpy.data.materials.new(fitting))
        if alike is not None:
            material.property_unset("meshferry")
            material.name = fitting
        names.remember(material, name)
        self.fill(material, given, layers, is_copy=alike is not None)
        self._shown[key] = material
        return material

    def fill(self, material: bpy.types.Material, given: Material, layers: MeshLayers, *, is_copy: bool = False) -> None:
        """Replace the nodes and settings of a material by those for a material of the file; see :func:`.show`."""
        _store_properties(material, given)

        def image_of(texture: Texture, is_color: bool) -> bpy.types.Image | None:
            return self._textures.image(given.name, texture, is_color=is_color)

        occlusion = self.options.use_ambient_occlusion
        shading = self._shading(given, layers)
        shaders.show(material, shading, layers, image_of, multiply_occlusion=occlusion, is_copy=is_copy)
        material.meshferry.fingerprint = material_checksum(material) if given.identity else ""
        tint = shaders.shown_tint(shading)
        if tint.image is not None:
            self._tint_solid_view(material, image_of(tint.image.texture, tint.image.is_color))
        if tint.uses_vertex_color and layers.color:
            _draw_icon(material)
        elif material.preview is not None:
            material.preview.is_icon_custom = False

    def _tint_solid_view(self, material: bpy.types.Material, image: bpy.types.Image | None) -> None:
        """Multiply the colour for the Solid view by the mean of an image, if that is known without decoding it."""
        means = self._project_images.means
        if image is not None and image not in means:
            means[image] = mean_color(image)
        if image is not None and (mean := means[image]) is not None:
            color: Any = tuple(material.diffuse_color)
            material.diffuse_color = (*(part * share for part, share in zip(color, mean, strict=False)), color[3])

    def _shading(self, given: Material, layers: MeshLayers) -> Shading:
        shading = given.shading
        if shading is None:
            shading = plain_shading(given, has_vertex_color=bool(layers.color))
        return shading if self.options.use_backface_culling else replace(shading, is_two_sided=True)


_ICON_SIDE = 32


def _draw_icon(material: bpy.types.Material) -> None:
    """Give a material an icon of its colour. Blender's preview has no colour attributes, so that it would be black."""
    y, x = 1.1 * ((np.mgrid[:_ICON_SIDE, :_ICON_SIDE] + 0.5) / (_ICON_SIDE / 2) - 1.0)
    height = 1.0 - x * x - y * y  # squared, of a sphere
    light = 0.3 + 0.7 * np.clip(0.6 * y - 0.4 * x + 0.7 * np.sqrt(np.maximum(height, 0.0)), 0.0, 1.0)
    color = np.array(material.diffuse_color, np.float32)
    pixels = linear_to_srgb(light.reshape(-1, 1) * color)
    pixels[:, 3] = 1.0
    pixels[height.reshape(-1) < 0.0] = 0.0
    preview = material.preview_ensure()
    preview.icon_size = (_ICON_SIDE, _ICON_SIDE)
    preview.icon_pixels_float.foreach_set(pixels.reshape(-1))


def _store_properties(material: bpy.types.Material, given: Material) -> None:
    material.meshferry.identity = given.identity
    material.meshferry.file_properties.clear()
    for label, value in given.properties.items():
        stored = material.meshferry.file_properties.add()
        stored.name, stored.value = label, names.readable(value)
