"""Options that several formats share, defined once, so that each has a single flag on the command line."""

from __future__ import annotations

from .options import Choice, Option

IMPORT_CHOICES = Option(
    name="use_import_choices",
    default=True,
    label="As Imported",
    description="Export imported objects with the choices that they were imported with. The choices below apply to "
    "other objects, or to all objects if this is off",
    section="Objects",
)

MESH_FILES = Option(
    name="mesh_files",  # not "files", a property that Blender's file browser sets
    default="EACH",
    label="Files",
    description="How objects become files",
    section="File",
    choices=(
        Choice("EACH", "One for Each Object", "Several objects become several files, named after the objects"),
        Choice("JOINED", "One, Joined", "All objects become one mesh; material slots of the same name become one"),
    ),
)

PARTNER_FILES = Option(
    name="use_partner_files",
    default=True,
    label="Partner Files",
    description="With model.dae, also import the files of its levels of detail and physics shape beside it: "
    "model_LOD2.dae, model_LOD1.dae, model_LOD0.dae and model_PHYS.dae; or model_MED, _LOW and _LOWEST",
    section="File",
    shown_when=lambda values: not values.get("use_files_as_levels"),
)
FILES_AS_LEVELS = Option(
    name="use_files_as_levels",
    default=False,
    label="One Model, Several Levels",
    description="The chosen files are the levels of detail of one model, whatever their names are: the file with the "
    "most triangles is the highest level. A file whose name ends in _PHYS is the physics shape",
    section="File",
)
