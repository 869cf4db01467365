"""Files that describe assets: ``.meta`` of assets (XML), ``.meta`` of runtimes and ``guids.db`` (JSON) (section 2)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property

from ...core.errors import FormatError
from ...encodings.xml_files import parse_xml

GUID = re.compile(r"[0-9a-f]{40}\Z")
GUID_PREFIX = "guid://"
_ANY_GUID = re.compile(rb"[0-9a-f]{40}")
_OWN_GUIDS = (re.compile(rb'<runtime id="([0-9a-f]{40})"'), re.compile(rb"<guid>([0-9a-f]{40})<"))
"""Patterns of the elements in which the editor writes the GUIDs of an asset and its runtimes. Patterns that begin with
literal text are ten times as fast as a general pattern for GUIDs."""
_MATERIAL = re.compile(r",\s*([0-9a-f]{40})\s*(?:,|\Z)")
"""Matches the GUID after the name of a material, and the comma before the next name. Names may contain commas."""
_PRIMARY = "1"
_ITSELF = "0"


@dataclass(frozen=True)
class Runtime:
    """A file that the editor made from an asset."""

    guid: str
    name: str
    is_primary: bool


@dataclass(frozen=True)
class AssetMeta:
    """The ``.meta`` file of an asset."""

    guid: str
    """GUID of the asset: that of the runtime that is the asset itself, or else that in the element ``guid``."""
    stated_guid: str
    """GUID in the element ``guid``, which in some files of SDK 2.12 to 2.21 is the GUID of the runtime."""
    kind: str = ""
    runtimes: tuple[Runtime, ...] = ()
    is_green_inverted: bool = False
    """Whether the import inverted the green channel, which means that green points up in the source image."""
    materials: dict[str, str] = field(default_factory=dict)
    """GUIDs of the materials of a container's surfaces by surface name; the editor converts A to Z in these names to a
    to z."""
    version: str = ""
    """Version of the SDK that wrote the file."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Import settings by name."""

    @cached_property
    def surfaces(self) -> dict[str, tuple[str, ...]]:
        """Names of the surfaces of each runtime mesh of a container, in order, by the GUID of the mesh.

        Empty before SDK 2.15.
        """
        try:
            found = parse_json(self.parameters.get("lightmaps", "").encode())
        except FormatError:
            return {}
        stated = {mesh: surfaces for mesh, surfaces in found.items() if isinstance(surfaces, dict)}
        return {mesh.removeprefix(GUID_PREFIX): tuple(surfaces) for mesh, surfaces in stated.items()}

    @property
    def primary(self) -> Runtime | None:
        """The runtime that the path of the asset refers to, if there is one."""
        return next((runtime for runtime in self.runtimes if runtime.is_primary), None)


@dataclass(frozen=True)
class RuntimeMeta:
    """The ``.meta`` file of a runtime."""

    asset: str
    """GUID of the asset from which the runtime was made."""
    alias: str
    """Name of the runtime inside the asset."""


def mentioned_guids(data: bytes) -> list[str]:
    """Return the GUIDs of an asset and its runtimes from the bytes of its ``.meta`` file, without parsing it.

    Further GUIDs may be included.
    """
    runtimes, stated = (pattern.findall(data) for pattern in _OWN_GUIDS)
    found = runtimes + stated if runtimes and stated else _ANY_GUID.findall(data)
    return [guid.decode() for guid in found]


def parse_asset_meta(data: bytes) -> AssetMeta:
    """Parse the ``.meta`` file of an asset.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    root = parse_xml(data)
    if root.tag != "asset":
        raise FormatError("The root element is '{}', not 'asset'", root.tag)
    stated = (root.findtext("guid") or "").strip()
    listed = [runtime.attrib for runtime in root.iterfind("runtimes/runtime")]
    own = next((runtime.get("id", "") for runtime in listed if runtime.get("link") == _ITSELF), "")
    values = {found.get("name", ""): found.text or "" for found in root.iterfind("parameters/parameter")}
    return AssetMeta(
        guid=own or stated,
        stated_guid=stated,
        kind=(root.findtext("type") or "").strip(),
        runtimes=tuple(
            Runtime(runtime.get("id", ""), runtime.get("name", ""), runtime.get("link") == _PRIMARY)
            for runtime in listed
            if runtime.get("link") != _ITSELF
        ),
        is_green_inverted=values.get("invert_g", "").strip() == "1",
        materials=_materials(values.get("material_guids", "")),
        version=root.get("version", ""),
        parameters=values,
    )


def _materials(text: str) -> dict[str, str]:
    """Parse a list ``name,GUID,name,GUID`` to GUIDs by name."""
    found: dict[str, str] = {}
    start = 0
    for match in _MATERIAL.finditer(text):
        found[text[start : match.start()]] = match[1]
        start = match.end()
    return found


def parse_runtime_meta(data: bytes) -> RuntimeMeta:
    """Parse the ``.meta`` file of a runtime.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    found = parse_json(data)
    asset, alias = found.get("asset"), found.get("alias")
    return RuntimeMeta(asset if isinstance(asset, str) else "", alias if isinstance(alias, str) else "")


def parse_guid_table(data: bytes) -> dict[str, str]:
    """Parse ``guids.db``: paths of assets by GUID.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    return {guid: path for guid, path in parse_json(data).items() if isinstance(path, str)}


def parse_json(data: bytes) -> dict[str, object]:
    """Parse a JSON file that holds one object.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        raise FormatError("The JSON is not well-formed: {}", problem) from None
    if not isinstance(found, dict):
        raise FormatError("The JSON does not hold an object")
    return found
