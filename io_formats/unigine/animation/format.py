"""UNIGINE Animation: names, capabilities, versions, options, and recognition by the magic number."""

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import IMPORT_CHOICES, Choice, Options, option, shared
from ...core.recognition import Match, NearMiss
from ..options import ANIMATION_RATE, TURN, sniff_version


class ReadOptions(Options):
    """The options for reading animations."""

    use_turn: bool = shared(TURN)
    assumed_frame_rate: float = shared(ANIMATION_RATE)


class WriteOptions(Options):
    """The options for writing animations."""

    animation_version: str = option(
        "Version",
        "Version of the file. Each SDK reads its own and older ones",
        default="AN11",
        section="File",
        choices=(
            Choice("AN11", "an11: SDK 2.19, 2.20", "Full precision; no frame rate"),
            Choice(
                "AN13", "an13: SDK 2.21", "With frame rate, root motion and a reference to a skeleton; no bind pose"
            ),
            Choice("AN10", "an10: SDK 2.0 to 2.18", "Rounded to 16 bits; no frame rate"),
        ),
    )
    skeleton: str = option(
        "Skeleton",
        "GUID or path of the .skeleton file that the animation refers to. Empty: the one that the armature came with, "
        "or else the only one beside the animation that has all bones",
        default="",
        section="File",
        shown_when=lambda values: values.get("animation_version") == "AN13",
    )
    use_import_choices: bool = shared(IMPORT_CHOICES)
    use_turn: bool = shared(TURN)


VERSIONS = ("an10", "an11", "an12", "an13")
WRITTEN_VERSIONS = ("an10", "an11", "an13")
SKELETON_VERSIONS = ("an12", "an13")
"""Versions that refer to a skeleton and store their frame rate, but no bind transforms."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file has the signature of a known version; a file of another version is a NearMiss."""
    return sniff_version(head, VERSIONS, {b"an": "animation"})


UNIGINE_ANIMATION = FileFormat(
    name="unigine_animation",
    label="UNIGINE Animation",
    extensions=(".anim",),
    capabilities=Capabilities(meshes=False, skeletons=True, joint_clips=True),
    modules=modules_of(__package__),
    import_options=ReadOptions,
    export_options=WriteOptions,
)
