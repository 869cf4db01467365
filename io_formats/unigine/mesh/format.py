"""UNIGINE Mesh: names, capabilities, versions, options, and recognition by the magic number."""

from collections.abc import Mapping
from typing import Any

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import IMPORT_CHOICES, MESH_FILES, Choice, Options, embeds_animation, option, shared
from ...core.recognition import Match, NearMiss
from ..options import ANIMATION_RATE, PROJECT_FOLDER, PROJECT_MATERIALS, TURN, sniff_version

CAPABILITIES = Capabilities(
    uv_layers=2,
    color_layers=1,
    normals=True,
    materials=True,
    project_textures=True,
    ambient_occlusion=True,
    shape_keys=True,
    skeletons=True,
    influences=4,
    joint_clips=True,
    levels_of_detail=True,
    surfaces=True,
)
"""Data that a mesh file can hold."""


def _has_no_place_for_animation(values: Mapping[str, Any]) -> bool:
    return embeds_animation(values) and values.get("mesh_version") not in {"MS10", "MS11", "MS12"}


class ReadOptions(Options):
    """The options for reading meshes."""

    use_surface_name: bool = option(
        "Name from Surface",
        "Name the object after its first surface instead of the file: projects keep their meshes in files "
        "named by numbers",
        default=False,
        section="Objects",
    )
    use_lod_objects: bool = option(
        "One Object per LOD",
        "Make an object of the surfaces of each level of detail (_lod_0, _lod_1 …), in a collection for "
        "each level, instead of one object with all of them. Exporting the finest one writes them back into one file",
        default=False,
        section="Objects",
    )
    use_turn: bool = shared(TURN)
    assumed_frame_rate: float = shared(ANIMATION_RATE)
    use_project_materials: bool = shared(PROJECT_MATERIALS)
    project: str = shared(PROJECT_FOLDER)


class WriteOptions(Options):
    """The options for writing meshes."""

    mesh_version: str = option(
        "Version",
        "Version of the file. Each SDK reads its own and older ones; whether 2.20 and 2.21 load ms13 "
        "without an upgrade of the project is not known",
        default="MS13",
        section="File",
        choices=(
            Choice("MS13", "ms13: SDK 2.19", "The most complete version without compression"),
            Choice("SK10", "sk10: SDK 2.21, characters", "Armature or shape keys, with a .skeleton file beside it"),
            Choice("MS15", "ms15: SDK 2.21, static", "With collision data; holds no armature, weights or shape keys"),
            Choice("MS14", "ms14: SDK 2.20", "With collision data"),
            Choice("MS12", "ms12: SDK 2.15 to 2.18", "Can hold animations"),
            Choice("MS11", "ms11: SDK 2.0 to 2.13", "Can hold animations; no lightmap settings of surfaces"),
            Choice("MS10", "ms10: before SDK 2.0", "As ms11, with coarser tangents"),
            Choice("MR02", "mr02: Frustum, 2003", "Triangles, normals and one UV map, nothing else"),
        ),
    )
    mesh_files: str = shared(MESH_FILES)
    use_import_choices: bool = shared(IMPORT_CHOICES)
    use_turn: bool = shared(TURN)
    use_embedded_animation: bool = option(
        "Animations Inside",
        "Write the animations into the mesh file; only ms10, ms11 and ms12 can hold them",
        default=False,
        section="Animation",
        note="Choose version ms10, ms11 or ms12",
        noted_when=_has_no_place_for_animation,
    )


UNIGINE_MESH = FileFormat(
    name="unigine_mesh",
    label="UNIGINE Mesh",
    extensions=(".mesh", ".mesh_skinned"),
    capabilities=CAPABILITIES,
    modules=modules_of(__package__),
    is_linked=True,
    is_set=True,
    import_options=ReadOptions,
    export_options=WriteOptions,
)


SOUP_VERSION = "mr02"
SHORT_TANGENT_VERSION = "ms10"
"""Version whose tangents store a sign byte instead of the component w."""
SINGLE_TARGET_VERSION = "ms15"
"""Version that stores only the base shape, without other morph targets."""
STREAM_VERSIONS = ("ms10", "ms11", "ms12", "ms13")
SEPARATE_SKELETON_VERSION = "sk10"
"""Version for skinned meshes of SDK 2.21 and later, whose skeleton is a file of its own."""
BLOCK_VERSIONS = ("ms14", "ms15", "sk10")
READ_VERSIONS = (SOUP_VERSION, *STREAM_VERSIONS, *BLOCK_VERSIONS)
WRITTEN_VERSIONS = READ_VERSIONS
ANIMATED_VERSIONS = ("ms10", "ms11", "ms12")
"""Versions that can hold animations."""
SKINNED_EXTENSION = ".mesh_skinned"
"""Extension of files of :data:`SEPARATE_SKELETON_VERSION`."""
LIGHTMAP_VERSIONS = ("ms12", "ms13", "ms14", "ms15")
SKINNED_VERSIONS = (*STREAM_VERSIONS, "ms14", "sk10")


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file has the signature of a known version; a file of another version is a NearMiss."""
    return sniff_version(head, READ_VERSIONS, {b"mr": "mesh", b"ms": "mesh", b"sk": "skinned mesh"})
