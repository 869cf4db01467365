"""Options of all exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.option_rules import KEEP_IMPORTED as KEEP_IMPORTED_NAME
from ...io_formats.core.option_rules import completes_models, embeds_animation
from ...io_formats.core.options import Choice, Option, resolve


def _exports_clips(values: Mapping[str, Any]) -> bool:
    return embeds_animation(values) and values.get(CLIPS.name) != "NONE"


def _makes_levels(values: Mapping[str, Any]) -> bool:
    return completes_models(values) and values.get(MISSING_LEVELS.name) == "MAKE"


MERGING = Option(
    name="merging",
    default="AUTO",
    label="Nodes",
    description="Which objects become nodes of their own",
    section="Objects",
    choices=(
        Choice("AUTO", "Automatic", "Every object a node for a collection that came from a file, merged for others"),
        Choice(
            "MERGE",
            "Merge into # Objects",
            "Objects not named #… are merged into their nearest # ancestor, or into the root",
        ),
        Choice("KEEP", "Every Object a Node", "Each object becomes a node with its own transform"),
    ),
)
HIDDEN = Option(
    name="use_hidden",
    default=False,
    label="Hidden Objects",
    description="Include objects that are hidden with the eye icon. Objects disabled in viewports or in excluded "
    "collections are never included, since Blender does not evaluate them",
    section="Objects",
)
INSTANCES = Option(
    name="use_instances",
    default=True,
    label="Instances",
    description="Make instances (collection instances, Geometry Nodes) real; an instance of a skinned model has its "
    "bones and weights where the file holds some",
    section="Objects",
)
SPACE = Option(
    name="space",
    default="TURNED_AND_SCALED",
    label="Origin",
    description="What is at the origin of the file",
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
)
DEFORM_BONES = Option(
    name="use_deform_bones_only",
    default=False,
    label="Deform Bones Only",
    description="Leave out bones whose Deform is off, unless a bone below them in the hierarchy deforms",
    section="Armature",
)
ANIMATED_BONES = Option(
    name="animated_bones",
    default="ANIMATED",
    label="Bones",
    description="Which bones an animation stores",
    section="Animation",
    choices=(
        Choice("ANIMATED", "Animated Ones", "Bones that have keys, or move by constraints or drivers"),
        Choice("ALL", "All", "Every bone"),
    ),
    shown_when=_exports_clips,
)
SHAPE_KEYS = Option(
    name="use_shape_keys",
    default=True,
    label="Shape Keys",
    description="Export shape keys as shapes (morph targets); otherwise the mesh as they make it look",
    section="Geometry",
)
CLIPS = Option(
    name="clips",
    default="ACTIVE",
    label="Clips",
    description="What becomes an animation clip",
    section="Animation",
    choices=(
        Choice(
            "ACTIVE",
            "As Played",
            "One clip: what plays now, over the range of the active actions (the scene's where none is active)",
        ),
        Choice("SCENE", "Scene Range", "One clip: what plays now, over the frame range of the scene"),
        Choice("ACTIONS", "Every Action", "A clip for each action that belongs to an exported object or its armature"),
        Choice("NLA", "NLA Tracks", "A clip for each name of NLA strips"),
        Choice("NONE", "None", "No animation"),
        Choice("POSE", "Static Pose", "One clip of a single frame: the pose shown in the current frame"),
    ),
    shown_when=embeds_animation,
)
CLIP_FILTER = Option(
    name="clip_names",
    default="",
    label="Only Clips",
    description="Names of the clips to export, separated by commas; * and ? stand for any letters. Empty: all",
    section="Animation",
    shown_when=_exports_clips,
)
ANIMATION_KIND = Option(
    name="animation_kind",
    default="AUTO",
    label="Kind",
    description="How movement is stored",
    section="Animation",
    choices=(
        Choice("AUTO", "Automatic", "Node animation for nodes that move, vertex animation where a mesh deforms"),
        Choice("NODE", "Node Only", "Transforms of nodes; meshes keep their rest shape"),
        Choice("VERTEX", "Vertex Only", "Deforming meshes only; nodes keep their rest transform"),
    ),
    shown_when=_exports_clips,
)
LOOP = Option(
    name="loop",
    default="AUTO",
    label="Repeat Last Frame",
    description="A looping clip is stored without its last pose where that repeats the first",
    section="Animation",
    choices=(
        Choice("AUTO", "Leave Out if Cyclic", "Left out of actions marked as cyclic"),
        Choice("DROP", "Leave Out", "Left out of every clip whose last pose equals its first"),
        Choice("KEEP", "Keep", "Every frame of the range is stored"),
    ),
    shown_when=_exports_clips,
)
FRAME_RATE = Option(
    name="frame_rate",
    default=0.0,
    label="Frame Rate",
    description="Frames a second in the file; 0: the rate that an imported action had, the scene's for others",
    section="Animation",
    minimum=0.0,
    maximum=1000.0,
    shown_when=_exports_clips,
    automatic_rate="ACTION",
)
MODIFIERS = Option(
    name="use_modifiers",
    default=True,
    label="Apply Modifiers",
    description="Export objects as they look, with modifiers and shape keys",
    section="Geometry",
)
TOLERANCE = Option(
    name="tolerance",
    default=5e-4,
    label="Tolerance",
    description="Corners of a vertex whose normals differ by no more are stored once, "
    "if their UVs and colours are equal",
    section="Geometry",
    minimum=0.0,
    maximum=0.1,
)

KEEP_IMPORTED = Option(
    name=KEEP_IMPORTED_NAME,
    default=False,
    label="Keep as Imported",
    description="Write what came from a file as it came: nothing is filled in or made, numbers keep the ranges of the "
    "file, and what the checks find is reported without stopping the export",
    section="File",
)
GLTF_MATERIALS = Option(
    name="use_pbr_materials",
    default=True,
    label="PBR Materials",
    description="Write a .glb file for each material that a diffuse colour and texture cannot show: a Principled BSDF "
    "with metal, emission, occlusion, or an image for roughness, normals or alpha",
    section="File",
)
MISSING_LEVELS = Option(
    name="missing_levels",
    default="MAKE",
    label="Missing LODs",
    description="What becomes of levels of detail for which there is no object",
    section="Levels of Detail",
    choices=(
        Choice("MAKE", "Make", "Made of the next finer one with Blender's Decimate, at the ratios below"),
        Choice("COPY", "Repeat", "The next finer one stands in for them"),
    ),
    shown_when=completes_models,
)
MEDIUM_RATIO = Option(
    name="medium_ratio",
    default=0.4,
    label="Medium",
    description="Triangles of a made medium level, as a share of the highest",
    section="Levels of Detail",
    minimum=0.0,
    maximum=1.0,
    shown_when=_makes_levels,
)
LOW_RATIO = Option(
    name="low_ratio",
    default=0.15,
    label="Low",
    description="Triangles of a made low level, as a share of the highest",
    section="Levels of Detail",
    minimum=0.0,
    maximum=1.0,
    shown_when=_makes_levels,
)
LOWEST_RATIO = Option(
    name="lowest_ratio",
    default=0.05,
    label="Lowest",
    description="Triangles of a made lowest level, as a share of the highest",
    section="Levels of Detail",
    minimum=0.0,
    maximum=1.0,
    shown_when=_makes_levels,
)
OPEN_BORDERS = Option(
    name="use_open_borders",
    default=True,
    label="Keep Open Borders",
    description="Leave the open edges of a mesh as they are where levels are made, so that necks and wrists do not "
    "tear where two meshes meet",
    section="Levels of Detail",
    shown_when=_makes_levels,
)
_ANALYZE = "An upload set holds its triangles, which Analyze in the upload window turns into hulls"

PHYSICS_SHAPE = Option(
    name="physics_shape",
    default="AUTO",
    label="Shape",
    description="What others collide with, for objects that say nothing of their own",
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
            "Triangles of the physics object, otherwise of the low or medium level if it is an object, otherwise of "
            "the model",
        ),
    ),
    shown_when=completes_models,
)

EXPORT_OPTIONS: tuple[Option, ...] = (
    KEEP_IMPORTED,
    MERGING,
    HIDDEN,
    INSTANCES,
    SPACE,
    MODIFIERS,
    SHAPE_KEYS,
    TOLERANCE,
    MISSING_LEVELS,
    MEDIUM_RATIO,
    LOW_RATIO,
    LOWEST_RATIO,
    OPEN_BORDERS,
    PHYSICS_SHAPE,
    GLTF_MATERIALS,
    DEFORM_BONES,
    CLIPS,
    CLIP_FILTER,
    ANIMATED_BONES,
    ANIMATION_KIND,
    LOOP,
    FRAME_RATE,
)


@dataclass(frozen=True)
class ExportOptions:
    """The values of :data:`EXPORT_OPTIONS`, under the names of the options."""

    use_as_imported: bool
    merging: str
    use_hidden: bool
    use_instances: bool
    space: str
    use_modifiers: bool
    use_shape_keys: bool
    tolerance: float
    missing_levels: str
    medium_ratio: float
    low_ratio: float
    lowest_ratio: float
    use_open_borders: bool
    physics_shape: str
    use_pbr_materials: bool
    use_deform_bones_only: bool
    clips: str
    clip_names: str
    animated_bones: str
    animation_kind: str
    loop: str
    frame_rate: float

    @classmethod
    def of(cls, values: Mapping[str, Any] | None = None) -> ExportOptions:
        """Return these values, and the defaults of the shell for options that are not among them.

        Raises
        ------
        MeshferryError
            An option that does not exist, or a value outside its choices or limits.
        """
        return cls(**resolve(EXPORT_OPTIONS, values))

    @property
    def level_ratios(self) -> tuple[float, ...]:
        """Triangle counts of the levels medium, low and lowest, relative to the finest level."""
        return (self.medium_ratio, self.low_ratio, self.lowest_ratio)


_NEEDED: Mapping[str, Callable[[Capabilities], bool]] = {
    KEEP_IMPORTED.name: lambda can: can.placed_models,
    MERGING.name: lambda can: can.node_hierarchy,
    HIDDEN.name: lambda _can: True,
    INSTANCES.name: lambda can: can.meshes,
    SPACE.name: lambda can: not can.node_hierarchy and not can.placed_models and can.knows_joint is None,
    MODIFIERS.name: lambda can: can.meshes,
    SHAPE_KEYS.name: lambda can: can.shape_keys,
    TOLERANCE.name: lambda can: can.meshes,
    MISSING_LEVELS.name: lambda can: can.placed_models,
    MEDIUM_RATIO.name: lambda can: can.placed_models,
    LOW_RATIO.name: lambda can: can.placed_models,
    LOWEST_RATIO.name: lambda can: can.placed_models,
    OPEN_BORDERS.name: lambda can: can.placed_models,
    PHYSICS_SHAPE.name: lambda can: can.placed_models,
    GLTF_MATERIALS.name: lambda can: can.gltf_materials,
    DEFORM_BONES.name: lambda can: can.skeletons and not can.placed_models,
    CLIPS.name: lambda can: can.clips,
    CLIP_FILTER.name: lambda can: can.clips,
    ANIMATED_BONES.name: lambda can: can.joint_clips,
    ANIMATION_KIND.name: lambda can: can.node_clips and can.vertex_clips,
    LOOP.name: lambda can: can.clips and not can.keyed_clips,
    FRAME_RATE.name: lambda can: can.clips,
}


def export_options_for(can: Capabilities) -> tuple[Option, ...]:
    """Return the options that apply to a format with these capabilities."""
    return tuple(option for option in EXPORT_OPTIONS if _NEEDED[option.name](can))
