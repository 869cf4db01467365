"""Options of all imports, and the request for an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ...io_formats.core import options as core_options
from ...io_formats.core.options import Choice, Options, option

if TYPE_CHECKING:  # the command line reads the options without Blender
    import bpy

    from ...io_formats.core.scene import Scene
    from ...io_formats.disk.reach import Reach


def _imports_animation(values: Mapping[str, Any]) -> bool:
    of_objects = bool(values.get("use_node_animation"))
    of_vertices = values.get("vertex_animation", "NONE") != "NONE"
    return of_objects or of_vertices or core_options.imports_joint_animation(values)


_clip_option = partial(option, section="Animation", shown_when=_imports_animation, needs=lambda can: can.clips)
_material_option = partial(option, section="Materials", needs=lambda can: can.materials)
_project_option = partial(option, section="Materials", needs=lambda can: can.project_textures)

AUTOMATIC_NORMALS_LIMIT = 200_000
"""Number of triangle corners up to which automatic normals are editable; setting editable normals takes long on larger
meshes."""


class ImportOptions(Options):
    """The options of all imports."""

    normals: str = option(
        "Normals",
        "How the file's normals become Blender's custom normals",
        default="AUTO",
        headless_default="EXACT",
        section="Geometry",
        choices=(
            Choice("AUTO", "Automatic", "Editable for objects up to 200,000 corners, exact for larger ones"),
            Choice(
                "EDITABLE",
                "Editable",
                "Follow editing, mirroring and deformation; differ from the file's by up to 0.015",
            ),
            Choice(
                "EXACT",
                "Exact",
                "Exactly the file's, and much faster on large meshes, but they stay put when the mesh is edited or "
                "deformed; animated meshes get editable ones",
            ),
            Choice("NONE", "None", "Leave the file's normals out and let Blender shade smoothly"),
        ),
        needs=lambda can: can.meshes,
    )
    use_weld: bool = option(
        "Weld Vertices",
        "Join vertices that the file splits along UV seams and sharp edges, so that the mesh can be edited "
        "as one; normals, UVs and colours stay on the corners",
        default=True,
        headless_default=False,
        section="Geometry",
        needs=lambda can: can.splits_vertices,
    )
    use_shape_keys: bool = option(
        "Shape Keys",
        "Make shape keys of the file's shapes (morph targets)",
        default=True,
        section="Geometry",
        needs=lambda can: can.shape_keys,
    )
    armature: str = option(
        "Target Armature",
        "Which armature the bones and animations of a file go to",
        default="AUTO",
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
        needs=lambda can: can.skeletons,
    )
    bone_direction: str = option(
        "Bone Direction",
        "Where bones point; joints of a file have a place and axes, but no tail",
        default="FILE",
        section="Armature",
        choices=(
            Choice("FILE", "As in the File", "Along the Y axis of their joints"),
            Choice(
                "CHILDREN", "To Their Children", "From joint to joint, for animators; export still writes the file's"
            ),
        ),
        shown_when=core_options.imports_bones,
        needs=lambda can: can.skeletons,
    )
    use_joint_animation: bool = option(
        "Bones",
        "Make actions of the animations of bones",
        default=True,
        section="Animation",
        shown_when=core_options.imports_bones,
        needs=lambda can: can.joint_clips,
    )
    use_node_animation: bool = option(
        "Objects",
        "Make actions of the animations of objects",
        default=True,
        section="Animation",
        needs=lambda can: can.node_clips,
    )
    vertex_animation: str = option(
        "Vertices",
        "What a vertex animation becomes",
        default="SHAPE_KEYS",
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
        noted_when=lambda values: values.get("vertex_animation") == "CACHE",
        needs=lambda can: can.vertex_clips,
    )
    frame_start: int = _clip_option(
        "First Frame", "Frame of the scene at which animations begin", default=1, minimum=-1_000_000, maximum=1_000_000
    )
    use_file_frame_rate: bool = _clip_option(
        "Set Frame Rate",
        "Set the frame rate and the frame range of the scene to those of the first animation. Otherwise "
        "keys are placed so that the animation keeps its speed at the scene's own rate, and the range covers it if "
        "the scene plays nothing else",
        default=False,
    )
    use_existing_materials: bool = _material_option(
        "Use Existing",
        "Use a material of this .blend that already has the right name, or the same GUID in its project, "
        "instead of making another",
        default=True,
    )
    material_library: str = _material_option(
        "Library",
        "A .blend file from which materials of the same names are linked; the rest are made new",
        default="",
        is_path=True,
    )
    project_textures: str = _project_option(
        "Textures",
        "Where the images of a project's or an archive's textures are stored",
        default="PACK",
        choices=(
            Choice("PACK", "Packed", "Inside the .blend file, which then needs no other file"),
            Choice(
                "LINK",
                "Linked",
                "Image files of the project are used where they are. Textures that exist only in the engine's format "
                "or in an archive are written to the folder 'textures' beside the .blend file, or packed if that is "
                "not saved yet",
            ),
        ),
    )
    use_ambient_occlusion: bool = option(
        "Ambient Occlusion",
        "Multiply the ambient occlusion of a project's materials onto their color. Otherwise its image "
        "stays unconnected, since Blender computes occlusion itself",
        default=False,
        section="Materials",
        needs=lambda can: can.ambient_occlusion,
    )
    use_backface_culling: bool = _project_option(
        "Backface Culling",
        "Hide the backs of faces with one-sided materials in EEVEE and in the viewport, as the target program does",
        default=True,
    )


IMPORT_OPTIONS = ImportOptions.table()
_BY_NAME = {one.name: one for one in IMPORT_OPTIONS}
NORMALS = _BY_NAME["normals"]
WELD = _BY_NAME["use_weld"]
VERTEX_ANIMATION = _BY_NAME["vertex_animation"]
BONE_DIRECTION = _BY_NAME["bone_direction"]
SET_FRAME_RATE = _BY_NAME["use_file_frame_rate"]
MATERIAL_LIBRARY = _BY_NAME["material_library"]


@dataclass(frozen=True)
class ImportRequest:
    """One scene to import into Blender."""

    context: bpy.types.Context
    scene: Scene
    options: ImportOptions
    source_path: str = ""
    """Path of the file, which is stored on the collection; mesh caches are written beside it."""
    armature: bpy.types.Object | None = None
    """Existing armature that is used for the scene's skeleton; joints are matched to bones by name. If None, each
    skeleton becomes a new armature. See :func:`.armature_matching.choose_for_scene`.
    """
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values of the format's options with which the scene was read, stored for a reload."""
    reach: Reach | None = None
    """The folders from which the file may bring in images. If None, all are brought in, and those from elsewhere named.
    """
