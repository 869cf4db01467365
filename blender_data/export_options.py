"""Options of all exports, and the request for an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..io_formats.core.capabilities import Capabilities
from ..io_formats.core.options import Choice, Options, completes_models, embeds_animation, option

if TYPE_CHECKING:  # the command line reads the options without Blender
    import bpy

    from .animation.action_ranges import FileClips
    from .exporting.object_selection import Source


def _exports_clips(values: Mapping[str, Any]) -> bool:
    return embeds_animation(values) and values.get("clips") != "NONE"


def _makes_levels(values: Mapping[str, Any]) -> bool:
    return completes_models(values) and values.get("missing_levels") == "MAKE"


_geometry_option = partial(option, section="Geometry", needs=lambda can: can.meshes)
_level_option = partial(option, section="Levels of Detail", needs=lambda can: can.lod_models)
_clip_option = partial(
    option, section="Animation", shown_when=_exports_clips, needs=lambda can: can.clips and not can.placement
)


def _ratio(default: float, label: str) -> Any:
    return _level_option(
        label,
        f"Triangles of a made {label.lower()} level, as a share of the highest",
        default=default,
        minimum=0.0,
        maximum=1.0,
        shown_when=_makes_levels,
    )


_ANALYZE = (
    "An upload set holds its triangles, which act as such in world. Analyze in the upload window makes other hulls of "
    "them, which may close doors and windows: set Num Hulls to at least the number of parts, and look at the result"
)


class ExportOptions(Options):
    """The options of all exports."""

    use_as_imported: bool = option(
        "Keep as Imported",
        "Write what came from a file as it came: nothing is filled in or made, numbers keep the ranges of "
        "the file, and what the checks find is reported without stopping the export",
        default=False,
        section="File",
        needs=lambda can: can.lod_models,
    )
    merging: str = option(
        "Nodes",
        "Which objects become nodes of their own",
        default="AUTO",
        section="Objects",
        choices=(
            Choice(
                "AUTO", "Automatic", "Every object a node for a collection that came from a file, merged for others"
            ),
            Choice(
                "MERGE",
                "Merge into # Objects",
                "Objects not named #… are merged into their nearest # ancestor, or into the root",
            ),
            Choice("KEEP", "Every Object a Node", "Each object becomes a node with its own transform"),
        ),
        needs=lambda can: can.node_hierarchy and not can.placement,
    )
    use_hidden: bool = option(
        "Hidden Objects",
        "Include objects that are hidden with the eye icon. Objects disabled in viewports or in excluded "
        "collections are never included, since Blender does not evaluate them",
        default=False,
        section="Objects",
    )
    use_instances: bool = option(
        "Instances",
        "Make instances (collection instances, Geometry Nodes) real; an instance of a skinned model has "
        "its bones and weights where the file holds some",
        default=True,
        section="Objects",
        needs=lambda can: can.meshes,
    )
    space: str = option(
        "Origin",
        "What is at the origin of the file",
        default="TURNED_AND_SCALED",
        section="Objects",
        choices=(
            Choice(
                "TURNED_AND_SCALED",
                "Around the Model",
                "The origin of the object; the mesh has the object's rotation and scale",
            ),
            Choice(
                "OWN", "As in Edit Mode", "The origin of the object; the mesh has no rotation or scale, as in edit mode"
            ),
            Choice("WORLD", "Scene", "The origin of the scene"),
        ),
        needs=lambda can: not can.node_hierarchy and not can.lod_models and can.knows_joint is None,
    )
    use_modifiers: bool = _geometry_option(
        "Apply Modifiers", "Export objects as they look, with modifiers and shape keys", default=True
    )
    use_shape_keys: bool = _geometry_option(
        "Shape Keys",
        "Export shape keys as shapes (morph targets); otherwise the mesh as they make it look",
        default=True,
        needs=lambda can: can.shape_keys,
    )
    tolerance: float = _geometry_option(
        "Tolerance",
        "Corners of a vertex whose normals differ by no more are stored once, if their UVs and colours are equal",
        default=5e-4,
        minimum=0.0,
        maximum=0.1,
    )
    missing_levels: str = _level_option(
        "Missing LODs",
        "What becomes of levels of detail for which there is no object",
        default="MAKE",
        choices=(
            Choice("MAKE", "Make", "Made of the next finer one with Blender's Decimate, at the ratios below"),
            Choice("COPY", "Repeat", "The next finer one stands in for them"),
        ),
        shown_when=completes_models,
    )
    medium_ratio: float = _ratio(0.4, "Medium")
    low_ratio: float = _ratio(0.15, "Low")
    lowest_ratio: float = _ratio(0.05, "Lowest")
    use_open_borders: bool = _level_option(
        "Keep Open Borders",
        "Leave the open edges of a mesh as they are where levels are made, so that necks and wrists do not "
        "tear where two meshes meet",
        default=True,
        shown_when=_makes_levels,
    )
    physics_shape: str = option(
        "Shape",
        "What others collide with, for objects that say nothing of their own",
        default="AUTO",
        section="Physics",
        choices=(
            Choice(
                "AUTO", "Automatic", "The physics object or hulls of the model if it has any, otherwise the convex hull"
            ),
            Choice(
                "HULL",
                "Convex Hull",
                "The one convex hull around the model that every mesh has; physics objects and hulls are left out",
            ),
            Choice("CUBE", "Hulls: Cube", f"A box around the model as hull. {_ANALYZE}"),
            Choice(
                "PARTS",
                "Hulls: Each Part",
                f"A convex hull around each loose part of the model or physics object. {_ANALYZE}",
            ),
            Choice(
                "MESH",
                "Mesh",
                "Triangles of the physics object, otherwise of the low or medium level if it is an object, otherwise "
                "of the model",
            ),
        ),
        shown_when=completes_models,
        needs=lambda can: can.lod_models,
    )
    use_pbr_materials: bool = option(
        "PBR Materials",
        "Write a .glb file for each material that a diffuse colour and texture cannot show",
        default=True,
        section="File",
        needs=lambda can: can.gltf_materials,
    )
    use_baked_materials: bool = option(
        "Bake Materials",
        "Render materials to pictures if files cannot hold their nodes",
        default=True,
        own_keyword="bake_materials",
        section="Materials",
        needs=lambda can: can.bakes_materials,
    )
    bake_size: int = option(
        "Size",
        "Width and height of baked pictures, a power of two",
        default=1024,
        minimum=64,
        maximum=2048,
        section="Materials",
        shown_when=lambda values: bool(values.get("use_baked_materials")),
        needs=lambda can: can.bakes_materials,
    )
    use_deform_bones_only: bool = option(
        "Deform Bones Only",
        "Leave out bones whose Deform is off, unless a bone below them in the hierarchy deforms",
        default=False,
        section="Armature",
        needs=lambda can: can.skeletons and not can.lod_models,
    )
    clips: str = _clip_option(
        "Clips",
        "What becomes an animation clip",
        default="ACTIVE",
        choices=(
            Choice(
                "ACTIVE",
                "As Played",
                "One clip: what plays now, over the range of the active actions (the scene's where none is active)",
            ),
            Choice("SCENE", "Scene Range", "One clip: what plays now, over the frame range of the scene"),
            Choice(
                "ACTIONS", "Every Action", "A clip for each action that belongs to an exported object or its armature"
            ),
            Choice("NLA", "NLA Tracks", "A clip for each name of NLA strips"),
            Choice("NONE", "None", "No animation"),
            Choice("POSE", "Static Pose", "One clip of a single frame: the pose shown in the current frame"),
        ),
        shown_when=embeds_animation,
    )
    clip_names: str = _clip_option(
        "Only Clips",
        "Names of the clips to export, separated by commas; * and ? stand for any letters. Empty: all",
        default="",
    )
    animated_bones: str = _clip_option(
        "Bones",
        "Which bones an animation stores",
        default="ANIMATED",
        choices=(
            Choice("ANIMATED", "Animated Ones", "Bones that have keys, or move by constraints or drivers"),
            Choice("ALL", "All", "Every bone"),
        ),
        needs=lambda can: can.joint_clips and not can.placement,
    )
    animation_kind: str = _clip_option(
        "Kind",
        "How movement is stored",
        default="AUTO",
        choices=(
            Choice("AUTO", "Automatic", "Node animation for nodes that move, vertex animation where a mesh deforms"),
            Choice("NODE", "Node Only", "Transforms of nodes; meshes keep their rest shape"),
            Choice("VERTEX", "Vertex Only", "Deforming meshes only; nodes keep their rest transform"),
        ),
        needs=lambda can: can.node_clips and can.vertex_clips,
    )
    loop: str = _clip_option(
        "Repeat Last Frame",
        "A looping clip is stored without its last pose where that repeats the first",
        default="AUTO",
        choices=(
            Choice("AUTO", "Leave Out if Cyclic", "Left out of actions marked as cyclic"),
            Choice("DROP", "Leave Out", "Left out of every clip whose last pose equals its first"),
            Choice("KEEP", "Keep", "Every frame of the range is stored"),
        ),
        needs=lambda can: can.clips and not can.keyed_clips and not can.placement,
    )
    frame_rate: float = _clip_option(
        "Frame Rate",
        "Frames a second in the file; 0: the rate that an imported action had, the scene's for others",
        default=0.0,
        minimum=0.0,
        maximum=1000.0,
        automatic_rate="ACTION",
    )

    @property
    def level_ratios(self) -> tuple[float, ...]:
        """Numbers of triangles of the medium, low and lowest level, relative to the finest."""
        return (self.medium_ratio, self.low_ratio, self.lowest_ratio)


EXPORT_OPTIONS = ExportOptions.table()
_BY_NAME = {one.name: one for one in EXPORT_OPTIONS}
KEEP_IMPORTED = _BY_NAME["use_as_imported"]
MERGING = _BY_NAME["merging"]
HIDDEN = _BY_NAME["use_hidden"]
PHYSICS_SHAPE = _BY_NAME["physics_shape"]
DEFORM_BONES = _BY_NAME["use_deform_bones_only"]
CLIPS = _BY_NAME["clips"]
CLIP_FILTER = _BY_NAME["clip_names"]
MOST_BAKES = 8
"""Largest number of sets of pictures that an export bakes without a question or warning."""


@dataclass(frozen=True)
class ExportRequest:
    """A part of the open .blend file that is to be read as one scene."""

    context: bpy.types.Context
    source: Source
    """A collection, the selection, some objects or the whole scene."""
    options: ExportOptions
    name: str
    """Name of the scene, and of its root if the source is not a collection."""
    capabilities: Capabilities
    """Capabilities of the target format. Data that the format cannot store is reported, and not read."""
    baking: str = "BAKE"
    """``BAKE``, ``STATE`` to report what an export would bake, or ``REFUSE`` to raise an error instead of baking."""
    file_clips: FileClips | None = None
    """If set, animations of other files are left out; animations made in Blender are kept."""
