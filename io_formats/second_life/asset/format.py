"""Second Life Mesh: names, capabilities, options, and recognition by an LLSD map with the offsets of levels."""

import re

from ...core.format import FileFormat, modules_of
from ...core.recognition import Match, NearMiss
from ..options import _CAPABILITIES, LEVELS, ModelReadOptions, ModelWriteOptions

SECOND_LIFE_MESH = FileFormat(
    name="second_life_mesh",
    label="Second Life Mesh",
    extensions=(".llmesh", ".mesh"),
    capabilities=_CAPABILITIES,
    modules=modules_of(__package__),
    only_read=(".mesh",),
    import_options=ModelReadOptions,
    export_options=ModelWriteOptions,
)


PREFIX = b"<? LLSD/Binary ?>"
_PREFIX = re.escape(PREFIX) + rb"\s*"

_ALSO = ("physics_convex", "physics_mesh", "physics_shape", "skin", "404")


_VIEWER_CACHE = rb"(?s)\x01\0\0\0.{8}\{\0\0\0.k\0\0\0"
"""Start of a mesh in a viewer's cache: version, header size and flags (12 bytes), then the LLSD map of an asset."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file starts with the header of an asset, which must fit into the first 4,096 bytes.

    Other Second Life files are explained: other LLSD, meshes of a viewer's cache.
    """
    if _has_header(head):
        return Match.SIGNATURE
    # An LLSD map starts with its first key.
    if head.startswith(PREFIX) or (head[:3] == b"{\0\0" and head[5:8] == b"k\0\0"):
        return NearMiss("This is a Second Life file, but not a mesh", has_signature=True)
    if re.match(_VIEWER_CACHE, head):
        text = "This is a mesh in the cache of a Second Life viewer, where parts of it may be missing"
        return NearMiss(text, has_signature=True)
    return Match.NONE


def prefix_size(data: bytes) -> int:
    """Return the size of the old text in front of the LLSD data, including the white space after it, or 0."""
    found = re.match(_PREFIX, data)
    return found.end() if found else 0


def _has_header(head: bytes) -> bool:
    head = head[prefix_size(head) :]
    if not head.startswith(b"{\0\0"):
        return False
    from ..models.llsd import first_pairs  # slow to import

    pairs, cut = first_pairs(head)
    if any(_is_block(pairs.get(key)) for key in (*LEVELS, *_ALSO)) or "404" in pairs:
        return True
    return cut is not None and cut[0] in LEVELS and cut[1] == "{"


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and "offset" in value and "size" in value
