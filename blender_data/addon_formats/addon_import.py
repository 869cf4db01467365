"""Cleanup of the objects created by Blender's own importers, which are put into one collection."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

import bpy
import mathutils
import numpy as np

from ...io_formats.core.scene import Clip, TransformTrack
from ...io_formats.geometry.transforms import continuous_rotations
from .. import animated_blocks, arrays
from ..animated_blocks import with_shape_keys
from ..animation.scene_time import SceneTime
from ..importing.actions import ClipActions, ClipTiming
from ..rigging import joint_poses

_CACHED = "TRANSFORM_CACHE"
"""Type of the constraint that reads an object's transform from a file."""

_LAYER = re.compile(r"(Base ?)?Layer ?\d*")
"""Matches names of animation layers, which importers append to the names of actions."""

_STILL = 1e-6
"""Change of a curve that counts as rounding, relative to its largest value, or to 1 if that is larger."""


def without_scaffolding(objects: Sequence[bpy.types.Object], names: Collection[str]) -> list[bpy.types.Object]:
    """Remove placeholder objects; return the remaining ones.

    Placeholders are empties without children whose names are in ``names``, and armatures of which all bone names are in
    ``names``.
    """
    gone: list[bpy.types.Object] = []
    for obj in objects:
        is_bare = obj.type == "EMPTY" and not obj.children and _plain(obj) in names
        if is_bare or (obj.type == "ARMATURE" and all(bone.name in names for bone in obj.data.bones)):
            gone.append(obj)
            for child in obj.children:
                child.matrix_parent_inverse = obj.matrix_basis @ child.matrix_parent_inverse
                if obj.parent is not None:
                    child.matrix_parent_inverse = obj.matrix_parent_inverse @ child.matrix_parent_inverse
                child.parent = obj.parent
                child.parent_type = "OBJECT"
    kept = [obj for obj in objects if obj not in gone]
    for obj in kept:
        for modifier in list(obj.modifiers):
            if modifier.type == "ARMATURE" and (modifier.object is None or modifier.object in gone):
                obj.modifiers.remove(modifier)
                for group in [group for group in obj.vertex_groups if group.name in names]:
                    obj.vertex_groups.remove(group)
    bpy.data.batch_remove(gone)
    return kept


def repair_meshes(objects: Iterable[bpy.types.Object]) -> int:
    """Remove faces with one or two corners, on which Blender crashes; return the number of removed faces.

    The FBX importer makes such faces unless it validates all meshes, which also removes one side of thin leaves.
    """
    removed = 0
    for mesh in {obj.data for obj in objects if obj.type == "MESH"}:
        if arrays.read(mesh.polygons, "loop_total", dtype=np.int32).min(initial=3) < 3:
            before = len(mesh.polygons)
            mesh.validate()
            removed += before - len(mesh.polygons)
    return removed


def apply_transforms(objects: Sequence[bpy.types.Object]) -> None:
    """Apply the transforms of objects to their meshes."""
    for obj in objects:
        if obj.type == "MESH" and obj.data.users == 1:
            obj.data.transform(obj.matrix_basis)
            obj.matrix_basis.identity()


def drop_still_curves(objects: Sequence[bpy.types.Object], *, keeps_clips: bool) -> None:
    """Remove constant f-curves of objects and shape keys, which importers add for everything in a file.

    Constant curves of bones are kept, since a constant pose is part of an animation.

    Parameters
    ----------
    keeps_clips:
        Keep the curves of clips in which nothing moves.
    """
    held = _held_actions(objects) if keeps_clips else set()
    # Mark them as imported clips, since exporters drop other constant clips that equal the rest pose.
    for action in held:
        action.meshferry.frame_count = round(action.frame_range[1] - action.frame_range[0]) + 1
    for action in bpy.data.actions:
        if action in held:
            continue
        for slot in action.slots:
            curves = animated_blocks.action_curves(action, slot)
            own = [curve for curve in curves if not curve.data_path.startswith("pose.")]
            if own and not any(is_moving(curve) for curve in own):
                animated_blocks.remove_curves(action, own)
    for block, data in _animated(objects):
        for track in list(data.nla_tracks):
            if all(strip.action is not None and not _curves(strip) for strip in track.strips):
                data.nla_tracks.remove(track)
        if data.action is not None and not _curves(data):
            data.action = None
        if data.action is None and not len(data.nla_tracks) and not len(data.drivers):
            block.animation_data_clear()
    bpy.data.batch_remove([action for action in bpy.data.actions if not animated_blocks.action_curves(action, None)])


def _held_actions(objects: Sequence[bpy.types.Object]) -> set[bpy.types.Action]:
    """Return the actions of clips in which nothing moves.

    A clip consists of the NLA tracks with the same name.
    """
    actions: dict[str, set[bpy.types.Action]] = {}
    for _block, data in _animated(objects):
        for track in data.nla_tracks:
            actions.setdefault(track.name, set()).update(strip.action for strip in track.strips if strip.action)
    held: set[bpy.types.Action] = set()
    for together in actions.values():
        if not any(is_moving(curve) for action in together for curve in animated_blocks.action_curves(action, None)):
            held |= together
    return held


def held_blocks(objects: Sequence[bpy.types.Object]) -> tuple[list[bpy.types.ID], bool]:
    """Return the objects and shape keys of which all f-curves are constant, and whether any other f-curve changes."""
    held: list[bpy.types.ID] = []
    has_movement = False
    for block, data in _animated(objects):
        curves = _curves(data) if data.action is not None else []
        if any(is_moving(curve) for curve in curves):
            has_movement = True
        elif curves:
            held.append(block)
    return held, has_movement


def _animated(objects: Sequence[bpy.types.Object]) -> Iterator[tuple[bpy.types.ID, bpy.types.AnimData]]:
    """Yield the objects and their shape keys that have animation data, with this data."""
    for block in with_shape_keys(objects):
        if block.animation_data is not None:
            yield block, block.animation_data


def _curves(player: bpy.types.AnimData | bpy.types.NlaStrip) -> list[bpy.types.FCurve]:
    return animated_blocks.action_curves(player.action, player.action_slot)


def is_moving(curve: bpy.types.FCurve) -> bool:
    """Return whether the keys of a curve differ by more than rounding."""
    values = arrays.read(curve.keyframe_points, "co", 2)[:, 1]
    return bool(len(values) and np.ptp(values) > _STILL * max(1.0, float(np.abs(values).max())))


def without_pairs(objects: Sequence[bpy.types.Object]) -> list[bpy.types.Object]:
    """Merge an empty and its child of the same name and location into one object; return the objects.

    Some formats store a transform node and a mesh node for one object of Blender. The object takes the animation of
    the transform.
    """
    gone: list[bpy.types.Object] = []
    for place in objects:
        if place.type != "EMPTY" or not (_rests(place) or _only_acts(place)):
            continue
        alike = [child for child in place.children if child.type != "EMPTY" and _plain(child) == _plain(place)]
        if len(alike) != 1 or not _rests(alike[0]) or alike[0].matrix_local != mathutils.Matrix():
            continue
        (obj,) = alike
        if not _rests(place) and obj.animation_data is not None:
            continue  # both have actions, which cannot be merged
        for child in [child for child in place.children if child is not obj]:
            child.parent = obj  # both had the same location, so the transform of the child stays valid
        obj.parent = place.parent
        obj.matrix_parent_inverse = place.matrix_parent_inverse
        obj.rotation_mode = place.rotation_mode
        obj.matrix_basis = place.matrix_basis
        moving = place.animation_data
        if moving is not None and moving.action is not None:
            animated_blocks.assign_action(obj, moving.action, moving.action_slot)
        gone.append(place)
    names = [(obj, _plain(obj)) for obj in objects if obj not in gone]
    bpy.data.batch_remove(gone)
    for obj, name in names:
        if obj.name != name and name not in bpy.data.objects:
            obj.name = name
    return [obj for obj, _ in names]


def _rests(obj: bpy.types.Object) -> bool:
    """Return whether an object has no animation of its own transform."""
    data = obj.animation_data
    if len(obj.constraints) or (data is not None and (len(data.drivers) or len(data.nla_tracks))):
        return False
    if data is None or data.action is None:
        return True
    return all(curve.data_path.startswith("pose.") for curve in _curves(data))


def _only_acts(obj: bpy.types.Object) -> bool:
    """Return whether only the active action animates an object, without constraints, drivers or NLA tracks."""
    data = obj.animation_data
    return data is not None and not (len(obj.constraints) or len(data.drivers) or len(data.nla_tracks))


def _plain(obj: bpy.types.Object) -> str:
    """Return an object's name without the number that Blender appends to make it unique."""
    return re.sub(r"\.\d{3}$", "", obj.name)


def mark_root(objects: Sequence[bpy.types.Object]) -> None:
    """Mark the object that is the ancestor of all others as the root of the file, if there is such an object."""
    roots = [obj for obj in objects if obj.parent is None]
    if len(roots) == 1:
        roots[0].meshferry.is_root = True


def name_clips(objects: Sequence[bpy.types.Object]) -> None:
    """Store the clip of each action, since importers create one action for each object.

    The clip is recognised by the name of the action's NLA track, or by an action name such as ``Armature|Walk`` or
    ``Armature|Walk|BaseLayer``.
    """
    for _block, data in _animated(objects):
        for track in data.nla_tracks:
            for strip in track.strips:
                if strip.action is not None:
                    strip.action.meshferry.clip_name = track.name
    owners = {"Key", *(obj.name for obj in objects), *(obj.data.name for obj in objects if obj.data)}
    for action in bpy.data.actions:
        parts = action.name.split("|")
        while len(parts) > 1 and parts[0] in owners:
            del parts[0]
        if len(parts) > 1 and _LAYER.fullmatch(parts[-1]):
            del parts[-1]
        action.meshferry.clip_name = action.meshferry.clip_name or "|".join(parts)


def as_one_clip(context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str, rate: float) -> None:
    """Combine all animation of objects into one clip of a file with ``rate`` frames per second.

    Transforms that are read from the file at each frame become keys, so that the file is no longer needed. If the scene
    has another rate, keys are moved to keep the speed. The clip has the length of the scene's range.
    """
    stretch = context.scene.render.fps / context.scene.render.fps_base / rate
    if abs(stretch - 1) > _STILL:
        for action in {data.action for _block, data in _animated(objects) if data.action is not None}:
            _stretch(action, context.scene.frame_start, stretch)
    cached = [obj for obj in objects if any(one.type == _CACHED for one in obj.constraints)]
    if cached:
        _key_places(context, cached, name, rate)
    start, end = context.scene.frame_start, context.scene.frame_end
    for action in {data.action for _block, data in _animated(objects) if data.action is not None}:
        action.meshferry.clip_name = name
        action.use_frame_range = True
        action.frame_start, action.frame_end = start, start + (end - start) * stretch


def _stretch(action: bpy.types.Action, start: float, factor: float) -> None:
    """Scale the times of an action's keys about a frame by a factor."""
    for curve in animated_blocks.action_curves(action, None):
        points = arrays.read(curve.keyframe_points, "co", 2)
        points[:, 0] = start + (points[:, 0] - start) * factor
        curve.keyframe_points.foreach_set("co", points.reshape(-1))
        curve.update()


def _key_places(context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str, rate: float) -> None:
    """Replace the cache constraints of objects by keys of their transforms in all frames of the scene."""
    scene = context.scene
    frames = range(scene.frame_start, scene.frame_end + 1)
    places = {obj: np.empty((len(frames), 4, 4)) for obj in objects}
    for number, frame in enumerate(frames):
        scene.frame_set(frame)
        for obj, matrices in places.items():
            above = obj.parent.matrix_world @ obj.matrix_parent_inverse if obj.parent else None
            world = obj.matrix_world
            matrices[number] = np.array(above.inverted_safe() @ world if above is not None else world)
    clip = Clip(name, rate, len(frames))
    actions = ClipActions(clip, ClipTiming(clip, SceneTime.of(scene), frames.start), name, lambda block: block)
    for target, (obj, matrices) in enumerate(places.items()):
        for constraint in [one for one in obj.constraints if one.type == _CACHED]:
            obj.constraints.remove(constraint)
        obj.rotation_mode = "QUATERNION"
        translation, rotation, scale, _shear = joint_poses.decompose(matrices)
        turns = continuous_rotations(rotation.astype(np.float32))
        track = TransformTrack(target, translation.astype(np.float32), turns, scale.astype(np.float32))
        actions.add_transforms(obj, track)
    actions.attach()
    scene.frame_set(scene.frame_start)


def gathered(context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str) -> bpy.types.Collection:
    """Move objects from their collections to a new collection of the scene, and return it.

    No object is active afterwards.

    Objects outside the scene's collections, such as custom shapes of bones, are not moved.
    """
    collection = bpy.data.collections.new(name)
    context.scene.collection.children.link(collection)
    shown = set(context.scene.collection.all_objects)
    for obj in objects:
        if obj in shown:
            for home in obj.users_collection:
                home.objects.unlink(obj)
            collection.objects.link(obj)
    for child in list(context.scene.collection.children):
        if child is not collection and not child.all_objects:
            bpy.data.collections.remove(child)
    # Blender's FBX importer activates another object in each run, and exports put the active object first.
    context.view_layer.objects.active = None
    context.view_layer.update()
    return collection
