"""Neutral shading -> shader nodes: a Principled BSDF with the images and the few nodes between them."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import bpy

from ...io_formats.core.shading import (
    Channel,
    Extension,
    Factor,
    ImageMap,
    Mapping,
    Mixture,
    NormalMap,
    Opacity,
    Projection,
    Shading,
    Texture,
    Tint,
)
from .. import compat

_GAP_X = 60.0
_GAP_Y = 30.0
_HEADER = 34.0
_ROW = 22.0
_EXTRA_HEIGHT = {"TEX_IMAGE": 180.0, "BSDF_PRINCIPLED": 80.0, "MIX": 70.0, "NORMAL_MAP": 130.0}
"""Height of the parts of a node besides its sockets, by type, in units of the node editor. Blender computes heights
only when it draws nodes."""
_USUAL_EXTRA_HEIGHT = 30.0
_ROWS_OF_VECTOR = 3
"""Number of rows that an unlinked vector input takes below its name."""


def arrange_nodes(tree: bpy.types.NodeTree, output: bpy.types.Node) -> None:
    """Place the nodes of a tree in columns to the left of the output.

    A node is placed to the left of all nodes that it feeds, and not above the first of them. In a column, nodes follow
    the order of the inputs that they feed, so that few wires cross. Nodes that feed nothing are placed below the
    others.
    """
    columns: dict[bpy.types.Node, int] = {}
    _set_columns(output, 0, columns)
    order = list(dict.fromkeys(_sources_first_to_last(output)))
    for node in tree.nodes:  # nodes that are not connected to the output
        if node not in columns and not any(socket.is_linked for socket in node.outputs):
            _set_columns(node, 2, columns)
            order += [found for found in _sources_first_to_last(node) if found not in order]
    widths: dict[int, float] = {}
    for node, column in columns.items():
        widths[column] = max(widths.get(column, 0.0), node.width)
    right, bottom = output.location.x + output.width, dict.fromkeys(widths, output.location.y)
    left_edges: dict[int, float] = {}
    for column in sorted(widths):
        left_edges[column] = right - widths[column]
        right = left_edges[column] - _GAP_X
    last = {columns[node]: node for node in order}
    for node in order:
        node.select = False
        column = columns[node]
        fed = [link.to_node.location.y for socket in node.outputs for link in _links_of(socket)]
        top = min([bottom[column], *fed[:1]])
        node.location = (left_edges[column], top)
        if last[column] != node:
            bottom[column] = top - _height(node) - _GAP_Y


def _set_columns(node: bpy.types.Node, column: int, columns: dict[bpy.types.Node, int]) -> None:
    """Store the columns of a node and of all nodes before it; each is beyond the columns of the nodes that it feeds."""
    if columns.get(node, -1) >= column:
        return
    columns[node] = column
    for socket in node.inputs:
        for link in _links_of(socket):
            _set_columns(link.from_node, column + 1, columns)


def _sources_first_to_last(node: bpy.types.Node) -> Iterator[bpy.types.Node]:
    """Yield a node and all nodes upstream of it, in the order of inputs; nodes with several users are repeated."""
    yield node
    for socket in node.inputs:
        for link in _links_of(socket):
            yield from _sources_first_to_last(link.from_node)


def _links_of(socket: bpy.types.NodeSocket) -> Iterable[bpy.types.NodeLink]:
    """Return the links of a socket.

    For an unlinked socket Blender is not asked, since it would search all links of the tree.
    """
    return socket.links or () if socket.is_linked else ()


def _height(node: bpy.types.Node) -> float:
    shown = [socket for socket in (*node.outputs, *node.inputs) if socket.enabled and not socket.hide]
    vectors = [socket for socket in node.inputs if socket in shown and socket.type == "VECTOR" and not socket.is_linked]
    hidden = sum(socket.hide_value for socket in vectors)
    rows = len(shown) + _ROWS_OF_VECTOR * (len(vectors) - hidden)
    return _HEADER + _ROW * rows + _EXTRA_HEIGHT.get(node.type, _USUAL_EXTRA_HEIGHT)


ImageOf = Callable[[Texture, bool], bpy.types.Image | None]
"""Function that returns the image of a texture, or None. Its second argument tells whether the image holds sRGB-encoded
colours."""

_WHITE = 0.999
_EXTENSIONS = {Extension.REPEAT: "REPEAT", Extension.EXTEND: "EXTEND", Extension.CLIP: "CLIP"}
_DEPTHS_WITH_ALPHA = (32, 128)
"""Values of ``Image.depth`` (bits per pixel) of images with an alpha channel. ``Image.channels`` is 4 even for byte
images without alpha."""
_SEPARATED = {Channel.RED: "Red", Channel.GREEN: "Green", Channel.BLUE: "Blue"}
_OBJECT_SPACE = {Projection.BOX_OBJECT, Projection.TOP_OBJECT}
_BOXES = {Projection.BOX_OBJECT, Projection.BOX_WORLD}


@dataclass(frozen=True)
class MeshLayers:
    """Names of the layers of the mesh for which a material is made."""

    color: str = ""
    """Name of the first colour attribute; empty if there is none."""
    uvs: tuple[str, ...] = ()


def layers_of(mesh: bpy.types.Mesh) -> MeshLayers:
    """Return the names of the layers of a mesh."""
    color = mesh.color_attributes[0].name if len(mesh.color_attributes) else ""
    return MeshLayers(color, tuple(layer.name for layer in mesh.uv_layers))


def show(
    material: bpy.types.Material,
    shading: Shading,
    layers: MeshLayers,
    image_of: ImageOf,
    *,
    multiply_occlusion: bool = False,
    is_copy: bool = False,
) -> None:
    """Replace the nodes and settings of a material by those for a shading.

    A channel whose image is missing gets its constant value. Ambient occlusion is only multiplied onto the base colour
    if ``multiply_occlusion`` is set; otherwise its node stays unconnected, since Blender computes occlusion itself. If
    the material is a copy of one that was made for the same ``layers``, its nodes are kept where they fit: new ones
    take ten times as long, since Blender updates the tree after each of them.
    """
    compat.enable_nodes(material)
    tree = material.node_tree
    try:
        if not is_copy:
            raise _OtherNodesError
        _Builder(tree, layers, image_of, iter(tree.nodes)).build(shading, multiply_occlusion=multiply_occlusion)
    except _OtherNodesError:
        tree.nodes.clear()
        _Builder(tree, layers, image_of).build(shading, multiply_occlusion=multiply_occlusion)
    red, green, blue = (min(max(part, 0.0), 1.0) for part in shown_tint(shading).value)
    alpha = 1.0 if shading.opacity is Opacity.OPAQUE else min(max(shading.alpha.value, 0.0), 1.0)
    material.diffuse_color = (red, green, blue, alpha)
    material.metallic = shading.metallic.value
    material.roughness = shading.roughness.value
    is_blended = shading.opacity in (Opacity.BLEND, Opacity.ADD)
    material.surface_render_method = "BLENDED" if is_blended else "DITHERED"
    material.use_backface_culling = not shading.is_two_sided


def shown_tint(shading: Shading) -> Tint:
    """Return the colour for the Solid view, which is the emission of materials that only emit."""
    if shading.emission is not None and not any(shading.base_color.value):
        return shading.emission
    return shading.base_color


def likeness(shading: Shading) -> Hashable:
    """Return a key that shadings share whose nodes probably differ in nothing but values and images."""
    found: list[Hashable] = [shading.emission == shading.base_color]
    for part in vars(shading).values():
        image = getattr(part, "image", None)
        if isinstance(part, Opacity):
            found.append(part)
        elif image is None:
            found.append(part is None)
        else:
            plain = replace(image.mapping, rotation=0.0) == Mapping()
            is_white = getattr(part, "value", None) in (1.0, (1.0, 1.0, 1.0))
            found.append((is_white, image.mapping.rotation != 0.0, plain, image.texture.has_alpha))
    return tuple(found)


class _OtherNodesError(Exception):
    """A shading needs other nodes than those of the material that was copied for it."""


@dataclass
class _Builder:
    """Creates the nodes of one material; each image, mapping and separated image has one node."""

    tree: bpy.types.NodeTree
    layers: MeshLayers
    image_of: ImageOf
    copied: Iterator[bpy.types.Node] | None = None
    """The nodes of a copied tree, which are used in place of new ones as long as they and their links fit."""
    images: dict[ImageMap, bpy.types.Node | None] = field(default_factory=dict)
    vectors: dict[Mapping, bpy.types.NodeSocket | None] = field(default_factory=dict)
    separated: dict[bpy.types.Node, bpy.types.Node] = field(default_factory=dict)
    tints: dict[Tint, bpy.types.NodeSocket | None] = field(default_factory=dict)

    def build(self, shading: Shading, *, multiply_occlusion: bool) -> None:
        """Add all nodes, starting at the output and ending at the texture coordinates.

        If nodes of an existing tree are taken instead (``copied``), that tree must have exactly these nodes.
        """
        output = self._node("ShaderNodeOutputMaterial")
        shader = self._node("ShaderNodeBsdfPrincipled")
        if shading.opacity is Opacity.ADD:
            self._add_to_background(shader, output, shading)
        else:
            self._link(shader.outputs["BSDF"], output.inputs["Surface"])
            self._set_alpha(shader.inputs["Alpha"], shading)
        color = self._tint(shading.base_color)
        if shading.occlusion is not None:
            occlusion = self._factor(shading.occlusion, "Ambient Occlusion", is_kept=True)
            if multiply_occlusion and occlusion is not None:
                color = self._multiplied(color, shading.base_color.value, occlusion, "Ambient Occlusion")
        self._set(shader.inputs["Base Color"], (*shading.base_color.value, 1.0), color)
        for name, factor in (
            ("Metallic", shading.metallic),
            ("Roughness", shading.roughness),
            ("Specular IOR Level", shading.specular),
        ):
            self._set(shader.inputs[name], _constant(factor), self._factor(factor, name))
        tint = shading.specular_tint
        self._set(shader.inputs["Specular Tint"], (*tint.value, 1.0), self._tint(tint))
        if shading.emission is not None:
            emitted = self._tint(shading.emission)
            self._set(shader.inputs["Emission Color"], (*shading.emission.value, 1.0), emitted)
            self._set(shader.inputs["Emission Strength"], shading.emission_strength, None)
        if shading.normal is not None:
            self._set(shader.inputs["Normal"], None, self._normal(shading.normal))
        if self.copied is None:
            arrange_nodes(self.tree, output)
        elif next(self.copied, None) is not None:
            raise _OtherNodesError

    # -- nodes ----------------------------------------------------------------------------------

    def _node(self, kind: str, label: str = "", **settings: Any) -> Any:
        """Add a node with these settings, or take the next node of a copied tree, which must be of the same kind."""
        if self.copied is None:
            node = self.tree.nodes.new(kind)
            if label:
                node.name = node.label = label
        else:
            node = next(self.copied, None)
            if node is None or (node.bl_idname, node.label) != (kind, label):
                raise _OtherNodesError
        for name, value in settings.items():
            if getattr(node, name) != value:
                setattr(node, name, value)
        return node

    def _link(self, source: bpy.types.NodeSocket, target: bpy.types.NodeSocket) -> None:
        if self.copied is None:
            self.tree.links.new(source, target)
        elif not any(link.from_socket == source for link in target.links or ()):
            raise _OtherNodesError

    def _set(self, target: Any, value: Any, source: bpy.types.NodeSocket | None) -> None:
        """Set the value of a socket, and link ``source`` to it if that is not None."""
        # skip values that are already set, since setting one takes 40 µs
        if value is not None and not _is_set(target, value):
            target.default_value = value
        if source is not None:
            self._link(source, target)
        elif self.copied is not None and target.is_linked:
            raise _OtherNodesError

    def _math(self, operation: str, label: str, first: Any, *values: float, clamp: bool = False) -> Any:
        node = self._node("ShaderNodeMath", label, operation=operation, use_clamp=clamp)
        return self._with_inputs(node, first, values).outputs["Value"]

    def _vector_math(self, operation: str, label: str, first: Any, *values: Any) -> Any:
        node = self._node("ShaderNodeVectorMath", label, operation=operation)
        made = self._with_inputs(node, first, values)
        return made.outputs["Value" if operation == "DOT_PRODUCT" else "Vector"]

    def _with_inputs(self, node: Any, first: Any, values: tuple[Any, ...]) -> Any:
        """Set the inputs of a math node; each is a socket to link or a value."""
        for target, value in zip(node.inputs, (first, *values), strict=False):
            if isinstance(value, bpy.types.NodeSocket):
                self._link(value, target)
            else:
                self._set(target, value, None)
        return node

    def _multiplied(self, first: Any, value: tuple[float, ...], second: Any, label: str) -> bpy.types.NodeSocket:
        """Multiply two colours; the first is ``value`` if ``first`` is None."""
        return self._mix("MULTIPLY", label, (first, value), (second, value))

    def _mix(
        self,
        operation: str,
        label: str,
        first: tuple[bpy.types.NodeSocket | None, tuple[float, ...]],
        second: tuple[bpy.types.NodeSocket | None, tuple[float, ...]],
        factor: bpy.types.NodeSocket | None = None,
    ) -> bpy.types.NodeSocket:
        """Mix two colours, each given by its socket and its value if that is None. The factor is clamped to 0 to 1."""
        mix = self._node("ShaderNodeMix", label, data_type="RGBA", blend_type=operation)
        sockets = {socket.identifier: socket for socket in mix.inputs}
        self._set(sockets["Factor_Float"], 1.0, factor)
        for name, (source, value) in (("A_Color", first), ("B_Color", second)):
            self._set(sockets[name], (*value[:3], 1.0), source)
        return next(socket for socket in mix.outputs if socket.identifier == "Result_Color")

    # -- images ---------------------------------------------------------------------------------

    def _image(self, wanted: ImageMap) -> Any:
        """Return the node of an image, or None if the image is missing."""
        if wanted not in self.images:
            image = self.image_of(wanted.texture, wanted.is_color)
            self.images[wanted] = None if image is None else self._new_image(wanted, image)
        return self.images[wanted]

    def _new_image(self, wanted: ImageMap, image: bpy.types.Image) -> Any:
        node = self._node("ShaderNodeTexImage", image=image, extension=_EXTENSIONS[wanted.extension])
        if wanted.mapping.projection in _BOXES:
            node.projection, node.projection_blend = "BOX", wanted.mapping.blend
        vector = self._vector(wanted.mapping)
        if vector is not None:
            self._link(vector, node.inputs["Vector"])
        return node

    def _vector(self, mapping: Mapping) -> bpy.types.NodeSocket | None:
        """Return the socket with the coordinates of an image; None for the first UV map without a transform."""
        mapping = replace(mapping, blend=0.0)
        if mapping not in self.vectors:
            self.vectors[mapping] = self._new_vector(mapping)
        return self.vectors[mapping]

    def _new_vector(self, mapping: Mapping) -> bpy.types.NodeSocket | None:
        """Return the socket with the texture coordinates of a mapping; None if those are the default ones."""
        horizontal, vertical = mapping.scale
        is_rotated = mapping.rotation != 0.0 and mapping.projection not in _BOXES
        if is_rotated and horizontal and vertical:
            return self._rotated(mapping)
        if mapping.scale != (1.0, 1.0) or mapping.offset != (0.0, 0.0):
            node = self._mapped(replace(mapping, scale=(1.0, 1.0), offset=(0.0, 0.0)), "POINT")
            # For a box projection, x and y are horizontal and z is vertical.
            scale = (horizontal, horizontal, vertical) if mapping.projection in _BOXES else (horizontal, vertical, 1.0)
            self._set(node.inputs["Scale"], scale, None)
            self._set(node.inputs["Location"], (*mapping.offset, 0.0), None)
            return node.outputs["Vector"]
        if mapping.projection is Projection.UV:
            return self._uv_map(mapping.uv_layer).outputs["UV"] if mapping.uv_layer else None
        if mapping.projection in _OBJECT_SPACE:
            return self._node("ShaderNodeTexCoord").outputs["Object"]
        return self._node("ShaderNodeNewGeometry").outputs["Position"]

    def _rotated(self, mapping: Mapping) -> bpy.types.NodeSocket:
        """Return the coordinates of a mapping whose rotation and scale are not 0.

        A node of type TEXTURE computes R(-rotation) (uv - location) / scale.
        """
        node = self._mapped(replace(mapping, scale=(1.0, 1.0), offset=(0.0, 0.0), rotation=0.0), "TEXTURE")
        sine, cosine = math.sin(mapping.rotation), math.cos(mapping.rotation)
        u, v = (-offset / scale for offset, scale in zip(mapping.offset, mapping.scale, strict=True))
        self._set(node.inputs["Location"], (u * cosine - v * sine, u * sine + v * cosine, 0.0), None)
        self._set(node.inputs["Rotation"], (0.0, 0.0, mapping.rotation), None)
        self._set(node.inputs["Scale"], (1.0 / mapping.scale[0], 1.0 / mapping.scale[1], 1.0), None)
        return node.outputs["Vector"]

    def _mapped(self, mapping: Mapping, kind: str) -> Any:
        """Add a Mapping node after the coordinates of another mapping."""
        source = self._vector(mapping) or self._uv_map(0).outputs["UV"]
        node = self._node("ShaderNodeMapping", vector_type=kind)
        self._link(source, node.inputs["Vector"])
        return node

    def _uv_map(self, layer: int) -> Any:
        return self._node("ShaderNodeUVMap", uv_map=self._uv_name(layer))

    def _uv_name(self, layer: int) -> str:
        """Return the name of a UV map of the mesh; empty, which means the active map, if the mesh has too few."""
        return self.layers.uvs[layer] if layer < len(self.layers.uvs) else ""

    def _channel(self, image: ImageMap, channel: Channel) -> bpy.types.NodeSocket | None:
        """Return the socket of an image channel; None if the image is missing, or has no alpha."""
        node = self._image(image)
        if node is None:
            return None
        if channel is Channel.ALPHA:
            return node.outputs["Alpha"] if self._has_alpha(image.texture, node.image) else None
        if node not in self.separated:
            self.separated[node] = self._node("ShaderNodeSeparateColor")
            self._link(node.outputs["Color"], self.separated[node].inputs["Color"])
        return self.separated[node].outputs[_SEPARATED[channel]]

    def _has_alpha(self, texture: Texture, image: bpy.types.Image) -> bool:
        """Return whether the image of a texture has an alpha channel."""
        if texture.has_alpha is not None:
            return texture.has_alpha
        return image.depth in _DEPTHS_WITH_ALPHA  # Blender opens the image

    # -- inputs of the shader -------------------------------------------------------------------

    def _factor(self, factor: Factor, label: str, *, is_kept: bool = False) -> bpy.types.NodeSocket | None:
        """Return the socket of a factor, or None if it is constant.

        With a multiplier of 0 the image is left out, unless ``is_kept``.
        """
        if factor.image is None or (factor.value == 0.0 and not is_kept):
            return None
        found = self._channel(factor.image, factor.channel)
        if found is None:
            return None
        if factor.value != 1.0:
            found = self._math("MULTIPLY", label, found, factor.value)
        if factor.is_inverted:
            found = self._math("SUBTRACT", f"{label}, Inverted", 1.0, found)
        return found

    def _tint(self, tint: Tint) -> bpy.types.NodeSocket | None:
        """Return the socket of a colour, or None if it is constant."""
        if tint not in self.tints:
            self.tints[tint] = self._new_tint(tint)
        return self.tints[tint]

    def _mixture(self, mixture: Mixture) -> bpy.types.NodeSocket | None:
        number = self._node("ShaderNodeAttribute", attribute_name=mixture.layer).outputs["Fac"]
        first, *others = ((self._tint(tint), tint.value) for tint in mixture.tints)
        for place, tint in enumerate(others):
            factor = self._math("SUBTRACT", f"Mixture {place + 1}", number, float(place)) if place else number
            first = (self._mix("MIX", f"Mixture {place + 1}", first, tint, factor), (1.0, 1.0, 1.0))
        return first[0]

    def _new_tint(self, tint: Tint) -> bpy.types.NodeSocket | None:
        """Return the socket with a colour times its image and vertex colours; None for a constant colour."""
        if tint.mixture is not None:
            return self._mixture(tint.mixture)
        node = self._image(tint.image) if tint.image is not None else None
        found = node.outputs["Color"] if node is not None else None
        if tint.uses_vertex_color and self.layers.color:
            attribute = self._node("ShaderNodeVertexColor", layer_name=self.layers.color)
            color = attribute.outputs["Color"]
            found = color if found is None else self._multiplied(found, tint.value, color, "Vertex Colour")
        if found is None or (min(tint.value) >= _WHITE and max(tint.value) <= 2.0 - _WHITE):
            return found
        return self._multiplied(found, tint.value, None, "Colour")

    def _add_to_background(self, shader: Any, output: Any, shading: Shading) -> None:
        """Add the shader to what is behind the surface: background + alpha * shader."""
        transparent = self._node("ShaderNodeBsdfTransparent")
        added = self._node("ShaderNodeAddShader")
        self._link(transparent.outputs["BSDF"], added.inputs[0])
        self._link(shader.outputs["BSDF"], added.inputs[1])
        mix = self._node("ShaderNodeMixShader", "Opacity")
        self._set_alpha(mix.inputs["Fac" if "Fac" in mix.inputs else "Factor"], shading)
        self._link(transparent.outputs["BSDF"], mix.inputs[1])
        self._link(added.outputs["Shader"], mix.inputs[2])
        self._link(mix.outputs["Shader"], output.inputs["Surface"])

    def _set_alpha(self, target: Any, shading: Shading) -> None:
        """Link or set the alpha of a shader, with the exponent and the threshold of the shading."""
        if shading.opacity is Opacity.OPAQUE:
            return
        found = self._factor(shading.alpha, "Opacity")
        if found is None:
            alpha = _constant(shading.alpha) ** shading.alpha_power
            if shading.opacity is Opacity.CLIP:
                alpha = float(alpha >= shading.alpha_threshold)
            self._set(target, alpha, None)
            return
        if shading.alpha_power != 1.0:
            found = self._math("POWER", "Opacity, Exponent", found, shading.alpha_power)
        if shading.opacity is Opacity.CLIP:
            found = self._math("GREATER_THAN", "Alpha Test", found, shading.alpha_threshold)
        self._link(found, target)

    def _normal(self, normal: NormalMap) -> bpy.types.NodeSocket | None:
        """Return the socket with the normals of a normal map; None if its image is missing."""
        node = self._image(normal.image)
        if node is None:
            return None
        color = node.outputs["Color"]
        made = self._node("ShaderNodeNormalMap", space="OBJECT" if normal.is_object_space else "TANGENT")
        if not normal.is_object_space:
            made.uv_map = self._uv_name(normal.image.mapping.uv_layer)
        self._set(made.inputs["Strength"], normal.strength, None)
        if not normal.has_blue:
            color = self._with_computed_blue(color, is_green_down=normal.is_green_down)
        elif normal.is_green_down and not compat.set_green_down(made):
            color = self._vector_math("MULTIPLY_ADD", "Green Up", color, (1.0, -1.0, 1.0), (0.0, 1.0, 0.0))
        self._link(color, made.inputs["Color"])
        return made.outputs["Normal"]

    def _with_computed_blue(self, color: Any, *, is_green_down: bool) -> Any:
        """Return the colour of a normal map whose blue is computed from red and green: z = sqrt(1 - x² - y²)."""
        sign = -1.0 if is_green_down else 1.0
        flat = self._vector_math("MULTIPLY_ADD", "X and Y", color, (2.0, 2.0 * sign, 0.0), (-1.0, -sign, 0.0))
        length = self._vector_math("DOT_PRODUCT", "X² + Y²", flat, flat)
        square = self._math("SUBTRACT", "Z²", 1.0, length, clamp=True)
        z = self._math("SQRT", "Z", square)
        up = self._node("ShaderNodeCombineXYZ")
        self._link(z, up.inputs["Z"])
        whole = self._vector_math("ADD", "X, Y and Z", flat, up.outputs["Vector"])
        return self._vector_math("MULTIPLY_ADD", "As a Colour", whole, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def _is_set(socket: Any, value: Any) -> bool:
    now = socket.default_value
    return bool(tuple(now) == value if isinstance(value, tuple) else now == value)


def _constant(factor: Factor) -> float:
    return 1.0 - factor.value if factor.is_inverted else factor.value
