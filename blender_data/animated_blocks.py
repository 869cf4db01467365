"""Data blocks that affect how objects look, which of them are animated, and the slots of the actions that they play."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy

from . import compat

_SELF_MOVING = frozenset(
    {
        *("MESH_CACHE", "MESH_SEQUENCE_CACHE", "CLOTH", "SOFT_BODY", "WAVE", "OCEAN", "BUILD", "DYNAMIC_PAINT"),
        *("FLUID", "EXPLODE", "PARTICLE_SYSTEM", "PARTICLE_INSTANCE"),
    }
)
"""Modifiers whose result changes with time even without animation: caches and simulations."""


@dataclass
class Dependencies:
    """Data blocks that exported objects depend on."""

    animated: list[bpy.types.ID] = field(default_factory=list)
    """The blocks with animation data, in a stable order."""
    moves_by_itself: bool = False
    """Whether a simulation, a cache or the scene time changes one of them."""

    @property
    def any_change(self) -> bool:
        return self.moves_by_itself or any(_animates(block) for block in self.animated)


def _animates(block: bpy.types.ID) -> bool:
    data = block.animation_data
    return data is not None and (data.action is not None or bool(data.nla_tracks) or bool(data.drivers))


def with_shape_keys(objects: Iterable[bpy.types.Object]) -> Iterator[bpy.types.ID]:
    """Yield objects, each followed by the shape keys of its data if it has some."""
    for obj in objects:
        yield obj
        keys = getattr(obj.data, "shape_keys", None)
        if keys is not None:
            yield keys


def dependencies(objects: Iterable[bpy.types.ID]) -> Dependencies:
    """Collect what objects depend on through parents, constraints, modifiers, drivers and instances, at any depth."""
    found = Dependencies()
    seen: set[bpy.types.ID] = set()
    waiting: list[bpy.types.ID] = list(objects)
    while waiting:
        block = waiting.pop()
        if block in seen or not hasattr(block, "animation_data"):
            continue  # none, or an image, which an empty shows for reference, or an action
        seen.add(block)
        if block.animation_data is not None:
            found.animated.append(block)
            for driver in block.animation_data.drivers:
                waiting += [
                    target.id for variable in driver.driver.variables for target in variable.targets if target.id
                ]
        if isinstance(block, bpy.types.Object):
            waiting += _of_object(block, found)
        elif isinstance(block, bpy.types.NodeTree):
            waiting += _of_node_tree(block, found)
    found.animated.sort(key=lambda block: (block.id_type, block.name_full))
    return found


def _of_object(obj: bpy.types.Object, found: Dependencies) -> Iterator[bpy.types.ID]:
    """Yield the data blocks on which an object depends, or None; note in ``found`` whether it moves by itself."""
    yield obj.parent
    yield obj.data
    yield getattr(obj.data, "shape_keys", None)
    constraints = list(obj.constraints)
    if obj.pose is not None:
        constraints += [constraint for bone in obj.pose.bones for constraint in bone.constraints]
    for constraint in constraints:
        if not constraint.mute:
            yield from _pointed_at(constraint)
            found.moves_by_itself |= constraint.type == "TRANSFORM_CACHE"
    for modifier in obj.modifiers:
        if modifier.show_viewport:
            yield from _pointed_at(modifier)
            found.moves_by_itself |= modifier.type in _SELF_MOVING
    if obj.instance_type == "COLLECTION" and obj.instance_collection is not None:
        yield from obj.instance_collection.all_objects
    elif obj.instance_type in {"VERTS", "FACES"}:
        yield from obj.children
    found.moves_by_itself |= obj.rigid_body is not None and obj.rigid_body.type == "ACTIVE"


def _of_node_tree(tree: bpy.types.NodeTree, found: Dependencies) -> Iterator[bpy.types.ID]:
    for node in tree.nodes:
        if node.bl_idname in {"GeometryNodeInputSceneTime", "GeometryNodeSimulationInput"}:
            found.moves_by_itself = True
        yield getattr(node, "node_tree", None)
        for socket in node.inputs:
            yield from _objects_in(getattr(socket, "default_value", None))


def _pointed_at(owner: bpy.types.bpy_struct) -> Iterator[bpy.types.ID]:
    """Yield the data blocks to which properties of a modifier or constraint refer, including geometry node inputs."""
    for description in owner.bl_rna.properties:
        if description.type == "POINTER":
            value = getattr(owner, description.identifier, None)
            if isinstance(value, bpy.types.Collection):
                yield from value.all_objects
            elif isinstance(value, bpy.types.ID):
                yield value
    for target in getattr(owner, "targets", ()):
        yield target.target
    if isinstance(owner, bpy.types.NodesModifier):
        for value in compat.node_inputs(owner):
            yield from _objects_in(value)


def _objects_in(value: Any) -> Sequence[bpy.types.Object]:
    """Return an object itself or all objects of a collection; nothing for other values."""
    if isinstance(value, bpy.types.Collection):
        return list(value.all_objects)
    return [value] if isinstance(value, bpy.types.Object) else []


_MOVING_CONSTRAINTS = frozenset({"TRANSFORM_CACHE", "FOLLOW_TRACK", "OBJECT_SOLVER", "CAMERA_SOLVER"})
"""Constraints that follow a file."""


def influences(owner: Any) -> tuple[bool, list[bpy.types.ID]]:
    """Return whether a modifier or constraint changes with time by itself, and the data blocks to which it refers."""
    particles = owner.particle_system.settings if owner.type == "PARTICLE_SYSTEM" else None
    is_hair = particles is not None and particles.type == "HAIR" and not owner.particle_system.use_hair_dynamics
    return owner.type in _SELF_MOVING | _MOVING_CONSTRAINTS and not is_hair, list(_pointed_at(owner))


class ActionCurves:
    """Builder of an action with f-curves for several data blocks, each in a slot of its own."""

    def __init__(
        self, name: str, frame_range: tuple[float, float], keep: Callable[[Any], Any] = lambda block: block
    ) -> None:
        """Store the settings; the action is created on demand.

        ``keep`` is called with it, so that a failed import can remove it.
        """
        self.name = name
        self.frame_range = frame_range
        self.keep = keep
        self.action: bpy.types.Action | None = None
        self._strip: Any = None

    def curves_for(self, owner: bpy.types.ID) -> tuple[Any, bpy.types.Action, Any]:
        """Return the f-curve collection for a data block, its action, and its slot."""
        if self.action is None:
            self.action = self.keep(bpy.data.actions.new(self.name))
            self.action.use_frame_range = True
            self.action.frame_start, self.action.frame_end = self.frame_range
            self._strip = self.action.layers.new("Layer").strips.new(type="KEYFRAME")
        slot = self.action.slots.new(owner.id_type, owner.name)
        return self._strip.channelbag(slot, ensure=True).fcurves, self.action, slot


def curve_groups(action: bpy.types.Action, slot: Any) -> Any:
    """Return the f-curve groups of one slot of an action that :class:`ActionCurves` made."""
    return action.layers[0].strips[0].channelbag(slot, ensure=True).groups


def set_slot(player: Any, slot: Any) -> None:
    """Set the action slot of animation data or of an NLA strip, unless the slot is None."""
    if slot is not None:
        player.action_slot = slot


def assign_action(owner: bpy.types.ID, action: bpy.types.Action | None, slot: Any) -> None:
    """Make an action and its slot active on a data block.

    The slot is set explicitly, since Blender does not always choose it itself.
    """
    animation = owner.animation_data or owner.animation_data_create()
    animation.action = action
    if action is not None:
        set_slot(animation, slot)


def curve_bags(action: bpy.types.Action, slot: Any) -> list[Any]:
    """Return the owners of ``fcurves`` of an action: those of ``slot``, or of all slots if it is None."""
    bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
    return [bag for bag in bags if slot is None or bag.slot_handle == slot.handle]


def action_curves(action: bpy.types.Action, slot: Any) -> list[bpy.types.FCurve]:
    """Return the f-curves of an action: those of ``slot``, or of all slots if it is None."""
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


def action_holders(owner: Any) -> list[Any]:
    """Return the animation data of a data block and its NLA strips, also in meta strips, each only with an action."""
    animation = getattr(owner, "animation_data", None)  # images have none
    if animation is None:
        return []
    strips = [strip for track in animation.nla_tracks for strip in track.strips]
    for strip in strips:
        strips += strip.strips  # The loop reaches them, too, since meta strips may contain meta strips.
    return [holder for holder in (animation, *strips) if holder.action is not None]
