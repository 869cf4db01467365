"""Second Life Shape: names, capabilities, options, and recognition by the root element or the first line."""

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import Options, option
from ...core.recognition import Match, NearMiss, has_root
from ..options import _knows_joint


class WriteOptions(Options):
    """The options for writing shapes."""

    use_as_others_see: bool = option(
        "As Others See It",
        "Round the values down to the 256 steps in which viewers send them to others, so that the shape is "
        "as all but its owner see it. Joints move by up to 3 mm",
        default=False,
        section="Shape",
    )


SECOND_LIFE_SHAPE = FileFormat(
    name="second_life_shape",
    label="Second Life Shape",
    extensions=(".xml", ".bodypart"),
    capabilities=Capabilities(meshes=False, skeletons=True, sliders=True, knows_joint=_knows_joint),
    modules=modules_of(__package__),
    export_options=WriteOptions,
    only_read=(".bodypart",),
    ambiguous=(".xml",),
)


SIGNATURE = "LLWearable version "
"""Start of a body part asset."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file is an appearance export or a wearable; the viewer's own tables are a NearMiss."""
    if head.removeprefix(b"\xef\xbb\xbf").startswith(SIGNATURE.encode()) or has_root(head, "linden_genepool"):
        return Match.SIGNATURE
    if has_root(head, "linden_avatar"):
        return NearMiss("This is the viewer's description of avatars, not a shape", has_signature=True)
    return Match.NONE
