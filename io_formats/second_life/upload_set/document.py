"""An upload set: the Collada files of each level and of physics, in the form that the viewer reads.

Formats page, section 10.1. Static geometry is in the space of its instance; rigged geometry is in the avatar's space
(metres, Z up, X forward, origin between the feet), in which its bind shape is the identity. Matrices are for column
vectors, (4, 4) float64.
"""

import itertools
import math
import os
import re
import zlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ...core.glb_materials import GltfMaterial
from ...core.messages import Named, Text, joined
from ...core.scene import FloatArray, IntArray, Scene
from ...core.scene import Material as SceneMaterial
from ...core.shading import Mapping, Texture
from ...disk.file_names import numbered
from ...encodings.image_files import extension_of
from ...encodings.quantization import linear_to_srgb
from ...geometry.transforms import Matrix
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX

SUFFIXES = (*LEVEL_SUFFIXES, PHYSICS_SUFFIX)
"""Suffixes of the file names, the finest level first."""


@dataclass
class Triangles:
    """The triangles of one material, which become one face."""

    symbol: str
    """Identifier of the material in the file; equals :attr:`Material.symbol`."""
    corners: IntArray
    """(C, 2) or (C, 3) int32: indices of position, normal and, if the geometry has UVs, UV."""


@dataclass
class Geometry:
    """A mesh. The viewer matches levels of detail by ``name``."""

    name: str
    positions: FloatArray
    """(P, 3) float32."""
    normals: FloatArray
    """(N, 3) float32, of unit length."""
    uvs: FloatArray | None
    """(U, 2) float32, v upwards."""
    faces: list[Triangles]
    """The triangles of each symbol, which become one face; none is empty."""


@dataclass
class Skin:
    """The binding of a geometry to joints."""

    joint_names: list[str]
    inverse_bind: Matrix
    """(n, 4, 4) inverse bind matrix of each joint."""
    joint_indices: IntArray
    """(P, 4) int32 into ``joint_names``."""
    joint_weights: FloatArray
    """(P, 4) float32 with the sum 1; 0 for unused entries."""
    tree: int
    """Index in the file of the joint tree that moves the geometry."""


@dataclass
class JointNode:
    """A joint in the tree in which the viewer looks up joint positions."""

    name: str
    parent: int
    """Index of the parent; -1 for a root."""
    local: Matrix
    """Transform relative to the parent; for a bone only a translation."""


@dataclass
class JointTree:
    """The joints of one armature to which meshes are bound, and their ancestors; parents come before children."""

    name: str
    joints: list[JointNode]


@dataclass
class Instance:
    """An object. Rigged objects have no transform of their own."""

    geometry: Geometry
    """Geometry of the object; equal objects share it."""
    matrix: Matrix
    name: str
    """Name of the node; the viewer uses the name of the geometry instead."""
    skin: Skin | None = None
    object_name: str = ""
    """Name of the object in the scene, for messages."""


@dataclass
class ColladaFile:
    """One file: all objects at one level of detail, or their physics."""

    suffix: str
    """One of :data:`SUFFIXES`."""
    instances: list[Instance] = field(default_factory=list)
    """Objects of the file; files match them by the names of their geometries, and the first object becomes the root.
    The file of each level contains all objects, the physics file only objects with a physics shape of their own."""
    trees: list[JointTree] = field(default_factory=list)


@dataclass
class Image:
    """A texture that is copied beside the files or referenced by them."""

    name: str
    """A file name with extension, in ASCII letters, to which the prefix of the set is added."""
    path: Path | None = None
    """The file to copy or to reference; None if the content is in ``data``."""
    data: bytes = b""
    is_copied: bool = True


@dataclass
class Material:
    """A material; the symbol of its faces is the name that the viewer shows."""

    symbol: str
    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """sRGB-encoded as in the viewer's colour pickers, with alpha; 0 to 1."""
    emission: float = 0.0
    """Grey, 0 to 1; above 0.25 the viewer makes the face full bright."""
    image: int | None = None
    """Index of its texture among the set's images; the texture replaces the colour."""
    gltf: GltfMaterial | None = None
    """PBR material, which is written to a separate file, as the viewer uploads it separately."""


@dataclass
class UploadSet:
    """All files of an upload, the finest level first; the last one is the physics if an object has any."""

    files: list[ColladaFile] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)
    """Labels of the checkboxes to tick in the viewer's upload window."""


_SUFFIX = re.compile(r"_(?:LOD[0-9]*|PHYS)\Z")
_CUTS = re.compile(r"_(?=LOD|PHYS)")
"""The viewer truncates names at ``_LOD`` and ``_PHYS``, wherever they occur."""


def model_name(name: str, taken: set[str]) -> str:
    """Return a unique name for an object's geometry, without spaces, ``_LOD`` and ``_PHYS``.

    Names are compared ignoring case: ``taken`` holds casefolded names, to which the result is added.
    """
    plain = _CUTS.sub("-", _SUFFIX.sub("", re.sub(r"\s", "_", printable(name)))) or "object"
    return unique_name(plain, taken)


def material_symbol(name: str, taken: set[str]) -> str:
    """Return the name of a material in the files: letters, digits and ``_ - .``, as required by XML."""
    plain = re.sub(r"[^\w.-]", "_", printable(name)) or "material"
    return unique_name(plain if plain[0].isalpha() or plain[0] == "_" else "_" + plain, taken)


def joint_word(name: str) -> str:
    """Return the name of a joint with its spaces replaced, since spaces separate the names in a list."""
    return re.sub(r"\s", "_", printable(name)) or "_"


def unique_identifier(name: str, taken: set[str]) -> str:
    """Return a unique id of characters that need no encoding in a URL."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"
    return unique_name(plain if plain[0].isalpha() or plain[0] == "_" else "_" + plain, taken)


def unique_name(plain: str, taken: set[str]) -> str:
    """Return a unique name, numbered if necessary, and add it to the casefolded ``taken``."""
    name = next(one for one in numbered(plain) if one.casefold() not in taken)
    taken.add(name.casefold())
    return name


def file_names(names: Iterable[str], stem: str) -> list[str]:
    """Return unique file names for the additional files of a set, from names with extensions.

    The name of the set precedes them, since two sets in a folder may have different files with the same name.
    """
    before = set_prefix(stem)
    taken: dict[str, set[str]] = {}
    found: list[str] = []
    for name in names:
        plain, dot, extension = name.rpartition(".")
        own = plain if plain.startswith(before) else before + plain
        found.append(unique_name(own, taken.setdefault(extension.casefold(), set())) + dot + extension)
    return found


def set_prefix(stem: str) -> str:
    """Return the prefix of the names of a set's additional files."""
    return f"{plain_file_name(stem)}_" if stem else ""


def texture_name(name: str, extension: str) -> str:
    """Return the name of a texture file in characters that need no encoding in a URL."""
    stem = name[: -len(extension)] if name.lower().endswith(extension) else name
    return plain_file_name(stem) + extension


def plain_file_name(name: str) -> str:
    """Return the stem of a file name in ASCII letters; a hash is added if letters of other alphabets are lost."""
    spaced = re.sub(r"\s", "_", name)
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", spaced)[:100].strip(".")
    if plain != spaced:
        plain = f"{plain.strip('_')}_{zlib.crc32(name.encode('utf-8', 'replace')):08x}".lstrip("_")
    return plain or "texture"


def printable(name: str) -> str:
    """Return a name without characters that XML cannot hold."""
    return "".join(letter if letter.isprintable() else "_" for letter in name)


def shown_transform(scale: Sequence[float], offset: Iterable[float], rotation: float) -> Text:
    """Describe a texture transform with the values of the viewer's texture panel.

    Whole numbers in an offset are dropped, since they have no effect on repeating textures.
    """
    rest = [round(value % 1.0, 4) % 1.0 for value in offset]
    degrees = round(math.degrees(rotation), 3)
    parts = [
        Text("repeats {:g} × {:g}", *scale) if tuple(scale) != (1.0, 1.0) else "",
        Text("offset {:g}, {:g}", *rest) if any(rest) else "",
        Text("rotation {:g}°", degrees) if degrees else "",
    ]
    return joined(part for part in parts if part)


def shown_mapping(mapping: Mapping | None) -> Text:
    """Describe the mapping of a diffuse texture; the viewer rotates and repeats it about its centre (0.5, 0.5)."""
    if mapping is None:
        return Text("")
    (across, up), angle = mapping.scale, mapping.rotation
    cosine, sine = math.cos(angle), math.sin(angle)
    centre = (across * 0.5 * (cosine + sine) - 0.5, up * 0.5 * (cosine - sine) - 0.5)
    offset = (value + moved for value, moved in zip(mapping.offset, centre, strict=True))
    return shown_transform(mapping.scale, offset, angle)


MOST_PIXELS = 2048
"""Maximum width and height of textures; the viewer scales larger ones down."""

_READABLE = (".png", ".jpg", ".jpeg", ".tga", ".bmp")


class Materials:
    """The materials of a set, one for each material name; problems with textures are reported once."""

    def __init__(self, scene: Scene, *, is_copied: bool) -> None:
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._scene = scene
        self._is_copied = is_copied
        self._known: dict[str, SceneMaterial] = {material.name: material for material in scene.materials}
        self._symbols: dict[str, str] = {}
        self._taken: set[str] = set()
        self._image_of: dict[object, int | None] = {}

    def symbol(self, name: str, fallback: str, imported: str = "") -> str:
        """Return the symbol of a material by its name; a slot without a material uses the name ``fallback``.

        A new symbol is made from the name, or from the ``imported`` symbol.
        """
        known = name or fallback
        if known not in self._symbols:
            symbol = self._symbols[known] = material_symbol(imported or known, self._taken)
            self.materials.append(self._material(self._known.get(name) if name else None, known, symbol))
        return self._symbols[known]

    def slot_symbols(
        self, slots: Sequence[str], used: Container[int], model: str, imported: dict[str, str]
    ) -> list[str]:
        """Return the symbols of material slots, empty for unused ones.

        Slots without a material get the model's name and a number, so that they match between levels. ``imported`` has
        the symbols in the imported file by material name.
        """
        unnamed = list(itertools.accumulate(not name for name in slots))
        fallbacks = [f"{model}_plain" + (f"_{count}" if count > 1 else "") for count in unnamed]
        return [
            self.symbol(name, fallback, imported.get(name, "")) if number in used else ""
            for number, (name, fallback) in enumerate(zip(slots, fallbacks, strict=True))
        ]

    def part_symbol(self, symbol: str, number: int) -> str:
        """Return the symbol for a part of a face that was split because of its number of vertices.

        All parts have the same appearance as the whole face.
        """
        if not number:
            return symbol
        known = f"{symbol}\0{number}"  # names of materials in Blender contain no null character
        if known not in self._symbols:
            whole = next(material for material in self.materials if material.symbol == symbol)
            part = material_symbol(f"{symbol}_part_{number + 1}", self._taken)
            self._symbols[known] = part
            self.materials.append(replace(whole, symbol=part, name=f"{whole.name} part {number + 1}"))
        return self._symbols[known]

    def _material(self, material: SceneMaterial | None, name: str, symbol: str) -> Material:
        plain = printable(name)
        if material is None:
            return Material(symbol, plain, (1.0, 1.0, 1.0, 1.0))
        color = np.nan_to_num(np.array([material.color], np.float32), nan=0.0)
        encoded = tuple(np.clip(linear_to_srgb(color)[0], 0.0, 1.0).tolist())
        emission = float(np.clip(np.nan_to_num(material.emission), 0.0, 1.0))
        image = self._image(material.texture, material.name) if material.texture is not None else None
        if image is not None and material.gltf is None and (shown := shown_mapping(material.mapping)):
            template = "material '{}' needs {} in the Texture tab, since Collada files have none"
            self._scene.report.note("texture-repeats", template, Named("material", material.name), shown)
        return Material(symbol, plain, encoded, emission, image, material.gltf)

    def _image(self, texture: Texture, material: str) -> int | None:
        key: object = texture.data if texture.data is not None else texture.path
        if key not in self._image_of:
            self._image_of[key] = self._new_image(texture, material)
        return self._image_of[key]

    def _new_image(self, texture: Texture, material: str) -> int | None:
        """Add the image of a texture to the set and return its index; None, with a message, if it is left out."""
        report = self._scene.report
        title = Named("image", texture.name or Path(texture.path).name)
        shown = Text("texture '{}' of material '{}'", title, Named("material", material))
        path: Path | None = None
        if texture.data is None:
            if not texture.path:
                report.loss("texture-never-saved", "The {} was never saved, nor is it packed; left out", shown)
                return None
            path = Path(texture.path)
            if not os.path.isfile(path):
                template = "The {} is missing: there is no file {}; left out"
                report.loss("texture-missing", template, shown, texture.path)
                return None
        elif not self._is_copied:
            template = "The {} is packed in the .blend file, and textures are not to be copied; left out"
            report.loss("texture-packed", template, shown)
            return None
        extension = _extension(texture)
        if extension not in _READABLE:
            what = Text("a {} file, which", extension) if extension else Text("of a kind that")
            template = "The {} is {} the viewer does not read; save it as PNG, TGA or JPEG"
            report.loss("texture-kind-not-read", template, shown, what)
        if max(texture.width, texture.height) > MOST_PIXELS:
            template = "The {} has {} × {} pixels; the viewer scales it down to {} × {} at most"
            values = (shown, texture.width, texture.height, MOST_PIXELS, MOST_PIXELS)
            report.change("texture-scaled-down", template, *values)
        own = str(texture.name if path is None else path.name)
        name = texture_name(own if path is None else path.stem, extension) if self._is_copied else own
        self.images.append(Image(name, path, texture.data or b"", is_copied=self._is_copied))
        return len(self.images) - 1


def _extension(texture: Texture) -> str:
    """Return a texture's extension with its dot, preferably from its content, or empty if it is unknown."""
    found = re.search(r"\.([A-Za-z0-9]{1,5})\Z", texture.path if texture.data is None else texture.name)
    given = f".{found[1].lower()}" if found else ""
    return extension_of(Path(texture.path) if texture.data is None else texture.data, given)
