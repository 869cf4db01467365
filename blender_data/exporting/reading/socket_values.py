"""Inputs of shaders -> neutral factors and colours: products of the images and values of the nodes before an input."""

from dataclasses import dataclass, replace

import numpy as np

from ....io_formats.core.messages import Named, Text
from ....io_formats.core.shading import Channel, Factor, ImageMap, Tint
from .image_maps import ImageMaps, has_alpha
from .shader_nodes import LeftOut, Socket, source, sources

_CHANNELS = (Channel.RED, Channel.GREEN, Channel.BLUE)
_SEPARATIONS = {"SEPARATE_COLOR", "SEPRGB", "SEPXYZ"}
_GREY_OF_COLOR = {"RGBTOBW", "CLAMP"}


@dataclass
class Product:
    """A colour as product of values, images and vertex colours."""

    value: tuple[float, ...] = (1.0, 1.0, 1.0)
    image: ImageMap | None = None
    uses_vertex_color: bool = False
    occlusion: Factor | None = None
    """Ambient occlusion: an image channel by which the colour is multiplied."""
    is_unknown: bool = False
    """Whether the colour comes from nodes that were left out and contain no image."""

    def scale(self, factors: tuple[float, ...]) -> None:
        """Multiply the constant part of the product by a colour or a number."""
        given = factors[:3] if len(factors) >= 3 else factors[:1] * 3
        self.value = tuple(part * factor for part, factor in zip(self.value, given, strict=True))

    @property
    def tint(self) -> Tint:
        """The colour as ``Tint``, without the occlusion."""
        red, green, blue = self.value
        return Tint((red, green, blue), self.image, self.uses_vertex_color)


class SocketValues:
    """Reads the values of the inputs of one material's shader."""

    def __init__(self, maps: ImageMaps, left_out: LeftOut) -> None:
        self.maps = maps
        self.left_out = left_out

    # -- numbers --------------------------------------------------------------------------------

    def factor(self, entry: Socket) -> Factor:
        """Return the number at an input, as a factor with an optional image."""
        return self._factor_of(source(entry), entry)

    def _factor_of(self, found: Socket, entry: Socket) -> Factor:
        """Return the number that a source provides for an input."""
        if found.is_value:
            return Factor(_mean(found))
        node = found.node
        if node.type in {"VALUE", "RGB"}:
            return Factor(_mean(Socket(node.outputs[0])))
        if (color := self._attribute(found)) is not None:
            return Factor(color[3] if found.socket.name == "Alpha" else float(np.mean(color[:3])))
        if node.type == "TEX_IMAGE":
            return self._image_factor(found, Channel.ALPHA if found.socket.name == "Alpha" else Channel.RED)
        if node.type in _SEPARATIONS and getattr(node, "mode", "RGB") == "RGB":
            return self._channel(found)
        if node.type in _GREY_OF_COLOR:
            return self.factor(found.input(0))
        return self._computed(found, entry)

    def _computed(self, found: Socket, entry: Socket) -> Factor:
        """Return the factor that a math node computes.

        If files cannot store it, return the default of ``entry``.
        """
        node = found.node
        operation = node.operation if node.type == "MATH" else node.type
        if operation in {"INVERT", "SUBTRACT"} and self.constant(found.input(0)) == 1.0:
            return self._inverted(self.factor(found.input(1)))
        if operation == "MULTIPLY":
            return self._multiplied(found, self.factor(found.input(0)), self.factor(found.input(1)))
        multiplied = _multiplied_inputs(found)
        if multiplied is not None and self.constant(multiplied[0]) == 1.0:
            return self._multiplied(found, self.factor(multiplied[1]), self.factor(multiplied[2]))
        image = self._report_and_find(found)
        return Factor(1.0, image) if image is not None else Factor(_mean(entry))

    def constant(self, entry: Socket) -> float | None:
        """Return the number of an input that no image affects, otherwise None; nothing is reported."""
        found = source(entry)
        if found.is_value:
            return _mean(found)
        return float(found.node.outputs[0].default_value) if found.node.type == "VALUE" else None

    def fixed(self, entry: Socket, default: float, word: str) -> float:
        """Return the constant value of an input. If it has an image, report that and return ``default``."""
        factor = self.factor(entry)
        if factor.image is None:
            return factor.value
        self.left_out.mappings.append(Text("the image of '{}'", word))
        return default

    def _image_factor(self, found: Socket, channel: Channel) -> Factor:
        image = self.maps.of(found, is_data=channel is not Channel.ALPHA)
        if image is None or (channel is Channel.ALPHA and not has_alpha(found.node.image)):
            return Factor(1.0)
        return Factor(1.0, image, channel)

    def _channel(self, separated: Socket) -> Factor:
        """Return the factor of an output of a Separate Color or Separate XYZ node."""
        channel = _CHANNELS[list(separated.node.outputs).index(separated.socket)]
        found = source(separated.input(0))
        if found.is_value:
            numbers = found.numbers()
            return Factor(numbers[_CHANNELS.index(channel)] if len(numbers) >= 3 else numbers[0])
        if found.node.type == "TEX_IMAGE" and found.socket.name != "Alpha":
            return self._image_factor(found, channel)
        image = self._report_and_find(found)
        return Factor(1.0, image, channel) if image is not None else Factor(1.0)

    def _inverted(self, factor: Factor) -> Factor:
        if factor.image is None:
            return Factor(1.0 - (1.0 - factor.value if factor.is_inverted else factor.value))
        return replace(factor, is_inverted=not factor.is_inverted)

    def _multiplied(self, found: Socket, first: Factor, second: Factor) -> Factor:
        """Return the product of two factors.

        A factor can have only one image, so a second one is reported and dropped.
        """
        if first.image is None and not first.is_inverted:
            first, second = second, first
        if second.image is not None or (first.is_inverted and second.value != 1.0):
            self.left_out.add_node(found.node)
            return first
        return replace(first, value=first.value * second.value)

    # -- colours --------------------------------------------------------------------------------

    def color(self, entry: Socket) -> Product:
        """Return the colour of an input."""
        product = Product()
        self._multiply(source(entry), product)
        return product

    def _multiply(self, found: Socket, product: Product) -> None:
        """Multiply a product by the value, image or vertex colour of a socket."""
        node = found.node
        if found.is_value:
            product.scale(found.numbers())
        elif node.type in {"RGB", "VALUE"}:
            product.scale(Socket(node.outputs[0]).numbers())
        elif node.type == "TEX_IMAGE" and found.socket.name != "Alpha":
            self._multiply_image(found, product)
        elif node.type == "VERTEX_COLOR" or (node.type == "ATTRIBUTE" and found.socket.name == "Color"):
            color = self._attribute(found)
            product.uses_vertex_color |= color is None
            product.scale(color or (1.0,))
        elif found.socket.type == "VALUE":
            self._multiply_factor(found, product)
        elif multiplied := _multiplied_inputs(found):
            self._multiply_mix(found, product, *multiplied)
        elif node.type == "VECT_MATH" and node.operation == "MULTIPLY":
            self._multiply(source(found.input(0)), product)
            self._multiply(source(found.input(1)), product)
        else:
            image = self._report_and_find(found)
            product.image = product.image or image
            product.is_unknown |= image is None

    def _multiply_mix(self, found: Socket, product: Product, factor: Socket, first: Socket, second: Socket) -> None:
        """Multiply the result of a Mix node: A * (1 - factor + factor * B)."""
        share = self.constant(factor)
        if share is None:
            self.left_out.add_node(found.node)
            share = 0.0
        self._multiply(source(first), product)
        other = source(second)
        if share == 1.0:
            self._multiply(other, product)
        elif other.is_value or other.node.type == "RGB":
            numbers = other.numbers() if other.is_value else Socket(other.node.outputs[0]).numbers()
            product.scale(tuple(1.0 - share + share * part for part in numbers))
        elif share:
            self.left_out.add_node(found.node)

    def _multiply_image(self, found: Socket, product: Product) -> None:
        """Multiply a product by an image.

        Of a colour image and a non-colour image, the non-colour one becomes the ambient occlusion.
        """
        image = self.maps.of(found)
        if image is None:
            return
        known = product.image
        if known is None:
            product.image = image
        elif known.is_color == image.is_color or product.occlusion is not None:
            self.left_out.mappings.append(Text("the product with the image '{}'", Named("image", image.texture.name)))
        else:
            product.image, grey = (image, known) if image.is_color else (known, image)
            product.occlusion = Factor(1.0, grey, Channel.RED)

    def _multiply_factor(self, found: Socket, product: Product) -> None:
        """Multiply a product by a factor. If the factor has an image, it becomes the ambient occlusion."""
        factor = self._factor_of(found, found)
        if factor.image is None:
            product.scale((factor.value,))
        elif product.occlusion is None:
            product.occlusion = factor
        else:
            name = Named("image", factor.image.texture.name)
            self.left_out.mappings.append(Text("the product with the image '{}'", name))

    def _attribute(self, found: Socket) -> tuple[float, ...] | None:
        """Return the value of a colour attribute that is the same on all faces, otherwise None."""
        node = found.node
        if node.type == "VERTEX_COLOR":
            return self.maps.layers.color_of(node.layer_name)
        is_named = node.type == "ATTRIBUTE" and node.attribute_type == "GEOMETRY" and found.socket.name == "Color"
        return self.maps.layers.color_of(node.attribute_name) if is_named else None

    # -- other nodes ----------------------------------------------------------------------------

    def _report_and_find(self, found: Socket) -> ImageMap | None:
        """Report a node that files cannot store; return the nearest image before it, or None."""
        self.left_out.add_node(found.node)
        above = (one for one in sources(found) if one.node.type == "TEX_IMAGE" and one.node != found.node)
        return next((image for image in map(self.maps.of, above) if image is not None), None)


def _mean(socket: Socket) -> float:
    """Return the number of a socket; for a colour or vector, the mean of its components."""
    return float(np.mean(socket.numbers()[:3]))


def _multiplied_inputs(found: Socket) -> tuple[Socket, Socket, Socket] | None:
    """Return factor, first and second colour of a Mix node that multiplies, otherwise None."""
    node = found.node
    if node.type == "MIX" and node.data_type == "RGBA" and node.blend_type == "MULTIPLY":
        by_identifier = {socket.identifier: socket for socket in node.inputs}
        inputs = (by_identifier[name] for name in ("Factor_Float", "A_Color", "B_Color"))
    elif node.type == "MIX_RGB" and node.blend_type == "MULTIPLY":
        inputs = iter(node.inputs)
    else:
        return None
    factor, first, second = (Socket(socket, found.groups) for socket in inputs)
    return factor, first, second
