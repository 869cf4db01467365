"""The looks of faces -> materials, from the assets and pictures of an archive that its objects name.

Pictures are JPEG 2000 of unknown origin, and some make Blender crash, so that all are examined first.
"""

import hashlib
import math
import re
from collections.abc import Container
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Report, Text, counted, listed, of_kind
from ...core.scene import Material
from ...core.shading import Channel, Factor, ImageMap, Mapping, Opacity, Shading, Texture, Tint
from ...encodings import jpeg2000
from ...encodings.quantization import srgb_to_linear
from . import container
from .container import Allowance, ContentStore, integer, parse_member, text_of, uuid_of
from .document import NEVER_STORED, NULL_ID, TRANSPARENT, TextureFace

MEMORY_LIMIT = 10**9
"""Bytes of assets that are held in memory; the others go to a temporary file."""
MESH, PICTURE, MATERIAL = "mesh.llmesh", "texture.jp2", "material.xml"
"""Kinds of assets: the ends of their names in an archive."""
_ASSET = re.compile(rf"(?:\./)?assets/([0-9a-f-]{{36}})_({MESH}|{PICTURE}|{MATERIAL})", re.IGNORECASE)


def asset_of(name: str) -> tuple[str, str] | None:
    """Return UUID and kind of the asset in a file of an archive, in lower case; None for another file."""
    found = _ASSET.fullmatch(name)
    return (found[1].lower(), found[2].lower()) if found else None


def read_assets(
    open_archive: container.Opener,
    wanted: Container[str],
    *,
    inflated_limit: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> ContentStore:
    """Read the meshes, pictures and older materials of an archive with these UUIDs (in lower case).

    The key of an asset is its UUID in lower case and its kind. Assets that are too large or links are left out, as if
    the archive did not have them.

    Raises
    ------
    FormatError
        The archive is cut off or damaged, or there is no space for the temporary file.
    """

    def limit_of(name: str) -> int:
        asset = asset_of(name)
        return container.LARGEST_ASSET if asset and asset[0] in wanted else 0

    store = ContentStore(memory_limit)
    try:
        for name, content in container.archive_members(open_archive, limit_of, inflated_limit=inflated_limit):
            asset = asset_of(name)
            if content is not None and asset:
                uuid, kind = asset
                store.add(uuid + kind, content)
    except BaseException:
        store.close()
        raise
    return store


OPAQUE, BLEND, MASK, EMISSIVE = range(4)
"""What the alpha of the face's picture means."""
_MOST_TAGS = 1_000


@dataclass(frozen=True, slots=True)
class OlderMaterial:
    """An older material."""

    alpha_mode: int = BLEND
    alpha_cutoff: float = 0.0
    """Alpha, 0 to 1, below which a face with ``MASK`` is transparent."""
    has_normal_map: bool = False
    has_specular_map: bool = False


def read_older_material(data: bytes) -> OlderMaterial:
    """Decode an older material.

    Raises
    ------
    FormatError
        The XML is not well-formed, is too large, or has no map.
    """
    root = parse_member(data, Allowance(_MOST_TAGS, _MOST_TAGS))
    stored = root if root.tag == "map" else root.find("map")
    if stored is None:
        raise FormatError("It is not a material: it has no map")
    values: dict[str, Element] = {}
    key = ""
    for element in stored:
        if element.tag == "key":
            key = text_of(element)
        else:
            values[key] = element
    mode = integer(text_of(values.get("DiffuseAlphaMode")), BLEND)
    cutoff = integer(text_of(values.get("AlphaMaskCutoff")), 0)
    return OlderMaterial(
        mode if OPAQUE <= mode <= EMISSIVE else BLEND,
        min(max(cutoff, 0), 255) / 255,
        uuid_of(values.get("NormMap")) not in ("", NULL_ID),
        uuid_of(values.get("SpecMap")) not in ("", NULL_ID),
    )


_WITHOUT_PICTURE = {*NEVER_STORED, ""}
_WITH_ALPHA = {2, 4, 5}
"""Numbers of components of pictures that have an alpha channel. The fifth component of avatar textures is ignored."""
_FIRST_WITH_TWO = (5, 2)
"""Earlier versions of Blender crash on some pictures of two components."""
MOST_PIXELS = 2_000_000_000
"""Largest number of pixels of all pictures together, since Blender decodes them all for the first preview."""


class Pictures:
    """The pictures of one import, which are read once each.

    Pictures that are missing or refused are left out, and :meth:`report` names them.
    """

    def __init__(self, assets: ContentStore, path: str) -> None:
        self._assets = assets
        self._path = path
        self._known: dict[str, jpeg2000.Jpeg2000Info | None] = {}
        self._missing: list[str] = []
        self._refused: dict[Text, list[str]] = {}
        self._pixels = 0

    def texture(self, uuid: str) -> Texture | None:
        """Return a picture as a texture; None for the blank ones, and for one that is left out."""
        found = self.examined(uuid)
        if found is None:
            return None

        def read() -> bytes:
            return self.content(uuid)

        return Texture(
            f"{uuid}.j2c",
            width=found.width,
            height=found.height,
            has_alpha=found.components in _WITH_ALPHA,
            first_version=_FIRST_WITH_TWO if found.components == 2 else (0, 0),
            read=read,
            source=f"{self._path}/{uuid}",
        )

    def content(self, uuid: str) -> bytes:
        """Return the codestream of a picture.

        Raises
        ------
        FormatError
            The picture is missing or refused.
        """
        content = self._assets.get(uuid + PICTURE) if self.examined(uuid) is not None else None
        found = jpeg2000.examine(content, two_components=True) if content is not None else None
        if not isinstance(found, jpeg2000.Jpeg2000Info):
            raise FormatError("Its picture {} cannot be used", uuid)
        return found.stream

    def examined(self, uuid: str) -> jpeg2000.Jpeg2000Info | None:
        """Return the size and the components of a picture; None where :meth:`texture` returns None."""
        if uuid not in self._known:
            self._known[uuid] = None if uuid in _WITHOUT_PICTURE else self._examined(uuid)
        return self._known[uuid]

    def _examined(self, uuid: str) -> jpeg2000.Jpeg2000Info | None:
        """Return the header of a picture; None, with the reason noted, if it is missing or must not be decoded."""
        content = self._assets.get(uuid + PICTURE)
        if content is None:
            self._missing.append(uuid)
            return None
        found = jpeg2000.examine(content, two_components=True)
        if not isinstance(found, Text) and self._pixels + found.width * found.height > MOST_PIXELS:
            found = Text("all pictures together have more than {:,} pixels", MOST_PIXELS)
        if isinstance(found, Text):
            self._refused.setdefault(found, []).append(uuid)
            return None
        self._pixels += found.width * found.height
        return replace(found, stream=b"")

    def report(self, report: Report) -> None:
        """Report the pictures that are left out."""
        template = "{} not in the archive; the faces have their colour alone: {}"
        report.loss_of("missing-pictures", template, self._missing, "picture is", "pictures are")
        for reason, names in self._refused.items():
            number = counted(len(names), "picture")
            template = "{} left out; the faces have their colour alone: {}: {}"
            report.loss("pictures-left-out", template, number, reason, listed(names))


MOST_MATERIALS = 10_000
"""Beyond this number, faces get a material of their colour alone."""
_STEPS = 15
"""Number of steps of each channel of the colours of materials beyond the largest number."""
_LEAST_REPEATS = 1e-4
"""Repeats below this count as this, since the mapping is divided by them."""


class Looks:
    """The materials of one import."""

    def __init__(self, assets: ContentStore, pictures: Pictures) -> None:
        self._assets = assets
        self._pictures = pictures
        self.materials: list[Material] = []
        self._names: dict[TextureFace, str] = {}
        self._numbers: dict[str, int] = {}
        """Number of materials by the first digits of their picture."""
        self._older: dict[str, OlderMaterial] = {}
        self._damaged: list[str] = []
        self._plain = 0
        """Number of faces with a material of their colour alone."""

    def material(self, face: TextureFace) -> str:
        """Return the name of the material of a face."""
        if face in self._names:
            return self._names[face]
        look = replace(face, bump=0, shiny=0, has_media=False, mapping=0)
        if look not in self._names and len(self.materials) >= MOST_MATERIALS:
            self._plain += 1
            red, green, blue = (round(part * _STEPS) / _STEPS for part in face.color[:3])
            look = face = TextureFace(color=(red, green, blue, 1.0))
        if look not in self._names:
            self._names[look] = self._add(look)
        self._names[face] = self._names[look]
        return self._names[look]

    def report(self, report: Report) -> None:
        """Report what the materials do not hold."""
        if self._plain:
            number = counted(self._plain, "face has", "faces have")
            template = "{} a plain colour, since the objects have more than {:,} materials"
            report.loss("too-many-materials", template, number, MOST_MATERIALS)
        maps = sum(older.has_normal_map + older.has_specular_map for older in self._older.values())
        if maps:
            number = counted(maps, "map of normals or reflections", "maps of normals or reflections")
            report.loss("older-materials", "{} of materials not carried over", number)
        damaged = of_kind("material", self._damaged)
        report.loss_of("damaged-materials", "{} missing or damaged: {}", damaged, "material")

    def _add(self, look: TextureFace) -> str:
        """Add a material for a look of faces; return its name, the first digits of the texture."""
        digits = look.texture[:8]
        number = self._numbers[digits] = self._numbers.get(digits, 0) + 1
        name = digits if number == 1 else f"{digits}_{number}"
        texture = self._pictures.texture(look.texture)
        # Another archive may lack the picture or the older material.
        known = repr((look, texture is not None, self._older_material(look.material)))
        identity = hashlib.sha256(known.encode()).hexdigest()
        self.materials.append(Material(name, shading=self._shading(look, texture), identity=identity))
        return name

    def _shading(self, look: TextureFace, texture: Texture | None) -> Shading:
        """Return the shading of a face; a full bright one only emits its colour."""
        image = ImageMap(texture, is_color=True, mapping=mapping_of(look)) if texture is not None else None
        red, green, blue = srgb_to_linear(np.array([look.color], np.float32))[0, :3].tolist()
        tint = Tint((red, green, blue), image)
        shading = self._with_alpha(Shading(tint, roughness=Factor(1.0), is_two_sided=False), look, image)
        if look.is_full_bright:
            black = Tint((0.0, 0.0, 0.0))
            return replace(shading, base_color=black, specular=Factor(0.0), emission=tint, emission_strength=1.0)
        if look.glow > 0:
            return replace(shading, emission=tint, emission_strength=look.glow)
        return shading

    def _with_alpha(self, shading: Shading, look: TextureFace, image: ImageMap | None) -> Shading:
        """Return the shading with the alpha of a face: that of its colour times that of its picture."""
        older = self._older_material(look.material)
        is_masked = older.alpha_mode == MASK
        uses_picture = image is not None and image.texture.has_alpha and (is_masked or older.alpha_mode == BLEND)
        value = 0.0 if look.texture == TRANSPARENT else look.color[3]
        alpha = Factor(value, image if uses_picture else None, Channel.ALPHA)
        if uses_picture and is_masked:
            return replace(shading, alpha=alpha, opacity=Opacity.CLIP, alpha_threshold=older.alpha_cutoff)
        return replace(shading, alpha=alpha, opacity=Opacity.DITHERED) if uses_picture or value < 1 else shading

    def _older_material(self, uuid: str) -> OlderMaterial:
        """Return a material with normal and specular map, which is read once; an empty one if it is missing."""
        if uuid not in self._older:
            content = self._assets.get(uuid + MATERIAL) if uuid != NULL_ID else None
            self._older[uuid] = OlderMaterial()
            try:
                if content is not None:
                    self._older[uuid] = read_older_material(content)
                elif uuid != NULL_ID:
                    self._damaged.append(uuid)
            except FormatError:
                self._damaged.append(uuid)
        return self._older[uuid]


def mapping_of(face: TextureFace) -> Mapping:
    """Return the mapping of a face: about the centre (0.5, 0.5) rotated, then repeated, then moved.

    See docs/formats/opensim_archives.md, section Faces.
    """
    horizontal, vertical = (math.copysign(max(abs(repeat), _LEAST_REPEATS), repeat) for repeat in face.repeats)
    cosine, sine = math.cos(face.rotation), math.sin(face.rotation)
    offset = (
        face.offsets[0] + 0.5 - horizontal * 0.5 * (cosine + sine),
        face.offsets[1] + 0.5 - vertical * 0.5 * (cosine - sine),
    )
    return Mapping(scale=(horizontal, vertical), offset=offset, rotation=face.rotation)
