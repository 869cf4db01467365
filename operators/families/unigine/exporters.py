"""Export of UNIGINE meshes, animations and scenes: new files, or the changes of an imported scene into its own file."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy

from ....blender_data.export_options import CLIPS
from ....io_formats.api import EncodedFile
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Text, counted
from ....io_formats.core.options import EMBED_ANIMATION, Option
from ....io_formats.core.scene import Scene
from ....io_formats.projects import Projects
from ....io_formats.unigine.animation.format import UNIGINE_ANIMATION
from ....io_formats.unigine.mesh.format import SKINNED_EXTENSION, UNIGINE_MESH
from ....io_formats.unigine.scene.format import UNIGINE_SCENE
from ...files.clip_export import ExportClips
from ...files.export_base import ExportScene
from ...files.export_files import ExportObjects
from ...files.patched_export import PatchesImported
from ...option_properties import export_table, in_sections
from ...sidebar import draw_wrapped
from ...translations import rpt_

MESH_SECTION_ORDER = ("File", "Objects", "Geometry", "Armature", "Animation")
"""The file section comes first, since the version in it limits the other options."""


class ExportMesh(ExportObjects):
    """Export to UNIGINE meshes, one for each object or one of all."""

    bl_label = "Export UNIGINE"
    bl_description = "Export objects, with armature and shape keys, to meshes of the UNIGINE engine"
    # *Embed Animation* comes first in its section, since it controls whether the others are shown.
    option_table = in_sections(
        sorted(export_table(UNIGINE_MESH), key=lambda option: option.name != EMBED_ANIMATION), MESH_SECTION_ORDER
    )

    @property
    def filename_ext(self) -> str:
        """Extension of the files, which depends on their version."""
        return SKINNED_EXTENSION if self.mesh_version == "SK10" else ".mesh"


class ExportAnimation(ExportClips):
    """Export to UNIGINE animations, one for each clip."""

    bl_idname = "export_scene.unigine_anim"
    bl_label = "Export .anim"
    bl_description = "Export the actions or NLA strips of armatures to animations of the UNIGINE engine"
    option_table = in_sections(export_table(UNIGINE_ANIMATION), MESH_SECTION_ORDER)


SCENE_SECTION_ORDER = ("File", "Objects", "Materials", "Geometry", "Armature")


class ExportUnigineScene(PatchesImported, ExportScene):
    """Export to a UNIGINE node file with meshes, materials and textures, or of changes into an imported one."""

    bl_label = "Export .node"
    bl_description = (
        "Export objects to a node file of the UNIGINE engine, with their meshes, materials and textures as assets "
        "beside it. Of a collection that goes back to the file it was imported from, only the changes are written"
    )
    option_table = in_sections(export_table(UNIGINE_SCENE), SCENE_SECTION_ORDER)

    def shown_options(self, context: bpy.types.Context) -> tuple[Option, ...]:
        """Return the options of a new scene. There are no options if an imported scene is changed."""
        return () if self.patched(context) is not None else self.option_table

    def values(self) -> dict[str, Any]:
        """Return the values of the options. Animations are not sampled for SDKs whose scenes do not hold them."""
        from ....io_formats.unigine.mesh.characters import CHARACTER_SDK
        from ....io_formats.unigine.project.new_assets import TargetFolder, sdk_of

        values: dict[str, Any] = super().values()
        with contextlib.suppress(MeshferryError):  # the export itself reports it
            path = Path(bpy.path.abspath(self.filepath))
            target = TargetFolder(path, values["sdk_version"], Projects())
            values |= {CLIPS.name: "NONE"} if target.sdk < sdk_of(CHARACTER_SDK) else {}
        return values

    def draw_files(self, context: bpy.types.Context) -> None:
        """Draw whether the chosen file gets changes only, or where the files of a new scene go."""
        own = self.patched(context)
        if own is None:
            text = Text("Meshes, materials and textures go into the folder '{}' beside it", Path(self.filepath).stem)
        else:
            text = Text(
                "Only the changes go into this file, which the collection came from. Another name writes a new one"
            )
        draw_wrapped(self.layout.column(align=True), context, rpt_(text), "INFO")

    def usage(self, path: Path, encoded: EncodedFile) -> str:
        """Return how many files were written, and where the editor shows the scene."""
        from ....io_formats.unigine.project.project import project_folder

        number = counted(len(encoded.outputs), "file")
        project = project_folder(path.parent)
        if project is None:
            return Text("{} written; copy all of them into the data folder of a project", number)
        shown = path.absolute().relative_to(project.absolute()).as_posix()
        return Text("{} written; in the editor: Asset Browser, {}", number, shown)

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the numbers of nodes, meshes and materials."""
        scenes = list(written)
        placements = [scene.placement for scene in scenes if scene.placement is not None]
        materials = sum(len(scene.materials) for scene in scenes)
        return (
            counted(sum(len(part.nodes) for placement in placements for part in placement.parts), "node"),
            counted(sum(len(placement.models) for placement in placements), "mesh", "meshes"),
            counted(materials, "material") if materials else "",
        )
