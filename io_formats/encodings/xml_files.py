"""XML files read by the parser of the standard library, with document types refused and sizes bounded."""

from xml.etree.ElementTree import Element, ParseError, XMLParser
from xml.parsers import expat

from ..core.errors import FormatError

SIZE_LIMIT = 512 * 2**20
MOST_TAGS = 20_000_000
"""Limit of the number of ``<`` in a file, which bounds the memory of its elements."""
DEPTH_LIMIT = 1_000
_PIECE = 2**23
"""Bytes given to the parser at a time. It scans an unfinished tag again with each piece, so pieces are not small."""


class _ReachedRoot(Exception):
    """The prolog has been parsed."""


def parse_xml(data: bytes, *, encoding: str | None = None) -> Element:
    """Return the root element of an XML file.

    Parameters
    ----------
    encoding:
        Encoding of the file, whatever it declares; None for the declared one.

    Raises
    ------
    FormatError
        The file is not well-formed, is too large, is nested too deeply, or has a document type.
    """
    if len(data) > SIZE_LIMIT or data.count(b"<") > MOST_TAGS:
        raise FormatError("The XML file is too large")
    _check_prolog(data, encoding)
    try:
        root = _root(data, encoding)
    except (ParseError, LookupError, ValueError) as problem:
        raise FormatError("The XML is not well-formed: {}", problem) from None
    depth, level = 0, [root]
    while level and depth <= DEPTH_LIMIT:
        depth, level = depth + 1, [child for element in level for child in element]
    if depth > DEPTH_LIMIT:
        raise FormatError("The XML is nested more than {:,} levels deep", DEPTH_LIMIT)
    return root


def _root(data: bytes, encoding: str | None) -> Element:
    """Parse the elements in pieces: the parser copies what it gets, which would double the memory of a file."""
    parser = XMLParser(encoding=encoding)  # noqa: S314  # document types, and with them entities, are refused before
    view = memoryview(data)
    for start in range(0, len(data), _PIECE):
        parser.feed(view[start : start + _PIECE])
    root: Element = parser.close()
    return root


def _check_prolog(data: bytes, encoding: str | None) -> None:
    """Parse up to the root element; raise FormatError for a document type, in which entities would be declared."""

    def refuse_document_type(*_given: object) -> None:
        raise FormatError("The XML file has a document type, which is refused")

    def stop(*_given: object) -> None:
        raise _ReachedRoot

    parser = expat.ParserCreate(encoding)
    parser.StartDoctypeDeclHandler = refuse_document_type
    parser.StartElementHandler = stop
    try:
        parser.Parse(data, True)
    except _ReachedRoot:
        pass
    except (expat.ExpatError, LookupError, ValueError) as problem:
        if isinstance(problem, FormatError):
            raise
        raise FormatError("The XML is not well-formed: {}", problem) from None
