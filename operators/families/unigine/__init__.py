"""UNIGINE in the user interface: animations of armatures, surfaces of meshes."""

from ....io_formats.registry import UNIGINE_ANIMATION, UNIGINE_MESH
from ...findings.checks import CheckObject
from ...hooks import Hooks
from ...importing.import_base import ImportFiles
from .exporters import ExportAnimation, ExportMesh
from .panel import PANELS, MATERIAL_PT_meshferry, UNIGINE_UL_surfaces
from .project_materials import OBJECT_OT_meshferry_project_materials
from .textures import MATERIAL_OT_meshferry_find_textures, UNIGINE_PT_textures


class Importer(ImportFiles):
    """Import of meshes, animations and skeletons in any combination."""

    bl_label = "Import UNIGINE"
    bl_description = (
        "Import meshes, skeletons, animations and scenes of the UNIGINE engine; a mesh and its animations chosen "
        "together go together"
    )
    closed_sections = ("Geometry", "Materials")
    entry_text = "UNIGINE (.mesh, .anim, .node, .world)"


class Check(CheckObject):
    """Check for an export to a UNIGINE mesh."""

    bl_description = "Check the active object against the rules of the engine, without writing a file"


HOOKS = Hooks(
    importer=Importer,
    exporters={UNIGINE_MESH.name: ExportMesh, UNIGINE_ANIMATION.name: ExportAnimation},
    check=Check,
    panels=(*PANELS, UNIGINE_PT_textures),
    classes=(
        UNIGINE_UL_surfaces,
        OBJECT_OT_meshferry_project_materials,
        MATERIAL_OT_meshferry_find_textures,
        MATERIAL_PT_meshferry,
    ),
)
