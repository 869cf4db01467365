"""Change nodes in the bytes of a scene file.

All other bytes stay unchanged (docs/formats/unigine_scenes.md, section 7).
"""

import re
from bisect import bisect_left, insort
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ...core.errors import ExportError, FormatError
from ...core.messages import Report, Text, listed
from ...core.placement import Matrix, NodeEdit, Patched
from ..values import SHORT_NUMBER, escaped, matrix_words, transform_element
from . import codec
from .codec import NodeIds
from .format import ReadOptions

Span = tuple[int, int]
"""Start and end of a range of bytes."""

_TAG = re.compile(rb"<[^>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^>\"']*)*>")
_WITHOUT_ID = "node without id"
"""Stands for a node without an id, or below one: it belongs to the content of the node above."""
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
    """Spans of the start tags of elements with an ``id`` inside the node, except child nodes and their content."""
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
    """Nodes by identifier, in the order of the file, without those that have none or are below such a node."""
    container: NodeSpan | None = None
    """The element that contains the nodes without a parent; None if the root element itself is the only node."""
    identifiers: set[str] = field(default_factory=set)
    """Values of ``id`` of all elements, including those that are not nodes."""


def find_spans(data: bytes) -> SceneSpans:
    """Return the byte positions of all nodes of a file.

    Raises
    ------
    FormatError
        The file is not well-formed UTF-8, or ids of its nodes are not unique.
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
        """Handle a start tag: remember where nodes, their surfaces and transforms, and ids are in the text."""
        path, start = self.path, self.parser.CurrentByteIndex
        above = path[-1] if path else None
        entry: NodeSpan | str | tuple[str, int] = name
        is_inner = isinstance(above, NodeSpan)
        identifier = attributes.get("id", "")
        is_node = name == "node" and (is_inner or len(path) < 2 or above == _WITHOUT_ID)
        if is_node and (not identifier or above == _WITHOUT_ID):
            entry = _WITHOUT_ID
        elif is_node:
            entry = self._node(start, identifier)
        elif self._is_container(name):
            entry = self.found.container = self._span("", None, start)
        if self.open and not isinstance(entry, NodeSpan):
            node = self.open[-1]
            if name in _LEFT_OUT or (is_inner and name == "transform"):
                entry = (name, start)
            elif is_inner and name == "surface":
                node.surfaces.append((start, self._tag_end(start)))
            if identifier:
                node.identified.append((start, self._tag_end(start)))
                if name == "node" and not is_node:
                    node.inner.append(attributes.get("name") or identifier)
        if identifier:
            self.found.identifiers.add(identifier)
        path.append(entry)

    def _end(self, name: str) -> None:
        """Handle an end tag: complete the byte range of what started with it."""
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

    def _node(self, start: int, identifier: str) -> NodeSpan:
        if identifier in self.found.nodes:
            raise FormatError("The file cannot be changed: the ids of its nodes are not unique")
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


_ATTRIBUTE = re.compile(rb"(\s+)([^\s=/>]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_DIGITS = re.compile(rb"[1-9][\d.]{10,}|0\.0*[1-9]\d{9,}")
"""Matches numbers of ten digits and more, which only projects of the double-precision build contain."""
_BETWEEN_TAGS = re.compile(rb">\s+(?=<)")
_MOST_NAMES = 5


def patch(data: bytes, edits: Sequence[NodeEdit], reserved: Collection[str] = ()) -> Patched:
    """Return the file with edits of its nodes, each of which has the id of its node as key.

    No added node gets an id of ``reserved``.

    Raises
    ------
    ExportError
        The file cannot store an edit, or the patched file would have changes besides the edits.
    FormatError
        The file cannot be changed.
    """
    if not edits:
        return Patched(data, {})
    patcher = _Patcher(data, find_spans(data), edits, reserved)
    patched = patcher.run()
    _verify(patcher, patched)
    return patched


def newline_of(data: bytes) -> bytes:
    """Return the end of most lines of a file."""
    return b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"


def refusal(path: Path, options: ReadOptions) -> Text | None:  # noqa: ARG001
    """Return why the file at a path cannot be changed. UNIGINE files can always be changed, so the result is None."""
    return None


class _Replacements:
    """Replacements of spans of the old bytes by new bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._texts: dict[Span, bytes] = {}
        self._order: list[Span] = []
        """Start and negated end of each span, sorted, so that a span comes before the spans inside it."""

    def add(self, span: Span, text: bytes) -> None:
        """Replace a span; an earlier replacement of the same span is dropped."""
        if span not in self._texts:
            insort(self._order, (span[0], -span[1]))
        self._texts[span] = text

    def get(self, span: Span) -> bytes:
        """Return the current bytes of a span; it must be replaced as a whole or not at all."""
        return self._texts.get(span, self.data[slice(*span)])

    def text(self, span: Span, without: Span | None = None) -> bytes:
        """Return the bytes of a span with all replacements inside it.

        With ``without``, the bytes of that inner span are left out.
        """
        pieces = []
        position, end = span
        for start, negative in self._order[bisect_left(self._order, (position, -end)) :]:
            if start >= end:
                break
            if start < position or -negative > end or (start, -negative) == without:
                continue
            pieces += [self.data[position:start], self._texts[start, -negative]]
            position = -negative
        return b"".join([*pieces, self.data[position:end]])


class _Patcher:
    """One patch, collected as replacements of spans of the old bytes."""

    def __init__(self, data: bytes, spans: SceneSpans, edits: Sequence[NodeEdit], reserved: Collection[str]) -> None:
        self.data = data
        self.spans = spans
        self.edits = {edit.key: edit for edit in edits}
        self.newline = newline_of(data)
        self.replaced = _Replacements(data)
        self.incoming: dict[str, list[bytes]] = {}
        """Elements to insert below each node, without the indentation of their first lines."""
        self.keys: dict[str, str] = {}
        self.removed_texts: dict[str, str] = {}
        self.removed = self._removed()
        transforms = b" ".join(data[slice(*node.transform)] for node in spans.nodes.values() if node.transform)
        self.number = "%.12g" if _DIGITS.search(transforms) else SHORT_NUMBER
        self._ids = NodeIds(spans.identifiers.union(reserved))

    def run(self) -> Patched:
        """Apply all edits and return the new bytes."""
        for edit in self.edits.values():
            if edit.content:
                if [*find_spans(edit.content.encode()).nodes] != [edit.key]:
                    raise ExportError("The removed node '{}' is damaged in the .blend file", edit.title)
                self.keys[edit.key] = edit.key
            elif edit.source:
                self.keys[edit.key] = self._ids.new(f"{edit.source} {edit.name}")
            elif edit.is_removed:
                self.removed_texts[edit.key] = self._text_without_children(self._node(edit.key))
                self.replaced.add(self._whole_lines(self._node(edit.key).span), b"")
            else:
                self._change_node(edit)
                if edit.parent is not None:
                    self.replaced.add(self._whole_lines(self._node(edit.key).span), b"")
        moved = self._by_depth(edit for edit in self.edits.values() if edit.parent is not None)
        self._fill_parents({edit.parent for edits in moved for edit in edits})
        for edits in moved:
            for edit in edits:
                self._insert(edit)
            self._fill_parents({""})
        self._fill_parents(set())
        result = self.replaced.text((0, len(self.data)))
        report = Report()
        self._report_references(result, report)
        return Patched(result, self.keys, report.messages, self.removed_texts)

    def _text_without_children(self, node: NodeSpan) -> str:
        """Return the text of a node without its child nodes and its indentation."""
        own = _Replacements(self.data)
        for span in node.children:
            own.add(self._whole_lines(span), b"")
        return _indented(own.text(node.span), self._indent(node.span) or b"", b"").decode()

    def _node(self, key: str) -> NodeSpan:
        found = self.spans.nodes.get(key)
        if found is None:
            raise ExportError("The file has no node with the id '{}'; reload it first", key)
        return found

    def _removed(self) -> set[str]:
        """Return the ids of all nodes to remove; all nodes below them must be removed or moved, too.

        Raises
        ------
        ExportError
            A node below a removed one is neither removed nor moved.
        """
        removed = {edit.key for edit in self.edits.values() if edit.is_removed}
        for key in removed:
            if self.spans.container is None and self._node(key).parent == "":
                raise ExportError("The file is the node '{}' alone, which cannot be removed", self.edits[key].title)
            if self._node(key).inner:
                template = "'{}' cannot be removed, since it holds nodes that were not imported: {}"
                raise ExportError(template, self.edits[key].title, listed(self._node(key).inner, _MOST_NAMES))
        for key, node in self.spans.nodes.items():
            edit = self.edits.get(key)
            is_moved = edit is not None and edit.parent is not None
            if node.parent in removed and key not in removed and not is_moved:
                raise ExportError("Node '{}' would be removed with its parent; reload the file first", key)
        return removed

    def _by_depth(self, edits: Iterable[NodeEdit]) -> list[list[NodeEdit]]:
        """Return the edits of moved and added nodes, grouped by the depth of their new location, the deepest first."""
        depths: dict[str, int] = {"": 0}
        levels: dict[int, list[NodeEdit]] = {}
        for wanted in edits:
            chain: dict[str, None] = {}
            key = wanted.key
            while key not in depths:
                if key in chain:
                    raise ExportError("Node '{}' would be below itself", wanted.title)
                chain[key] = None
                edit = self.edits.get(key)
                key = edit.parent if edit is not None and edit.parent is not None else self._node(key).parent or ""
            depths.update((below, depth) for depth, below in enumerate(reversed(chain), depths[key] + 1))
            levels.setdefault(depths[wanted.key], []).append(wanted)
        return [levels[depth] for depth in sorted(levels, reverse=True)]

    def _fill_parents(self, waiting: Container[str | None]) -> None:
        """Insert elements into parents that are not moved, except those in ``waiting``, which get further elements."""
        for key in [key for key in self.incoming if key not in waiting]:
            edit = self.edits.get(key)
            if edit is not None and edit.parent is not None:
                continue  # its elements are inserted together with the node itself
            node = self._node(key) if key else self.spans.container
            if node is None:
                raise ExportError("The file is a single node; no other can be put beside it")
            self.replaced.add(*self._with_content(node, self.incoming.pop(key), self.replaced))

    def _change_node(self, edit: NodeEdit) -> None:
        """Replace attributes and the transform of an existing node."""
        node = self._node(edit.key)
        tag = self.data[node.start : node.tag_end]
        changed = self._changed_tag(tag, edit)
        if changed != tag:
            self.replaced.add((node.start, node.tag_end), changed)
        self._change_content(self.replaced, node, edit)
        if edit.matrix is not None and node.transform is None:
            self.incoming.setdefault(edit.key, []).append(self._transform(None, edit.matrix))

    def _changed_tag(self, tag: bytes, edit: NodeEdit) -> bytes:
        if edit.name is not None:
            tag = _with_attribute(tag, b"name", escaped(edit.name))
        if edit.is_hidden is not None:
            tag = _with_attribute(tag, b"enabled", b"0" if edit.is_hidden else None, after=b"id")
        return tag

    def _change_content(self, replaced: _Replacements, node: NodeSpan, edit: NodeEdit) -> None:
        """Replace the transform and the materials of a node."""
        if edit.matrix is not None and node.transform is not None:
            replaced.add(node.transform, self._transform(node.transform, edit.matrix))
        for slot, material in edit.materials.items():
            if slot >= len(node.surfaces):
                raise ExportError("Node '{}' has no surface {}; reload the file first", edit.title, slot + 1)
            span = node.surfaces[slot]
            tag = self.data[slice(*span)]
            replaced.add(span, _with_attribute(tag, b"material", escaped(material), after=b"name"))

    def _transform(self, span: Span | None, matrix: Matrix) -> bytes:
        """Return the element of a matrix. Numbers that are unchanged keep their text."""
        element = self.data[slice(*span)] if span is not None else b""
        text = element.partition(b">")[2].rpartition(b"<")[0]
        old = text.decode().split()
        new = matrix_words(matrix, self.number)
        if codec.parse_matrix(text.decode()) is not None:
            values = matrix.T.reshape(-1).tolist()
            triples = zip(old, new, values, strict=True)
            new = [word if float(word) == value else written for word, written, value in triples]
        return transform_element(new)

    def _insert(self, edit: NodeEdit) -> None:
        """Add a moved or added node, including the nodes below it, to the elements to insert into its parent."""
        content = self.incoming.pop(edit.key, [])
        indent: bytes | None = b""
        if edit.content:
            text = edit.content.encode()
        else:
            node = self._node(edit.source or edit.key)
            indent = self._indent(node.span)
            if edit.source:
                text = self._copied(node, edit, content)
            else:
                if content:
                    self.replaced.add(*self._with_content(node, content, self.replaced))
                text = self.replaced.text(node.span, without=self._whole_lines(node.span))
        parent = edit.parent or ""
        above = self.edits.get(parent)
        key = above.source if above is not None and above.source else parent
        level = self._child_indent(self._node(key) if key else self.spans.container)
        if level is not None and indent is not None:
            text = _indented(text, indent, level)
        self.incoming.setdefault(parent, []).append(text)

    def _copied(self, node: NodeSpan, edit: NodeEdit, content: Sequence[bytes]) -> bytes:
        """Return a copy of a node with new ids and ``content`` in it, without properties, joints and child nodes."""
        replaced = _Replacements(self.data)
        for span in (*node.left_out, *node.children):
            replaced.add(self._whole_lines(span), b"")
        self._change_content(replaced, node, edit)
        tag = _with_attribute(self.data[node.start : node.tag_end], b"id", self.keys[edit.key].encode())
        replaced.add((node.start, node.tag_end), self._changed_tag(tag, edit))
        for span in node.identified:
            inner = self._ids.new(f"{edit.name} {span[0]}").encode()
            replaced.add(span, _with_attribute(self.data[slice(*span)], b"id", inner))
        if edit.matrix is not None and node.transform is None:
            content = [self._transform(None, edit.matrix), *content]
        if content:
            replaced.add(*self._with_content(node, content, replaced))
        return replaced.text(node.span)

    def _with_content(self, node: NodeSpan, elements: Sequence[bytes], replaced: _Replacements) -> tuple[Span, bytes]:
        """Return a replacement that inserts elements at the end of a node."""
        level = self._child_indent(node)
        lines = b"".join(elements if level is None else [level + text + self.newline for text in elements])
        if not node.is_empty:
            place = node.close if level is None else self.data.rfind(b"\n", 0, node.close) + 1
            return (place, place), lines
        span = (node.start, node.tag_end)
        tag = replaced.get(span)
        if level is not None:
            lines = self.newline + lines + level[:-1]
        return span, tag[:-2].rstrip() + b">" + lines + b"</" + _element_name(tag) + b">"

    def _child_indent(self, node: NodeSpan | None) -> bytes | None:
        """Return the indentation of elements inside a node; None if its tags share lines with other text."""
        indent = self._indent(node.span) if node is not None else None
        if node is None or indent is None:
            return None
        last = self.data.rfind(b"\n", 0, node.close) + 1
        is_alone = node.is_empty or (last > node.start and not self.data[last : node.close].strip())
        return indent + b"\t" if is_alone else None

    def _indent(self, span: Span) -> bytes | None:
        """Return the indentation of an element; None if its lines contain anything else."""
        start = self.data.rfind(b"\n", 0, span[0]) + 1
        end = self.data.find(b"\n", span[1])
        indent, rest = self.data[start : span[0]], self.data[span[1] : end if end >= 0 else len(self.data)]
        return None if indent.strip(b" \t") or rest.strip() else indent

    def _whole_lines(self, span: Span) -> Span:
        """Return the span of the whole lines of an element, or only its own span if the lines contain more."""
        indent = self._indent(span)
        if indent is None:
            return span
        return span[0] - len(indent), self.data.find(b"\n", span[1]) + 1 or len(self.data)

    def _report_references(self, result: bytes, report: Report) -> None:
        """Report references in the rest of the file, by node id or GUID, to nodes that were removed."""
        if not self.removed:
            return
        words = set(re.findall(rb"(?<!id=\")(?<![\w.])(?:[1-9]\d{3,}|[0-9a-f]{40})(?![\w.])", result))
        named = []
        for key, node in self.spans.nodes.items():
            if key not in self.removed:
                continue
            own = b"".join(self.data[slice(*span)] for span in node.left_out)
            if words & {key.encode(), *re.findall(rb"guid=\"([0-9a-f]{40})\"", own)}:
                named.append(self.edits[key].title)
        template = "{} removed, though other nodes refer to them: {}"
        report.warning_of("removed-node-in-use", template, named, "node", most=_MOST_NAMES)


def _indented(text: bytes, indent: bytes, level: bytes) -> bytes:
    """Return the text of an element with another indentation of its lines."""
    return re.sub(rb"(?<=>)(\r?\n)" + re.escape(indent) + rb"(?=\s*<)", rb"\g<1>" + level, text)


def _with_attribute(tag: bytes, name: bytes, value: bytes | None, after: bytes = b"") -> bytes:
    """Return a start tag with a new value of an attribute, or without the attribute if the value is None.

    A new attribute is inserted after the attribute ``after``.
    """
    place = 1 + len(_element_name(tag))
    for found in _ATTRIBUTE.finditer(tag, place):
        if found.group(2) == name:
            quoted = b"" if value is None else found.group(1) + name + b'="' + value + b'"'
            return tag[: found.start()] + quoted + tag[found.end() :]
        if found.group(2) == after:
            place = found.end()
    return tag if value is None else tag[:place] + b" " + name + b'="' + value + b'"' + tag[place:]


def _element_name(tag: bytes) -> bytes:
    return tag[1:].split(None, 1)[0].rstrip(b"/>")


def _verify(patcher: _Patcher, patched: Patched) -> None:
    """Check that the result contains the edited nodes as intended, and that all other bytes are unchanged.

    Raises
    ------
    ExportError
        The result differs from that.
    """
    new = find_spans(patched.data)
    old, edits = patcher.spans, patcher.edits
    wanted = {*old.nodes} - patcher.removed | {*patched.keys.values()}
    if set(new.nodes) != wanted:
        raise ExportError("The changed file would not have the nodes that it should; nothing was written")
    for key, node in old.nodes.items():
        edit = edits.get(key)
        if edit is not None and (edit.is_removed or edit.parent is not None):
            continue
        if new.nodes[key].parent != node.parent:
            raise ExportError("Node '{}' would get another parent; nothing was written", key)
        if edit is None and _own_bytes(patcher.data, node) != _own_bytes(patched.data, new.nodes[key]):
            raise ExportError("Node '{}' would change; nothing was written", key)
    for one, other in zip(_outside(patcher.data, old), _outside(patched.data, new), strict=True):
        if one != other:
            raise ExportError("Bytes outside the nodes would change; nothing was written")


def _own_bytes(data: bytes, node: NodeSpan) -> bytes:
    """Return the bytes of a node without its child nodes and without white space between tags."""
    pieces = []
    position = node.start
    for start, end in node.children:
        pieces.append(data[position:start])
        position = end
    own = b"".join([*pieces, data[position : node.end]])
    own = _BETWEEN_TAGS.sub(b">", own)
    return own[:-2].rstrip() + b"></node>" if own.endswith(b"/>") and own.count(b"<") == 1 else own


def _outside(data: bytes, spans: SceneSpans) -> tuple[bytes, bytes]:
    """Return the bytes before and after the container of the nodes, both empty if there is no container."""
    container = spans.container
    return (data[: container.start], data[container.end :]) if container is not None else (b"", b"")
