"""What importers of Blender's own have made: tidied, and put into one collection."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import bpy


def without_scaffolding(objects: Sequence[bpy.types.Object], names: Collection[str]) -> list[bpy.types.Object]:
    """Remove objects that stand for nothing; return the others.

    Those are empties of these ``names`` on which nothing hangs, and armatures without a bone.
    """
    gone: list[bpy.types.Object] = []
    for thing in objects:
        plain = re.sub(r"\.\d{3}$", "", thing.name)
        is_bare = thing.type == "EMPTY" and not thing.children and plain in names
        if is_bare or (thing.type == "ARMATURE" and not len(thing.data.bones)):
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
    bpy.data.batch_remove(gone)
    return kept


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
