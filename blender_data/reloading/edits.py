"""Edits of imported objects. Only if there are some, a reload compares the file with what an export would write."""

from collections.abc import Collection

import bpy

from .. import animated_blocks
from ..import_marks import has_given_space, is_moved, objects_in, path_of
from .data_updates import current_slot_names, slot_names


def is_edited(collection: bpy.types.Collection | None, objects: Collection[bpy.types.Object]) -> bool:
    """Return whether an export of imported objects could differ from the file, apart from edits of their data."""
    added = objects_in(collection) - set(objects) if collection is not None else ()
    return bool(added) or any(map(_is_changed, objects))


def has_delta(obj: bpy.types.Object) -> bool:
    """Return whether an object has a delta transform."""
    return obj.delta_location.length > 0 or obj.delta_rotation_euler[:] != (0, 0, 0) or obj.delta_scale[:] != (1, 1, 1)


def _is_changed(obj: bpy.types.Object) -> bool:
    """Return whether an object, apart from its data, is not as its import made it."""
    owners = animated_blocks.with_shape_keys([obj])
    actions = [holder.action for owner in owners for holder in animated_blocks.action_holders(owner)]
    return bool(
        (is_moved(obj) or not has_given_space(obj) or has_delta(obj) or obj.meshferry.node_path != path_of(obj))
        or len(obj.constraints)
        or any(modifier.type not in {"ARMATURE", "MESH_CACHE"} for modifier in obj.modifiers)
        or any(not action.meshferry.source_path for action in actions)
        or (obj.type == "MESH" and slot_names(obj.data) != current_slot_names(obj.data))
    )
