"""Byte positions of the nodes in a scene file (docs/formats/unigine_scenes.md, section 7)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from ...core.errors import FormatError

Span = tuple[int, int]
"""Start and end of a range of bytes."""

_TAG = re.compile(rb"<[^>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^>\"']*)*>")
_LEFT_OUT = {"properties", "joint"}
"""Elements that are left out of copies of a node."""


@dataclass(slots=True)
class NodeSpan:
    """Byte positions of a node's element, or of the element that contains the nodes without a parent."""

    identifier: str
    parent: str | None
    """Identifier of the parent; empty for a node without a parent; None for the element that contains such nodes."""
    start: int
    tag_end: int
    """End of the start tag."""
    is_empty: bool
    """Whether the element consists of a single tag, such as ``<node/>``."""
    close: int = 0
    """Start of the end tag."""
    end: int = 0
    transform: Span | None = None
    """Span of the whole element that holds the matrix."""
    surfaces: list[Span] = field(default_factory=list)
    """Spans of the start tags of the node's surfaces."""
    identified: list[Span] = field(default_factory=list)
    """Spans of the start tags of elements with an ``id`` inside the node, except nodes and their content."""
    inner: list[str] = field(default_factory=list)
    """Identifiers of nodes that are nested in other elements of this node, where the reader ignores them."""
    left_out: list[Span] = field(default_factory=list)
    """Spans of the elements that are left out of copies."""
    children: list[Span] = field(default_factory=list)
    """Spans of the child nodes."""

    @property
    def span(self) -> Span:
        """Span of the whole element."""
        return self.start, self.end


@dataclass
class SceneSpans:
    """Byte positions of all nodes of a file."""

    nodes: dict[str, NodeSpan] = field(default_factory=dict)
    """Nodes by identifier, in the order of the file."""
    container: NodeSpan | None = None
    """The element that contains the nodes without a parent; None if the root element itself is the only node."""
    identifiers: set[str] = field(default_factory=set)
    """Values of ``id`` of all elements, including those that are not nodes."""


def find_spans(data: bytes) -> SceneSpans:
    """Return the byte positions of all nodes of a file.

    Raises
    ------
    FormatError
        The file is not well-formed UTF-8, or the ids of its nodes are missing or not unique.
    """
    try:
        data.decode("utf-8")
        return _Finder(data).find()
    except (UnicodeDecodeError, expat.ExpatError, LookupError, ValueError) as problem:
        if isinstance(problem, FormatError):
            raise
        raise FormatError("The file cannot be changed, since it is not plain UTF-8: {}", problem) from None


class _Finder:
    """Collects spans while expat parses."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found = SceneSpans()
        self.path: list[NodeSpan | str | tuple[str, int]] = []
        """The open elements, each as a node or container, as the name of another element, or as name and start of an
        element that copies leave out."""
        self.open: list[NodeSpan] = []
        """The nodes whose elements are open."""
        self.parser = expat.ParserCreate()

    def find(self) -> SceneSpans:
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.Parse(self.data, True)
        return self.found

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        path, start = self.path, self.parser.CurrentByteIndex
        above = path[-1] if path else None
        entry: NodeSpan | str | tuple[str, int] = name
        is_inner = isinstance(above, NodeSpan)
        if name == "node" and (is_inner or not path or len(path) == 1):
            entry = self._node(start, attributes)
        elif self._is_container(name):
            entry = self.found.container = self._span("", None, start)
        elif self.open:
            node = self.open[-1]
            if name in _LEFT_OUT or (is_inner and name == "transform"):
                entry = (name, start)
            elif is_inner and name == "surface":
                node.surfaces.append((start, self._tag_end(start)))
            if "id" in attributes:
                node.identified.append((start, self._tag_end(start)))
                if name == "node":
                    node.inner.append(attributes.get("name") or attributes["id"])
        if "id" in attributes:
            self.found.identifiers.add(attributes["id"])
        path.append(entry)

    def _end(self, name: str) -> None:
        entry = self.path.pop()
        if isinstance(entry, str):
            return
        index = self.parser.CurrentByteIndex
        if isinstance(entry, NodeSpan):
            entry.close = index
            entry.end = entry.tag_end if entry.is_empty else self.data.index(b">", index) + 1
            if self.open and self.open[-1] is entry:
                self.open.pop()
                if self.open:
                    self.open[-1].children.append(entry.span)
            return
        start = entry[1]
        tag_end = self._tag_end(start)
        end = tag_end if self.data[tag_end - 2 : tag_end] == b"/>" else self.data.index(b">", index) + 1
        if name == "transform":
            if self.open[-1].transform is None:
                self.open[-1].transform = (start, end)
        else:
            self.open[-1].left_out.append((start, end))

    def _is_container(self, name: str) -> bool:
        """Return whether an element contains the nodes without a parent."""
        if not self.path:
            return name == "nodes"
        return len(self.path) == 1 and name in {"editor", "nodes"} and self.found.container is None

    def _node(self, start: int, attributes: dict[str, str]) -> NodeSpan:
        identifier = attributes.get("id", "")
        if not identifier or identifier in self.found.nodes:
            raise FormatError("The file cannot be changed: the ids of its nodes are missing or not unique")
        node = self._span(identifier, self.open[-1].identifier if self.open else "", start)
        self.found.nodes[identifier] = node
        self.open.append(node)
        return node

    def _span(self, identifier: str, parent: str | None, start: int) -> NodeSpan:
        end = self._tag_end(start)
        return NodeSpan(identifier, parent, start, end, self.data[end - 2 : end] == b"/>")

    def _tag_end(self, start: int) -> int:
        found = _TAG.match(self.data, start)
        if found is None:
            raise FormatError("The file cannot be changed: a tag at byte {:,} is not understood", start)
        return found.end()
