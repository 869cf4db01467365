"""Objects that represent the children of an imported Timberborn blueprint, and the objects below them."""

from __future__ import annotations

from collections.abc import Iterator

import bpy

from ....blender_data import file_records, import_marks
from ....blender_data.file_records import FileRecord
from ....blender_data.importing.placements.node_objects import OWNER
from ....blender_data.mesh_data import checksums
from ....io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT

MODEL = "Model"
"""Custom property with the path of the model of a child."""
STATES = ("Finished", "Unfinished", "Uncovered", "Underground")
"""Names of the states of a building, of which the game shows one at a time, and of their collections."""
_CHILDREN = "/Children/"
_COLLIDERS = "/CollidersSpec/"


def is_child(obj: bpy.types.Object) -> bool:
    """Return whether an object represents a child of a blueprint, imported or added."""
    key = obj.meshferry.node_key
    return obj.type == "EMPTY" and (obj.get(MODEL) is not None or (key.startswith(_CHILDREN) and _COLLIDERS not in key))


def child_of(obj: bpy.types.Object | None) -> bpy.types.Object | None:
    """Return the child that an object is or hangs below, such as for an object of its model; None for others."""
    while obj is not None and not is_child(obj):
        obj = obj.parent
    return obj


def is_guide(obj: bpy.types.Object) -> bool:
    """Return whether an object represents the root of a blueprint, its footprint or one of its points."""
    return bool(obj.meshferry.node_key) and not is_child(obj) and blueprint_of(obj) is not None


def objects_of_model(child: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the objects below a child that are its model: not other children, colliders or points."""
    return list(_below(child))


def _below(obj: bpy.types.Object) -> Iterator[bpy.types.Object]:
    for below in obj.children:
        if not (is_child(below) or below.meshferry.node_key):
            yield below
            yield from _below(below)


def blueprint_of(obj: bpy.types.Object) -> tuple[bpy.types.Collection, FileRecord] | None:
    """Return the collection of the import that an object belongs to, and the record of its file.

    An object that was added belongs to the import of its parent.
    """
    above: bpy.types.Object | None = obj
    while above is not None:
        identifier = above.meshferry.import_id
        for collection in bpy.data.collections if identifier else ():
            record = record_of(collection) if collection.meshferry.import_id == identifier else None
            if record is not None:
                return collection, record
        above = above.parent
    return None


def record_of(collection: bpy.types.Collection) -> FileRecord | None:
    """Return the record of the blueprint that a collection was imported from; None for others."""
    record = file_records.read(collection)
    return record if record is not None and record.format == TIMBERBORN_BLUEPRINT.name else None


def owner_of(child: bpy.types.Object) -> str:
    """Return the name of the file that a child of a nested blueprint belongs to; empty for the opened file."""
    return str(child.get(OWNER, ""))


def state_of(obj: bpy.types.Object, main: bpy.types.Collection) -> str:
    """Return the name of the child collection of the import that contains an object, or an empty text."""
    homes = (group for group in main.children if obj in group.all_objects.values())
    return next((group.meshferry.source_name or group.name for group in homes), "")


def states_of(main: bpy.types.Collection) -> dict[str, bpy.types.Collection]:
    """Return the collections of the states that a blueprint has, by their names."""
    return {group.meshferry.source_name: group for group in main.children if group.meshferry.source_name in STATES}


def set_model(child: bpy.types.Object, path: str) -> None:
    """Give a child the path of the model that was just written from the objects below it.

    The objects agree with the file from now on, so that a re-export of the blueprint finds no changes of theirs.
    """
    child[MODEL] = path
    found = blueprint_of(child)
    for obj in objects_of_model(child):
        if obj.data is not None and obj.type == "MESH":
            obj.data.meshferry.fingerprint = ""
            checksums.store_fingerprint(obj)
        above = obj.parent.name if obj.parent is not child else ""
        import_marks.prepare_part(obj, f"{above}/{obj.name}")
        if found is not None:
            import_marks.mark_part(obj, found[0].meshferry.import_id)
