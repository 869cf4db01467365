"""Options of reading a UNIGINE node or world."""

from __future__ import annotations

from ...core.options import Option
from ..project.options import PROJECT_FOLDER, PROJECT_MATERIALS

LIGHTS = Option(
    name="use_lights",
    default=False,
    label="Lights",
    description="Make lights of the scene's lights; their brightness cannot be converted exactly",
    section="Objects",
)
CAMERAS = Option(
    name="use_cameras",
    default=False,
    label="Cameras",
    description="Make cameras of the scene's players and cameras",
    section="Objects",
)
COARSER_LEVELS = Option(
    name="use_coarser_levels",
    default=False,
    label="Lower LODs of Scenes",
    description="Also import the surfaces that are shown from a distance, as hidden objects in a collection for each "
    "level of detail",
    section="Objects",
)

SOURCE_FILES = Option(
    name="use_source_files",
    default=True,
    label="Source Files",
    description="Where the engine's own mesh is missing, take the mesh from the FBX file that it was made from, with "
    "Blender's importer. Needs Blender 4.5",
    section="Objects",
)

_OBJECTS = (LIGHTS, CAMERAS, COARSER_LEVELS, SOURCE_FILES)
IMPORT_OPTIONS: tuple[Option, ...] = (*_OBJECTS, PROJECT_MATERIALS, PROJECT_FOLDER)
