"""OpenSim Archive: names, capabilities, options, and recognition by the names of the first files in it."""

import re
import zlib
from collections.abc import Iterator
from functools import partial

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import Options, option
from ...core.recognition import Match, NearMiss

_option = partial(option, section="Regions")


class ReadOptions(Options):
    """The options for reading archives."""

    region: str = _option(
        "Only Region",
        "Name of the only region to import from an archive that holds several. Empty: all regions, each at its place",
        default="",
    )
    only_names: str = _option(
        "Only Objects",
        "Only objects whose name matches this pattern, such as 'barn*', in which * stands for any text and "
        "? for a character; case is ignored. Empty: all objects",
        default="",
    )
    use_ground: bool = _option(
        "Ground", "Make a mesh of the ground of a region, with the mixture of its textures", default=True
    )
    use_water: bool = _option("Water", "Make a plane at the height of the water of a region", default=True)
    use_region_lights: bool = _option(
        "Lights", "Make lights of the parts that shine; their brightness is approximate", default=True
    )


_GZIP = b"\x1f\x8b\x08"
_BLOCK = 512
_INFLATED = 2**16
"""Bytes to inflate of the first ones of a file."""
_NAME, _SIZE, _CHECKSUM, _KIND = slice(0, 100), slice(124, 136), slice(148, 156), slice(156, 157)
_MAGIC, _PREFIX = slice(257, 263), slice(345, 500)
_LONG_NAME, _EXTENDED, _COMMON, _FOLDER = b"L", b"x", b"g", b"5"
_PATH = rb"(?:^|\n)[0-9]+ path=([^\n]*)\n"
_ID = rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MEMBER = (
    rb"(?s)(?:\./)?(?:"
    rb"(?:regions/\d+_\d+_[^/]*/)?(?:objects/.*\.xml|settings/[^/]*\.xml|terrains/[^/]*\.r32|landdata/%b\.xml)"
    rb"|assets/%b_[a-z]+\.\w+|inventory/.*__%b(?:\.xml|/.*\.xml))" % (_ID, _ID, _ID)
)
"""OpenSim writes ``archive.xml`` first; archives that were repacked may begin with any file."""
_FOLDER_MEMBER = rb"(?:\./)?(?:assets|objects|inventory|regions|settings|landdata|terrains)/"
_CONTROL = rb"(?:\./)?archive\.xml"
_CONTROL_CONTENT = rb"<archive\b[^>]*\bmajor_version"


_OTHER = NearMiss(
    "This is an archive of OpenSim; convert the meshes and animations in it with 'meshferry batch'", has_signature=True
)
"""The result if the first file is only in a folder that archives of OpenSim have, such as an unnamed mesh."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the first file in a gzipped or plain tar file is one that archives of OpenSim have."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _INFLATED)
        except zlib.error:
            return Match.NONE
    for name, content in _files(head):
        if re.fullmatch(_CONTROL, name):
            return Match.SIGNATURE if re.search(_CONTROL_CONTENT, content) else _OTHER
        if re.fullmatch(_MEMBER, name):
            return Match.SIGNATURE
        return _OTHER if re.match(_FOLDER_MEMBER, name) else Match.NONE
    return Match.NONE


def _files(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names of files and the beginnings of their contents, without folders, as far as the headers are valid."""
    long_name = b""
    at = 0
    while (header := data[at : at + _BLOCK]) and (length := _content_length(header)) is not None:
        content = data[at + _BLOCK : at + _BLOCK + length]
        kind = header[_KIND]
        if kind == _LONG_NAME:
            long_name = content.rstrip(b"\0")
        elif kind == _EXTENDED:
            path = re.search(_PATH, content)
            long_name = path[1] if path else b""
        elif kind != _COMMON:
            folder = header[_PREFIX].rstrip(b"\0") if header[_MAGIC] == b"ustar\0" else b""
            name = long_name or (folder + b"/" if folder else b"") + header[_NAME].rstrip(b"\0")
            long_name = b""
            if kind != _FOLDER and not name.endswith(b"/"):
                yield name, content
        at += _BLOCK + -(-length // _BLOCK) * _BLOCK


def _content_length(header: bytes) -> int | None:
    """Return the length of the content of a member; None if its header is not valid."""
    checksum, size = (header[field].strip(b" \0") for field in (_CHECKSUM, _SIZE))
    if len(header) < _BLOCK or not (checksum.isdigit() and size.isdigit()):
        return None
    try:
        is_valid = sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ") == int(checksum, 8)
        return int(size, 8) if is_valid else None
    except ValueError:
        return None


OPENSIM_ARCHIVE = FileFormat(
    name="opensim_archive",
    label="OpenSim Archive",
    extensions=(".oar", ".iar"),
    capabilities=Capabilities(
        uv_layers=1,
        normals=True,
        splits_vertices=True,
        materials=True,
        project_textures=True,
        node_hierarchy=True,
        placement=True,
    ),
    modules=modules_of(__package__),
    reads_paths=True,
    is_written=False,
    import_options=ReadOptions,
)
