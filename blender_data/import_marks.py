"""Marks of imported data blocks, by which a reload finds them even after the user renamed or moved them."""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from . import names
from .importing.import_options import ImportRequest
from .mesh_data import checksums

_EULER_ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


def write_origin(owner: Any, request: ImportRequest) -> None:
    """Store the file and the options of an import on a collection or an action."""
    kept = owner.meshferry
    kept.source_path = request.source_path
    kept.import_options = json.dumps({**request.options.values(), **request.given}, default=str)


def stored_options(owner: Any) -> dict[str, Any]:
    """Return the options with which a collection or an action was imported; none if they are damaged."""
    try:
        return dict(json.loads(owner.meshferry.import_options or "{}"))
    except (ValueError, TypeError, RecursionError):
        return {}


def mark_objects(collection: bpy.types.Collection, objects: Collection[bpy.types.Object]) -> None:
    """Store on new objects their import and node, and their imported transform, parent and mesh fingerprint."""
    collection.meshferry.import_id = new_import()
    for made in objects:
        mark_object(made, collection.meshferry.import_id)
        checksums.store_fingerprint(made)
    for made in objects:
        made.meshferry.given_parent_key = node_of(made.parent)


def new_import() -> str:
    """Return the identifier of a new import."""
    return uuid.uuid4().hex


def mark_object(made: bpy.types.Object, import_id: str) -> None:
    """Store on a new object the identifiers of its import and node, and its transform."""
    kept = made.meshferry
    kept.import_id = import_id
    kept.node_path = path_of(made)
    kept.given_transform = transform_of(made)
    if made.hide_viewport:
        kept.given_hidden = True


def path_of(obj: bpy.types.Object) -> str:
    """Return the name of the parent and of the object as an export writes them now; see ``node_path``."""
    return f"{names.name_in_file(obj.parent) if obj.parent is not None else ''}/{names.name_in_file(obj)}"


def prepare_part(made: bpy.types.Object, path: str) -> None:
    """Store on an object of a model the marks that all its copies share; must be called for parents first.

    ``path`` consists of the names of its parents and its own name in the model.
    """
    kept = made.meshferry
    kept.is_model_part = True
    kept.node_path = path
    kept.given_transform = transform_of(made)
    kept.given_parent_key = node_of(made.parent)
    if isinstance(made.data, bpy.types.Mesh):
        kept.given_materials = "\n".join(material_identities(made))
        kept.given_mesh = checksums.identity_of(made.data)


def mark_part(made: bpy.types.Object, import_id: str) -> None:
    """Store on a copy of a model's object the identifier of its import."""
    kept = made.meshferry
    kept.import_id = import_id
    if kept.given_hidden != made.hide_viewport:
        kept.given_hidden = made.hide_viewport


def mark_model(made: bpy.types.Object) -> None:
    """Store on the object of an added node, and on the parts of the model below it, marks that they belong together."""
    parts = [obj for obj in made.children if obj.meshferry.is_model_part]
    for part in parts:
        part.meshferry.given_parent_key = node_of(made)
    made.meshferry.model_parts = len([*parts, *_parts_below(parts)])


def _parts_below(parts: Iterable[bpy.types.Object]) -> Iterator[bpy.types.Object]:
    for part in parts:
        inner = [obj for obj in part.children if obj.meshferry.is_model_part]
        yield from inner
        yield from _parts_below(inner)


def node_of(obj: bpy.types.Object | None) -> str:
    """Return the identifier of the node that an object represents in its file; empty for None."""
    return "" if obj is None else obj.meshferry.node_key or obj.meshferry.node_path


def has_given_parent(obj: bpy.types.Object) -> bool:
    """Return whether an imported object still has the same parent as in its file, and not one of another origin."""
    given: str = obj.meshferry.given_parent_key
    return node_of(obj.parent) == given and (obj.parent is None or bool(given))


def has_given_space(obj: bpy.types.Object) -> bool:
    """Return whether local transforms of an imported object mean the same as in its file: its parent is that one."""
    return has_given_parent(obj) and (obj.parent is None or obj.matrix_parent_inverse == Matrix.Identity(4))


def mark_node(made: bpy.types.Object, key: str, name: str) -> None:
    """Store the key and the name of a placement's node on its object."""
    kept = made.meshferry
    kept.node_key = key
    kept.source_name, kept.given_name = names.readable(name), made.name
    kept.given_parent_key = made.parent.meshferry.node_key if made.parent is not None else ""


def material_identities(obj: bpy.types.Object) -> list[str]:
    """Return an identifier of the material in each slot, which is unique in its project or else in the .blend file."""
    materials = [slot.material for slot in obj.material_slots]
    return ["" if one is None else one.meshferry.identity or names.name_in_file(one) for one in materials]


def transform_of(obj: bpy.types.Object) -> tuple[float, ...]:
    """Return location, rotation and scale of an object at rest, 10 numbers, without delta transforms.

    The rotation is a quaternion, or else a number above 1 for the rotation order followed by three Euler angles.
    """
    kept = obj.meshferry
    if kept.has_rest:  # the animation determines the current transform
        return (*kept.rest_location, *kept.rest_rotation, *kept.rest_scale)
    if obj.rotation_mode in _EULER_ORDERS:
        return (*obj.location, 2.0 + _EULER_ORDERS.index(obj.rotation_mode), *obj.rotation_euler, *obj.scale)
    return (*obj.location, *obj.rotation_quaternion, *obj.scale)


def set_transform(obj: bpy.types.Object, other: bpy.types.Object) -> None:
    """Give an object the transform of another one, without delta transforms."""
    obj.rotation_mode = other.rotation_mode
    obj.location, obj.scale = other.location, other.scale
    if obj.rotation_mode in _EULER_ORDERS:
        obj.rotation_euler = other.rotation_euler
    else:
        obj.rotation_quaternion = other.rotation_quaternion


def space_of(obj: bpy.types.Object) -> list[float]:
    """Return parent inverse and delta transform of an object as numbers; a parent of another origin counts, too."""
    is_foreign = obj.parent is not None and not node_of(obj.parent)
    matrix = obj.parent.matrix_world @ obj.matrix_parent_inverse if is_foreign else obj.matrix_parent_inverse
    inverse = [number for row in matrix for number in row]
    deltas = (obj.delta_location, obj.delta_rotation_euler, obj.delta_rotation_quaternion, obj.delta_scale)
    return [*inverse, *(number for delta in deltas for number in delta)]


def mark_place(obj: bpy.types.Object) -> None:
    """Store that the file has the present place of an object."""
    obj.meshferry.given_transform = transform_of(obj)
    obj.meshferry.given_parent_key = node_of(obj.parent)
    obj.meshferry.given_space = json.dumps({"place": space_of(obj), "is_placed": True})


def space_given(obj: bpy.types.Object) -> dict[str, Any]:
    """Return what the last export noted about an object's space; nothing if there was none, or if it is damaged."""
    try:
        space = dict(json.loads(obj.meshferry.given_space or "{}"))
        matrix = np.array(space.get("applied", np.identity(4).ravel()), np.float64)
    except (ValueError, TypeError, RecursionError):
        return {}
    return space if matrix.shape == (16,) and np.abs(matrix).max() < 1e12 else {}


def update_place(obj: bpy.types.Object, other: bpy.types.Object, parent: bpy.types.Object | None) -> None:
    """Give an object the place of a new import, unless the user moved it since the import or the last export."""
    space = space_given(obj)
    if space.get("is_placed"):
        is_same = node_of(obj.parent) == obj.meshferry.given_parent_key and space.get("place") == space_of(obj)
        if is_same and not is_moved(obj):
            take_place(obj, other, parent)
        return
    is_in_place = has_given_space(obj) and not is_moved(obj)
    if obj.meshferry.node_path and has_given_parent(obj) and obj.parent != parent:
        obj.parent, obj.parent_type = parent, other.parent_type
        obj.matrix_parent_inverse.identity()
    if is_in_place:
        set_transform(obj, other)


def take_place(obj: bpy.types.Object, other: bpy.types.Object, parent: bpy.types.Object | None) -> None:
    """Give an object another one's transform below a parent, without the parent inverse and delta that it replaces."""
    obj.parent, obj.parent_type, obj.parent_bone = parent, other.parent_type, other.parent_bone
    obj.matrix_parent_inverse.identity()
    set_transform(obj, other)
    obj.delta_location, obj.delta_scale = (0, 0, 0), (1, 1, 1)
    obj.delta_rotation_euler, obj.delta_rotation_quaternion = (0, 0, 0), (1, 0, 0, 0)


def is_moved(obj: bpy.types.Object) -> bool:
    """Return whether the user moved an imported object; True if its transform in the file is not known."""
    kept = obj.meshferry
    is_known = bool(kept.node_path) and obj.rotation_mode != "AXIS_ANGLE"
    return not is_known or transform_of(obj) != tuple(kept.given_transform)


def objects_in(collection: bpy.types.Collection) -> set[bpy.types.Object]:
    """Return the objects in a collection and those below it.

    After *Undo*, ``Collection.all_objects`` of Blender 4.5 can list deleted objects, and Blender crashes.
    """
    return {obj for one in (collection, *collection.children_recursive) for obj in one.objects}


def objects_of(collection: bpy.types.Collection) -> list[bpy.types.Object]:
    """Return the objects that belong to the import of a collection, wherever the user moved them.

    A duplicate of the collection has the same identifier, so objects in other such collections are excluded.
    """
    inside = objects_in(collection)
    identifier = collection.meshferry.import_id
    others = [one for one in bpy.data.collections if one.meshferry.import_id == identifier and one != collection]
    elsewhere = {obj for other in others for obj in objects_in(other)} - inside
    found = [obj for obj in bpy.data.objects if obj.meshferry.import_id == identifier]
    return [obj for obj in found if obj not in elsewhere]
