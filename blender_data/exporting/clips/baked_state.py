"""Warnings about animation and deformation that the format cannot store, so that their current state is exported."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.messages import Report, Text, listed
from ...animated_blocks import dependencies
from ...armature_modifiers import MESHABLE, armature_of
from ...export_options import ExportOptions
from ..reading.shape_reading import shape_keys


def report_baked(
    objects: Sequence[bpy.types.Object], options: ExportOptions, capabilities: Capabilities, report: Report
) -> None:
    """Report, with the objects' names, each kind of animation or deformation that the format cannot hold.

    Parameters
    ----------
    options:
        Without ``use_modifiers``, meshes are exported undeformed.
    """
    shown = [obj for obj in objects if obj.type in MESHABLE]
    bound = listed([obj.name for obj in shown if armature_of(obj) is not None])
    if bound and not capabilities.skeletons:
        how = Text("as the armature poses it") if options.use_modifiers else Text("without its armature")
        report.loss("baked-armature", "exported {}; the file holds no bones", how, item=bound)
    shaped = listed([obj.name for obj in shown if shape_keys(obj)])
    if shaped and not capabilities.shape_keys:
        how = Text("as its shape keys make it look") if options.use_modifiers else Text("without its shape keys")
        report.loss("baked-shape-keys", "exported {}; the file holds none", how, item=shaped)
    if not capabilities.clips and (moving := listed([obj.name for obj in shown if dependencies([obj]).any_change])):
        text = "exported as it looks at the current frame; the file holds no animation"
        report.loss("baked-animation", text, item=moving)
