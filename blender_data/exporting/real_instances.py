"""Temporary real copies of collection instances of skinned models, for an export.

In the dependency graph, instances are deformed meshes without weights. Copies of the objects have the undeformed mesh
and its weights.
"""

import contextlib
from collections.abc import Container, Iterable, Iterator

import bpy
from mathutils import Matrix

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Report, listed
from .. import scene_state
from ..armature_modifiers import MESHABLE, armature_of, refer_to_copies
from ..names import name_in_file
from .object_selection import is_of_body, shown_by

Copies = dict[bpy.types.Object, list[bpy.types.Object]]

_COPIED = MESHABLE | {"EMPTY", "ARMATURE", "LATTICE"}


def shows_skinned(obj: bpy.types.Object) -> bool:
    """Return whether an object is a collection instance of a model that an armature deforms."""
    collection = obj.instance_collection if obj.instance_type == "COLLECTION" else None
    return collection is not None and any(
        armature_of(member) is not None or shows_skinned(member) for member in _members(collection)
    )


@contextlib.contextmanager
def real_instances(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[Copies]:
    """Temporarily make collection instances of skinned models real.

    Yield, for each of these instances, the copies of its objects that have a surface or show instances.
    """
    made: list[bpy.types.Object] = []
    found: Copies = {}
    for obj in objects:
        if shows_skinned(obj):
            copies = _copy_members(obj, made)
            found[obj] = [copy for copy in copies if copy.type in MESHABLE or copy.instance_type != "NONE"]
    with scene_state.linked(context, made):
        yield found


def common_armature(instance: bpy.types.Object, members: Iterable[bpy.types.Object]) -> bpy.types.Object | None:
    """Return the armature that deforms the members of an instance.

    Raises
    ------
    ExportError
        There are several armatures.
    """
    found = dict.fromkeys(armature for member in members if (armature := armature_of(member)) is not None)
    if len(found) > 1:
        raise ExportError(
            "'{}' is an instance of a collection with {} armatures; a mesh in a file has one. "
            "Make the instance real (Object > Apply > Make Instances Real), or make a collection for each armature",
            instance.name,
            len(found),
        )
    return next(iter(found), None)


def parts_shown(objects: Iterable[bpy.types.Object], parts: Container[bpy.types.Object] = ()) -> list[bpy.types.Object]:
    """Return the levels of detail and physics shapes in the collections of which objects show instances.

    ``parts`` are further levels and shapes, which are recognised only by their names.
    """
    shown = [obj for obj in shown_by(objects) if obj.type in MESHABLE]
    return [obj for obj in shown if _is_part(obj) or obj in parts]


def report_parts(parts: Iterable[bpy.types.Object], report: Report) -> None:
    """Report that these levels of detail and physics shapes of collection instances are left out."""
    names = [obj.name for obj in parts]
    if names:
        text = "levels of detail and physics shapes of collection instances are left out"
        report.loss("parts-of-instances", text, item=listed(names))


def _members(collection: bpy.types.Collection) -> list[bpy.types.Object]:
    """Return the objects of a collection to copy: those that are visible in its instances, and armatures.

    Bodies to fit clothes on are included; :func:`_copy_members` leaves them out.
    """
    return [
        obj
        for obj in collection.all_objects
        if obj.type in _COPIED and not _is_part(obj) and (not obj.hide_viewport or obj.type == "ARMATURE")
    ]


def _is_part(obj: bpy.types.Object) -> bool:
    return obj.meshferry.lod_of is not None or obj.meshferry.role != "RENDER"


def _copy_members(instance: bpy.types.Object, made: list[bpy.types.Object]) -> list[bpy.types.Object]:
    """Copy the objects of an instance and of nested ones, with their transforms; add all copies to ``made``."""
    copies: dict[bpy.types.Object, bpy.types.Object] = {}
    for obj in _members(instance.instance_collection):
        if is_of_body(obj):
            continue
        copy = obj.copy()
        made.append(copy)
        copies[obj] = copy
        copy.hide_viewport = False
        kept = copy.meshferry
        kept.source_name, kept.given_name = name_in_file(obj), copy.name
    offset = Matrix.Translation(-instance.instance_collection.instance_offset)
    for obj, copy in copies.items():
        if obj.parent in copies:
            copy.parent = copies[obj.parent]
        else:
            before = Matrix() if obj.parent is None else obj.matrix_world @ obj.matrix_basis.inverted_safe()
            copy.parent = instance
            copy.parent_type = "OBJECT"
            copy.matrix_parent_inverse = offset @ before
        for user in (*copy.modifiers, *copy.constraints):
            refer_to_copies(user, copies)
    real: list[bpy.types.Object] = []
    for copy in copies.values():
        real += _copy_members(copy, made) if shows_skinned(copy) else [copy]
    return real
