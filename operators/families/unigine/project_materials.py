"""Materials and textures of a UNIGINE project for meshes that were imported without them, or with some missing."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.mesh_data import surfaces
from ....blender_data.names import name_in_file
from ....blender_data.steps import Steps, scaled
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Report, Text, counted, of_kind
from ....io_formats.projects import Projects
from ....io_formats.unigine.mesh.format import UNIGINE_MESH
from ....io_formats.unigine.options import PROJECT_FOLDER
from ...files.session_projects import project_steps
from ...findings.mesh_tools import assign_surface
from ...layouts import button, path_property, requires, sidebar_panel
from ...preferences import preferred_path
from ...progress import LongWork
from ...reports import Messages, conclude
from ...selection import leave_edit_mode
from ...sidebar import homes_of
from ...translations import iface_


class OBJECT_OT_meshferry_project_materials(LongWork, bpy.types.Operator):
    """Give imported meshes the materials of their project."""

    bl_idname = "object.meshferry_project_materials"
    bl_label = "Assign Project Materials"
    bl_description = (
        "Give the selected imported meshes the materials and textures of the UNIGINE project that their files are in. "
        "Exported surfaces keep their names"
    )
    bl_options = {"UNDO"}

    directory: StringProperty(
        name="UNIGINE Project",
        description="Folder of the project for files outside of any project; empty: that of the preferences",
        subtype="DIR_PATH",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    filter_folder: BoolProperty(
        name="Show Folders", description="List folders only", default=True, options={"HIDDEN", "SKIP_SAVE"}
    )

    poll = requires((lambda context: bool(_targets(context)), "No selected mesh was imported from a UNIGINE file"))

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Start without a file browser, unless a file is outside of any project."""
        from ....io_formats.unigine.project.project import project_folder

        known = self.directory or preferred_path(PROJECT_FOLDER)
        if not known and any(project_folder(Path(path).parent) is None for path in _targets(context)):
            context.window_manager.fileselect_add(self)
            return {"RUNNING_MODAL"}
        return self.execute(context)

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Find the materials of all files, then assign them."""
        leave_edit_mode(context)
        chosen = bpy.path.abspath(self.directory) if self.directory else preferred_path(PROJECT_FOLDER)
        targets = _targets(context)
        messages = Messages()
        found: dict[str, tuple[Any, dict[str, str]]] = {}
        for number, (path, items) in enumerate(targets.items()):
            with messages.attempt(path) as name:
                names = list(dict.fromkeys(surface.name for obj in items for surface in surfaces.written(obj)))
                finding = project_steps("Reading the project", functools.partial(_find, path, names, chosen))
                found[path] = yield from scaled(finding, number / len(targets), (number + 1) / len(targets), name)
        slots = 0
        for path, (materials, of_surface) in found.items():
            with messages.outcome(path) as name:
                warnings = materials.warnings()
                slots += _assign(targets[path], materials, of_surface, warnings)
                messages.warn(name, warnings)
        return conclude(self, messages, (counted(slots, "material slot"),), "Assigned")


def _find(path: str, names: list[str], chosen: str, projects: Projects) -> tuple[Any, dict[str, str]]:
    """Find the materials of a file's surfaces; return them, and the name of the material of each surface with one."""
    from ....io_formats.unigine.project.project import open_project
    from ....io_formats.unigine.project.scene_materials import ProjectMaterials

    project = open_project(Path(path), projects, chosen)
    if project is None:
        raise MeshferryError("The file is not in a UNIGINE project; choose the folder of its project")
    references = project.materials_of_mesh(Path(path), names)
    materials = ProjectMaterials(project)
    of_surface: dict[str, str] = {}
    for surface, reference in references.items():
        name = materials.name_of(reference, surface)  # which notes missing materials for the warnings
        if project.material(reference) is not None:
            of_surface[surface] = name
    return materials, of_surface


def _assign(items: Iterable[Any], materials: Any, of_surface: dict[str, str], warnings: list[Any]) -> int:
    """Set the materials of the objects' slots; return the number of slots."""
    from ....blender_data.importing.materials import MaterialFinder
    from ....blender_data.shading.shaders import layers_of

    finder = MaterialFinder(ImportOptions.of(), given=materials.materials, report=Report(warnings))
    count = 0
    try:
        for obj in items:
            layers = layers_of(obj.data)
            for slot, surface in zip(obj.material_slots, surfaces.written(obj), strict=False):
                name = of_surface.get(surface.name)
                if name is None:
                    continue
                slot.material = finder.find(name, layers)
                if surface.entry is not None:
                    assign_surface(surface.entry, surface.name, slot.material)
                count += 1
        finder.report_textures()
    except BaseException:
        bpy.data.batch_remove(finder.made)
        raise
    return count


def _targets(context: bpy.types.Context) -> dict[str, list[Any]]:
    """Return the selected, editable meshes that were imported from UNIGINE files, by the path of the file."""
    found: dict[str, list[Any]] = {}
    for obj in getattr(context, "selected_objects", ()):
        if obj.type != "MESH" or not obj.is_editable or not obj.data.is_editable:
            continue
        for home in homes_of(obj):
            if home.meshferry.file_format == UNIGINE_MESH.name and home.meshferry.source_path:
                found.setdefault(bpy.path.abspath(home.meshferry.source_path), []).append(obj)
                break
    return found


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
        from ....blender_data.importing.materials import MaterialFinder
        from ....io_formats.unigine.project.scene_materials import complete_materials

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
            missing = of_kind("image", left)
            Report(warnings).loss_of("textures-still-missing", "{} still missing: {}", missing, "texture", most=5)
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
    from ....io_formats.unigine.project.material_shading import MISSING_TEXTURE

    stored: Iterable[Any] = material.meshferry.file_properties
    return [entry.value for entry in stored if entry.name.startswith(MISSING_TEXTURE)]


def _request(material: bpy.types.Material) -> Any:
    from ....io_formats.unigine.project.material_shading import NAME_IN_PROJECT
    from ....io_formats.unigine.project.scene_materials import PROJECT, Incomplete

    stored = {entry.name: entry.value for entry in material.meshferry.file_properties}
    reference = material.meshferry.identity or stored.get(NAME_IN_PROJECT, "") or name_in_file(material)
    return Incomplete(material.name, reference, stored.get(PROJECT, ""))


def _layers(material: bpy.types.Material) -> Any:
    """Return the layers of the first mesh with a material."""
    from ....blender_data.shading.shaders import MeshLayers, layers_of

    users = (mesh for mesh in bpy.data.meshes if material.name in mesh.materials)
    mesh = next((mesh for mesh in users if mesh.materials[material.name] == material), None)
    return layers_of(mesh) if mesh is not None else MeshLayers()
