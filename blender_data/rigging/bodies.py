"""Bodies of an armature: bound meshes on which clothes are fitted, and which exports leave out.

A body is a name that its meshes store; one of an armature's bodies is active.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import bpy

from ..armature_modifiers import armature_of


def bodies_of(armature: bpy.types.Object, objects: Iterable[bpy.types.Object]) -> dict[str, list[bpy.types.Object]]:
    """Return the bodies of an armature among objects: their meshes by name."""
    found: dict[str, list[bpy.types.Object]] = {}
    for obj in objects:
        if obj.meshferry.body and armature_of(obj) == armature:
            found.setdefault(obj.meshferry.body, []).append(obj)
    return found


def active_body(armature: bpy.types.Object, bodies: dict[str, list[bpy.types.Object]]) -> str:
    """Return the name of an armature's active body: the first, if none was chosen; empty without bodies."""
    chosen: str = armature.meshferry.active_body
    return chosen if chosen in bodies else next(iter(bodies), "")


def active_meshes(armature: bpy.types.Object, objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Return the meshes of an armature's active body among objects; none without a body."""
    found = bodies_of(armature, objects)
    return found.get(active_body(armature, found), [])


def whole_body(obj: bpy.types.Object) -> list[bpy.types.Object]:
    """Return all meshes of the body that a mesh belongs to, or the mesh alone."""
    armature = armature_of(obj)
    if not obj.meshferry.body or armature is None:
        return [obj]
    return bodies_of(armature, bpy.data.objects)[obj.meshferry.body]


def free_name(armature: bpy.types.Object, objects: Sequence[bpy.types.Object]) -> str:
    """Return a name for a body of these objects that no body of other objects has: that of the first, or numbered."""
    taken = {name for name, found in bodies_of(armature, bpy.data.objects).items() if not set(found) <= set(objects)}
    first = objects[0].name
    numbered = (f"{first}.{number:03}" for number in itertools.count(1))
    return next(name for name in itertools.chain((first,), numbered) if name not in taken)


def make_body(armature: bpy.types.Object, objects: Sequence[bpy.types.Object], name: str) -> None:
    """Make meshes the active body of an armature, which clicks in the 3D view no longer select."""
    for obj in objects:
        obj.meshferry.body = name
        obj.hide_select = True
        obj.select_set(False)
    armature.meshferry.active_body = name


def release(objects: Iterable[bpy.types.Object]) -> None:
    """Make the meshes of a body ordinary meshes again."""
    for obj in objects:
        obj.meshferry.body = ""
        obj.hide_select = False


def is_shown(objects: Sequence[Any]) -> bool:
    """Return whether a mesh of a body is visible."""
    return any(obj.visible_get() for obj in objects)
