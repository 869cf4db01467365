"""Bytes <-> shape: an appearance export in XML, or a body part asset, only read (shape format page, section 5)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import numpy as np

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Message, Report, Text, counted, joined
from ...encodings.xml_files import parse_xml
from ..avatar import sliders
from .format import SIGNATURE

SHAPE = "shape"
"""Wearable that holds most sliders."""


@dataclass
class Shape:
    """A body shape, or the part of one that another wearable holds."""

    values: Mapping[int, float] = field(default_factory=dict)
    """Values of sliders by id, within their ranges; the file has no others."""
    name: str = ""
    version: str = "1.0"
    wearable: str = SHAPE
    """Kind of the body part. Hair and shoes have a few sliders, and leave all others as they are."""
    is_body_part: bool = False
    """Whether the file is a body part asset, and not an appearance export in XML."""
    has_only_codes: tuple[str, ...] = ()
    """Labels of the sliders of which the file has the code instead of the value."""
    warnings: list[Message] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether sliders that the file does not list have their default."""
        return self.wearable == SHAPE

    @property
    def complete(self) -> dict[int, float]:
        """The values of all sliders."""
        return sliders.complete_values(self.values)


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def number(text: str) -> float | None:
    """Return a number, which may be NaN or infinite, or None if the text is not one."""
    return float(text) if _NUMBER.fullmatch(text) else None


def integer(text: str) -> int | None:
    """Return a whole number, or None if the text is not one."""
    return int(text) if _INTEGER.fullmatch(text) else None


class ValueList:
    """The values of sliders that a file lists; of a slider that it lists twice, the last one counts.

    Parameters
    ----------
    wearable:
        Kind of wearable whose sliders are taken; empty for all. Parameters that are not sliders are ignored: they are
        computed from sliders, or do not concern the shape.
    """

    def __init__(self, wearable: str = "") -> None:
        self._sliders = {
            number: slider for number, slider in sliders.sliders().items() if wearable in ("", slider.wearable)
        }
        self._values: dict[int, float] = {}
        self._is_listed: set[int] = set()
        self._left_out: dict[int, None] = {}
        self._repeated: dict[int, None] = {}
        self._codes: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._is_listed)

    def add(self, parameter: int, value: float, *, is_code: bool = False) -> None:
        """Add a value, or the code of one; NaN stands for a missing value."""
        slider = self._sliders.get(parameter)
        if slider is None:
            return
        self._is_listed.add(parameter)
        if not math.isfinite(value):
            self._left_out[parameter] = None
            return
        if is_code:
            value = slider.decoded(int(value))
        if self._values.get(parameter, value) != value:
            self._repeated[parameter] = None
        self._values[parameter] = value
        self._codes.pop(parameter, None)
        if is_code:
            self._codes[parameter] = None

    def finish(self, report: Report) -> dict[int, float]:
        """Return the values, within the ranges of their sliders; report changed and missing ones."""
        found = {number: self._sliders[number].clamped(value) for number, value in self._values.items()}
        clamped = [number for number, value in self._values.items() if found[number] != value]
        template = "{} outside their range and clamped: {}"
        report.change_of("shape-values-clamped", template, self._labels(clamped), "value was", "values were")
        template = "{} not finite and left out: {}"
        report.loss_of("shape-values-left-out", template, self._labels(self._left_out), "value is", "values are")
        template = "{} listed twice with different values, the last of which counts: {}"
        report.change_of("shape-values-repeated", template, self._labels(self._repeated), "slider is", "sliders are")
        return found

    def codes(self) -> tuple[str, ...]:
        """Return the labels of the sliders that have a code only."""
        return tuple(self._labels(self._codes))

    def _labels(self, numbers: Iterable[int]) -> list[str]:
        return [self._sliders[number].label for number in numbers]


_NO_NAME = "???"
_ONLY_DECIMALS = 3
"""Decimals of the viewer's own files. Values that need more are written with more."""
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""


def read_appearance(data: bytes) -> Shape:
    """Decode an appearance export.

    Raises
    ------
    FormatError
        The file is not well-formed, has a document type or invalid numbers, or no slider has a value in it.
    """
    root = parse_xml(data)
    if root.tag != "linden_genepool":
        raise UnsupportedFormatError("This is not a shape: its root element is '{}'", root.tag)
    document = Shape(version=root.get("version", ""))
    report = Report(document.warnings)
    archetypes = root.findall("archetype")
    document.name = _name(archetypes[0]) if archetypes else ""
    if "metaversion" not in root.attrib and len(archetypes) > 1:  # else one archetype for each wearable
        others = [one.get("name", "") for one in archetypes[1:]]
        template = "{} left out, as in the viewers that import such files: {}"
        report.loss_of(
            "archetypes-left-out", template, others, "archetype after the first is", "archetypes after the first are"
        )
        archetypes = archetypes[:1]
    found = [element for archetype in archetypes for element in archetype.iter("param")]
    values = ValueList()
    for element in found:
        _add(values, element)
    if not values:
        raise UnsupportedFormatError("The file has no body shape sliders{}", _others(found))
    document.values = values.finish(report)
    document.has_only_codes = values.codes()
    offsets = len({element.get("name", "") for archetype in archetypes for element in archetype.iter("joint_offset")})
    if offsets:
        report.loss(
            "joint-offsets-left-out",
            "{} left out",
            counted(offsets, "joint position of worn meshes", "joint positions of worn meshes"),
        )
    return document


def _name(archetype: Element) -> str:
    name = archetype.get("name", "")
    return "" if name == _NO_NAME else name


def _add(values: ValueList, element: Element) -> None:
    """Add the value of a ``param`` element, or its code if it has no value."""
    text = element.get("id", "")
    parameter = integer(text.strip())
    if parameter is None:
        raise FormatError("The id '{}' of a parameter is not a number", text)
    is_code = "value" not in element.attrib and "u8" in element.attrib
    text = element.get("u8" if is_code else "value", "nan")
    value = integer(text.strip()) if is_code else number(text.strip())
    if value is None:
        raise FormatError("The value '{}' is not a number", text, item=f"Parameter {parameter}")
    values.add(parameter, value, is_code=is_code)


def _others(found: Iterable[Element]) -> str:
    """Return how many parameters of other wearables there are."""
    counts = Counter(element.get("wearable", "") for element in found)
    counts.pop("", None)
    counts.pop(SHAPE, None)
    texts = joined(Text("{} of {}", count, wearable) for wearable, count in counts.most_common(3))
    return Text(" (it has {})", texts) if counts else ""


def write(shape: Shape) -> bytes:
    """Encode a shape: all sliders of the wearable *shape*, and those of others that differ from their default."""
    name = _INVALID.sub("", shape.name).encode("utf-8", "replace").decode() or _NO_NAME
    values = shape.complete
    lines = [
        '<?xml version="1.0" encoding="US-ASCII" standalone="yes"?>',
        '<linden_genepool version="1.0">',
        f"\t<archetype name={quoteattr(name)}>",
    ]
    for slider in sliders.sliders().values():
        value = values[slider.id]
        if slider.wearable == SHAPE or value != slider.default:
            lines.append(
                f'\t\t<param id="{slider.id}" name={quoteattr(slider.name.lower())} display={quoteattr(slider.label)} '
                f'value="{_decimals(value)}" u8="{slider.code_of(value)}" type="param_{slider.kind}" '
                f'wearable="{slider.wearable}" group="{slider.group}"/>'
            )
    lines += ["\t</archetype>", "</linden_genepool>", ""]
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace")


def _decimals(value: float) -> str:
    """Return at least three decimals, and as many as give the same number in single precision."""
    return np.format_float_positional(np.float32(value) + np.float32(0), min_digits=_ONLY_DECIMALS)


_NEWEST = 22
_ALSO_READ = 24
"""Version above the newest one that the viewer takes nevertheless."""
_HOLDING = {0: SHAPE, 2: "hair", 6: "shoes"}
"""Kinds of wearables with sliders that move joints, by their number."""
_OTHERS = {
    1: "a skin",
    3: "a pair of eyes",
    4: "a shirt",
    5: "a pair of pants",
    7: "a pair of socks",
    8: "a jacket",
    9: "a pair of gloves",
    10: "an undershirt",
    11: "a pair of underpants",
    12: "a skirt",
    13: "an alpha mask",
    14: "a tattoo",
    15: "a set of physics",
    16: "a universal wearable",
}
"""What messages call the others, by their number; whole phrases, for translations."""
_MOST_PARAMETERS, _MOST_TEXTURES = 1000, 100
_NAME_LINE = 1
_FIXED_LINES = 3
"""Version, name and description, each of which may be any text."""


def read_body_part(text: str) -> Shape:
    """Decode a body part asset.

    Raises
    ------
    FormatError
        The version is too new, the asset is not one with sliders, or a line is missing or invalid.
    """
    lines = _Lines(text)
    version = integer(lines.lines[0].removeprefix(SIGNATURE).strip())
    if version is None:
        raise FormatError("In line 1: the version is not a number")
    if version > _NEWEST and version != _ALSO_READ:
        raise UnsupportedFormatError("Version {} is newer than {}; the viewer refuses it, too", version, _NEWEST)
    wearable = _wearable(lines)
    document = Shape(version=str(version), wearable=wearable, is_body_part=True)
    document.name = lines.lines[_NAME_LINE].strip()
    report = Report(document.warnings)
    values = ValueList(wearable)
    for line in lines.table("parameters", _MOST_PARAMETERS):
        words = line.split()
        parameter = integer(words[0]) if len(words) > 1 else None
        value = number(words[1]) if len(words) > 1 else None
        if parameter is None or value is None:
            raise lines.error("'{}' is not a parameter and its value", line)
        values.add(parameter, value)
    for _line in lines.table("textures", _MOST_TEXTURES):
        pass
    if any(line.strip() for line in lines.lines[lines.place :]):
        report.loss("bytes-after-end", "The text after the end is ignored")
    if not values:
        raise UnsupportedFormatError("The file has no body shape sliders")
    document.values = values.finish(report)
    return document


def _wearable(lines: _Lines) -> str:
    """Read up to the kind of the wearable, and return it."""
    lines.place = _FIXED_LINES
    while lines.next().split(maxsplit=1)[:1] != ["type"]:  # permissions and price
        pass
    kind = integer(lines.lines[lines.place - 1].split()[-1])
    if kind is None:
        raise lines.error("the type is not a number")
    if kind in _OTHERS:
        raise UnsupportedFormatError("This is {}, not a shape", Text(_OTHERS[kind]))
    if kind not in _HOLDING:
        raise UnsupportedFormatError("This is a wearable of type {}, not a shape", kind)
    return _HOLDING[kind]


class _Lines:
    """The lines of an asset, and the index of the next one."""

    def __init__(self, text: str) -> None:
        text = text.rstrip("\0").removesuffix("\n")  # two of the samples end with the zero byte of C strings
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        self.place = 0

    def error(self, template: str, *values: object) -> FormatError:
        """Return an error about the last line."""
        return FormatError("In line {}: {}", self.place, Text(template, *values))

    def next(self) -> str:
        """Return the next line."""
        if self.place >= len(self.lines):
            raise FormatError("The file is cut off")
        self.place += 1
        return self.lines[self.place - 1]

    def table(self, name: str, most: int) -> Iterator[str]:
        """Read the line with the length of a list, before which lines may be blank, and yield the lines of the list."""
        words = self.next().split()
        while not words:
            words = self.next().split()
        count = integer(words[1]) if len(words) == 2 and words[0] == name else None
        if count is None or count < 0:
            raise self.error("the number of {} is missing", name)
        if count > most:
            raise self.error("{:,} {}; viewers take up to {:,}", count, name, most)
        first = self.place
        for done in range(count):
            if first + done >= len(self.lines):
                raise FormatError("The file ends after {} of {} {}", done, count, name)
            yield self.next()


def read(data: bytes, *, inflated_limit: int | None = None) -> Shape:
    """Decode a shape file.

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Not used: nothing in these files is compressed.

    Raises
    ------
    FormatError
        The file is damaged, or is not the shape of an avatar.
    """
    text = data.decode("utf-8-sig", "replace")
    return read_body_part(text) if text.startswith(SIGNATURE) else read_appearance(data)


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same name and values of sliders, in single precision."""
    return one == other or write(read(one)) == write(read(other))
