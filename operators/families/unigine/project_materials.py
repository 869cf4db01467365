"""Assign Project Materials: materials and textures of a UNIGINE project for meshes that were imported without them."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.importing.materials import MaterialFinder
from ....blender_data.importing.shaders import layers_of
from ....blender_data.mesh_data import surfaces
from ....blender_data.steps import Steps, scaled
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Report, counted
from ....io_formats.projects import Projects
from ....io_formats.unigine.mesh.format import UNIGINE_MESH
from ....io_formats.unigine.options import PROJECT_FOLDER
from ....io_formats.unigine.project.project import open_project, project_folder
from ....io_formats.unigine.project.scene_materials import ProjectMaterials
from ...files.session_projects import project_steps
from ...findings.mesh_tools import assign_surface
from ...layouts import requires
from ...preferences import preferred_path
from ...progress import LongWork
from ...reports import Messages, conclude
from ...selection import leave_edit_mode
from ...sidebar import homes_of


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
        found: dict[str, tuple[ProjectMaterials, dict[str, str]]] = {}
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


def _find(path: str, names: list[str], chosen: str, projects: Projects) -> tuple[ProjectMaterials, dict[str, str]]:
    """Find the materials of a file's surfaces; return them, and the name of the material of each surface with one."""
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


def _assign(items: Iterable[Any], materials: ProjectMaterials, of_surface: dict[str, str], warnings: list[Any]) -> int:
    """Set the materials of the objects' slots; return the number of slots."""
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
