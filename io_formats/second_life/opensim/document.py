"""The content of an archive: regions or inventory items, their linksets, and the parts of these.

An archive is read in at most two passes: the document holds the objects, and a second pass reads the assets that they
name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from ...core.messages import Message
from .prims import PrimShape

NULL_ID = "00000000-0000-0000-0000-000000000000"
BLANK = "5748decc-f629-461c-9a36-a35a221fe21f"
"""Plain white picture of the viewer, which is not in archives."""
TRANSPARENT = "8dcd4a48-2d37-4909-9f78-f7a9eb4ef903"
"""Transparent picture of the viewer, which is not in archives."""
NEVER_STORED = frozenset({NULL_ID, BLANK, TRANSPARENT})
"""Pictures of faces that are not in archives."""
_MESH, _KIND = 5, 7
_PCODES = {9: "prim", 95: "grass", 111: "tree", 143: "particles", 255: "tree"}


@dataclass(frozen=True, slots=True)
class TextureFace:
    """The look of one face of a part."""

    texture: str = NULL_ID
    """UUID of the picture in lower case."""
    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """sRGB-encoded red, green, blue, and alpha; 0 to 1."""
    repeats: tuple[float, float] = (1.0, 1.0)
    offsets: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    """Radians, as stored."""
    bump: int = 0
    shiny: int = 0
    """0 none, 1 low, 2 medium, 3 high."""
    is_full_bright: bool = False
    has_media: bool = False
    mapping: int = 0
    """Bits 1 and 2 of the media byte: 0 default, 2 planar."""
    glow: float = 0.0
    material: str = NULL_ID
    """UUID of an older material in lower case."""


@dataclass(frozen=True, slots=True)
class TextureEntry:
    """The look of all faces of a part."""

    default: TextureFace = TextureFace()
    exceptions: dict[int, TextureFace] = field(default_factory=dict)
    """The faces with another look than the default, by number."""

    def face(self, number: int) -> TextureFace:
        """Return the look of a face."""
        return self.exceptions.get(number, self.default)

    @property
    def looks(self) -> tuple[TextureFace, ...]:
        """The default and the exceptions."""
        return self.default, *self.exceptions.values()


@dataclass(frozen=True, slots=True)
class PartLight:
    """A part that shines."""

    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Linear."""
    intensity: float = 1.0
    radius: float = 10.0
    projector: str = ""
    """UUID of the projected picture; empty for a light that shines in all directions."""
    field_of_view: float = 0.0
    """Radians, of a projector."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a linkset."""

    name: str
    uuid: str = ""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Metres. Of a root in the axes of the region, or of the inventory item, where a single object is at the origin;
    of another part in those of the root."""
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """(w, x, y, z) of unit length; of a root in the axes of the region, of another part in those of the root."""
    size: tuple[float, float, float] = (0.5, 0.5, 0.5)
    """Metres, at least 0.001."""
    pcode: int = 9
    """9 for prims, sculpts and meshes; 255, 111 trees; 95 grass."""
    state: int = 0
    """Species of a tree."""
    shape: PrimShape = field(default_factory=PrimShape)
    sculpt_type: int = 0
    """The whole byte: kind (1 sphere, 2 torus, 3 plane, 4 cylinder, 5 mesh), 0x40 inverted, 0x80 mirrored."""
    sculpt_asset: str = ""
    """UUID of the mesh or of the picture of a sculpt; empty for a prim."""
    is_flexible: bool = False
    light: PartLight | None = None
    has_gltf_materials: bool = False
    entry: TextureEntry = TextureEntry()

    @property
    def kind(self) -> str:
        """``mesh``, ``sculpt``, ``prim``, ``tree``, ``grass``, ``particles`` or ``other``."""
        kind = _PCODES.get(self.pcode, "other")
        if kind == "prim" and self.sculpt_type:
            return "mesh" if self.sculpt_type & _KIND == _MESH else "sculpt"
        return kind


@dataclass(frozen=True, slots=True)
class Linkset:
    """An object: a root and the parts that are linked to it."""

    parts: tuple[Part, ...]
    """The root first."""

    @property
    def name(self) -> str:
        return self.parts[0].name


@dataclass
class Group:
    """The objects of a region, of an inventory folder, or of one item in it."""

    name: str
    parent: int = -1
    """Index of the inventory folder that contains this one; -1 for none."""
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Metres, of a region among several."""
    folder: str = ""
    """Path in the archive below which everything of a region is; empty if the archive has one region."""
    size: tuple[int, int] = (256, 256)
    """Metres, of a region."""
    settings: bytes = field(default=b"", repr=False)
    """Content of the settings file of a region; empty if there is none."""
    terrain: bytes = field(default=b"", repr=False)
    """Heights of a region as float32: size[1] rows from south to north, each from west to east; empty if there are
    none."""
    linksets: list[Linkset] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    """Numbers of things that are not read, by what they are: ``parcel``, ``script``."""


@dataclass
class Archive:
    """The objects of an archive, with the means to read its assets."""

    groups: list[Group]
    open: Callable[[], BinaryIO]
    """Opens the archive's file again, for the pass that reads the assets."""
    inflated_limit: int | None = None
    """Maximum inflated size of the archive that was given for its reading."""
    path: str = ""
    """Path of the archive; empty if it was read from bytes."""
    is_inventory: bool = False
    version: str = ""
    warnings: list[Message] = field(default_factory=list)

    @property
    def parts(self) -> list[Part]:
        """The parts of all linksets of all groups, in order."""
        return [part for group in self.groups for linkset in group.linksets for part in linkset.parts]
