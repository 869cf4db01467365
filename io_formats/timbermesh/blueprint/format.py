"""Timberborn Blueprint: names, capabilities, options, and recognition by members of blueprints in JSON."""

import os
import re

from ...core.capabilities import Capabilities
from ...core.errors import MeshferryError
from ...core.format import FileFormat, modules_of
from ...core.messages import Text
from ...core.options import Options, option, shared
from ...core.recognition import Match, NearMiss
from ..model.format import GAME


def _require_folder(path: str) -> None:
    """Raise MeshferryError for a path that is not a folder."""
    if not os.path.isdir(path):
        raise MeshferryError("{}: The folder of the mod does not exist", path)


class ReadOptions(Options):
    """The options for reading blueprints."""

    mod: str = option(
        "Mod Folder",
        "Folder of the Timberborn mod for blueprints without a manifest.json above them",
        default="",
        section="Preferences",
        is_path=True,
        preference="timberborn_mod",
        probe=_require_folder,
    )
    game: str = shared(GAME)


_START = rb"(?s)(?:\xef\xbb\xbf)?+(?:\s|//[^\n]*+|/\*.*?\*/)*+\{"
_TOKEN = (
    rb"(?s)//[^\n]*+|/\*.*?\*/|(?P<mark>[{}\[\]])"
    rb"|(?P<key>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[\w$]++)(?P<colon>\s*+:)?+"
)
_MEMBER = rb"[\"']?(?:Children|BlueprintPath|Modification|[A-Za-z]\w*Spec)(?:#\w+)?[\"']?"


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the outermost object has members of a blueprint; other JSON objects are near misses."""
    start = re.match(_START, head)
    if start is None:
        return Match.NONE
    depth = 1
    has_members = False
    for token in re.finditer(_TOKEN, head[start.end() :]):
        if token["mark"]:
            depth += 1 if token["mark"] in b"{[" else -1
        elif depth == 1 and token["colon"]:
            if re.fullmatch(_MEMBER, token["key"]):
                return Match.SIGNATURE
            has_members = True
        if depth == 0:
            break
    if b"\0" not in head and (has_members or (depth == 0 and size <= len(head))):
        return NearMiss(Text("This is JSON, but not a blueprint of Timberborn"), has_signature=True)
    return Match.NONE


TIMBERBORN_BLUEPRINT = FileFormat(
    name="timberborn_blueprint",
    label="Timberborn Blueprint",
    extensions=(".blueprint.json",),
    capabilities=Capabilities(
        uv_layers=3,
        color_layers=1,
        normals=True,
        materials=True,
        node_hierarchy=True,
        node_clips=True,
        vertex_clips=True,
        placement=True,
    ),
    modules=modules_of(__package__),
    is_written=False,
    is_linked=True,
    is_patched=True,
    is_built_by_linking=True,
    is_patched_whole=True,
    is_empty=lambda data: not any(name in data for name in (b"TimbermeshSpec", b"#nested", b"CollidersSpec")),
    import_options=ReadOptions,
)
