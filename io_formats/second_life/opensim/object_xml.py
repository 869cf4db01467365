"""The XML of an object: linksets and their parts (docs/formats/opensim_archives.md, sections Objects and Shapes)."""

import math
import re
import struct
import uuid
from binascii import a2b_base64
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any
from xml.etree.ElementTree import Element

from ...core.errors import FormatError
from ...core.messages import Report
from .container import Allowance, integer, name_of, number, parse_member, text_of, uuid_of
from .document import NULL_ID, Linkset, Part, PartLight, TextureEntry, TextureFace
from .prims import PrimShape

_OTHERS = re.compile(r"[^A-Za-z0-9+/]+")


def binary_of(text: str) -> tuple[bytes, bool]:
    """Decode base64 up to the first padding.

    Returns
    -------
    data, is_whole:
        The bytes, and False if the text is cut off or has other characters than blanks, which are ignored.
    """
    before = text.partition("=")[0]
    letters = _OTHERS.sub("", before)
    is_whole = len(letters) % 4 != 1 and len(letters) == len("".join(before.split()))
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    return a2b_base64(letters + "=" * (-len(letters) % 4)), is_whole


def uuid_text(data: bytes) -> str:
    """Return a UUID of 16 bytes as text in lower case."""
    return str(uuid.UUID(bytes=data))


_HEAD, _LIGHT, _PROJECTOR = struct.Struct("<HI"), struct.Struct("<4B3f"), struct.Struct("<16s3f")
_SCULPT = 17
_FLEXIBLE = 16
_FLEXIBLE_TYPE, _LIGHT_TYPE, _SCULPT_TYPE, _PROJECTOR_TYPE, _OLD_MESH_TYPE, _MATERIALS_TYPE = (
    *(0x10, 0x20, 0x30, 0x40, 0x60, 0x80),
)
_SIZES = {
    _FLEXIBLE_TYPE: _FLEXIBLE,
    _LIGHT_TYPE: _LIGHT.size,
    _SCULPT_TYPE: _SCULPT,
    _PROJECTOR_TYPE: _PROJECTOR.size,
    _OLD_MESH_TYPE: _SCULPT,
}


@dataclass(frozen=True, slots=True)
class ExtraParams:
    """The extra parameters of a part."""

    sculpt: tuple[str, int] | None = None
    """UUID and type of a sculpt or mesh; None if the part is neither."""
    is_flexible: bool = False
    light: PartLight | None = None
    has_gltf_materials: bool = False


def read_extra_params(data: bytes) -> tuple[ExtraParams, bool]:
    """Decode extra parameters.

    Returns
    -------
    parameters, is_whole:
        The parameters; False if they are damaged. Those before the damage are used.
    """
    found, is_whole = _contents(data)
    light = None
    if _LIGHT_TYPE in found:
        *color, intensity, radius, _cutoff, _falloff = _LIGHT.unpack(found[_LIGHT_TYPE])
        red, green, blue = (value / 255 for value in color)
        light = PartLight((red, green, blue), intensity / 255, _length(radius))
        if _PROJECTOR_TYPE in found:
            picture, angle, _focus, _ambiance = _PROJECTOR.unpack(found[_PROJECTOR_TYPE])
            angle = min(_length(angle), math.pi)
            light = PartLight(light.color, light.intensity, light.radius, uuid_text(picture), angle)
    sculpt = found.get(_SCULPT_TYPE, found.get(_OLD_MESH_TYPE))
    return (
        ExtraParams(
            (uuid_text(sculpt[:16]), sculpt[16]) if sculpt is not None else None,
            _FLEXIBLE_TYPE in found,
            light,
            found.get(_MATERIALS_TYPE, b"\0")[:1] > b"\0",
        ),
        is_whole,
    )


def _contents(data: bytes) -> tuple[dict[int, bytes], bool]:
    """Return the content of each parameter by its type, and whether all are whole."""
    found: dict[int, bytes] = {}
    is_whole = True
    at = 1
    for _ in range(data[0] if data else 0):
        if at + _HEAD.size > len(data):
            return found, False
        kind, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + size > len(data):
            return found, False
        if size == _SIZES.get(kind, size):
            found[kind] = data[at : at + size]
        else:
            is_whole = False
        at += size
    return found, is_whole


def _length(value: float) -> float:
    """Return a number that is at least 0; 0 for NaN and infinity."""
    return max(value, 0.0) if math.isfinite(value) else 0.0


MOST_FACES = 45
"""Number of faces for which the viewer keeps values (``MAX_TES``); bits of further faces are ignored."""
_LONGEST = 4095
"""Bytes that the viewer reads (``MAX_TE_BUFFER``)."""
_MASK_BITS = (1 << 64) - 1
_DEFAULT = TextureFace()
_COLOR_MAXIMUM = 255


@dataclass(frozen=True)
class _Property:
    """A property of all faces, as it is stored."""

    size: int
    convert: Callable[[bytes], Any]
    default: Any
    is_required: bool = True


def _color(data: bytes) -> tuple[float, ...]:
    return tuple((_COLOR_MAXIMUM - value) / _COLOR_MAXIMUM for value in data)


def _repeats(data: bytes) -> float:
    return float(struct.unpack("<f", data)[0])


def _offset(data: bytes) -> float:
    return max(int.from_bytes(data, "little", signed=True) / 32767, -1.0)


def _rotation(data: bytes) -> float:
    return int.from_bytes(data, "little", signed=True) / 32768 * math.tau


_PROPERTIES = (
    _Property(16, uuid_text, _DEFAULT.texture),
    _Property(4, _color, _DEFAULT.color),
    _Property(4, _repeats, _DEFAULT.repeats[0]),
    _Property(4, _repeats, _DEFAULT.repeats[1]),
    _Property(2, _offset, _DEFAULT.offsets[0]),
    _Property(2, _offset, _DEFAULT.offsets[1]),
    _Property(2, _rotation, _DEFAULT.rotation),
    _Property(1, ord, 0),
    _Property(1, ord, 0),
    _Property(1, lambda data: data[0] / 255, _DEFAULT.glow),
    # Entries of old servers end before the material.
    _Property(16, uuid_text, _DEFAULT.material, is_required=False),
)


def read_texture_entry(data: bytes) -> tuple[TextureEntry, bool]:
    """Decode a texture entry.

    Returns
    -------
    entry, is_whole:
        The entry; False if it is damaged. Values up to the damage are used, the others are the defaults.
    """
    reader = _Reader(data[:_LONGEST])
    is_whole = len(data) <= _LONGEST
    values = [[stored.default] * (MOST_FACES + 1) for stored in _PROPERTIES]
    used = 0
    try:
        for stored, row in zip(_PROPERTIES, values, strict=True):
            if not stored.is_required and reader.is_at_end():
                break
            row[:] = [stored.convert(reader.take(stored.size))] * len(row)
            while mask := reader.mask():
                value = stored.convert(reader.take(stored.size))
                for face in range(MOST_FACES):
                    if mask >> face & 1:
                        row[face] = value
                used |= mask
    except EOFError:
        is_whole = False
    for row, default in zip(values[2:4], _DEFAULT.repeats, strict=True):
        if not all(map(math.isfinite, row)):
            row[:] = [value if math.isfinite(value) else default for value in row]
            is_whole = False
    faces = [face for face in range(MOST_FACES) if used >> face & 1]
    columns = {face: tuple(row[face] for row in values) for face in (MOST_FACES, *faces)}
    looks = {column: _face(column) for column in set(columns.values())}
    plain = looks[columns.pop(MOST_FACES)]
    exceptions = {face: looks[column] for face, column in columns.items() if looks[column] != plain}
    return TextureEntry(plain, exceptions), is_whole


def _face(column: tuple[Any, ...]) -> TextureFace:
    """Return the look of a face from the values of its properties."""
    texture, color, repeat_u, repeat_v, offset_u, offset_v, rotation, bump, media, glow, material = column
    return TextureFace(
        texture=texture,
        color=color,
        repeats=(repeat_u, repeat_v),
        offsets=(offset_u, offset_v),
        rotation=rotation,
        bump=bump & 0x1F,
        shiny=bump >> 6,
        is_full_bright=bool(bump & 0x20),
        has_media=bool(media & 1),
        mapping=media & 6,
        glow=glow,
        material=material,
    )


class _Reader:
    """A cursor over the bytes, which end like an additional 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes; raise EOFError if fewer are left."""
        start = self._at
        self._at += size
        if self._at > len(self._data):
            raise EOFError
        return self._data[start : self._at]

    def mask(self) -> int:
        """Return the faces of the next value as bits, or 0 after the last value of a property."""
        mask, has_more = 0, not self.is_at_end()
        while has_more:
            byte = self.take(1)[0]
            mask = (mask << 7 | byte & 0x7F) & _MASK_BITS
            has_more = bool(byte & 0x80)
        return mask


MOST_PARTS = 100_000
FARTHEST = 100_000.0
"""Metres; parts and sizes beyond that are invalid."""
_SMALLEST = 0.001
_ROUNDING = 1e-6
"""Metres that a size may be too small by, for rounding in texts."""
_SCRIPT = "10"
_PLANE = 3
_KIND = 7
_SIGNED = {"path_twist", "path_twist_begin", "path_radius_offset", "path_taper_x", "path_taper_y", "path_skew"}
"""Shape values that are signed bytes."""
_LONG = {"profile_begin", "profile_end", "profile_hollow", "path_begin", "path_end"}
"""Shape values that are two bytes; the others are one."""
_SHAPE = {field.name.title().replace("_", ""): field.name for field in fields(PrimShape)}
"""Names of elements -> names of shape values."""
_PLAIN_SHAPE = PrimShape()
_NO_NAMES = {"", "Object", "Primitive"}
"""Names that servers give to new parts."""

Vector = tuple[float, float, float]


class ObjectReader:
    """Reads the objects of an archive, up to a number of parts in all."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._parts_left = MOST_PARTS
        self._entries: dict[str, tuple[TextureEntry, bool]] = {}
        self._shapes: dict[PrimShape, PrimShape] = {}
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        """Names of parts by what is wrong with them."""

    @property
    def is_full(self) -> bool:
        """Whether the archive has more parts than are read."""
        return bool(self._names["beyond"])

    def leave_out(self, name: str) -> None:
        """Note that an object is left out because there are too many parts."""
        self._names["beyond"].append(name)

    def linksets(self, data: bytes, name: str, left_out: dict[str, int], *, is_item: bool) -> list[Linkset]:
        """Read the linksets of an object; there are several in a coalesced object of an inventory.

        Parameters
        ----------
        name:
            Name for roots without a name of their own.
        left_out:
            The scripts in the parts are counted under ``script``.
        is_item:
            Whether the object is an inventory item. Its position is not that of its root, which is old.

        Raises
        ------
        FormatError
            The XML is not well-formed, is too large, has a document type or no parts.
        """
        root = parse_member(data, self._allowance)
        found = []
        groups = root.findall("SceneObjectGroup") if root.tag == "CoalescedObject" else [root]
        parts_of = [list(group.iter("SceneObjectPart")) for group in groups]
        if not any(parts_of):
            raise FormatError("It has no parts")
        for group, parts in zip(groups, parts_of, strict=True):
            position = _vector(group.get(f"offset{axis}", "") for axis in "xyz") if is_item else None
            if parts and (len(parts) > self._parts_left or self.is_full):
                self.leave_out(_own_name(parts[0]) or name)
                continue
            linkset = self._linkset(parts, name, position)
            if linkset is not None:
                self._parts_left -= len(parts)
                found.append(linkset)
                if scripts := sum(map(_scripts_in, parts)):
                    left_out["script"] = left_out.get("script", 0) + scripts
        return found

    def _linkset(self, elements: list[Element], name: str, position: Vector | None) -> Linkset | None:
        """Return a linkset; None if it has no parts, or its root no valid place."""
        parts: list[Part] = []
        for element in elements:
            own_name = _own_name(element)
            name = name if parts else own_name or name
            part = self._part(element, own_name or name, position, is_root=not parts)
            if part is None and not parts:
                return None
            if part is not None:
                parts.append(part)
        return Linkset(tuple(parts)) if parts else None

    def _part(self, element: Element, name: str, position: Vector | None, *, is_root: bool) -> Part | None:
        """Return a part of an object from its element; None, with its name noted, if its position is unusable."""
        found = {child.tag: child for child in element}
        if position is None or not is_root:
            position = _vector(_texts(found.get("GroupPosition" if is_root else "OffsetPosition"), "XYZ"))
        if not all(abs(value) <= FARTHEST for value in position):  # False for NaN
            self._names["root-place" if is_root else "place"].append(name)
            return None
        stored = found.get("Shape")
        shape = {child.tag: child for child in stored} if stored is not None else {}
        params, is_whole = read_extra_params(self._binary(shape.get("ExtraParams"), name))
        if not is_whole:
            self._names["binary"].append(name)
        sculpt_asset, sculpt_type = _sculpt(shape, params.sculpt)
        return Part(
            name=name,
            uuid=uuid_of(found.get("UUID")),
            position=position,
            rotation=self._rotation(found.get("RotationOffset"), name),
            size=self._size(found.get("Scale"), name),
            pcode=integer(text_of(shape.get("PCode")), 9) & 0xFF,
            state=integer(text_of(shape.get("State")), 0) & 0xFF,
            shape=self._shape(shape),
            sculpt_type=sculpt_type,
            sculpt_asset=sculpt_asset,
            is_flexible=params.is_flexible,
            light=params.light,
            has_gltf_materials=params.has_gltf_materials,
            entry=self._entry(text_of(shape.get("TextureEntry")), name),
        )

    def _binary(self, element: Element | None, name: str) -> bytes:
        data, is_whole = binary_of(text_of(element))
        if not is_whole:
            self._names["binary"].append(name)
        return data

    def _entry(self, text: str, name: str) -> TextureEntry:
        """Decode a texture entry; equal ones are decoded once."""
        if not text:
            return TextureEntry()
        known = self._entries.get(text)
        if known is None:
            data, is_text_whole = binary_of(text)
            entry, is_whole = read_texture_entry(data)
            known = self._entries[text] = entry, is_whole and is_text_whole
        if not known[1]:
            self._names["entry"].append(name)
        return known[0]

    def _rotation(self, element: Element | None, name: str) -> tuple[float, float, float, float]:
        if element is None:
            return 1.0, 0.0, 0.0, 0.0
        x, y, z, w = map(number, _texts(element, "XYZW"))
        length = math.hypot(x, y, z, w)
        if not 0 < length < math.inf:
            self._names["rotation"].append(name)
            return 1.0, 0.0, 0.0, 0.0
        return w / length, x / length, y / length, z / length

    def _size(self, element: Element | None, name: str) -> Vector:
        if element is None:
            return 0.5, 0.5, 0.5
        x, y, z = size = _vector(_texts(element, "XYZ"))
        if not all(_SMALLEST - _ROUNDING <= value <= FARTHEST for value in size):
            self._names["size"].append(name)
        return _valid_size(x), _valid_size(y), _valid_size(z)

    def _shape(self, elements: dict[str, Element]) -> PrimShape:
        """Return the numbers of a prim, converted to the types of OpenSim's fields; equal shapes are one object."""
        values = {}
        for tag, field in _SHAPE.items():
            value = integer(text_of(elements.get(tag)), getattr(_PLAIN_SHAPE, field)) & (
                0xFFFF if field in _LONG else 0xFF
            )
            values[field] = value - 0x100 if field in _SIGNED and value > 0x7F else value
        shape = PrimShape(**values)
        return self._shapes.setdefault(shape, shape)

    def report(self, report: Report) -> None:
        """Report what is wrong with parts."""
        names = self._names
        report.loss_of(
            "object-without-place",
            "{} left out, more than 100 km away or without a valid position: {}",
            names["root-place"],
            "object is",
            "objects are",
        )
        report.loss_of(
            "part-without-place",
            "{} left out, more than 100 km from its object or without a valid position: {}",
            names["place"],
            "part is",
            "parts are",
        )
        report.loss_of(
            "parts-beyond-limit",
            "{} left out, since 100,000 parts are read at most: {}",
            names["beyond"],
            "object is",
            "objects are",
        )
        report.loss_of(
            "texture-entry-damaged",
            "{} only partly readable, so that faces may look wrong: {}",
            names["entry"],
            "texture entry is",
            "texture entries are",
        )
        report.loss_of(
            "extra-params-damaged",
            "{} damaged parameters, such as those of sculpts or lights: {}",
            names["binary"],
            "part has",
            "parts have",
        )
        report.change_of(
            "part-size-invalid",
            "{} a size that is not between 1 mm and 100 km; the nearest valid size was taken: {}",
            names["size"],
            "part has",
            "parts have",
        )
        report.change_of(
            "part-rotation-invalid",
            "{} a rotation of length 0, NaN or infinity; not rotated: {}",
            names["rotation"],
            "part has",
            "parts have",
        )


def _own_name(element: Element) -> str:
    """Return the name that a user gave to a part, or an empty string."""
    name = name_of(element.find("Name"))
    return "" if name in _NO_NAMES else name


def _scripts_in(part: Element) -> int:
    """Return the number of scripts among the contents of a part."""
    return sum(text_of(item.find("Type")) == _SCRIPT for item in part.iterfind("TaskInventory/TaskInventoryItem"))


def _texts(element: Element | None, tags: str) -> list[str]:
    """Return the texts of elements with tags of one letter; empty where there is none."""
    found = {child.tag: child for child in element} if element is not None else {}
    return [text_of(found.get(tag)) for tag in tags]


def _vector(texts: Iterable[str]) -> Vector:
    x, y, z = map(number, texts)
    return x, y, z


def _valid_size(value: float) -> float:
    return min(value, FARTHEST) if value >= _SMALLEST and math.isfinite(value) else _SMALLEST


def _sculpt(shape: dict[str, Element], stored: tuple[str, int] | None) -> tuple[str, int]:
    """Return asset and type of a sculpt or mesh, or ``("", 0)`` for a prim.

    The parameter for sculpts and ``SculptEntry``, which OpenSim writes for the same purpose, tell sculpts from prims
    that once were one. A sculpt of type 0 is stitched like a plane.
    """
    kind = integer(text_of(shape.get("SculptType")), 0) & 0xFF
    entry = text_of(shape.get("SculptEntry")).strip().lower()
    if stored is None and (entry == "false" or not kind & _KIND) and entry != "true":
        return "", 0
    asset, stored_kind = stored or (NULL_ID, 0)
    found = uuid_of(shape.get("SculptTexture"))
    kind = kind or stored_kind
    return found if found not in ("", NULL_ID) else asset, kind if kind & _KIND else kind | _PLANE
