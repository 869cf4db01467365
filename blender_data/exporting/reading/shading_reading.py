"""A Blender material -> neutral shading, from the values and images in the nodes before its shader.

This is the inverse of ``shading/shaders``. Node setups of artists and of Blender's own importers are read, too. All
other nodes are reported, once for each material.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import bpy

from ....io_formats.core.messages import Report, Text
from ....io_formats.core.scene import Material
from ....io_formats.core.shading import Channel, Factor, NormalMap, Opacity, Shading, Tint
from ... import compat
from .image_maps import ImageMaps, ImageReader, SurfaceLayers
from .material_reading import occlusion_inputs
from .shader_nodes import LeftOut, Socket, output_of, source, sources
from .socket_values import Product, SocketValues

_COMBINATIONS = {"COMBINE_COLOR", "COMBRGB", "COMBXYZ"}
_GREEN_UP = ((1.0, -1.0, 1.0), (0.0, 1.0, 0.0))
_AS_COLOR = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_IDENTITY, _INVERSE = [(0.0, 0.0), (1.0, 1.0)], [(0.0, 1.0), (1.0, 0.0)]


@dataclass
class _Color:
    """The image at the colour input of a Normal Map node, with the changes of its channels."""

    image: Socket | None = None
    is_green_down: bool = False
    has_blue: bool = True


class NormalReader:
    """Reads the normal map of one material."""

    def __init__(self, values: SocketValues) -> None:
        self._values = values

    def read(self, entry: Socket) -> NormalMap | None:
        """Return the normal map at an input, also if a Bump node is between them; None if there is none."""
        found = source(entry)
        while not found.is_value and found.node.type == "BUMP":
            if self._values.constant(found.input("Strength")) != 0.0:
                self._values.left_out.add_node(found.node)
            found = source(found.input("Normal"))
        if found.is_value:
            return None
        node = found.node
        if node.type != "NORMAL_MAP" or node.space not in {"TANGENT", "OBJECT"}:
            self._values.left_out.add_node(node)
            return None
        if self._values.constant(found.input("Strength")) == 0.0:
            return None
        color = self._color(source(found.input("Color")))
        image = self._values.maps.of(color.image, is_data=True) if color.image is not None else None
        if image is None:
            return None
        is_object_space = node.space == "OBJECT"
        is_green_down = (color.is_green_down != compat.is_green_down(node)) and not is_object_space
        strength = self._values.fixed(found.input("Strength"), 1.0, "Strength")
        return NormalMap(image, strength, is_green_down, color.has_blue, is_object_space)

    def _color(self, found: Socket) -> _Color:
        """Return the image of a normal map, and the changes of its channels that imports or artists add as nodes."""
        if found.is_value:
            return _Color()
        node = found.node
        if node.type == "TEX_IMAGE":
            return _Color(found)
        is_curve = node.type == "CURVE_RGB" and _inverts_green(node)
        if is_curve or _constants(found) == _GREEN_UP:
            color = self._color(source(found.input("Color" if is_curve else 0)))
            return _Color(color.image, not color.is_green_down, color.has_blue)
        if (flat := _flat_normals(found)) is not None:
            return flat
        if node.type in _COMBINATIONS and (combined := self._combined(found)) is not None:
            return combined
        self._values.left_out.add_node(node)
        linked = [source(found.input(number)) for number, entry in enumerate(node.inputs) if entry.is_linked]
        inner = next((above for above in linked if not above.is_value), None)
        return self._color(inner) if inner is not None else _Color()

    def _combined(self, found: Socket) -> _Color | None:
        """Return the image whose channels a node combines again, possibly with green inverted.

        None for any other node.
        """
        red, green, blue = (self._values.factor(found.input(number)) for number in range(3))
        if red.image is None or green.image != red.image or red.is_inverted:
            return None
        if (red.channel, green.channel) != (Channel.RED, Channel.GREEN):
            return None
        image = next((one for one in sources(found.input(0)) if one.node.type == "TEX_IMAGE"), None)
        return _Color(image, green.is_inverted, blue.image is not None) if image is not None else None


def _constants(found: Socket) -> tuple[tuple[float, ...], ...] | None:
    """Return multiplier and addend of a vector node that multiplies and adds constants, otherwise None."""
    node = found.node
    if found.is_value or node.type != "VECT_MATH" or node.operation != "MULTIPLY_ADD":
        return None
    entries = [source(found.input(number)) for number in (1, 2)]
    return tuple(entry.numbers() for entry in entries) if all(entry.is_value for entry in entries) else None


def _flat_normals(found: Socket) -> _Color | None:
    """Return the image of a normal map if nodes that an import added compute its third component, otherwise None."""
    if _constants(found) != _AS_COLOR:
        return None
    whole = source(found.input(0))
    if whole.is_value or whole.node.type != "VECT_MATH" or whole.node.operation != "ADD":
        return None
    flat = source(whole.input(0))
    constants = _constants(flat)
    if constants is None or constants[0] not in {(2.0, 2.0, 0.0), (2.0, -2.0, 0.0)}:
        return None
    image = source(flat.input(0))
    is_image = not image.is_value and image.node.type == "TEX_IMAGE"
    return _Color(image, constants[0][1] < 0, has_blue=False) if is_image else None


def _inverts_green(node: bpy.types.Node) -> bool:
    """Return whether an RGB Curves node inverts green and nothing else."""

    def points(curve: Any) -> list[tuple[float, float]]:
        return [(point.location[0], point.location[1]) for point in curve.points]

    curves = [points(curve) for curve in node.mapping.curves]
    return curves[1] == _INVERSE and all(curves[number] == _IDENTITY for number in (0, 2, 3))


_OPAQUE = 0.999
_NOT_HELD = {
    "Subsurface Weight": Text("subsurface scattering"),
    "Transmission Weight": Text("transmission"),
    "Coat Weight": Text("coat"),
    "Sheen Weight": Text("sheen"),
    "Anisotropic": Text("anisotropy"),
    "Thin Film Thickness": Text("thin film"),
}
"""Inputs of a Principled BSDF that neutral shading has no equivalent for, by their names in Blender 4.5 to 5.3."""
_SHADERS = ("BSDF_PRINCIPLED", "BSDF_DIFFUSE", "EMISSION")


def read_shadings(
    materials: Mapping[str, bpy.types.Material],
    layers: Mapping[str, SurfaceLayers],
    report: Report,
    baked: Mapping[str, Shading],
    tell: Callable[[LeftOut, str, bpy.types.Material], None],
) -> list[Material]:
    """Return materials with their shading.

    Materials of a project are returned without shading, with the identity by which files refer to them.

    Parameters
    ----------
    materials:
        Materials by their names in the file.
    layers:
        Layers of a mesh with the material, by the name of the material.
    report:
        Receives a message for each image that cannot be read.
    baked:
        Known shadings of materials.
    tell:
        Reports what was left out of a material with a name in the file.
    """
    images, made = ImageReader(report), []
    for name, material in materials.items():
        if material.meshferry.identity:
            stored = {one.name: one.value for one in material.meshferry.file_properties}
            made.append(Material(name, identity=material.meshferry.identity, properties=stored))
        else:
            shading = baked.get(name)
            if shading is None:
                shading, left_out = shading_of(material, images, layers.get(name, SurfaceLayers()))
                tell(left_out, name, material)
            made.append(Material(name, _display_color(material), shading=shading))
    return made


def shading_of(material: bpy.types.Material, images: ImageReader, layers: SurfaceLayers) -> tuple[Shading, LeftOut]:
    """Return the shading of a material, and what it cannot hold.

    For a material without nodes or without a known shader, it is taken from the viewport display.
    """
    left_out = LeftOut()
    tree = compat.node_tree(material)
    shading = _viewport_shading(material)
    if tree is not None:
        reader = _MaterialReader(material, SocketValues(ImageMaps(images, layers, left_out), left_out))
        shading = reader.shading(tree) or shading
    return shading, left_out


def _viewport_shading(material: bpy.types.Material) -> Shading:
    red, green, blue, alpha = _display_color(material)
    opacity = opacity_of(material) if alpha < _OPAQUE else Opacity.OPAQUE
    made = Shading(Tint((red, green, blue)), Factor(material.metallic), Factor(material.roughness), opacity=opacity)
    return replace(made, alpha=Factor(alpha), is_two_sided=not material.use_backface_culling)


def _display_color(material: bpy.types.Material) -> tuple[float, float, float, float]:
    """Return colour and alpha of the viewport display."""
    red, green, blue, alpha = (float(part) for part in material.diffuse_color)
    return (red, green, blue, alpha)


def opacity_of(material: bpy.types.Material) -> Opacity:
    """Return how a material shows transparency, if it has any."""
    return Opacity.BLEND if material.surface_render_method == "BLENDED" else Opacity.DITHERED


@dataclass(frozen=True)
class _Surface:
    """A shader, and the transparency that results from nodes between the shader and the output."""

    shader: Socket
    alpha: Socket | None = None
    is_inverted: bool = False
    is_added: bool = False


class _MaterialReader:
    """Reads the shading of one material with nodes."""

    def __init__(self, material: bpy.types.Material, values: SocketValues) -> None:
        self.material = material
        self.values = values
        self.left_out = values.left_out

    def shading(self, tree: bpy.types.NodeTree) -> Shading | None:
        """Return the shading of the active output, or None if it has no known shader."""
        output = output_of(tree)
        if output is None:
            return None
        for name, word in (("Volume", Text("volume")), ("Displacement", Text("displacement"))):
            if output.inputs[name].is_linked:
                self.left_out.settings.append(word)
        surface = self._surface(source(Socket(output.inputs["Surface"])))
        if surface is None:
            return None
        read = {"BSDF_PRINCIPLED": self._principled, "BSDF_DIFFUSE": self._diffuse, "EMISSION": self._emission}
        made = self._with_alpha(read[surface.shader.node.type](surface.shader), surface)
        if made.occlusion is None:
            made = replace(made, occlusion=self._occlusion(tree))
        return replace(made, is_two_sided=not self.material.use_backface_culling)

    # -- shaders --------------------------------------------------------------------------------

    def _surface(self, found: Socket) -> _Surface | None:
        """Return the shader of a surface. If shaders are mixed, return the first supported one."""
        if found.is_value:
            return None
        node = found.node
        if node.type in _SHADERS:
            return _Surface(found)
        if node.type == "MIX_SHADER":
            inputs = [source(found.input(number)) for number in (1, 2)]
            share = self.values.constant(found.input(0))
            if share in {0.0, 1.0} and not _is_transparent(inputs[int(share)]):
                return self._surface(inputs[int(share)])
            for number, other in ((0, 1), (1, 0)):
                if _is_transparent(inputs[number]) and not inputs[other].is_value:
                    added = _added_to_background(inputs[other]) if number == 0 else None
                    surface = self._surface(added or inputs[other])
                    is_inverted = number == 1
                    return surface and _Surface(surface.shader, found.input(0), is_inverted, added is not None)
        if node.type in {"MIX_SHADER", "ADD_SHADER"}:
            self.left_out.add_node(node)
            inner = [source(found.input(n)) for n, entry in enumerate(node.inputs) if entry.type == "SHADER"]
            surfaces = [surface for one in inner if (surface := self._surface(one)) is not None]
            surfaces.sort(key=lambda surface: _SHADERS.index(surface.shader.node.type))
            return surfaces[0] if surfaces else None
        self.left_out.add_node(node)
        return None

    def _principled(self, shader: Socket) -> Shading:
        """Return the shading of a Principled BSDF; settings that files cannot hold are noted in ``left_out``."""
        values, inputs = self.values, shader.node.inputs
        for name, word in _NOT_HELD.items():
            socket = inputs.get(name)
            if socket is not None and (socket.is_linked or socket.default_value != 0.0):
                self.left_out.settings.append(word)
        base = self._base_color(shader.input("Base Color"))
        emitted, strength = self._emitted(shader)
        tint = values.color(shader.input("Specular Tint")) if "Specular Tint" in inputs else Product()
        specular = values.factor(shader.input("Specular IOR Level"))
        metallic, roughness = (values.factor(shader.input(name)) for name in ("Metallic", "Roughness"))
        specular = replace(specular, value=specular.value * self._reflectance(shader))
        normal, light = NormalReader(values).read(shader.input("Normal")), emitted.tint if strength > 0.0 else None
        return Shading(base.tint, metallic, roughness, specular, tint.tint, normal, base.occlusion, light, strength)

    def _emitted(self, shader: Socket) -> tuple[Product, float]:
        """Return colour and strength of the emission. Nodes at one of them do not count if the other one is 0."""
        if self.values.constant(shader.input("Emission Strength")) == 0.0:
            return Product(), 0.0
        emitted = self.values.color(shader.input("Emission Color"))
        if not max(emitted.value) > 0.0:
            return emitted, 0.0
        return emitted, self.values.fixed(shader.input("Emission Strength"), 1.0, "Emission Strength")

    def _reflectance(self, shader: Socket) -> float:
        """Return the reflectance at the index of refraction, relative to the 4 % of index 1.5."""
        left_out = LeftOut()
        factor = SocketValues(self.values.maps, left_out).factor(shader.input("IOR"))
        ior = factor.value if factor.image is None else 1.5
        if factor.image is not None or left_out.nodes:
            self.left_out.settings.append(Text("IOR of nodes"))
        return 1.0 if abs(ior - 1.5) < 1e-6 else ((ior - 1.0) / (ior + 1.0)) ** 2 / 0.04

    def _base_color(self, entry: Socket) -> Product:
        """Return the base colour.

        If it comes from unknown nodes, the colour of the viewport display is used.
        """
        product = self.values.color(entry)
        if product.is_unknown and product.image is None:
            product.value = tuple(self.material.diffuse_color)[:3]
        if product.image is not None and not product.image.is_color:
            self.left_out.color_spaces.append(product.image.texture.name)
        return product

    def _diffuse(self, shader: Socket) -> Shading:
        base = self._base_color(shader.input("Color"))
        normal = NormalReader(self.values).read(shader.input("Normal"))
        return Shading(base.tint, roughness=Factor(1.0), specular=Factor(0.0), normal=normal, occlusion=base.occlusion)

    def _emission(self, shader: Socket) -> Shading:
        emitted = self._base_color(shader.input("Color"))
        strength = self.values.fixed(shader.input("Strength"), 1.0, "Strength")
        black, none = Tint((0.0, 0.0, 0.0)), Factor(0.0)
        return Shading(black, none, Factor(1.0), none, emission=emitted.tint, emission_strength=strength)

    # -- transparency ---------------------------------------------------------------------------

    def _with_alpha(self, shading: Shading, surface: _Surface) -> Shading:
        """Return the shading with its transparency, set in the shader or by mixing it with a Transparent BSDF."""
        entry = surface.alpha
        if entry is None and "Alpha" in surface.shader.node.inputs:
            entry = surface.shader.input("Alpha")
        if entry is None:
            return shading
        entry, threshold = self._without_test(entry)
        power = 1.0
        found = source(entry)
        if not found.is_value and found.node.type == "MATH" and found.node.operation == "POWER":
            power = self.values.fixed(found.input(1), 1.0, "Exponent")
            entry = found.input(0)
        alpha = self.values.factor(entry)
        if surface.is_inverted:
            alpha = replace(alpha, is_inverted=not alpha.is_inverted)
            alpha = Factor(1.0 - alpha.value) if alpha.image is None else alpha
        if surface.is_added:
            mode = Opacity.ADD
        elif alpha.image is None and alpha.value >= _OPAQUE:
            return shading
        else:
            mode = Opacity.CLIP if threshold is not None else opacity_of(self.material)
        threshold = shading.alpha_threshold if threshold is None else threshold
        return replace(shading, opacity=mode, alpha=alpha, alpha_power=power, alpha_threshold=threshold)

    def _without_test(self, entry: Socket) -> tuple[Socket, float | None]:
        """Return the input of an alpha test, and its threshold.

        If there is no test, return ``entry`` itself and None. Blender's glTF importer builds the test as 1 - (alpha <
        threshold).
        """
        found = source(entry)
        if found.is_value or found.node.type != "MATH":
            return entry, None
        operation = found.node.operation
        if operation == "ROUND":
            return found.input(0), 0.5
        if operation == "SUBTRACT" and self.values.constant(found.input(0)) == 1.0:
            inner = source(found.input(1))
            if not inner.is_value and inner.node.type == "MATH" and inner.node.operation == "LESS_THAN":
                found, operation = inner, "GREATER_THAN"
        if operation == "GREATER_THAN" and (threshold := self.values.constant(found.input(1))) is not None:
            return found.input(0), threshold
        return entry, None

    # -- ambient occlusion ----------------------------------------------------------------------

    def _occlusion(self, tree: bpy.types.NodeTree) -> Factor | None:
        """Return ambient occlusion from the node group of Blender's glTF add-on, or from nodes that an import made.

        The latter are an image whose channels are separated without being linked to anything.
        """
        for socket in occlusion_inputs(tree):
            factor = self.values.factor(Socket(socket))
            if factor.image is not None:
                return factor
        separated = [node for node in tree.nodes if node.type == "SEPARATE_COLOR"]
        unused = [node for node in separated if not any(output.is_linked for output in node.outputs)]
        for found in (source(Socket(node.inputs[0])) for node in unused):
            if not found.is_value and found.node.type == "TEX_IMAGE" and (image := self.values.maps.of(found)):
                return Factor(1.0, image, Channel.RED)
        return None


def _is_transparent(found: Socket) -> bool:
    return not found.is_value and found.node.type == "BSDF_TRANSPARENT"


def _added_to_background(found: Socket) -> Socket | None:
    """Return the shader that is added to a Transparent BSDF, or None if the node is not such an addition."""
    if found.is_value or found.node.type != "ADD_SHADER":
        return None
    inputs = [source(found.input(number)) for number in (0, 1)]
    others = [one for one in inputs if not _is_transparent(one)]
    return others[0] if len(others) == 1 and not others[0].is_value else None
