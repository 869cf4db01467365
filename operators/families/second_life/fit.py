"""Check Fit: how much of the clothes is inside of the avatar's body, at several shapes."""

from collections.abc import Mapping
from typing import Any

import bpy
import numpy as np
from bpy.props import EnumProperty

from ....blender_data.armature_modifiers import armature_of
from ....blender_data.mesh_data.element_selection import select_points
from ....blender_data.rigging import as_shown, bodies, body_shapes
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Text, joined
from ....io_formats.second_life.avatar import sliders
from ...layouts import requires
from ...reports import inform, refuse, warn
from ...selection import leave_edit_mode
from .avatar_joints import HAS_AVATAR, chosen_avatar
from .shape_panel import IS_SHAPEABLE

PRESENT = "PRESENT"
THIN = {34: 15, 105: 20, 649: 20, 652: 20, 676: 10, 678: 20, 685: 10, 753: 5, 795: 5, 879: 5}
HEAVY = {34: 70, 105: 80, 157: 60, 637: 60, 649: 60, 652: 70, 676: 75, 678: 80, 684: 30, 685: 70, 753: 50, 795: 75}
"""Positions of sliders by id; all others are at their defaults, and the sex is that of the avatar."""
SHAPES: Mapping[str, tuple[str, Mapping[int, int] | None]] = {
    PRESENT: ("Present Shape", None),
    "THIN": ("Thin", THIN),
    "DEFAULT": ("Default", {}),
    "HEAVY": ("Heavy", HEAVY),
}
_ALL = "ALL"


class OBJECT_OT_second_life_check_fit(bpy.types.Operator):
    """Find the vertices of clothes that lie inside of the avatar's active body."""

    bl_idname = "object.second_life_check_fit"
    bl_label = "Check Fit"
    bl_description = (
        "Report how many vertices of the selected clothes, or of all clothes of the avatar, are inside of its active "
        "body: at the present shape, and at a thin, the default and a heavy one. They are selected for edit mode"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR, IS_SHAPEABLE)

    select: EnumProperty(
        name="Select",
        description="At which shape the vertices are inside that are selected",
        items=((_ALL, "All", "At any of the shapes"), *((key, label, "") for key, (label, _) in SHAPES.items())),
        default=_ALL,
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Shape the avatar four times, count, and give it its shape back."""
        leave_edit_mode(context)
        avatar: Any = chosen_avatar(context)
        body = bodies.active_meshes(avatar, context.view_layer.objects)
        if not body:
            return refuse(self, "'{}' has no body; select a bound mesh and press Use as Body", avatar.name)
        clothes = clothes_of(context, avatar)
        if not clothes:
            return refuse(self, "No other mesh is bound to '{}'", avatar.name)
        try:
            found = inside_at_shapes(context, avatar, clothes, body)
        except MeshferryError as problem:
            return refuse(self, problem.sentence())
        for obj in clothes:
            flags = {key: at[obj] for key, at in found.items()}
            chosen = np.any(list(flags.values()), axis=0) if self.select == _ALL else flags[self.select]
            select_points(obj, np.flatnonzero(chosen).tolist())
            shares = [Text("{} {:.1%}", Text(SHAPES[key][0]), float(one.mean())) for key, one in flags.items()]
            say = warn if np.any(list(flags.values())) else inform
            say(self, "'{}': vertices inside of the body: {}", obj.name, joined(shares, ", "))
        return {"FINISHED"}


def clothes_of(context: bpy.types.Context, avatar: Any) -> list[Any]:
    """Return the selected meshes that an avatar deforms, except bodies, or all such visible meshes."""
    bound = [
        obj
        for obj in context.view_layer.objects
        if obj.type == "MESH" and not obj.meshferry.body and len(obj.data.vertices) and armature_of(obj) == avatar
    ]
    return [obj for obj in bound if obj.select_get()] or [obj for obj in bound if obj.visible_get()]


def inside_at_shapes(context: bpy.types.Context, avatar: Any, clothes: list[Any], body: list[Any]) -> dict[str, Any]:
    """Return which vertices of clothes are inside of the body, (V,) by object, for each key of :data:`SHAPES`."""
    restore = body_shapes.restorer(avatar)
    male = getattr(avatar, body_shapes.property_name(sliders.MALE))
    found = {}
    try:
        for key, (_label, percents) in SHAPES.items():
            if percents is not None:
                defaults = {slider.number: slider.default for slider in body_shapes.sliders()}
                body_shapes.set_percents(avatar, {**defaults, **percents, sliders.MALE: male})
            context.view_layer.update()
            found[key] = as_shown.vertices_inside(clothes, body)
    finally:
        restore()
        context.view_layer.update()
    return found
