"""The control file of an archive, and its regions (docs/formats/opensim_archives.md, section Container)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ...core.errors import UnsupportedFormatError
from .document import Group
from .xml_text import Allowance, integer, parse_member, text_of

REGIONS = "regions/"
_STEP = 256.0
"""Metres from a region to the next one."""
_LARGEST_SIZE = 8192
"""Metres of a side of the largest region that OpenSim accepts."""
_SUPPORTED = {"", "0", "1"}
_FOLDER = re.compile(REGIONS + r"(?:(\d{1,6})_(\d{1,6})_)?(.*)/", re.DOTALL)
"""Folder of a region among several; its column and row are counted from 1."""


@dataclass
class Control:
    """The content of the control file."""

    version: str = ""
    size: tuple[int, int] = (256, 256)
    """Size of the region, if there is only one."""
    regions: list[Group] = field(default_factory=list)
    """The regions without their content; empty if there is only one."""


def read_control(data: bytes, allowance: Allowance) -> Control:
    """Decode the control file ``archive.xml``.

    Raises
    ------
    FormatError
        It is not well-formed, or (``UnsupportedFormatError``) states another major version than 0 and 1.
    """
    root = parse_member(data, allowance)
    major = root.get("major_version", "").strip()
    version = f"{major}.{root.get('minor_version', '0').strip()}"[:20] if major else ""
    if major not in _SUPPORTED:
        raise UnsupportedFormatError("The archive is of version {}; newer ones than 0 and 1 are not read", version)
    control = Control(version, _size(root.find("region_info/size_in_meters")))
    for row, regions in enumerate(root.iterfind("regions/row")):
        for column, region in enumerate(regions.iterfind("region")):
            folder = text_of(region.find("dir"))
            if folder:
                size = _size(region.find("size_in_meters"))
                control.regions.append(_region(f"{REGIONS}{folder}/", column, row, size))
    return control


def unlisted_region(folder: str, control: Control) -> Group:
    """Return a region that the control file does not list; its folder states its place."""
    found = _FOLDER.fullmatch(folder)
    if found is None:
        return Group("", size=control.size)
    column, row = (max(int(text) - 1, 0) if text else 0 for text in found.groups()[:2])
    return _region(folder, column, row, control.size)


def _region(folder: str, column: int, row: int, size: tuple[int, int]) -> Group:
    found = _FOLDER.fullmatch(folder)
    name = found[3].replace("_", " ").strip() if found else ""
    return Group(name, origin=(column * _STEP, row * _STEP, 0.0), folder=folder, size=size)


def _size(element: Element | None) -> tuple[int, int]:
    """Return the lengths of a region from west to east and from south to north; 256 m if they are not valid."""
    width, _, depth = text_of(element).partition(",")
    size = integer(width, 0), integer(depth, 0)
    return size if all(0 < side <= _LARGEST_SIZE for side in size) else (256, 256)
