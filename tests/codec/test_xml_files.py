"""XML files: document types refused in every encoding, sizes and depths bounded."""

from __future__ import annotations

import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.encodings import xml_files
from meshferry.io_formats.encodings.xml_files import parse_xml

BOMB = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>'


def test_elements_have_attributes_children_and_text() -> None:
    root = parse_xml('\ufeff<?xml version="1.0" encoding="utf-8"?><!-- x --><a b="&lt;ä"> t <c/></a>'.encode())
    assert (root.tag, root.get("b"), root.text, [child.tag for child in root]) == ("a", "<ä", " t ", ["c"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("text", [BOMB, "<!-- <a> --><!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>"])
def test_document_types_are_refused(text: str, encoding: str) -> None:
    with pytest.raises(FormatError, match="has a document type, which is refused"):
        parse_xml(text.encode(encoding))


@pytest.mark.parametrize(
    "data",
    [b"", b"<a>", b"<a></b>", b"<a/><b/>", b"<a>&c;</a>", b"\0<a/>", b'<?xml version="1.0" encoding="x-y"?><a/>'],
)
def test_broken_files_give_one_error(data: bytes) -> None:
    with pytest.raises(FormatError, match="The XML is not well-formed: "):
        parse_xml(data)


def test_depth_is_bounded() -> None:
    assert parse_xml(b"<a>" * 1000 + b"</a>" * 1000).tag == "a"
    for depth in (1001, 50_000):
        with pytest.raises(FormatError, match="nested more than 1,000 levels deep"):
            parse_xml(b"<a>" * depth + b"</a>" * depth)


@pytest.mark.parametrize("limit", ["SIZE_LIMIT", "MOST_TAGS"])
def test_sizes_are_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_files, limit, 2)
    with pytest.raises(FormatError, match="too large"):
        parse_xml(b"<a><b/></a>")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_files_are_parsed_in_pieces(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces end within tags, texts and characters."""
    monkeypatch.setattr(xml_files, "_PIECE", 3)
    root = xml_files.parse_xml('<a n="ä€𝄞">1 2 <b/>ö€𝄞 &amp; 3</a>'.encode(encoding))
    assert (root.get("n"), root.text, root[0].tail) == ("ä€𝄞", "1 2 ", "ö€𝄞 & 3")
