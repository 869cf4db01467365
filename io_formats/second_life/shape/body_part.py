"""Text of a body part asset -> shape (shape format page, section 5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Report, Text
from .document import SHAPE, Shape
from .sniffing import SIGNATURE
from .value_list import ValueList, integer, number

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
