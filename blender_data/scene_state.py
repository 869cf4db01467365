"""Restore the user's scene exactly after an export has played its animations."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
from mathutils import Quaternion

from . import animated_blocks as blender_data_animated_blocks
from .armature_modifiers import deforming_parent
from .exporting.object_selection import enabled_objects
from .operator_calls import require_own_scene
from .rigging import body_shapes

Played = Mapping[bpy.types.ID, Iterable[bpy.types.Action]]
"""Actions that an export temporarily assigns to data blocks."""


@contextlib.contextmanager
def kept(context: bpy.types.Context, animated: Iterable[bpy.types.ID], played: Played) -> Iterator[None]:
    """Restore frame, actions, NLA tracks and animated values of a scene after a ``with`` block.

    The block may change the actions and tracks of the data blocks in ``animated`` and assign the actions in ``played``.
    Since setting a frame plays all animation in the .blend file, the values of all other animated data blocks are
    restored, too.
    """
    scene = context.scene
    frame, camera = scene.frame_current + scene.frame_subframe, scene.camera
    channels = animated_values(animated_blocks(), played)
    try:
        with restored(setting for block in animated for setting in _played_settings(block.animation_data)):
            yield
    finally:
        set_frame(scene, frame)
        # Setting the frame plays the animation again, so values that the user changed without setting keys are restored
        # afterwards.
        for channel in channels:
            channel.restore()
        if scene.camera != camera:
            scene.camera = camera
        context.view_layer.update()


def set_frame(scene: bpy.types.Scene, frame: float) -> None:
    """Set the current frame of a scene, including its fraction."""
    whole = math.floor(frame)
    scene.frame_set(whole, subframe=frame - whole)


def _played_settings(data: bpy.types.AnimData) -> Iterator[tuple[Any, str]]:
    """Yield the settings of animation data that affect the played animation."""
    yield data, "action"
    yield data, "action_slot"
    yield data, "use_nla"
    for track in data.nla_tracks:
        yield from ((track, "mute"), (track, "is_solo"), *((strip, "mute") for strip in track.strips))


@contextlib.contextmanager
def restored(settings: Iterable[tuple[Any, str]]) -> Iterator[None]:
    """Restore attributes of Blender data, given by their owners and names, after a ``with`` block.

    Data blocks that a script removed meanwhile are left out: Blender crashes on access to parts of them.
    """
    before = [(owner.id_data, owner, name, getattr(owner, name)) for owner, name in settings]
    try:
        yield
    finally:
        for block, owner, name, value in before:
            if exists(block):
                _set(owner, name, value)


def exists(block: bpy.types.ID) -> bool:
    """Return whether a data block still exists."""
    try:
        return bool(block.name)
    except ReferenceError:
        return False


@contextlib.contextmanager
def changed(context: bpy.types.Context, settings: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """Temporarily set attributes of Blender data, given by their owners and names, to other values."""
    wanted = [setting for setting in settings if getattr(setting[0], setting[1]) != setting[2]]
    try:
        with restored([(owner, name) for owner, name, _value in wanted]):
            for owner, name, value in wanted:
                _set(owner, name, value)
            if wanted:
                context.view_layer.update()
            yield
    finally:
        if wanted:
            context.view_layer.update()


def _set(owner: Any, name: str, value: Any) -> None:
    if getattr(owner, name) != value:
        setattr(owner, name, value)
        if name == "parent_type":
            owner.update_tag(refresh={"DATA"})


@dataclass(frozen=True)
class Channel:
    """An animated value of a data block, with its current value."""

    block: bpy.types.ID
    owner: Any
    name: str
    index: int
    value: Any

    def restore(self) -> None:
        """Set the channel back to its value, if its data block still exists."""
        if not exists(self.block):
            return
        if _value(self.owner, self.name, self.index) == self.value:
            return
        if self.index >= 0:
            array = _value(self.owner, self.name, -1)
            array[self.index] = self.value
        elif self.name.startswith("["):
            self.owner[bpy.utils.unescape_identifier(self.name[2:-2])] = self.value
        else:
            setattr(self.owner, self.name, self.value)


def animated_values(blocks: Iterable[bpy.types.ID], played: Played) -> list[Channel]:
    """Return the current values of channels that the actions of data blocks can change."""
    return [channel for block in blocks for channel in _channels(block, played)]


def _value(owner: Any, name: str, index: int) -> Any:
    value = owner.path_resolve(name)
    return value[index] if index >= 0 else value


def animated_blocks() -> Iterator[bpy.types.ID]:
    """Yield every data block of the .blend file that has animation, including node trees of other data blocks."""
    for description in bpy.data.bl_rna.properties:
        if description.type != "COLLECTION" or description.identifier == "all_ids":  # 5.2: those of all others
            continue
        for block in getattr(bpy.data, description.identifier):
            for owner in (block, getattr(block, "node_tree", None)):
                if getattr(owner, "animation_data", None) is not None:
                    yield owner


def _channels(block: bpy.types.ID, played: Played) -> Iterator[Channel]:
    """Yield the values that the actions of a data block may change."""
    own = (holder.action for holder in blender_data_animated_blocks.action_holders(block))
    actions = dict.fromkeys([*own, *played.get(block, ())])
    curves = (curve for action in actions for curve in blender_data_animated_blocks.action_curves(action, None))
    paths = {(curve.data_path, curve.array_index) for curve in curves}
    for path, index in sorted(paths):
        place = path.rindex('["') if path.endswith('"]') else path.rfind(".")
        name = path[place:].removeprefix(".") if place >= 0 else path
        with contextlib.suppress(ValueError, TypeError, IndexError):  # the property no longer exists
            owner = block.path_resolve(path[:place]) if place > 0 else block
            value = owner.path_resolve(name)
            which = index if hasattr(value, "__setitem__") else -1
            yield Channel(block, owner, name, which, _value(owner, name, which))


def undeformed(objects: Iterable[bpy.types.Object]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the settings for :func:`changed` that disable the deformation of objects by armatures."""
    for obj in objects:
        yield from ((modifier, "show_viewport", False) for modifier in obj.modifiers if modifier.type == "ARMATURE")
        if deforming_parent(obj) == "ARMATURE":
            yield obj, "parent_type", "OBJECT"


def on_resting_bones(objects: Iterable[bpy.types.Object]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the settings for :func:`changed` that place objects parented to bones of figures as in the rest pose.

    Figures are armatures whose shapes users set with sliders; a shape scales and moves such objects.
    """
    for obj in objects:
        above: bpy.types.Object | None = obj
        while above is not None:
            if above.parent_type == "BONE" and body_shapes.is_figure(above.parent):
                yield above.parent.data, "pose_position", "REST"
            above = above.parent


def resting(objects: Iterable[bpy.types.Object]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the settings for :func:`changed` that show objects in their Basis shape and disable mesh caches."""
    for obj in objects:
        if getattr(obj.data, "shape_keys", None) is not None:
            yield from ((obj, "show_only_shape_key", True), (obj, "active_shape_key_index", 0))
        yield from ((modifier, "show_viewport", False) for modifier in obj.modifiers if modifier.type == "MESH_CACHE")


@contextlib.contextmanager
def at_stored_rests(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Temporarily give imported objects the rest transforms of their files, in place of a pose of their animation."""
    rotations = ("rotation_quaternion", "rotation_axis_angle", "rotation_euler")
    names = ("location", *rotations, "scale")
    before = [(obj, [(name, tuple(getattr(obj, name))) for name in names]) for obj in objects]
    for obj, _values in before:
        kept = obj.meshferry
        turn = Quaternion(kept.rest_rotation)
        obj.location, obj.scale, obj.rotation_quaternion = kept.rest_location, kept.rest_scale, turn
        if obj.rotation_mode == "AXIS_ANGLE":
            axis, angle = turn.to_axis_angle()
            obj.rotation_axis_angle = (angle, *axis)
        elif obj.rotation_mode != "QUATERNION":
            obj.rotation_euler = turn.to_euler(obj.rotation_mode)
    if before:
        context.view_layer.update()
    try:
        yield
    finally:
        for obj, values in before:
            for name, value in values:
                setattr(obj, name, value)
        if before:
            context.view_layer.update()


@contextlib.contextmanager
def stand_ins(
    context: bpy.types.Context, objects: Iterable[bpy.types.Object]
) -> Iterator[dict[bpy.types.Object, bpy.types.Object]]:
    """Temporarily add copies of objects that Blender does not evaluate; yield the copy of each.

    Such objects are disabled in viewports, or only in collections that are excluded or belong to another scene. Without
    evaluation their modifiers are not applied and their transforms are outdated.
    """
    copies = {obj: obj.copy() for obj in objects}
    for copy in copies.values():
        copy.hide_viewport = False
    with linked(context, list(copies.values())):
        yield copies


@contextlib.contextmanager
def linked(context: bpy.types.Context, copies: Sequence[bpy.types.Object]) -> Iterator[None]:
    """Link copies of objects to the scene, and remove them after a ``with`` block."""
    try:
        if copies:
            require_own_scene(context)
        for copy in copies:
            context.scene.collection.objects.link(copy)
        if copies:
            context.view_layer.update()
        yield
    finally:
        for copy in copies:
            bpy.data.objects.remove(copy)
        if copies:
            context.view_layer.update()


def update_worlds(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> None:
    """Update the world matrices of objects, including those that Blender does not evaluate (see :func:`stand_ins`)."""
    with evaluated(context, objects):
        pass


@contextlib.contextmanager
def evaluated(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Let Blender evaluate all given objects in a ``with`` block, including those that it otherwise would not."""
    enabled = set(enabled_objects(context.view_layer.layer_collection))
    unseen = [obj for obj in dict.fromkeys(objects) if obj not in enabled]
    home = context.scene.collection.objects
    linked = [obj for obj in unseen if home.get(obj.name) != obj]
    disabled = [obj for obj in unseen if obj.hide_viewport]
    if linked:
        require_own_scene(context)
    try:
        for obj in linked:
            home.link(obj)
        for obj in disabled:
            obj.hide_viewport = False
        context.view_layer.update()
        yield
    finally:
        for obj in disabled:
            obj.hide_viewport = True
        for obj in linked:
            home.unlink(obj)
