"""The elements of a Collada file: parsed, without namespaces, and found by their ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Report
from ...encodings.xml_files import parse_xml

_DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*\?>")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Tree:
    """The elements of a file, with their namespaces removed. Links refer to the first element with an id."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self._ids: dict[tuple[str, str], Element] = {}
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
            name = element.get("id")
            if name is not None:
                self._ids.setdefault((element.tag, name), element)
        for (tag, name), element in list(self._ids.items()):
            self._ids.setdefault((tag, name.replace(" ", "_")), element)

    def target(self, link: str | None, *tags: str) -> Element | None:
        """Return the element with one of these tags that a link (with or without ``#``) refers to, or None."""
        name = (link or "").strip().removeprefix("#")
        for spelling in (name, name.replace(" ", "_"), unquote(name)):
            for tag in tags:
                found = self._ids.get((tag, spelling))
                if found is not None:
                    return found
        return None


def parse_tree(data: bytes, report: Report) -> Tree:
    """Parse a file.

    Raises
    ------
    FormatError
        The file is empty, is not well-formed XML, has a document type, or its root element is not COLLADA.
    """
    if not data.strip():
        raise FormatError("The file is empty")
    try:
        root = parse_xml(data)
    except FormatError:
        decoded = _decoded(data)
        if decoded is None:
            raise
        text, encoding = decoded
        root = parse_xml(text)
        report.note("encoding-repaired", "The text cannot be decoded as stated; read as {}", encoding)
    tree = Tree(root)
    if root.tag != "COLLADA":
        raise UnsupportedFormatError("This is not a Collada file: its root element is '{}'", root.tag)
    return tree


def _decoded(data: bytes) -> tuple[bytes, str] | None:
    """Convert a file in another encoding to UTF-8, and remove its XML declaration.

    Return the bytes and the name of the original encoding, or None if the file is already UTF-8.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        encoding = "UTF-16" if data.startswith(_UTF_16) else "Windows-1252"
        return _DECLARATION.sub(b"", data.decode(encoding, "replace").encode()), encoding
    return None


def name_of(element: Element) -> str:
    """Return the name of an element, or else its id."""
    return element.get("name", "").strip() or element.get("id", "").strip()


def text_of(element: Element | None) -> str:
    """Return the text of an element, without blanks at its ends."""
    return ((element.text if element is not None else None) or "").strip()


def words_of(element: Element | None) -> list[str]:
    """Return the words in an element, which XML's four blanks separate; a no-break space is part of a word."""
    return re.findall(r"[^ \t\r\n]+", text_of(element))


def taken_text(element: Element | None) -> str:
    """Return the text of an element and remove it from the element.

    The text takes more memory than the numbers in it.
    """
    text, element_text = "", element.text if element is not None else None
    if element is not None and element_text:
        text, element.text = element_text, None
    return text


def inputs_of(element: Element) -> Iterator[tuple[str, Element]]:
    """Yield the inputs of an element with their semantics."""
    for given in element.findall("input"):
        yield given.get("semantic", ""), given
