"""Older materials of faces: ``assets/<uuid>_material.xml``, a map in the XML form of LLSD."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...core.errors import FormatError
from .document import NULL_ID
from .xml_text import Allowance, integer, parse_member, text_of, uuid_of

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
