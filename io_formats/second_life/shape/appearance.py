"""XML of an appearance export <-> shape (shape format page, section 5.1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import numpy as np

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Report, Text, counted, joined
from ...encodings.xml_files import parse_xml
from ..avatar import sliders
from .document import SHAPE, Shape
from .value_list import ValueList, integer, number

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
    found: str = np.format_float_positional(np.float32(value) + np.float32(0), min_digits=_ONLY_DECIMALS)
    return found
