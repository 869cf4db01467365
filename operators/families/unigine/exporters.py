"""Export of UNIGINE meshes and animations."""

from ....io_formats.unigine.animation.format import UNIGINE_ANIMATION
from ....io_formats.unigine.mesh.format import EMBED_ANIMATION, UNIGINE_MESH
from ...files.clip_export import ExportClips
from ...files.export_files import ExportObjects
from ...option_properties import export_table, in_sections

MESH_SECTION_ORDER = ("File", "Objects", "Geometry", "Armature", "Animation")
"""The file section comes first, since the version in it limits the other options."""


class ExportMesh(ExportObjects):
    """Export to UNIGINE meshes, one for each object or one of all."""

    bl_label = "Export UNIGINE"
    bl_description = "Export objects, with armature and shape keys, to meshes of the UNIGINE engine"
    # *Embed Animation* comes first in its section, since it controls whether the others are shown.
    option_table = in_sections(
        sorted(export_table(UNIGINE_MESH), key=lambda option: option is not EMBED_ANIMATION), MESH_SECTION_ORDER
    )


class ExportAnimation(ExportClips):
    """Export to UNIGINE animations, one for each clip."""

    bl_idname = "export_scene.unigine_anim"
    bl_label = "Export .anim"
    bl_description = "Export the actions or NLA strips of armatures to animations of the UNIGINE engine"
    option_table = in_sections(export_table(UNIGINE_ANIMATION), MESH_SECTION_ORDER)
