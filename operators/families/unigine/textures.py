"""Find Missing Textures: complete materials of a project by the files of another folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender_data.compat import BLEND_RELATIVE_PATHS
from ....blender_data.importing.shading.materials import MaterialFinder
from ....blender_data.importing.shading.shaders import MeshLayers, layers_of
from ....blender_data.names import name_in_file
from ....blender_data.steps import Steps
from ....io_formats.core.messages import counted, listed
from ....io_formats.unigine.project_materials import PROJECT, Incomplete, complete_materials
from ....io_formats.unigine.shading import MISSING_TEXTURE, NAME_IN_PROJECT
from ...importing.session_projects import project_steps
from ...progress import LongWork
from ...reporting import Messages, conclude
from ...sidebar import Sidebar
from ...translations import CONTEXT, rpt_


class MATERIAL_OT_meshferry_find_textures(LongWork, bpy.types.Operator):
    """Complete the materials whose textures were missing at their import."""

    bl_idname = "material.meshferry_find_textures"
    bl_label = "Find Missing Textures"
    bl_description = (
        "Search another folder for the textures that imported materials lack. Materials whose textures are found get "
        "new nodes"
    )
    bl_options = {"UNDO"}

    directory: StringProperty(
        name="Folder",
        description="Another project, or any folder with image files or textures of the engine",
        maxlen=1024,
        subtype="DIR_PATH",
        options={"HIDDEN", "SKIP_SAVE"} | BLEND_RELATIVE_PATHS,
    )
    filter_folder: BoolProperty(default=True, options={"HIDDEN", "SKIP_SAVE"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a material with a missing texture."""
        del context
        if not incomplete_materials():
            cls.poll_message_set("No imported material lacks a texture")
            return False
        return True

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Let the user choose the folder."""
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Search the folder, then build the nodes of the materials that are more complete with it."""
        messages = Messages()
        parts: list[str] = []
        folder = bpy.path.abspath(self.directory)
        materials = incomplete_materials()
        with messages.outcome(folder, Path(folder).name or folder) as name:
            wanted = [_request(material) for material in materials]
            shown, warnings = yield from project_steps(
                "Searching for textures", lambda projects: complete_materials(wanted, Path(folder), projects)
            )
            before = sum(len(missing_textures(material)) for material in materials)
            finder = MaterialFinder(use_existing=False, library="", warn=warnings.append)
            completed = 0
            for material, made in zip(materials, shown, strict=True):
                if made is not None and len(made.missing) < len(missing_textures(material)):
                    finder.fill(material, made.material, _layers(material))
                    completed += 1
            finder.report_textures()
            left = [reference for material in materials for reference in missing_textures(material)]
            parts = [counted(before - len(left), "texture"), f"{counted(completed, 'material')} completed"]
            if left:
                warnings.append(f"{counted(len(left), 'texture')} still missing: {listed(left, 5)}")
            messages.warn(name, dict.fromkeys(warnings))
        return conclude(self, messages, parts, "Found")


class UNIGINE_PT_textures(Sidebar, bpy.types.Panel):
    """Panel that says how many textures are missing, shown only then."""

    bl_parent_id = "UNIGINE_PT_sidebar"
    bl_label = "Missing Textures"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a material with a missing texture."""
        del context
        return bool(incomplete_materials())

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the number of textures and the search."""
        count = sum(len(missing_textures(material)) for material in incomplete_materials())
        self.layout.label(
            text=rpt_(counted(count, "texture is missing", "textures are missing")), icon="ERROR", translate=False
        )
        draw_search(self.layout)


def draw_search(layout: Any) -> None:
    """Draw the button that searches another folder."""
    layout.operator(
        MATERIAL_OT_meshferry_find_textures.bl_idname, text="Find Missing Textures…", text_ctxt=CONTEXT, icon="VIEWZOOM"
    )


def incomplete_materials() -> list[bpy.types.Material]:
    """Return the local materials some of whose textures were missing."""
    return [material for material in bpy.data.materials if material.library is None and missing_textures(material)]


def missing_textures(material: bpy.types.Material) -> list[str]:
    """Return the references to the missing textures of a material."""
    stored: Iterable[Any] = material.meshferry.file_properties
    return [entry.value for entry in stored if entry.name.startswith(MISSING_TEXTURE)]


def _request(material: bpy.types.Material) -> Incomplete:
    stored = {entry.name: entry.value for entry in material.meshferry.file_properties}
    reference = material.meshferry.identity or stored.get(NAME_IN_PROJECT, "") or name_in_file(material)
    return Incomplete(material.name, reference, stored.get(PROJECT, ""))


def _layers(material: bpy.types.Material) -> MeshLayers:
    """Return the layers of the first mesh with a material."""
    users = (mesh for mesh in bpy.data.meshes if material.name in mesh.materials)
    mesh = next((mesh for mesh in users if mesh.materials[material.name] == material), None)
    return layers_of(mesh) if mesh is not None else MeshLayers()
