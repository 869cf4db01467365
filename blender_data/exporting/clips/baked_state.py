"""Warnings about animation and deformation that is exported in its current state, since the format cannot hold it."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.messages import listed
from ..export_options import ExportOptions
from ..object_selection import MESHABLE, armature_of
from ..reading.shape_reading import shape_keys
from .animated_blocks import dependencies


def notices(objects: Sequence[bpy.types.Object], options: ExportOptions, capabilities: Capabilities) -> list[str]:
    """Return a warning, with the objects' names, for each kind of animation or deformation that the format cannot hold.

    Parameters
    ----------
    options:
        Without ``use_modifiers``, meshes are exported undeformed.
    """
    shown = [obj for obj in objects if obj.type in MESHABLE]
    said = []
    if not capabilities.skeletons:
        how = "as the armature poses it" if options.use_modifiers else "without its armature"
        said += _sentence([obj for obj in shown if armature_of(obj) is not None], f"{how}; the file holds no bones")
    if not capabilities.shape_keys:
        how = "as its shape keys make it look" if options.use_modifiers else "without its shape keys"
        said += _sentence([obj for obj in shown if shape_keys(obj)], f"{how}; the file holds none")
    if not capabilities.clips:
        moving = [obj for obj in shown if dependencies([obj]).any_change]
        said += _sentence(moving, "as it looks at the current frame; the file holds no animation")
    return said


def _sentence(things: Sequence[bpy.types.Object], text: str) -> list[str]:
    return [f"{listed([obj.name for obj in things])}: exported {text}"] if things else []
