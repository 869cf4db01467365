"""Add the model of a file below the object of a node, in the same way as an import of the placing file."""

from __future__ import annotations

import bpy

from ....io_formats.core.errors import FormatError
from ....io_formats.core.messages import Message
from ....io_formats.core.placement import ModelUse, PlacedModel
from ....io_formats.core.scene import Scene
from ... import import_marks, names
from ...steps import finish
from ..import_context import ImportContext
from ..import_options import ImportOptions
from ..import_request import ImportRequest
from .placed_models import ModelBuilder


def add_model(
    context: bpy.types.Context, parent: bpy.types.Object, model: PlacedModel, rotation_mode: str, options: ImportOptions
) -> tuple[bpy.types.Object, list[Message]]:
    """Create an empty with a model below an object, in its collections; return the empty and warnings.

    Raises
    ------
    FormatError
        The model cannot be read. Nothing is added then.
    """
    model.read()  # the builder only reports problems
    job = ImportContext(ImportRequest(context, Scene(model.name), options, model.file))
    models, use = ModelBuilder(job), ModelUse(0)
    try:
        finish(models.build(model, [use]))
        models.report()
        if use not in models.stands:
            raise FormatError("The model cannot be read", file=model.file)
        made: bpy.types.Object = job.keep(bpy.data.objects.new(names.fit(model.name), None))
        made.empty_display_size = 0.25
        made.rotation_mode, made.parent = rotation_mode, parent
        below = models.stands[use].template.hang(made, job.keep)
        for obj in below:
            import_marks.mark_part(obj, parent.meshferry.import_id)
        objects = [made, *below]
        models.remove_templates()
    except BaseException:
        job.undo()
        raise
    for home in parent.users_collection:
        for obj in objects:
            home.objects.link(obj)
    return made, job.report.messages
