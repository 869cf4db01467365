"""Options of all imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...io_formats.core import option_rules
from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.options import Choice, Option, resolve


def _imports_animation(values: Mapping[str, Any]) -> bool:
    of_objects = bool(values.get(NODE_ANIMATION.name))
    of_vertices = values.get(VERTEX_ANIMATION.name, "NONE") != "NONE"
    return of_objects or of_vertices or option_rules.imports_joint_animation(values)


def _writes_cache(values: Mapping[str, Any]) -> bool:
    return values.get(VERTEX_ANIMATION.name) == "CACHE"


AUTOMATIC_NORMALS_LIMIT = 200_000
"""Number of triangle corners up to which automatic normals are editable. On larger meshes setting these takes too long.
"""

NORMALS = Option(
    name="normals",
    default="AUTO",
    headless_default="EXACT",
    label="Normals",
    description="How the file's normals become Blender's custom normals",
    section="Geometry",
    choices=(
        Choice("AUTO", "Automatic", "Editable for objects up to 200,000 corners, exact for larger ones"),
        Choice(
            "EDITABLE", "Editable", "Follow editing, mirroring and deformation; differ from the file's by up to 0.015"
        ),
        Choice(
            "EXACT",
            "Exact",
            "Exactly the file's, and much faster on large meshes, but they stay put when the mesh is edited or "
            "deformed. Needs Blender 4.5; animated meshes get editable ones",
        ),
        Choice("NONE", "None", "Leave the file's normals out and let Blender shade smoothly"),
    ),
)
WELD = Option(
    name="use_weld",
    default=True,
    headless_default=False,
    label="Weld Vertices",
    description="Join vertices that the file splits along UV seams and sharp edges, so that the mesh can be edited "
    "as one; normals, UVs and colours stay on the corners",
    section="Geometry",
)
VERTEX_ANIMATION = Option(
    name="vertex_animation",
    default="SHAPE_KEYS",
    label="Vertices",
    description="What a vertex animation becomes",
    section="Animation",
    choices=(
        Choice("SHAPE_KEYS", "Shape Keys", "One shape key a frame, played by an action; can be edited"),
        Choice(
            "CACHE",
            "Mesh Cache",
            "A .pc2 file beside the imported one, played by a Mesh Cache modifier; for long animations",
        ),
        Choice("NONE", "None", "Leave vertex animations out"),
    ),
    note="Writes a .pc2 file beside each imported file",
    noted_when=_writes_cache,
)
SHAPE_KEYS = Option(
    name="use_shape_keys",
    default=True,
    label="Shape Keys",
    description="Make shape keys of the file's shapes (morph targets)",
    section="Geometry",
)
ARMATURE = Option(
    name=option_rules.ARMATURE,
    default="AUTO",
    label="Target Armature",
    description="Which armature the bones and animations of a file go to",
    section="Armature",
    choices=(
        Choice(
            "AUTO",
            "Matching",
            "A mesh gets an armature of its own, unless its file says how it is bound and one imported in the same "
            "run has all its bones at the same places; an animation goes onto one imported in the same run or the "
            "active one, where the names of its bones match, and else gets its own",
        ),
        Choice("ACTIVE", "Active", "Everything goes onto the active armature, by the names of its bones"),
        Choice("NEW", "New", "Each file gets an armature of its own"),
        Choice("NONE", "None", "Leave bones, weights and their animations out"),
    ),
)
BONE_DIRECTION = Option(
    name="bone_direction",
    default="FILE",
    label="Bone Direction",
    description="Where bones point; joints of a file have a place and axes, but no tail",
    section="Armature",
    choices=(
        Choice("FILE", "As in the File", "Along the Y axis of their joints"),
        Choice("CHILDREN", "To Their Children", "From joint to joint, for animators; export still writes the file's"),
    ),
    shown_when=option_rules.imports_bones,
)
JOINT_ANIMATION = Option(
    name=option_rules.JOINT_ANIMATION,
    default=True,
    label="Bones",
    description="Make actions of the animations of bones",
    section="Animation",
    shown_when=option_rules.imports_bones,
)
NODE_ANIMATION = Option(
    name="use_node_animation",
    default=True,
    label="Objects",
    description="Make actions of the animations of objects",
    section="Animation",
)
FRAME_START = Option(
    name="frame_start",
    default=1,
    label="First Frame",
    description="Frame of the scene at which animations begin",
    section="Animation",
    minimum=-1_000_000,
    maximum=1_000_000,
    shown_when=_imports_animation,
)
SET_FRAME_RATE = Option(
    name="use_file_frame_rate",
    default=False,
    label="Set Frame Rate",
    description="Set the frame rate and the frame range of the scene to those of the first animation. Otherwise keys "
    "are placed so that the animation keeps its speed at the scene's own rate, and the range covers it if the scene "
    "plays nothing else",
    section="Animation",
    shown_when=_imports_animation,
)
MATERIAL_LIBRARY = Option(
    name="material_library",
    default="",
    label="Library",
    description="A .blend file from which materials of the same names are linked; the rest are made new",
    section="Materials",
    is_path=True,
)
REUSE_MATERIALS = Option(
    name="use_existing_materials",
    default=True,
    label="Use Existing",
    description="Use a material of this .blend that already has the right name, or the same GUID in its project, "
    "instead of making another",
    section="Materials",
)
TEXTURES = Option(
    name="project_textures",
    default="PACK",
    label="Textures",
    description="Where the images of a project's textures are stored",
    section="Materials",
    choices=(
        Choice("PACK", "Packed", "Inside the .blend file, which then needs no other file"),
        Choice(
            "LINK",
            "Linked",
            "Image files of the project are used where they are. Textures that exist only in the engine's format are "
            "written to the folder 'textures' beside the .blend file, or packed if that is not saved yet",
        ),
    ),
)
OCCLUSION = Option(
    name="use_ambient_occlusion",
    default=False,
    label="Ambient Occlusion",
    description="Multiply the ambient occlusion of a project's materials onto their color. Otherwise its image stays "
    "unconnected, since Blender computes occlusion itself",
    section="Materials",
)
BACKFACE_CULLING = Option(
    name="use_backface_culling",
    default=True,
    label="Backface Culling",
    description="Hide the backs of faces in EEVEE and in the viewport where a project's material is one-sided, as the "
    "engine does",
    section="Materials",
)

IMPORT_OPTIONS: tuple[Option, ...] = (
    NORMALS,
    WELD,
    SHAPE_KEYS,
    ARMATURE,
    BONE_DIRECTION,
    JOINT_ANIMATION,
    NODE_ANIMATION,
    VERTEX_ANIMATION,
    FRAME_START,
    SET_FRAME_RATE,
    REUSE_MATERIALS,
    MATERIAL_LIBRARY,
    TEXTURES,
    OCCLUSION,
    BACKFACE_CULLING,
)


@dataclass(frozen=True)
class ImportOptions:
    """The values of :data:`IMPORT_OPTIONS`, under the names of the options."""

    normals: str
    use_weld: bool
    use_shape_keys: bool
    armature: str
    bone_direction: str
    use_joint_animation: bool
    use_node_animation: bool
    vertex_animation: str
    frame_start: int
    use_file_frame_rate: bool
    use_existing_materials: bool
    material_library: str
    project_textures: str
    use_ambient_occlusion: bool
    use_backface_culling: bool

    @classmethod
    def of(cls, values: Mapping[str, Any] | None = None) -> ImportOptions:
        """Return these values, and the defaults of the shell for options that are not among them.

        Raises
        ------
        MeshferryError
            An option that does not exist, or a value outside its choices or limits.
        """
        return cls(**resolve(IMPORT_OPTIONS, values))


_NEEDED: Mapping[str, Callable[[Capabilities], bool]] = {
    NORMALS.name: lambda can: can.meshes,
    WELD.name: lambda can: can.splits_vertices,
    SHAPE_KEYS.name: lambda can: can.shape_keys,
    ARMATURE.name: lambda can: can.skeletons,
    BONE_DIRECTION.name: lambda can: can.skeletons,
    JOINT_ANIMATION.name: lambda can: can.joint_clips,
    NODE_ANIMATION.name: lambda can: can.node_clips,
    VERTEX_ANIMATION.name: lambda can: can.vertex_clips,
    FRAME_START.name: lambda can: can.clips,
    SET_FRAME_RATE.name: lambda can: can.clips,
    REUSE_MATERIALS.name: lambda can: can.materials,
    MATERIAL_LIBRARY.name: lambda can: can.materials,
    TEXTURES.name: lambda can: can.project_textures,
    OCCLUSION.name: lambda can: can.project_textures,
    BACKFACE_CULLING.name: lambda can: can.project_textures,
}


def import_options_for(capabilities: Iterable[Capabilities]) -> tuple[Option, ...]:
    """Return the options that are applicable to files with these capabilities."""
    given = tuple(capabilities)
    return tuple(option for option in IMPORT_OPTIONS if any(_NEEDED[option.name](can) for can in given))
