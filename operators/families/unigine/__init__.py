"""UNIGINE in the user interface: animations of armatures, surfaces of meshes."""

from ....io_formats.unigine.animation.format import UNIGINE_ANIMATION
from ....io_formats.unigine.mesh.format import UNIGINE_MESH
from ....io_formats.unigine.scene.format import UNIGINE_SCENE
from ...files.check_operators import CheckObject
from ...files.import_base import ImportFiles
from ...hooks import Hooks
from . import panel, project_materials
from .exporters import ExportAnimation, ExportMesh, ExportUnigineScene


class Importer(ImportFiles):
    """Import of meshes, animations and skeletons in any combination."""

    bl_description = (
        "Import meshes, skeletons, animations and scenes of the UNIGINE engine; a mesh and its animations chosen "
        "together go together"
    )


class Check(CheckObject):
    """Check for an export to a UNIGINE mesh."""

    bl_description = "Check the active object against the rules of the engine, without writing a file"


HOOKS = Hooks(
    importer=Importer,
    exporters={
        UNIGINE_MESH.name: ExportMesh,
        UNIGINE_ANIMATION.name: ExportAnimation,
        UNIGINE_SCENE.name: ExportUnigineScene,
    },
    check=Check,
    panels=(*panel.PANELS, project_materials.textures_panel),
)
