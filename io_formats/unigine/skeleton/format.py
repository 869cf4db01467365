"""UNIGINE Skeleton: names, capabilities, options, and recognition by the magic number."""

from __future__ import annotations

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import IMPORT_CHOICES, Option
from ...core.recognition import Match, NearMiss
from ..options import TURN, sniff_version

IMPORT_OPTIONS: tuple[Option, ...] = (TURN,)
EXPORT_OPTIONS: tuple[Option, ...] = (IMPORT_CHOICES, TURN)


UNIGINE_SKELETON = FileFormat(
    name="unigine_skeleton",
    label="UNIGINE Skeleton",
    extensions=(".skeleton",),
    capabilities=Capabilities(meshes=False, skeletons=True),
    modules=modules_of(__package__),
    import_options=IMPORT_OPTIONS,
    export_options=EXPORT_OPTIONS,
)


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file has the signature of a known version; a file of another version is a NearMiss."""
    return sniff_version(head, ["sn10"], {b"sn": "skeleton"})
