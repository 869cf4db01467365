"""bytes -> document (docs/formats/unigine_scenes.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Report, Text, counted, joined
from ...encodings.xml_files import parse_xml
from . import inline_geometry, numbers
from .document import MOST_NODES, SceneFile, SceneNode, SurfaceSetting

_OWN_FIELDS = {"node", "surface", "transform", "position", "vertex", "indices", "object_surface", "body", "properties"}
_OWN_ATTRIBUTES = {"type", "id", "name", "enabled"}
_LONGEST_VALUE = 1000


def read(data: bytes, *, inflated_limit: int | None = None) -> SceneFile:
    """Decode a node or world file.

    Raises
    ------
    FormatError
        The file is not well-formed XML, has a document type, or exceeds a limit.
    """
    if data.count(b"<node") > MOST_NODES:
        raise FormatError("The scene has more than {:,} nodes", MOST_NODES)
    root = parse_xml(data)
    if root.tag not in {"nodes", "node", "world"}:
        raise FormatError("The root element is '{}', not 'nodes' or 'world'", root.tag)
    found = SceneFile(root.tag, root.get("version", ""), digest=hashlib.sha256(data).hexdigest(), original=data)
    found.libraries = [library.text.strip() for library in root.findall("materials/library") if library.text]
    _Reader(found).read(root)
    return found


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files are equal, apart from blanks at their ends."""
    return one.strip() == other.strip()


class _Reader:
    """Collects the nodes of a file and counts damaged elements."""

    def __init__(self, document: SceneFile) -> None:
        self.document = document
        self.report = Report(document.warnings)
        self.bad_transforms: list[str] = []

    def read(self, root: Element) -> None:
        waiting = [(element, -1) for element in reversed(list(_top_nodes(root)))]
        while waiting:
            element, parent = waiting.pop()
            number = len(self.document.nodes)
            self.document.nodes.append(self._node(element, parent))
            waiting += [(child, number) for child in reversed(element.findall("node"))]
        if self.bad_transforms:
            first = joined([Text("'{}'", name) for name in self.bad_transforms[:5]])
            count = counted(len(self.bad_transforms), "node")
            template = "{} without a valid transform, kept at the parent's place: {}"
            self.report.change("invalid-transform", template, count, first)

    def _node(self, element: Element, parent: int) -> SceneNode:
        node = SceneNode(
            element.get("type", ""),
            element.get("name", ""),
            element.get("id", ""),
            parent,
            is_enabled=element.get("enabled", "1") != "0",
            surfaces=tuple(_read_surface(child) for child in element.findall("surface")),
            values=_values(element),
        )
        transform = element.find("transform")
        if transform is not None:
            matrix = numbers.parse_matrix(transform.text)
            if matrix is None:
                self.bad_transforms.append(node.name)
            else:
                node.matrix = matrix
        self._add_instances(node, element)
        try:
            node.geometry = inline_geometry.read_inline_mesh(element)
        except FormatError as problem:
            self.report.loss(
                "inner-mesh-left-out", "The mesh inside node '{}' is left out: {}", node.name, problem.message
            )
        return node

    def _add_instances(self, node: SceneNode, element: Element) -> None:
        places = element.findall("position")
        if node.kind != "ObjectMeshCluster" or not places:
            return
        matrices = [numbers.parse_matrix(place.text) for place in places]
        good = [matrix for matrix in matrices if matrix is not None]
        if len(good) < len(matrices):
            count = counted(len(matrices) - len(good), "place")
            template = "Cluster '{}': {} without 16 finite numbers left out"
            self.report.loss("invalid-transform", template, node.name, count)
        node.instances = np.stack(good) if good else np.empty((0, 4, 4))


def _top_nodes(root: Element) -> Iterator[Element]:
    """Yield the elements of the nodes without a parent."""
    if root.tag == "node":
        yield root
        return
    yield from root.findall("node")
    for container in ("editor", "nodes"):
        yield from root.findall(f"{container}/node")


def _read_surface(element: Element) -> SurfaceSetting:
    return SurfaceSetting(
        element.get("name", ""),
        (element.get("material") or "").strip(),
        element.get("enabled", "1") != "0",
        max(numbers.parse_number(element.get("min_visible_distance"), 0.0), 0.0),
    )


def _values(element: Element) -> dict[str, str]:
    """Return the attributes and the short texts of child elements for which ``SceneNode`` has no field."""
    values = {name: value for name, value in element.attrib.items() if name not in _OWN_ATTRIBUTES}
    for child in element:
        text = (child.text or "").strip()
        if child.tag not in _OWN_FIELDS and not len(child) and 0 < len(text) <= _LONGEST_VALUE:
            values.setdefault(child.tag, text)
    return values
