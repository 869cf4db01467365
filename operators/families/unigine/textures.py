"""Find Missing Textures: complete materials of a project by the files of another folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty

from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.importing.materials import MaterialFinder
from ....blender_data.importing.shaders import MeshLayers, layers_of
from ....blender_data.names import name_in_file
from ....blender_data.steps import Steps
from ....io_formats.core.messages import Report, Text, counted, listed
from ....io_formats.unigine.project.material_shading import MISSING_TEXTURE, NAME_IN_PROJECT
from ....io_formats.unigine.project.scene_materials import PROJECT, Incomplete, complete_materials
from ...files.session_projects import project_steps
from ...layouts import button, path_property, requires, sidebar_panel
from ...progress import LongWork
from ...reports import Messages, conclude
from ...translations import iface_


class MATERIAL_OT_meshferry_find_textures(LongWork, bpy.types.Operator):
    """Complete the materials whose textures were missing at their import."""

    bl_idname = "material.meshferry_find_textures"
    bl_label = "Find Missing Textures"
    bl_description = (
        "Search another folder for the textures that imported materials lack. Materials whose textures are found get "
        "new nodes"
    )
    bl_options = {"UNDO"}

    directory: path_property(
        "Folder",
        "Another project, or any folder with image files or textures of the engine",
        "DIR_PATH",
        {"HIDDEN", "SKIP_SAVE"},
    )
    filter_folder: BoolProperty(default=True, options={"HIDDEN", "SKIP_SAVE"})

    poll = requires((lambda _context: bool(incomplete_materials()), "No imported material lacks a texture"))

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Let the user choose the folder."""
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Search the folder, then build the nodes of the materials that are more complete with it."""
        messages = Messages()
        parts: list[Text] = []
        folder = bpy.path.abspath(self.directory)
        materials = incomplete_materials()
        with messages.outcome(folder, Path(folder).name or folder) as name:
            wanted = [_request(material) for material in materials]
            shown, warnings = yield from project_steps(
                "Searching for textures", lambda projects: complete_materials(wanted, Path(folder), projects)
            )
            before = sum(len(missing_textures(material)) for material in materials)
            finder = MaterialFinder(ImportOptions.of({"use_existing_materials": False}), report=Report(warnings))
            completed = 0
            for material, made in zip(materials, shown, strict=True):
                if made is not None and len(made.missing) < len(missing_textures(material)):
                    finder.fill(material, made.material, _layers(material))
                    completed += 1
            finder.report_textures()
            left = [reference for material in materials for reference in missing_textures(material)]
            parts = [counted(before - len(left), "texture"), Text("{} completed", counted(completed, "material"))]
            if left:
                count = counted(len(left), "texture")
                Report(warnings).loss("textures-still-missing", "{} still missing: {}", count, listed(left, 5))
            messages.warn(name, warnings)
        return conclude(self, messages, parts, "Found")


@sidebar_panel("UNIGINE_PT_textures", "Missing Textures", lambda _context: bool(incomplete_materials()))
def textures_panel(layout: Any, _context: bpy.types.Context) -> None:
    """Draw the number of missing textures and the search."""
    count = sum(len(missing_textures(material)) for material in incomplete_materials())
    text = iface_(counted(count, "texture is missing", "textures are missing"))
    layout.label(text=text, icon="ERROR", translate=False)
    draw_search(layout)


def draw_search(layout: Any) -> None:
    """Draw the button that searches another folder."""
    button(layout, MATERIAL_OT_meshferry_find_textures, text="Find Missing Textures…", icon="VIEWZOOM")


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
