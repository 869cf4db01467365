"""Second Life Model Bundle: names, capabilities, options, and recognition by an LLSD map with meshes or instances."""

from ...core.format import FileFormat, modules_of
from ...core.recognition import Match
from ..options import _CAPABILITIES, ModelReadOptions, ModelWriteOptions

MESHES = "mesh"
INSTANCES = "instance"


def sniff(head: bytes, size: int) -> Match:
    """Return whether the file starts like a model bundle: the list of meshes or of instances is near its beginning."""
    if not head.startswith(b"{\0\0"):
        return Match.NONE
    from ..models.llsd import first_pairs  # slow to import

    pairs, cut = first_pairs(head)
    is_complete = any(isinstance(pairs.get(key), list) for key in (MESHES, INSTANCES))
    return Match.SIGNATURE if is_complete or cut in ((MESHES, "["), (INSTANCES, "[")) else Match.NONE


SECOND_LIFE_BUNDLE = FileFormat(
    name="second_life_bundle",
    label="Second Life Model Bundle",
    extensions=(".slm",),
    capabilities=_CAPABILITIES,
    modules=modules_of(__package__),
    is_set=True,
    import_options=ModelReadOptions,
    export_options=ModelWriteOptions,
)
