"""XML in archives: UTF-8 whatever it declares, with the characters that servers write although XML forbids them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...core.errors import FormatError
from ...encodings.xml_files import parse_xml

_MOST_TAGS = 2_000_000
"""Limit of the number of ``<`` in a member. A part has about 220, and each thing in its contents 60."""
_MOST_ATTRIBUTES = 500_000
"""Limit of the number of ``=`` in a member, each of which takes as long as 20 elements. A part has about a dozen, in
namespaces and base64."""
_FORBIDDEN = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]"
    rb"|&#(?:x0*(?:1?[0-9a-f]|d[89a-f][0-9a-f]{2}|fff[ef])|0*(?:[12]?[0-9]|3[01]));",
    re.IGNORECASE,
)
"""Control characters, and references to these and to surrogates. OpenSim's reader and writer do not check them."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LONGEST_NAME = 255


@dataclass
class Allowance:
    """How much XML may still be parsed, shared by all members of an archive: small files can inflate to hours of it."""

    tags: int = 50_000_000
    """Number of ``<``."""
    attributes: int = 5_000_000
    """Number of ``=``."""

    def spend(self, data: bytes) -> None:
        """Subtract a member; raise FormatError if it is too large, or more than is left."""
        tags, attributes = data.count(b"<"), data.count(b"=")
        if tags > _MOST_TAGS or attributes > _MOST_ATTRIBUTES:
            raise FormatError("The XML file is too large")
        self.tags -= tags
        self.attributes -= attributes
        if self.tags < 0 or self.attributes < 0:
            raise FormatError("The XML in the archive is too large")


def parse_member(data: bytes, allowance: Allowance | None = None) -> Element:
    """Return the root element of a member.

    Members of which an archive may have many share an ``allowance``.

    Raises
    ------
    FormatError
        It is not well-formed, even without forbidden characters; it is too large, or has a document type.
    """
    (allowance or Allowance()).spend(data)
    try:
        return parse_xml(data, encoding="utf-8")
    except FormatError:
        repaired = _FORBIDDEN.sub(b"", data.decode("utf-8", "replace").encode())
        if repaired == data:
            raise
        return parse_xml(repaired, encoding="utf-8")


def text_of(element: Element | None) -> str:
    """Return the text of an element; empty if there is none."""
    return (element.text if element is not None else None) or ""


def name_of(element: Element | None) -> str:
    """Return a name, which is cut off where it is too long."""
    return text_of(element)[:LONGEST_NAME].strip()


def uuid_of(element: Element | None) -> str:
    """Return the UUID in an element, or in an element in it, in lower case; empty if it is not one."""
    if element is not None and len(element):
        element = element[0]
    text = text_of(element).strip().lower()
    return text if _UUID.fullmatch(text) else ""


def number(text: str) -> float:
    """Return a number, which may be infinite; 0 for an empty text, and NaN for one that is not a number."""
    try:
        return float(text or "0")
    except ValueError:
        return math.nan


def integer(text: str, default: int) -> int:
    """Return an integer; the default if the text is not one."""
    try:
        return int(text)
    except ValueError:
        return default
