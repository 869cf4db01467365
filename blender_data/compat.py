"""All code that depends on the Blender version in the use of ``bpy``, and no other code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

MAX_NAME_BYTES = 255 if bpy.app.version >= (5, 0, 0) else 63
"""Largest length of a data block's name in UTF-8 bytes."""

HAS_FREE_NORMALS = bpy.app.version >= (4, 5, 0)
"""Whether Blender uses a ``custom_normal`` attribute of vectors as free normals (from 4.5). 4.4 ignores it silently."""

HAS_SLOTS = hasattr(bpy.types.Action, "slots") or "slots" in bpy.types.Action.bl_rna.properties
"""Whether actions have slots, so that one action can animate several data blocks (from 4.4)."""

BLEND_RELATIVE_PATHS = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5, 0) else set[str]()
"""Options of a path property that accepts ``//`` for the folder of the .blend file. Before 4.5 this option is an error.
"""


def set_corner_normals(
    mesh: bpy.types.Mesh, normals: npt.NDArray[np.float32], index: npt.NDArray[np.integer] | None = None
) -> None:
    """Set tangent-space custom normals of the corners.

    Parameters
    ----------
    mesh
        Mesh with C corners, edges calculated.
    normals
        (N, 3) float32 unit vectors or zeros; a zero keeps the normal that Blender calculates. N = C without ``index``.
    index
        (C,) row of ``normals`` for each corner. Corners with the same row share a tuple, so that Blender converts a
        million rows in 0.2 s.
    """
    if index is None:
        mesh.normals_split_custom_set(_tuples(normals))
        return
    rows = np.empty(len(normals), object)
    rows[:] = _tuples(normals)
    mesh.normals_split_custom_set(rows.take(index).tolist())


def set_point_normals(mesh: bpy.types.Mesh, normals: npt.NDArray[np.float32]) -> None:
    """Set tangent-space custom normals from one normal for each point, (P, 3) float32."""
    mesh.normals_split_custom_set_from_vertices(_tuples(normals))


def _tuples(rows: npt.NDArray[np.float32]) -> list[tuple[float, float, float]]:
    """Return the rows (N, 3) as tuples, three times as fast as with ``tolist`` and ``map``.

    Blender converts an array row by row with NumPy's scalars. For a million rows this takes 0.5 s longer (5.1 and
    later: 2.5 s) than making tuples and passing these.
    """
    values = iter(rows.reshape(-1).tolist())
    return list(zip(values, values, values, strict=True))


def enable_nodes(material: bpy.types.Material) -> None:
    """Make a material use nodes.

    From 5.0 on every material does, and setting the property is deprecated.
    """
    if bpy.app.version < (5, 0, 0):
        material.use_nodes = True


def draw_thin(bone: bpy.types.Bone) -> None:
    """Draw a bone as a stick, independent of the armature's display type; not possible before 4.5."""
    if hasattr(bone, "display_type"):
        bone.display_type = "STICK"


def select_bone(bone: bpy.types.PoseBone, *, chosen: bool) -> None:
    """Select or deselect a bone in pose mode; up to 4.5 the selection is stored in the armature's bone."""
    owner: Any = bone if bpy.app.version >= (5, 0, 0) else bone.bone
    owner.select = chosen


def show_bone(bone: bpy.types.PoseBone) -> None:
    """Show a bone in pose mode if it is hidden; from 5.0 on this is stored in the pose bone."""
    owner: Any = bone if bpy.app.version >= (5, 0, 0) else bone.bone
    owner.hide = False


def node_tree(material: bpy.types.Material) -> bpy.types.NodeTree | None:
    """Return the shader nodes of a material, or None if it has none."""
    if bpy.app.version < (5, 0, 0) and not material.use_nodes:
        return None
    return material.node_tree


def set_green_down(normal_map: bpy.types.ShaderNodeNormalMap) -> bool:
    """Let a Normal Map node read images whose green points down; return False before 5.2, which does not support it."""
    if not hasattr(normal_map, "convention"):
        return False
    normal_map.convention = "DIRECTX"
    return True


def is_green_down(normal_map: bpy.types.ShaderNodeNormalMap) -> bool:
    """Return whether a Normal Map node reads images whose green points down."""
    return getattr(normal_map, "convention", "OPENGL") == "DIRECTX"


def set_green_up(normal_map: bpy.types.ShaderNodeNormalMap) -> None:
    """Let a Normal Map node read images whose green points up, the only direction before 5.2."""
    if hasattr(normal_map, "convention"):
        normal_map.convention = "OPENGL"


class ActionCurves:
    """Builder of the f-curves of an action for several data blocks.

    From Blender 4.4 on, which has slots, the data blocks share one action; before, each gets a separate action.
    """

    def __init__(
        self, name: str, frame_range: tuple[float, float], keep: Callable[[Any], Any] = lambda block: block
    ) -> None:
        """Store the settings; actions are created on demand.

        ``keep`` is called with each new one, so that a failed import can remove it.
        """
        self.name = name
        self.frame_range = frame_range
        self.keep = keep
        self.actions: list[bpy.types.Action] = []
        self._strip: Any = None

    def _new_action(self, name: str) -> bpy.types.Action:
        self.actions.append(self.keep(bpy.data.actions.new(name)))
        action = self.actions[-1]
        action.use_frame_range = True
        action.frame_start, action.frame_end = self.frame_range
        return action

    def curves_for(self, owner: bpy.types.ID, label: str) -> tuple[Any, bpy.types.Action, Any]:
        """Return the f-curve collection for a data block, its action, and its slot (None before 4.4)."""
        if not HAS_SLOTS:
            action = self._new_action(f"{self.name} {label}".strip())
            return action.fcurves, action, None
        if self._strip is None:
            action = self._new_action(self.name)
            self._strip = action.layers.new("Layer").strips.new(type="KEYFRAME")
        action = self.actions[0]
        slot = action.slots.new(owner.id_type, owner.name)
        return self._strip.channelbag(slot, ensure=True).fcurves, action, slot


def curve_groups(action: bpy.types.Action, slot: Any) -> Any:
    """Return the f-curve groups of an action that :class:`ActionCurves` made; from 4.4 on those of one slot."""
    if not HAS_SLOTS:
        return action.groups
    return action.layers[0].strips[0].channelbag(slot, ensure=True).groups


def slot_of(player: Any) -> Any:
    """Return the action slot of animation data or of an NLA strip; None before 4.4."""
    return player.action_slot if HAS_SLOTS else None


def set_slot(player: Any, slot: Any) -> None:
    """Set the action slot of animation data or of an NLA strip, unless the slot is None."""
    if HAS_SLOTS and slot is not None:
        player.action_slot = slot


def slots_of(action: bpy.types.Action) -> list[Any]:
    """Return the slots of an action. Before Blender 4.4, return only None, which means the whole action."""
    return list(action.slots) if HAS_SLOTS else [None]


def assign_action(owner: bpy.types.ID, action: bpy.types.Action | None, slot: Any) -> None:
    """Make an action and its slot active on a data block.

    The slot is set explicitly, since Blender does not always choose it itself.
    """
    animation = owner.animation_data or owner.animation_data_create()
    animation.action = action
    if action is not None:
        set_slot(animation, slot)


def curve_bags(action: bpy.types.Action, slot: Any) -> list[Any]:
    """Return the owners of the collection ``fcurves`` of an action: before 4.4 the action itself.

    From 4.4 on, only those of ``slot``; None returns those of all slots.
    """
    if not HAS_SLOTS:
        return [action]
    bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
    return [bag for bag in bags if slot is None or bag.slot_handle == slot.handle]


def action_curves(action: bpy.types.Action, slot: Any) -> list[bpy.types.FCurve]:
    """Return the f-curves of an action. From 4.4 on only those of ``slot``; None returns those of all slots."""
    return [curve for bag in curve_bags(action, slot) for curve in bag.fcurves]


def curves_at(action: bpy.types.Action, slot: Any, path: str) -> list[bpy.types.FCurve]:
    """Return the f-curves of a vector (3,) by its data path; see :func:`action_curves`."""
    found = (bag.fcurves.find(path, index=index) for bag in curve_bags(action, slot) for index in range(3))
    return [curve for curve in found if curve is not None]


def remove_curves(action: bpy.types.Action, curves: list[bpy.types.FCurve]) -> None:
    """Remove f-curves from all slots of an action."""
    removed = set(curves)
    for bag in curve_bags(action, None):
        for curve in [one for one in bag.fcurves if one in removed]:
            bag.fcurves.remove(curve)


def stash_action(owner: bpy.types.ID, action: bpy.types.Action, slot: Any, name: str) -> None:
    """Keep an action with its owner without playing it, in a separate muted NLA track."""
    animation = owner.animation_data or owner.animation_data_create()
    track = animation.nla_tracks.new()
    track.name = name
    strip = track.strips.new(name, int(action.frame_range[0]), action)
    set_slot(strip, slot)
    track.mute = True


def node_inputs(modifier: bpy.types.NodesModifier) -> list[Any]:
    """Return the input values of a geometry nodes modifier.

    They are custom properties, or from 5.2 on properties of their own.
    """
    if bpy.app.version < (5, 2, 0):
        return list(modifier.values())
    inputs = modifier.properties.inputs
    sockets = (getattr(inputs, prop.identifier) for prop in inputs.bl_rna.properties if prop.type == "POINTER")
    return [getattr(socket, "value", None) for socket in sockets]


def declared_properties(block: Any) -> Any:
    """Return the container of the values of a data block's declared properties, by name, or None.

    Before 5.0 these are its custom properties.
    """
    found = getattr(block, "bl_system_properties_get", None)
    return found() if found is not None else block


def custom_properties(block: bpy.types.ID) -> dict[str, Any]:
    """Return the custom properties of a data block; before 5.0 declared properties are among them and are left out."""
    return {name: value for name, value in block.items() if name not in block.bl_rna.properties}


def action_holders(owner: Any) -> list[Any]:
    """Return the animation data of a data block and its NLA strips, also in meta strips, each only with an action."""
    animation = owner.animation_data
    if animation is None:
        return []
    strips = [strip for track in animation.nla_tracks for strip in track.strips]
    for strip in strips:
        strips += strip.strips  # The loop reaches them, too, since meta strips may contain meta strips.
    return [holder for holder in (animation, *strips) if holder.action is not None]
