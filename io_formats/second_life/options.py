"""Options, levels of detail and capabilities that the formats of Second Life models share.

Animations have separate options.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.capabilities import Capabilities
from ..core.options import (
    FILES_AS_LEVELS,
    PARTNER_FILES,
    Choice,
    Option,
    completes_models,
    imports_bones,
    imports_new_bones,
)


def _moves_joints(values: Mapping[str, Any]) -> bool:
    return completes_models(values) and values.get(JOINT_POSITIONS.name) != "NEVER"


def _require_character_folder(path: str) -> None:
    from .avatar.classic_body import folder_in

    folder_in(Path(path))


VIEWER_FOLDER = Option(
    name="viewer_character",
    default="",
    label="Viewer's Character Folder",
    description="Folder 'character' of an installed Second Life viewer, which has the meshes of the classic avatar",
    is_path=True,
    preference="second_life_character",
    probe=_require_character_folder,
)
SIZE = Option(
    name="assumed_size",
    default=1.0,
    label="Assumed Size",
    description="Size along each axis, in metres, of a mesh whose asset does not state it: assets store meshes scaled "
    "to a unit cube, and the size belongs to the object in world",
    section="Objects",
    minimum=0.001,
    maximum=256.0,
)
JOINTS = Option(
    name="skeleton_joints",
    default="AVATAR",
    label="Import Bones",
    description="Which bones the armature of a rigged mesh has",
    section="Armature",
    choices=(
        Choice("AVATAR", "Whole Avatar", "All bones of the avatar, and the collision volumes that move the mesh"),
        Choice("USED", "Used Ones", "Only bones that the file lists, and their parents up to the root"),
    ),
    shown_when=imports_new_bones,
)
REST = Option(
    name="skeleton_rest",
    default="FILE",
    label="Rest Pose",
    description="Rest positions of the bones of a rigged mesh",
    section="Armature",
    choices=(
        Choice("FILE", "As in the File", "The bind positions in the file, including its own joint positions"),
        Choice(
            "TABLE",
            "Standard Avatar",
            "Those of the standard avatar. Meshes of Collada files are moved along, to what the viewer shows; those of "
            "mesh assets keep their shape",
        ),
    ),
    shown_when=imports_bones,
)

IMPORT_OPTIONS: tuple[Option, ...] = (SIZE, JOINTS, REST)

APPLY_UNIT = Option(
    name="use_unit_and_axis",
    default=True,
    label="Apply Unit and Axis",
    description="Apply the unit and the up axis of the file to the vertices; if off, objects are scaled and rotated",
    section="Objects",
)

COLLADA_IMPORT_OPTIONS: tuple[Option, ...] = (APPLY_UNIT, JOINTS, REST, PARTNER_FILES, FILES_AS_LEVELS)

MANY_MATERIALS = Option(
    name="many_materials",
    default="SPLIT",
    label="Over 8 Materials",
    description="A mesh in Second Life has at most 8 faces",
    section="File",
    choices=(
        Choice("SPLIT", "Split", "Into several objects of 8 materials each, as the viewer does"),
        Choice("REFUSE", "Refuse", "Stop with an error that names the object"),
    ),
)
JOINT_POSITIONS = Option(
    name="joint_positions",
    default="AUTO",
    label="Joint Positions",
    description="Whether the file stores joint positions, which move the avatar's joints to the armature's",
    section="Armature",
    choices=(
        Choice(
            "AUTO",
            "Where They Differ",
            "Those that an imported file has; otherwise if a used joint is over 0.1 mm away from where the standard "
            "avatar or the imported file has it",
        ),
        Choice("NEVER", "Never", "The mesh is bound to the armature's joints, the avatar keeps its joint positions"),
        Choice("ALWAYS", "Always", "Store the positions of all used joints"),
    ),
    shown_when=completes_models,
)
LOCK_SCALE = Option(
    name="use_lock_scale",
    default=False,
    label="Lock Scale",
    description="Body shape sliders do not scale joints that the file moves",
    section="Armature",
    shown_when=_moves_joints,
)

SERVER = Option(
    name="server",
    default="SECOND_LIFE",
    label="Server",
    description="The server that takes the upload, since released servers of OpenSim misread some requests",
    section="File",
    choices=(
        Choice("SECOND_LIFE", "Second Life", "Equal objects share a mesh. The active object is the root"),
        Choice(
            "OPENSIM",
            "OpenSim",
            "A mesh for each object, and a white texture for faces without one. The root is the object marked as root "
            "of its linkset, otherwise the parent of all others, otherwise the active object",
        ),
    ),
)

EXPORT_OPTIONS: tuple[Option, ...] = (MANY_MATERIALS, JOINT_POSITIONS, LOCK_SCALE)

REQUEST_OPTIONS: tuple[Option, ...] = (SERVER, *EXPORT_OPTIONS)

TEXTURES = Option(
    name="use_textures",
    default=True,
    label="Copy Textures",
    description="Copy the textures of the materials beside the files; packed ones are saved",
    section="File",
)

KEEP_SIZE = Option(
    name="use_keep_level_size",
    default=True,
    label="Keep Size of Levels",
    description="Lower levels that are smaller than the highest get small triangles where they end too early, because "
    "the viewer would stretch them to the size of the highest",
    section="Levels of Detail",
)

UPLOAD_OPTIONS: tuple[Option, ...] = (*EXPORT_OPTIONS, TEXTURES, KEEP_SIZE)


def _knows_joint(name: str) -> bool:
    from .avatar import joints

    return joints.canonical(name) is not None


_CAPABILITIES = Capabilities(
    uv_layers=1,
    normals=True,
    splits_vertices=True,
    materials=True,
    skeletons=True,
    influences=4,
    levels_of_detail=True,
    surfaces=True,
    physics=True,
    lod_models=True,
    knows_joint=_knows_joint,
)


LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
"""Names of the levels of detail, the finest (``lod`` 0) first."""

LEVEL_LABELS = ("High", "Medium", "Low", "Lowest")
LEVEL_TEXTS = ("high level", "medium level", "low level", "lowest level")
"""Names of the levels in sentences, in the same order."""
