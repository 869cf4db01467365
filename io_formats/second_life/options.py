"""Options, levels of detail and capabilities that the formats of Second Life models share.

Animations have separate options.
"""

from pathlib import Path

from ..core.capabilities import Capabilities
from ..core.options import Choice, Option, Options, completes_models, imports_bones, imports_new_bones, option, shared


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


class ModelReadOptions(Options):
    """The options for reading assets and bundles."""

    assumed_size: float = option(
        "Assumed Size",
        "Size along each axis, in metres, of a mesh whose asset does not state it: assets store meshes "
        "scaled to a unit cube, and the size belongs to the object in world",
        default=1.0,
        section="Objects",
        minimum=0.001,
        maximum=256.0,
    )
    skeleton_joints: str = shared(JOINTS)
    skeleton_rest: str = shared(REST)


class ModelWriteOptions(Options):
    """The options for writing models, which all formats of models share."""

    many_materials: str = option(
        "Over 8 Materials",
        "A mesh in Second Life has at most 8 faces",
        default="SPLIT",
        section="File",
        choices=(
            Choice("SPLIT", "Split", "Into several objects of 8 materials each, as the viewer does"),
            Choice("REFUSE", "Refuse", "Stop with an error that names the object"),
        ),
    )
    joint_positions: str = option(
        "Joint Positions",
        "Whether the file stores joint positions, which move the avatar's joints to the armature's",
        default="AUTO",
        section="Armature",
        choices=(
            Choice(
                "AUTO",
                "Where They Differ",
                "Those that an imported file has; otherwise if a used joint is over 0.1 mm away from where the "
                "standard avatar or the imported file has it",
            ),
            Choice(
                "NEVER", "Never", "The mesh is bound to the armature's joints, the avatar keeps its joint positions"
            ),
            Choice("ALWAYS", "Always", "Store the positions of all used joints"),
        ),
        shown_when=completes_models,
    )
    use_lock_scale: bool = option(
        "Lock Scale",
        "Body shape sliders do not scale joints that the file moves",
        default=False,
        section="Armature",
        shown_when=lambda values: completes_models(values) and values.get("joint_positions") != "NEVER",
    )


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
