"""Options that the UNIGINE formats share, and recognition of files by the version that they start with."""

import os
import re
from collections.abc import Mapping, Sequence

from ..core.errors import MeshferryError
from ..core.messages import Text
from ..core.options import Option, imports_joint_animation
from ..core.recognition import Match, NearMiss


def _require_folder(path: str) -> None:
    """Raise MeshferryError for a path that is not a folder."""
    if not os.path.isdir(path):
        raise MeshferryError("{}: The folder of the project does not exist", path)


PROJECT_MATERIALS = Option(
    name="use_project_materials",
    default=True,
    label="Project Materials",
    description="Take materials and textures from the UNIGINE project that the file is in, if it is in one",
    section="Materials",
)
PROJECT_FOLDER = Option(
    name="project",
    default="",
    label="UNIGINE Project",
    description="Folder of the UNIGINE project for files outside of any project",
    section="Materials",
    is_path=True,
    preference="unigine_project",
    probe=_require_folder,
)


TURN = Option(
    name="use_turn",
    default=False,
    label="Turn to Front",
    description="Rotate everything by 180° about Z: what faces forward in UNIGINE (+Y) then faces Blender's front view "
    "(-Y). The export reverts the rotation",
    section="Objects",
    is_remembered=True,
)
ANIMATION_RATE = Option(
    name="assumed_frame_rate",
    default=0.0,
    label="Assumed Rate",
    description="Frame rate of animations whose files do not state it (an10, an11 and animations inside meshes), "
    "so that they keep their speed at the scene's rate. 0: one key on each frame of the scene",
    section="Animation",
    minimum=0.0,
    maximum=1000.0,
    shown_when=imports_joint_animation,
    automatic_rate="SCENE",
)


_VERSION = rb"(?s)..\d\d(?![0-9A-Za-z])"


def sniff_version(head: bytes, versions: Sequence[str], kinds: Mapping[bytes, str]) -> Match | NearMiss:
    """Return whether a file has the signature of a known version; a file of another version is a NearMiss.

    Parameters
    ----------
    versions:
        The known versions, such as ``ms13``.
    kinds:
        Kind of file for each pair of letters at the start of a version.
    """
    if head.startswith(tuple(version.encode("ascii") for version in versions)):
        return Match.SIGNATURE
    kind = kinds.get(head[:2])
    if kind is None or not re.match(_VERSION, head[:5] + b" "):
        return Match.NONE
    version = head[:4].decode("ascii")
    text = Text("This looks like a UNIGINE {} of version {}, which is not supported", Text(kind), version)
    if version > max((known for known in versions if known[:2] == version[:2]), default=version):
        text = Text("{}: it is newer than all known files. Please send us such a file, so that it can be", text)
    return NearMiss(text, has_signature=True)
