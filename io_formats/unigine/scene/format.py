"""UNIGINE Scene: names, capabilities, options, and recognition by the root element (docs/formats/unigine_scenes.md)."""

import re
from dataclasses import replace

from ...core.format import FileFormat, modules_of
from ...core.options import Choice, Options, option, shared
from ...core.recognition import Match, is_markup
from ..mesh import format as mesh_format
from ..options import PROJECT_FOLDER, PROJECT_MATERIALS


class ReadOptions(Options):
    """The options for reading scenes."""

    use_lights: bool = option(
        "Lights",
        "Make lights of the scene's lights; their brightness cannot be converted exactly",
        default=False,
        section="Objects",
    )
    use_cameras: bool = option(
        "Cameras", "Make cameras of the scene's players and cameras", default=False, section="Objects"
    )
    use_coarser_levels: bool = option(
        "Lower LODs of Scenes",
        "Also import the surfaces that are shown from a distance, as hidden objects in a collection for "
        "each level of detail",
        default=False,
        section="Objects",
    )
    use_source_files: bool = option(
        "Source Files",
        "Where the engine's own mesh is missing, take the mesh from the FBX file that it was made from, "
        "with Blender's importer",
        default=True,
        section="Objects",
    )
    use_project_materials: bool = shared(PROJECT_MATERIALS)
    project: str = shared(PROJECT_FOLDER)


class WriteOptions(Options):
    """The options for writing scenes."""

    sdk_version: str = option(
        "Version",
        "Version of the SDK that a new file is for, if it is not in a UNIGINE project, whose version it gets",
        default="2.19.0.3",
        section="File",
        choices=(
            Choice("2.22.0.0", "SDK 2.22", "As for SDK 2.21"),
            Choice("2.21.0.0", "SDK 2.21", "Meshes become ms15, or sk10 with bones or shape keys"),
            Choice("2.20.0.0", "SDK 2.20", "Meshes become ms14"),
            Choice("2.19.0.3", "SDK 2.19", "Meshes become ms13"),
            Choice("2.16.1.0", "SDK 2.15 to 2.18", "Meshes become ms12"),
            Choice("2.11.0.0", "SDK 2.11 to 2.13", "Meshes become ms11"),
        ),
    )
    characters: str = option(
        "Characters",
        "How SDK 2.21 and later play meshes with an armature",
        default="LEGACY",
        section="Armature",
        choices=(
            Choice("LEGACY", "Legacy, Playing", "Each mesh plays the active action of its armature by itself"),
            Choice(
                "POSE",
                "Skeleton Pose",
                "Experimental: a node that poses its meshes by an animation graph, which you make in the editor",
            ),
            Choice("UPGRADE", "2.20, to Be Upgraded", "Files of SDK 2.20, which the editor converts when it opens"),
        ),
    )
    use_collision: bool = option(
        "Collision", "Let new surfaces take part in collisions", default=False, section="Objects"
    )


UNIGINE_SCENE = FileFormat(
    name="unigine_scene",
    label="UNIGINE Scene",
    extensions=(".node", ".world"),
    capabilities=replace(mesh_format.CAPABILITIES, node_hierarchy=True, placement=True, bakes_materials=True),
    modules=modules_of(__package__),
    is_linked=True,
    is_patched=True,
    adds_models=True,
    only_read=(".world",),
    is_set=True,
    import_options=ReadOptions,
    export_options=WriteOptions,
    ambiguous=(".node", ".world"),
)


_ROOT = (
    rb"(?s)(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*\?>)?+(?:\s|<!--.*?-->)*+"
    rb"(?:<(?:nodes|world)\s+(?:[a-z_]+=\"[^\"]*\"\s+)*version=\"[\d.]+\"|<node\s[^>]*?type=\"[A-Z]\w+\""
    rb"|<!DOCTYPE\s+(?:nodes|node|world)\b)"
)
"""Matches the start of the root element. The quantifiers are possessive, since with others a file of blanks would take
quadratic time."""


def sniff(head: bytes, size: int) -> Match:
    """Return whether the root element belongs to a node or world file, and has a version or a node type."""
    return Match.SIGNATURE if is_markup(head) and re.match(_ROOT, head) else Match.NONE
