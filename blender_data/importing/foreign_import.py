"""What importers of Blender's own have made: tidied, and put into one collection."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import bpy
import mathutils
import numpy as np

from ...io_formats.quaternions import continuous
from ...io_formats.scene import Clip, TransformTrack
from .actions import ClipActions, ClipTiming

_CACHED = "TRANSFORM_CACHE"
"""Type of the constraint that reads an object's place out of a file."""


def without_scaffolding(objects: Sequence[bpy.types.Object], names: Collection[str]) -> list[bpy.types.Object]:
    """Remove objects that stand for nothing; return the others.

    Those are empties of these ``names`` on which nothing hangs, and armatures that have no bones but of these names.
    """
    gone: list[bpy.types.Object] = []
    for thing in objects:
        plain = re.sub(r"\.\d{3}$", "", thing.name)
        is_bare = thing.type == "EMPTY" and not thing.children and plain in names
        if is_bare or (thing.type == "ARMATURE" and all(bone.name in names for bone in thing.data.bones)):
            gone.append(thing)
            for child in thing.children:
                child.matrix_parent_inverse = thing.matrix_basis @ child.matrix_parent_inverse
                if thing.parent is not None:
                    child.matrix_parent_inverse = thing.matrix_parent_inverse @ child.matrix_parent_inverse
                child.parent = thing.parent
                child.parent_type = "OBJECT"
    kept = [thing for thing in objects if thing not in gone]
    for thing in kept:
        for modifier in list(thing.modifiers):
            if modifier.type == "ARMATURE" and (modifier.object is None or modifier.object in gone):
                thing.modifiers.remove(modifier)
                for group in [group for group in thing.vertex_groups if group.name in names]:
                    thing.vertex_groups.remove(group)
    bpy.data.batch_remove(gone)
    return kept


def apply_transforms(objects: Sequence[bpy.types.Object]) -> None:
    """Move the points of meshes to where their objects have them stand, which then have no transform."""
    for thing in objects:
        if thing.type == "MESH" and thing.data.users == 1:
            thing.data.transform(thing.matrix_basis)
            thing.matrix_basis.identity()


def as_one_clip(context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str) -> None:
    """Make one clip of all that moves objects along the time line of a file.

    Places that are read out of the file again at each frame become keys, so that the file is needed no more.
    """
    cached = [thing for thing in objects if any(one.type == _CACHED for one in thing.constraints)]
    if cached:
        _key_places(context, cached, name)
    for thing in objects:
        for block in (thing, getattr(thing.data, "shape_keys", None)):
            data = block.animation_data if block is not None else None
            if data is not None and data.action is not None:
                data.action.meshferry.clip_name = name


def _key_places(context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str) -> None:
    scene = context.scene
    frames = range(scene.frame_start, scene.frame_end + 1)
    places = {thing: np.empty((len(frames), 4, 4)) for thing in objects}
    for number, frame in enumerate(frames):
        scene.frame_set(frame)
        for thing, matrices in places.items():
            above = thing.parent.matrix_world @ thing.matrix_parent_inverse if thing.parent else None
            world = thing.matrix_world
            matrices[number] = above.inverted_safe() @ world if above is not None else world
    clip = Clip(name, scene.render.fps / scene.render.fps_base, len(frames))
    actions = ClipActions(clip, ClipTiming(clip, scene, frames.start), name, lambda block: block)
    for target, (thing, matrices) in enumerate(places.items()):
        for constraint in [one for one in thing.constraints if one.type == _CACHED]:
            thing.constraints.remove(constraint)
        thing.rotation_mode = "QUATERNION"
        parts = [mathutils.Matrix(matrix).decompose() for matrix in matrices]
        turns = continuous(np.array([tuple(part[1]) for part in parts], np.float32))
        track = TransformTrack(
            target,
            np.array([tuple(part[0]) for part in parts], np.float32),
            turns,
            np.array([tuple(part[2]) for part in parts], np.float32),
        )
        actions.add_transforms(thing, track)
    actions.attach()
    scene.frame_set(scene.frame_start)


def gathered(context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str) -> bpy.types.Collection:
    """Put objects into a new collection of the scene instead of those that they are in; return it.

    Objects in no collection of the scene, such as shapes of bones, stay out of sight.
    """
    collection = bpy.data.collections.new(name)
    context.scene.collection.children.link(collection)
    shown = set(context.scene.collection.all_objects)
    for thing in objects:
        if thing in shown:
            for home in thing.users_collection:
                home.objects.unlink(thing)
            collection.objects.link(thing)
    for child in list(context.scene.collection.children):
        if child is not collection and not child.all_objects:
            bpy.data.collections.remove(child)
    context.view_layer.update()
    return collection
