"""Materials by name: existing ones, ones linked from a library, and new ones with distinct colours."""

from __future__ import annotations

import colorsys
import itertools
import math
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import bpy

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.scene import Material
from ...io_formats.disk.special_files import special_kind
from .. import compat, names
from .project_images import ProjectImages
from .textures import TextureLoader

_WHITE = 0.999
_DARK = 1e-3
_BRIGHTEST = 1e6
_DEPTHS_WITH_ALPHA = (32, 128)
"""Bits per pixel of images with an alpha channel. ``channels`` is 4 for byte images without alpha, too."""

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
    """Return a fixed linear colour for a name: that of a colour or substance in it, or else a hash of its letters."""
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
    given:
        Properties of materials in the file; existing materials are not changed.
    folder:
        Folder of the file, in which textures are searched.
    warn:
        Called with warnings about missing or damaged textures.
    link_textures:
        Whether images of a project's textures refer to files, see :class:`ProjectImages`.
    keep_file:
        Called with each file that is written, so that it is removed if the import fails.
    """

    def __init__(
        self,
        *,
        use_existing: bool,
        library: str,
        given: Iterable[Material] = (),
        folder: Path | None = None,
        warn: Callable[[str], None] = lambda _text: None,
        link_textures: bool = False,
        keep_file: Callable[[Path], None] = lambda _path: None,
    ) -> None:
        self.use_existing = use_existing
        self.library = bpy.path.abspath(library) if library else ""
        self.made: list[Any] = []
        self._known: dict[str, bpy.types.Material] = {}
        self._given = {material.name: material for material in given}
        self._project_images = ProjectImages(is_linked=link_textures, keep=self.keep, keep_file=keep_file, warn=warn)
        self._textures = TextureLoader(folder, self.keep, warn, self._project_images)

    def keep(self, block: Any) -> Any:
        """Register a data block as created by this import."""
        self.made.append(block)
        return block

    def report_textures(self) -> None:
        """Warn about the textures that could not be read."""
        self._project_images.report()

    def link_from_library(self, wanted: Iterable[str]) -> None:
        """Link the materials that the library has under these names.

        Raises
        ------
        MeshferryError
            The library is not a readable .blend file.
        """
        if not self.library:
            return
        missing = {name for name in wanted if not (self.use_existing and self._existing(name))}
        if kind := special_kind(self.library):
            raise MeshferryError(f"Material library '{Path(self.library).name}' is a {kind}, not a .blend file")
        libraries = set(bpy.data.libraries)
        try:
            with bpy.data.libraries.load(self.library, link=True) as (source, target):
                target.materials = [name for name in source.materials if name in missing]
        except OSError as problem:
            raise MeshferryError(f"Material library '{Path(self.library).name}' cannot be opened: {problem}") from None
        finally:
            self.made += [library for library in bpy.data.libraries if library not in libraries]
        for material in target.materials:
            if material is not None:
                self._known[material.name] = material

    def _existing(self, name: str) -> bpy.types.Material | None:
        found = bpy.data.materials.get(names.fit(name))
        if found is not None and names.file_name(found) == name:
            return found
        return next(
            (m for m in bpy.data.materials if m.meshferry.source_name == name and names.file_name(m) == name), None
        )

    def find(self, name: str, color_attribute: str) -> bpy.types.Material | None:
        """Return the material with that name, created if necessary; None for an empty name.

        ``color_attribute`` is the colour layer that a new material shows, or empty.
        """
        if not name:
            return None
        if name not in self._known:
            found = self._existing(name) if self.use_existing else None
            self._known[name] = found or self._new(name, color_attribute)
        return self._known[name]

    def _new(self, name: str, color_attribute: str) -> bpy.types.Material:
        self.made.append(bpy.data.materials.new(names.fit(name)))
        material = self.made[-1]
        names.remember(material, name)
        given = self._given.get(name)
        color = (*steady_color(name), 1.0) if given is None else _within_one(given.color)
        material.diffuse_color = color
        material.roughness = 0.8
        compat.enable_nodes(material)
        tree = material.node_tree
        shader = next((node for node in tree.nodes if node.type == "BSDF_PRINCIPLED"), None)
        if shader is None:
            return material
        shader.inputs["Base Color"].default_value = color
        shader.inputs["Roughness"].default_value = 0.8
        shown = None
        if color_attribute:
            shown = _multiplied_by_attribute(tree, shader, color, color_attribute)
        if given is not None:
            self._show(tree, shader, given, shown)
        return material

    def _show(
        self,
        tree: bpy.types.NodeTree,
        shader: bpy.types.Node,
        given: Material,
        shown: bpy.types.NodeSocket | None,
    ) -> None:
        """Apply the file's properties to a new material; ``shown`` is the socket linked to its base colour, if any."""
        red, green, blue, alpha = color = _within_one(given.color)
        shader.inputs["Alpha"].default_value = alpha
        if given.texture is not None:
            source = tree.nodes.new("ShaderNodeTexImage")
            source.image = self._textures.image(given.name, given.texture)
            source.location = (shader.location.x - 700, shader.location.y)
            if shown is not None or min(red, green, blue) < _WHITE:
                mixed = _multiplied(tree, shader, source.outputs["Color"], shown, color)
            else:
                mixed = source.outputs["Color"]
            tree.links.new(mixed, shader.inputs["Base Color"])
            shown = mixed
            if source.image.depth in _DEPTHS_WITH_ALPHA and alpha >= _WHITE:
                tree.links.new(source.outputs["Alpha"], shader.inputs["Alpha"])
        if given.emission > 0:
            # The emission colour is the base colour. The file's value is the mean of that colour times the strength.
            mean = (red + green + blue) / 3
            emitted = color if mean > _DARK else (1.0, 1.0, 1.0, 1.0)
            shader.inputs["Emission Color"].default_value = emitted
            shader.inputs["Emission Strength"].default_value = min(given.emission, _BRIGHTEST) / max(
                sum(emitted[:3]) / 3, _DARK
            )
            if shown is not None:
                tree.links.new(shown, shader.inputs["Emission Color"])


def _within_one(color: Sequence[float]) -> tuple[float, float, float, float]:
    """Return a colour clamped to 0..1, with NaN replaced by 0."""
    red, green, blue, alpha = (0.0 if math.isnan(part) else min(max(part, 0.0), 1.0) for part in color)
    return (red, green, blue, alpha)


def _multiplied_by_attribute(
    tree: bpy.types.NodeTree, shader: bpy.types.Node, color: tuple[float, ...], attribute: str
) -> bpy.types.NodeSocket:
    """Show the colour attribute times the material's colour, as game shaders do."""
    source = tree.nodes.new("ShaderNodeVertexColor")
    source.layer_name = attribute
    source.location = (shader.location.x - 420, shader.location.y)
    result = _multiplied(tree, shader, source.outputs["Color"], None, color)
    tree.links.new(result, shader.inputs["Base Color"])
    return result


def _multiplied(
    tree: bpy.types.NodeTree,
    shader: bpy.types.Node,
    one: bpy.types.NodeSocket,
    other: bpy.types.NodeSocket | None,
    color: Sequence[float],
) -> bpy.types.NodeSocket:
    """Add a node that multiplies a colour by another socket, or by a constant colour; return its result."""
    mix = tree.nodes.new("ShaderNodeMix")
    mix.data_type = "RGBA"
    mix.blend_type = "MULTIPLY"
    mix.location = (shader.location.x - 200, shader.location.y)
    sockets = {socket.identifier: socket for socket in mix.inputs}
    sockets["Factor_Float"].default_value = 1.0
    sockets["B_Color"].default_value = color
    tree.links.new(one, sockets["A_Color"])
    if other is not None:
        tree.links.new(other, sockets["B_Color"])
    return next(socket for socket in mix.outputs if socket.identifier == "Result_Color")
