"""How a material looks: the inputs of a physically based shader, independent of any program.

Values are linear, directions follow Blender: texture v up, normal maps with green up. The default of each input has no
effect, so that a format sets only the inputs that its materials have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Color = tuple[float, float, float]


@dataclass(frozen=True)
class Texture:
    """An image file that a material uses."""

    name: str
    path: str = ""
    """Path of the file; empty if it is packed or was never saved."""
    data: bytes | None = None
    """The file's content if it is packed."""
    width: int = 0
    height: int = 0
    has_alpha: bool | None = None
    """Whether the image has an alpha channel; None if Blender must open the image to know."""
    first_version: tuple[int, int] = (0, 0)
    """First version of Blender that reads the image without risk of a crash."""
    read: Callable[[], bytes] | None = field(default=None, compare=False)
    """Function that returns the content of an image file or raises ``FormatError``; set for a texture of a project or
    with ``pixels``.

    Without ``pixels``, ``path`` is then the image file that Blender may open itself, or empty if there is none."""
    source: str = ""
    """File of the project from which ``read`` gets the content; an image of an earlier import is found by it. With
    ``pixels``, it distinguishes images of the same name."""
    pixels: Callable[[], Pixels] | None = field(default=None, compare=False)
    """Function that returns the pixels as stored, (H, W, 4) uint8, the topmost row first; None if only the file is
    known."""


class Channel(Enum):
    """One channel of an image."""

    RED = "R"
    GREEN = "G"
    BLUE = "B"
    ALPHA = "A"


class Projection(Enum):
    """How an image is projected onto a surface."""

    UV = "uv"
    BOX_OBJECT = "box_object"
    """From six sides, in the space of the object."""
    BOX_WORLD = "box_world"
    TOP_OBJECT = "top_object"
    """From above, along Z, in the space of the object."""
    TOP_WORLD = "top_world"


class Extension(Enum):
    """Appearance of a surface outside the image area."""

    REPEAT = "repeat"
    EXTEND = "extend"
    """The border pixels of the image are repeated."""
    CLIP = "clip"
    """Nothing is shown."""


class Opacity(Enum):
    """How a material uses its alpha."""

    OPAQUE = "opaque"
    CLIP = "clip"
    """Opaque where alpha is at least ``Shading.alpha_threshold``, otherwise invisible."""
    BLEND = "blend"
    """Blended with what is behind it; surfaces are sorted by distance."""
    ADD = "add"
    """Added to what is behind it, multiplied by its alpha; black is invisible."""
    DITHERED = "dithered"
    """Blended by dithering, which needs no sorting but is grainy."""


@dataclass(frozen=True)
class Mapping:
    """Position of an image on a surface, with v up.

    The coordinates (u, v) are rotated, then scaled, then moved, all about the origin:

        u' = scale[0] * (u * cos(rotation) + v * sin(rotation)) + offset[0]
        v' = scale[1] * (v * cos(rotation) - u * sin(rotation)) + offset[1]
    """

    projection: Projection = Projection.UV
    uv_layer: int = 0
    """Index in ``Mesh.uvs``."""
    scale: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    """Angle in radians by which the image appears rotated counter-clockwise. Box projections are not rotated."""
    blend: float = 0.0
    """Width of the transition between the sides of a box projection, 0 to 1."""


@dataclass(frozen=True)
class ImageMap:
    """An image on a surface."""

    texture: Texture
    is_color: bool = False
    """Whether its values are sRGB-encoded colours; otherwise they are plain numbers."""
    mapping: Mapping = Mapping()
    extension: Extension = Extension.REPEAT


@dataclass(frozen=True)
class Factor:
    """A number, times a channel of an image if there is one."""

    value: float = 1.0
    image: ImageMap | None = None
    channel: Channel = Channel.RED
    is_inverted: bool = False
    """Whether the product is subtracted from 1."""


@dataclass(frozen=True)
class Tint:
    """A linear colour, times the colours of an image if there is one."""

    value: Color = (1.0, 1.0, 1.0)
    image: ImageMap | None = None
    uses_vertex_color: bool = False
    """Whether the colour is also multiplied by the mesh's first colour layer."""
    mixture: Mixture | None = None
    """Colours that are shown in place of the image; ``value`` is then about their mean."""


@dataclass(frozen=True)
class Mixture:
    """Colours that follow one another along a number on the mesh, with linear transitions."""

    layer: str
    """Name of the custom layer with the number: 0 shows the first colour, 1 the second, and so on."""
    tints: tuple[Tint, ...]
    """At least two."""


@dataclass(frozen=True)
class NormalMap:
    """Normals in an image."""

    image: ImageMap
    strength: float = 1.0
    is_green_down: bool = False
    """Whether green points down in the image (the convention of DirectX)."""
    has_blue: bool = True
    """Whether the image has the third component; otherwise it is computed, since normals are of unit length."""
    is_object_space: bool = False


@dataclass(frozen=True)
class Shading:
    """The inputs of a physically based shader."""

    base_color: Tint = Tint((0.8, 0.8, 0.8))
    metallic: Factor = Factor(0.0)
    roughness: Factor = Factor(0.5)
    specular: Factor = Factor(0.5)
    """Specular level; 0.5 is the reflectance of 4 % that most substances have."""
    specular_tint: Tint = Tint()
    normal: NormalMap | None = None
    occlusion: Factor | None = None
    """Ambient occlusion, which path tracers compute themselves."""
    emission: Tint | None = None
    emission_strength: float = 0.0
    opacity: Opacity = Opacity.OPAQUE
    alpha: Factor = Factor(1.0)
    alpha_power: float = 1.0
    """Exponent of the alpha."""
    alpha_threshold: float = 0.5
    is_two_sided: bool = True
