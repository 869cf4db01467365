"""Sliders of figures as properties of their armature objects, one for each slider of each family of formats.

They are properties of objects, not of a property group: on the wheels of Blender 4.2 and 4.3, update callbacks in
groups crash at exit. Values belong to the object, so that linked duplicates of an armature have shapes of their own.
They are not animatable, since update callbacks do not run for keys and drivers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import bpy
from bpy.props import FloatProperty

from ...io_formats.core.body_shapes import Slider
from ...io_formats.registry import FAMILIES
from ..rigging import body_shapes
from ..translation_context import CONTEXT


@functools.cache
def all_sliders() -> Mapping[str, Slider]:
    """Return the sliders of all families by the names of their properties."""
    found = [family.body_shapes() for family in FAMILIES if family.body_shapes is not None]
    return {body_shapes.property_name(slider.number): slider for shapes in found for slider in shapes.sliders()}


def register() -> None:
    """Add the properties to objects."""
    for name, slider in all_sliders().items():
        made = FloatProperty(
            name=slider.label,
            description=f"0: {slider.lowest}; 100: {slider.highest}",
            min=0.0,
            max=100.0,
            default=slider.standard,
            precision=0,
            step=100,
            options=set(),
            override={"LIBRARY_OVERRIDABLE"},
            update=body_shapes.changed,
            translation_context=CONTEXT,
        )
        setattr(bpy.types.Object, name, made)


def unregister() -> None:
    """Remove the properties from objects."""
    for name in all_sliders():
        delattr(bpy.types.Object, name)
