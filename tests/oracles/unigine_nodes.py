"""The nodes of a UNIGINE scene file, read by the standard library's XML parser alone."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

import numpy as np


@dataclass
class OracleNode:
    """A node as the file has it."""

    parent: str
    name: str
    enabled: bool
    local: np.ndarray
    """(4, 4) for column vectors."""
    materials: list[str]
    rest: str
    """All else of the element: its type, attributes and fields, without the nodes below it."""
    world: np.ndarray = field(default_factory=lambda: np.identity(4))


def read_nodes(data: bytes) -> dict[str, OracleNode]:
    """Return the nodes by ``id``, parents first."""
    root = ET.fromstring(data)
    found: dict[str, OracleNode] = {}
    container = root if root.tag == "nodes" else root.find("editor")
    waiting = [("", element) for element in reversed(container.findall("node"))]
    while waiting:
        parent, element = waiting.pop()
        node = found[element.get("id")] = _node(parent, element)
        node.world = (found[parent].world if parent else np.identity(4)) @ node.local
        waiting += [(element.get("id"), child) for child in reversed(element.findall("node"))]
    return found


def _node(parent: str, element: ET.Element) -> OracleNode:
    text = element.findtext("transform") or "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"
    attributes = {key: value for key, value in element.attrib.items() if key not in ("id", "name", "enabled")}
    fields = [ET.tostring(child) for child in element if child.tag not in ("node", "transform", "surface")]
    surfaces = [
        {key: value for key, value in child.attrib.items() if key != "material"} for child in element.findall("surface")
    ]
    return OracleNode(
        parent,
        element.get("name", ""),
        element.get("enabled", "1") != "0",
        np.array(text.split(), float).reshape(4, 4).T,
        [child.get("material", "") for child in element.findall("surface")],
        repr((attributes, surfaces, b"".join(fields).split())),
    )
