"""Timbermesh: names, capabilities, options, and recognition by the content."""

import zlib

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import Choice, Option, Options, option, shared
from ...core.recognition import Match, is_unity_asset
from . import container


def _probe_game(folder: str) -> None:
    from ..game_names import game_collections

    game_collections(folder)


GAME = Option(
    name="game",
    default="",
    label="Timberborn",
    description="Folder of the game, for the names of materials in Check and for its blueprints that others nest",
    section="Preferences",
    is_path=True,
    preference="timberborn_folder",
    probe=_probe_game,
)


class WriteOptions(Options):
    """The options for writing models."""

    compression: str = option(
        "Compression",
        "Compression level; the game loads all of them",
        default="BALANCED",
        section="File",
        choices=(
            Choice("FAST", "Fast", "Largest file"),
            Choice("BALANCED", "Balanced", "Smallest size for small models, fast for large ones"),
            Choice("SMALL", "Small", "Smallest size; slow for large models"),
        ),
    )
    use_strip_suffixes: bool = option(
        "Strip .001",
        "Remove Blender's number suffixes from material names; the game looks for the exact name",
        default=False,
        section="File",
    )
    use_blender_names: bool = option(
        "Blender Names",
        "Write material names such as Material and Wood.001 as they are, with a warning. "
        "Otherwise the export fails, because the game does not load such a model. "
        "Names that came so from the imported file are always written, with a warning",
        default=False,
        section="File",
    )
    game: str = shared(GAME)


TIMBERMESH = FileFormat(
    name="timbermesh",
    label="Timbermesh",
    extensions=(".timbermesh", ".meshy"),
    capabilities=Capabilities(
        uv_layers=3,
        color_layers=1,
        custom_layers=True,
        normals=True,
        splits_vertices=True,
        materials=True,
        node_hierarchy=True,
        node_clips=True,
        vertex_clips=True,
    ),
    modules=modules_of(__package__),
    export_options=WriteOptions,
)


def sniff(head: bytes, size: int) -> Match:
    """Return the evidence for a Timbermesh in any of its containers."""
    if _is_in_container(head):
        return Match.SIGNATURE
    return Match.PLAUSIBLE if _is_bare_message(head, size) else Match.NONE


def _is_in_container(head: bytes) -> bool:
    if container.has_zlib_header(head):
        return _starts_message(head, 2, -15)
    if head.startswith(container.GZIP_MAGIC):
        return _starts_message(head, 0, 31)
    return container.is_prefab(head) and not is_unity_asset(head)


def _starts_message(head: bytes, start: int, window: int) -> bool:
    try:
        content = zlib.decompressobj(window).decompress(memoryview(head)[start:], 64)
    except zlib.error:
        # A stream damaged from its first block on still has a zlib header, which no other format has; the reader
        # reports the damage.
        return window == -15 and head[:2] == container.HEADER
    return content[:1] in (b"", b"\x08", b"\x12", b"\x1a")


def _is_bare_message(head: bytes, size: int) -> bool:
    """Return whether a bare message starts here: a known first tag whose length fits into the file."""
    if len(head) < 2 or head[0] not in container.FIRST_TAGS:
        return False
    if head[0] == 0x08:
        return head[1] < 0x80 and (size == 2 or head[2:3] in (b"\x12", b"\x1a"))
    length = shift = 0
    for position, byte in enumerate(head[1:6], 2):
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            end = position + length
            return end == size or (end < size and (end >= len(head) or head[end] in container.FIRST_TAGS))
    return False
