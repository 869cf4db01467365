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
