"""UNIGINE Skeleton: names, capabilities, options, and recognition by the magic number."""

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import IMPORT_CHOICES, Options, shared
from ...core.recognition import Match, NearMiss
from ..options import TURN, sniff_version


class ReadOptions(Options):
    """The options for reading skeletons."""

    use_turn: bool = shared(TURN)


class WriteOptions(Options):
    """The options for writing skeletons."""

    use_import_choices: bool = shared(IMPORT_CHOICES)
    use_turn: bool = shared(TURN)


UNIGINE_SKELETON = FileFormat(
    name="unigine_skeleton",
    label="UNIGINE Skeleton",
    extensions=(".skeleton",),
    capabilities=Capabilities(meshes=False, skeletons=True),
    modules=modules_of(__package__),
    import_options=ReadOptions,
    export_options=WriteOptions,
)


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file has the signature of a known version; a file of another version is a NearMiss."""
    return sniff_version(head, ["sn10"], {b"sn": "skeleton"})
