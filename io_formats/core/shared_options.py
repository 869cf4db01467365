"""Options that several formats have: each stands once, so that the command line has one flag for it."""

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
    name="mesh_files",  # an operator's "files" would be taken for the files chosen in the file browser
    default="EACH",
    label="Files",
    description="How objects become files",
    section="File",
    choices=(
        Choice("EACH", "One for Each Object", "Several objects become several files, named after the objects"),
        Choice("JOINED", "One, Joined", "All objects become one mesh; material slots of the same name become one"),
    ),
)
