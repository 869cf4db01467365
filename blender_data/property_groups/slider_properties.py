"""Sliders of figures as properties of their armature objects.

They are properties of objects, not of a property group: library overrides do not keep values in groups that are not
overridable as a whole. Values belong to the object, so that linked duplicates of an armature have shapes of their own.
They are not animatable, since update callbacks do not run for keys and drivers.
"""

import bpy
from bpy.props import BoolProperty, FloatProperty, FloatVectorProperty

from ..rigging import body_shapes
from .translation_context import CONTEXT


def register() -> None:
    """Add the properties to objects."""
    for slider in body_shapes.sliders():
        effect = "" if slider.moves_joints else ". Has no effect on worn meshes"
        made = FloatProperty(
            name=slider.label,
            description=f"0: {slider.lowest}; 100: {slider.highest}{effect}",
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
        setattr(bpy.types.Object, body_shapes.property_name(slider.number), made)
    root = FloatVectorProperty(
        name="Movement of the Root",
        description="Distances in metres by which the shape of the figure moves its root bone, so that its feet "
        "stand on the floor",
        size=3,
        options={"HIDDEN"},
        override={"LIBRARY_OVERRIDABLE"},
        translation_context=CONTEXT,
    )
    setattr(bpy.types.Object, body_shapes.ROOT, root)
    is_shaped = BoolProperty(
        name="Has a Shape",
        description="The bones stand where a shape puts them",
        options={"HIDDEN"},
        override={"LIBRARY_OVERRIDABLE"},
        translation_context=CONTEXT,
    )
    setattr(bpy.types.Object, body_shapes.IS_SHAPED, is_shaped)


def unregister() -> None:
    """Remove the properties from objects."""
    delattr(bpy.types.Object, body_shapes.IS_SHAPED)
    delattr(bpy.types.Object, body_shapes.ROOT)
    for slider in body_shapes.sliders():
        delattr(bpy.types.Object, body_shapes.property_name(slider.number))
