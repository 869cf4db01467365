"""File > Export > UNIGINE Mesh and UNIGINE Animation, and the Outliner's entry for collections."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import bpy
from bpy.props import CollectionProperty, EnumProperty, IntProperty, StringProperty

from ..blender_data.exporting import exporter
from ..blender_data.exporting.export_options import CLIPS, HIDDEN
from ..blender_data.exporting.joint_sampling import actions_of_armatures, clips_by_armature
from ..blender_data.exporting.object_selection import armature_of, label_of, select_armatures
from ..blender_data.names import file_name as name_of
from ..io_formats.core.errors import ExportError, MeshferryError
from ..io_formats.core.scene import Scene
from ..io_formats.registry import UNIGINE_ANIMATION, UNIGINE_MESH
from ..io_formats.unigine.mesh.options import EMBED_ANIMATION
from . import clip_choice
from .export_base import OBJECT_SCOPES
from .export_files import ExportFiles, object_names
from .menus import MenuEntry, collection_under_pointer, registration
from .option_properties import export_table, section_body, to_export_options, with_options
from .preferences import drawn_for
from .reporting import counted
from .translations import CONTEXT, rpt_

MESH_OPTIONS = tuple(sorted(export_table(UNIGINE_MESH), key=lambda option: option is not EMBED_ANIMATION))
"""What stands first in its section decides whether the rest of that is shown."""
ANIMATION_OPTIONS = export_table(UNIGINE_ANIMATION)

SECTION_ORDER = ("File", "Objects", "Geometry", "Armature", "Animation")
"""The version decides what the rest can be, so it comes first."""

ANIMATION_SCOPES = [
    ("ACTIVE", "Active Armature", "The active armature, or the one that moves the active object"),
    *(scope[:3] for scope in OBJECT_SCOPES if scope[0] != "AUTO"),
]


@with_options(MESH_OPTIONS)
class EXPORT_SCENE_OT_unigine_mesh(ExportFiles, bpy.types.Operator):
    """Write UNIGINE meshes, one for each object or one of all."""

    bl_idname = "export_scene.unigine_mesh"
    bl_label = "Export UNIGINE"
    bl_description = "Export objects, with armature and shape keys, to meshes of the UNIGINE engine"

    format = UNIGINE_MESH
    option_table = MESH_OPTIONS
    section_order = SECTION_ORDER
    filename_ext = UNIGINE_MESH.extensions[0]
    panel_prefix = "UNIGINE_mesh"

    filter_glob: StringProperty(default=f"*{UNIGINE_MESH.extensions[0]}", options={"HIDDEN", "SKIP_SAVE"})
    scope: EnumProperty(name="Export", description="Which objects are exported", items=OBJECT_SCOPES, default="AUTO")

    def values(self) -> dict[str, Any]:
        """Return the values of the options; animations are only read where they go into the mesh."""
        return self.adjusted(super().values())

    @staticmethod
    def adjusted(values: dict[str, Any]) -> dict[str, Any]:
        """Return options with which no animation is read that goes nowhere."""
        return without_needless_clips(values)

    def names(self, context: Any, source: Any) -> list[str]:
        """Return the names of the objects that become files; coarser levels of detail go with the finest."""
        return object_names(self, context, source)

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the phrases of the summary."""
        written = tuple(written)
        bones = joint_count(written)
        clips = sum(len(scene.clips) for scene in written)
        return (
            counted(sum(len(scene.nodes) for scene in written), "{} object", "{} objects"),
            counted(sum(scene.triangle_count for scene in written), "{} triangle", "{} triangles"),
            counted(bones, "{} bone", "{} bones") if bones else "",
            counted(clips, "{} animation", "{} animations") if clips else "",
        )


@with_options(ANIMATION_OPTIONS)
class EXPORT_SCENE_OT_unigine_anim(ExportFiles, bpy.types.Operator):
    """Write UNIGINE animations, one for each clip."""

    bl_idname = "export_scene.unigine_anim"
    bl_label = "Export .anim"
    bl_description = "Export the actions or NLA strips of armatures to animations of the UNIGINE engine"

    format = UNIGINE_ANIMATION
    option_table = ANIMATION_OPTIONS
    section_order = SECTION_ORDER
    filename_ext = UNIGINE_ANIMATION.extensions[0]
    panel_prefix = "UNIGINE_anim"

    filter_glob: StringProperty(default=f"*{UNIGINE_ANIMATION.extensions[0]}", options={"HIDDEN", "SKIP_SAVE"})
    scope: EnumProperty(
        name="Export", description="Whose animation is exported", items=ANIMATION_SCOPES, default="ACTIVE"
    )
    listed_actions: CollectionProperty(type=bpy.types.OperatorFileListElement, options={"HIDDEN", "SKIP_SAVE"})
    active_listed_action: IntProperty(options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Ask for the file, with the actions listed."""
        result: set[str] = super().invoke(context, event)
        clip_choice.fill(self, self.actions(context))
        return result

    def check(self, context: Any) -> bool:
        """List the actions of what is exported now, and keep the file's name."""
        clip_choice.fill(self, self.actions(context))
        changed: bool = super().check(context)
        return changed

    def actions(self, context: Any) -> list[Any]:
        """Return the actions that *Every Action* may export, switched on or not."""
        try:
            return actions_of_armatures(self.armatures(context, self.shown_source(context)))
        except MeshferryError:
            return []

    def armatures(self, context: Any, source: Any) -> list[Any]:
        """Return the armatures of an ``exporter.Source``."""
        return list(select_armatures(context, source, use_hidden=bool(getattr(self, HIDDEN.name))).objects)

    def draw_files(self, context: Any) -> None:
        """Draw the names of the files, and which actions become one."""
        super().draw_files(context)
        if getattr(self, CLIPS.name) != "ACTIONS" or not self.listed_actions:
            return
        body = section_body(self.layout, f"{self.panel_prefix}_export_actions", "Actions")
        if body is not None:
            clip_choice.draw_actions_list(body, self)

    def source(self, context: Any, path: str) -> tuple[Any, str]:
        """Return whose animation to export and what to call it."""
        if self.scope != "ACTIVE" or self.collection:
            return super().source(context, path)
        armature = rig_of(context.object)
        if armature is None:
            raise ExportError(rpt_("The active object has no armature; choose one, or export the selected objects"))
        return exporter.Source("OBJECTS", objects=(armature,)), name_of(armature)

    def scope_text(self, context: Any, source: Any) -> str:
        """Return in words whose animations are exported."""
        clips = counted(len(self.names(context, source)), "{} animation", "{} animations")
        return rpt_("{} of {}").format(clips, label_of(source))

    def names(self, context: Any, source: Any) -> list[str]:
        """Return the names of the clips; those of one name on several armatures with the armatures'."""
        armatures = self.armatures(context, source)
        clips_of = clips_by_armature(context.scene, armatures, to_export_options(self.values()))
        found = [(clip.name, item) for item, clips in zip(armatures, clips_of, strict=True) for clip in clips]
        if not found:
            raise ExportError(rpt_("There is no animation to export; give the armature an action"))
        times = Counter(name for name, _ in found)
        return [name if times[name] == 1 else f"{name}_{name_of(item)}" for name, item in found]

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the phrases of the summary."""
        written = tuple(written)
        return (
            counted(sum(len(scene.clips) for scene in written), "{} animation", "{} animations"),
            counted(sum(clip.frame_count for scene in written for clip in scene.clips), "{} frame", "{} frames"),
            counted(joint_count(written), "{} bone", "{} bones"),
        )


def without_needless_clips(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a mesh's export such that no animation is read that goes nowhere."""
    return values if values[EMBED_ANIMATION.name] else {**values, CLIPS.name: "NONE"}


def joint_count(scenes: Iterable[Scene]) -> int:
    """Return the number of joints of all skeletons; that of several files counts once."""
    different = {id(skeleton): skeleton for scene in scenes for skeleton in scene.skeletons}
    return sum(len(skeleton.joints) for skeleton in different.values())


def rig_of(item: Any) -> Any | None:
    """Return an armature itself, or the one that deforms an object."""
    return item if item is None or item.type == "ARMATURE" else armature_of(item)


@drawn_for("unigine")
def draw_export_entries(self: Any, _context: Any) -> None:
    """Draw the entries in File > Export."""
    for operator, target in (
        (EXPORT_SCENE_OT_unigine_mesh, UNIGINE_MESH),
        (EXPORT_SCENE_OT_unigine_anim, UNIGINE_ANIMATION),
    ):
        self.layout.operator(operator.bl_idname, text=f"{target.label} ({target.extensions[0]})")


@drawn_for("unigine")
def draw_collection_entry(self: Any, context: Any) -> None:
    """Draw the entry in the context menu of collections."""
    collection = collection_under_pointer(context)
    if collection is not None:
        self.layout.operator_context = "INVOKE_DEFAULT"  # in this menu operators would run without asking
        entry = self.layout.operator(
            EXPORT_SCENE_OT_unigine_mesh.bl_idname, text="Export UNIGINE Mesh…", text_ctxt=CONTEXT
        )
        entry.collection = collection.name


CLASSES = (EXPORT_SCENE_OT_unigine_mesh, EXPORT_SCENE_OT_unigine_anim)
ENTRIES = (
    MenuEntry("TOPBAR_MT_file_export", draw_export_entries),
    MenuEntry("OUTLINER_MT_collection", draw_collection_entry),
)

register, unregister = registration(CLASSES, ENTRIES)
