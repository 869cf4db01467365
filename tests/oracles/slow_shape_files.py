"""Shape files read slowly, one line or element after another, from section 5 of the shape format page alone.

Nothing of the product is used. Values are those of the table's sliders, clamped; whatever the page refuses raises
``WrongFile``.
"""

from __future__ import annotations

import math
import struct
from xml.dom import minidom

from slow_shape import OWN, PARAMETERS

HOLDERS = {0: "shape", 2: "hair", 6: "shoes"}


class WrongFile(Exception):
    """The file is not a shape as the page has it."""


def single(value: float) -> float:
    """Round to 32 bits."""
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def decoded(number: int, code: int) -> float:
    """Return the value of a code in single precision, one operation after another (section 4)."""
    low, high = (single(float(PARAMETERS[number][end])) for end in ("min", "max"))
    extent = single(high - low)
    value = single(single(single(code * single(1 / 255)) * extent) + low)
    return 0.0 if abs(value) < single(extent * single(1 / 255)) else value


def values(data: bytes) -> dict[int, float]:
    """Return the values of the sliders that a file lists."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    listed = body_part(data) if data.startswith(b"LLWearable") else appearance(data)
    if not listed:
        raise WrongFile("no sliders")
    found = {}
    for number, value in listed:
        if math.isfinite(value):
            row = PARAMETERS[number]
            found[number] = max(min(value, float(row["max"])), float(row["min"]))
    return found


def body_part(data: bytes) -> list[tuple[int, float]]:
    lines = data.decode().replace("\r\n", "\n").split("\n")
    version = int(lines[0].rsplit(" ", 1)[1])
    if version > 22 and version != 24:
        raise WrongFile("version")
    place = next((number for number in range(3, len(lines)) if lines[number].startswith("type ")), None)
    if place is None:
        raise WrongFile("no type")
    holder = HOLDERS.get(int(lines[place].split()[1]))
    if holder is None:
        raise WrongFile("not a shape")
    found: list[tuple[int, float]] = []
    for heading in ("parameters", "textures"):
        place += 1
        while place < len(lines) and not lines[place].strip():
            place += 1
        if place >= len(lines) or lines[place].split()[0] != heading:
            raise WrongFile(f"no {heading}")
        count = int(lines[place].split()[1])
        rows = lines[place + 1 : place + 1 + count]
        if len(rows) < count:
            raise WrongFile("cut off")
        place += count
        if heading == "parameters":
            for row in rows:
                number, value = row.split()
                if int(number) in OWN and PARAMETERS[int(number)]["wearable"] == holder:
                    found.append((int(number), float(value)))
    return found


def appearance(data: bytes) -> list[tuple[int, float]]:
    root = minidom.parseString(data).documentElement
    if root.tagName != "linden_genepool":
        raise WrongFile("root")
    archetypes = root.getElementsByTagName("archetype")
    if not root.hasAttribute("metaversion"):
        archetypes = archetypes[:1]
    found = []
    for archetype in archetypes:
        for element in archetype.getElementsByTagName("param"):
            number = int(element.getAttribute("id"))
            if number not in OWN:
                continue
            if element.hasAttribute("value"):
                found.append((number, float(element.getAttribute("value"))))
            elif element.hasAttribute("u8"):
                found.append((number, decoded(number, int(element.getAttribute("u8")))))
            else:
                found.append((number, math.nan))
    return found
