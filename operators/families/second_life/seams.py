"""Match Seam: borders of clothes get the places, weights and normals of the border that they meet."""

from typing import Any

import bpy
import numpy as np

from ....blender_data.rigging import bodies, mesh_binding, seams
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Text, counted, listed
from .avatar_joints import known_bones
from .binding import Models, NeedsMeshes, Pose, names_of


class OBJECT_OT_second_life_match_seam(NeedsMeshes, bpy.types.Operator):
    """Let the borders of parts that meet agree."""

    bl_idname = "object.second_life_match_seam"
    bl_label = "Match Seam"
    bl_description = (
        "Give border vertices of the selected meshes that are within 1 mm of a border of the active body, or of the "
        "mesh selected before, its place, weights and normal, so that no gap opens in any pose or shape"
    )

    def change(self, context: bpy.types.Context, models: Models, avatar: Any, pose: Pose) -> Text:
        """Match the finest meshes, one after the other."""
        items = [model[0] for model in models]
        mesh_binding.require_bindable(items, avatar)
        joints = set(known_bones(avatar))
        found = seams.Seams(sorted(joints))
        for obj in bodies.active_meshes(avatar, context.view_layer.objects):
            found.add(obj)
        made = [obj.name for obj in items if changes_border(context, obj)]
        if made:
            raise MeshferryError("{}: modifiers change the border; apply them first", listed(made))
        count = 0
        for obj in items:
            count += found.taken_over(obj, joints)
            found.add(obj)
        return Text("{}: {} matched", names_of(models), counted(count, "border vertex", "border vertices"))


def changes_border(context: bpy.types.Context, obj: Any) -> bool:
    """Return whether modifiers add, remove or move vertices of a mesh object, besides armatures."""
    others = [modifier for modifier in obj.modifiers if modifier.type != "ARMATURE" and modifier.show_viewport]
    if not others:
        return False
    seen = obj.evaluated_get(context.evaluated_depsgraph_get()).data
    return len(seen.vertices) != len(obj.data.vertices) or not np.array_equal(
        seams.border_of(seen), seams.border_of(obj.data)
    )
