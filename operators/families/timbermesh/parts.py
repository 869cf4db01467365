"""Parts of a layout that are exported to separate files, and objects that represent the children of a blueprint."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ....blender_data import file_records, import_marks
from ....blender_data.armature_modifiers import MESHABLE
from ....blender_data.exporting.object_selection import Origin, Source
from ....blender_data.file_records import FileRecord
from ....blender_data.mesh_data import checksums
from ....blender_data.names import MARK, name_in_file, without_number
from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import listed
from ....io_formats.core.scene import Matrix4
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
    from ....blender_data.importing.placements.node_objects import OWNER

    return str(child.get(OWNER, ""))


def state_of(obj: bpy.types.Object, main: bpy.types.Collection) -> str:
    """Return the name of the child collection of the import that contains an object, or an empty text."""
    homes = (group for group in main.children if obj in import_marks.objects_in(group))
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


ORIGIN_NAME = f"{MARK}Origin"
"""Name of the empty that marks the origin of a part; Blender may add a number to it."""
_TURNED = 1e-5
"""Tolerance in radians for an origin that is turned like its child, which keeps its rotation then."""


@dataclass(frozen=True)
class Part:
    """A file to write: its name without suffix and extension, its source, and the objects that use it."""

    name: str
    source: Source
    places: tuple[bpy.types.Object, ...] = ()
    """Objects of the scene that show the content of the file. There are several if they have the same meshes."""
    others: tuple[str, ...] = ()
    """Names of objects in ``places`` whose rotation or scale differs from the first one's, which the file has."""
    is_placed: bool = False
    """Whether ``places`` are children of an imported blueprint, which stores their transforms."""


def collection_part(collection: bpy.types.Collection, *, is_moved: bool) -> Part:
    """Return a collection as a part.

    Parameters
    ----------
    is_moved:
        Whether the file gets the origin of the collection: an empty ``#Origin`` in it, otherwise the collection's
        instance offset.

    Raises
    ------
    ExportError
        Several empties are named ``#Origin``.
    """
    marks = _marks(collection.all_objects)
    origin = None
    if is_moved and (marks or any(collection.instance_offset)):
        origin = _origin(marks) or Origin(matrix=Matrix.Translation(collection.instance_offset))
    return Part(collection.name, Source("COLLECTION", collection, origin=origin, left_out=frozenset(marks)))


def object_parts(chosen: Iterable[bpy.types.Object], *, is_moved: bool) -> list[Part]:
    """Return the topmost chosen objects as parts; objects with the same meshes share a part.

    For an object of an imported blueprint, the part is the model of its child. Its origin is the child, or an empty
    ``#Origin`` in the model. The root, points, the footprint and children without a model are left out.

    Parameters
    ----------
    is_moved:
        Whether each file gets the origin of its part: an empty ``#Origin`` below the object, otherwise the object's
        location. Rotation and scale of the object become part of the model. If false, objects never share a part,
        since they have different locations.

    Raises
    ------
    ExportError
        Several empties below an object are named ``#Origin``.
    """
    taken = [child_of(obj) or obj for obj in chosen if child_of(obj) is not None or not is_guide(obj)]
    taken = [obj for obj in taken if not is_child(obj) or objects_of_model(obj)]
    shapes: dict[tuple[object, ...], list[bpy.types.Object]] = {}
    for top in sorted(_topmost(taken), key=lambda obj: obj.name):
        shapes.setdefault(_shape(top) if is_moved else (top,), []).append(top)
    return [_object_part(tops, is_moved=is_moved) for tops in shapes.values()]


def is_origin(obj: bpy.types.Object) -> bool:
    """Return whether an object only marks the origin of a part."""
    return obj.type == "EMPTY" and without_number(obj.name) == ORIGIN_NAME


def _object_part(tops: Sequence[bpy.types.Object], *, is_moved: bool) -> Part:
    """Return the part of an object and all objects below it; ``is_moved`` moves it to its mark or origin."""
    top = tops[0]
    if is_child(top):
        return _placed_part(tops)
    members = (top, *top.children_recursive)
    marks = _marks(members)
    origin = (_origin(marks) or Origin(top)) if is_moved else None
    objects = tuple(obj for obj in members if obj not in marks)
    named = next(iter(objects), top) if top in marks else top
    source = Source("OBJECTS", objects=objects, origin=origin)
    others = () if marks else tuple(obj.name for obj in tops if not _is_turned_alike(obj, top))
    # Without #, since the game takes the first node of a name, and the root is named like the file.
    return Part(name_in_file(named).lstrip(MARK) or top.name, source, tuple(tops), others)


def _placed_part(tops: Sequence[bpy.types.Object]) -> Part:
    """Return the model below children of a blueprint, named like its present file.

    Raises
    ------
    ExportError
        Several empties below a child are named ``#Origin``; or one is, but the child has colliders or children, which
        would move with it.
    """
    top = tops[0]
    model = objects_of_model(top)
    marks = _marks(model)
    _origin(marks)
    for child in tops if marks else ():
        if len(child.children_recursive) > len(objects_of_model(child)):
            text = "'{}' has colliders, points or children, which would move with it to '{}'; remove this empty"
            raise ExportError(text, child.name, marks[0].name)
    path = str(top.get(MODEL, "")).replace("\\", "/")
    name = path.rpartition("/")[2] or without_number(name_in_file(top)).lstrip(MARK)
    origin = Origin(matrix=_place_at(top, marks[0])[2]) if marks else Origin(top, "ALL")
    source = Source("OBJECTS", objects=tuple(obj for obj in model if obj not in marks), origin=origin)
    return Part(name, source, tuple(tops), is_placed=True)


def move_to_origin(child: bpy.types.Object) -> None:
    """Move a child of a blueprint to the empty ``#Origin`` of its model, if there is one, without moving the model."""
    from ....io_formats.timbermesh.blueprint.components import ORDER as ROTATION_MODE

    mark = next((obj for obj in objects_of_model(child) if is_origin(obj)), None)
    if mark is None:
        return
    location, rotation, world = _place_at(child, mark)
    places = {obj: obj.matrix_world.copy() for obj in child.children}
    turned = child.matrix_basis.to_quaternion().rotation_difference(rotation)
    child.location = location
    if turned.angle > _TURNED:
        child.rotation_mode = ROTATION_MODE
        child.rotation_euler = rotation.to_euler(ROTATION_MODE, child.rotation_euler)
    for obj, place in places.items():
        obj.matrix_basis = (world @ obj.matrix_parent_inverse).inverted() @ place


def _place_at(child: bpy.types.Object, mark: bpy.types.Object) -> tuple[Vector, Quaternion, Matrix]:
    """Return location and rotation that put a child at a mark, and its world matrix there with its own scale."""
    above = child.matrix_world @ child.matrix_basis.inverted()
    location, rotation, _scale = (above.inverted() @ mark.matrix_world).decompose()
    return location, rotation, above @ Matrix.LocRotScale(location, rotation, child.scale)


def _is_turned_alike(obj: bpy.types.Object, other: bpy.types.Object) -> bool:
    return np.allclose(np.array(obj.matrix_world)[:3, :3], np.array(other.matrix_world)[:3, :3], atol=1e-4)


def _topmost(chosen: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Return the objects without an ancestor among the chosen ones, and all children of blueprints."""
    chosen = dict.fromkeys(chosen)
    below = {child for obj in chosen for child in obj.children_recursive}
    return [obj for obj in chosen if is_child(obj) or obj not in below]


def _marks(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    return [obj for obj in dict.fromkeys(objects) if is_origin(obj)]


def _origin(marks: Sequence[bpy.types.Object]) -> Origin | None:
    """Return the origin at the only mark, with its location and rotation but without the scale of its parents."""
    if len(marks) > 1:
        raise ExportError("Several empties mark an origin: {}; keep one", listed([mark.name for mark in marks]))
    return Origin(marks[0], "LOCATION_ROTATION") if marks else None


def _shape(top: bpy.types.Object) -> tuple[object, ...]:
    """Return a key that is equal for objects whose members have the same data and relative transforms.

    The transform of the object itself is ignored. The key of an object without meshes is unique.
    """
    members = [top, *(objects_of_model(top) if is_child(top) else top.children_recursive)]
    if not any(obj.type in MESHABLE for obj in members):
        return (top,)
    back = np.linalg.pinv(np.array(top.matrix_world))
    mark = next((obj for obj in members if is_origin(obj)), None)
    parts = [_look(obj, back, is_named=obj is not top) for obj in members if obj is not mark]
    return (_place(mark, back) if mark is not None else None, *sorted(parts, key=repr))


def _place(obj: bpy.types.Object, back: Matrix4) -> tuple[float, ...]:
    """Return the matrix of an object relative to the topmost one, rounded to remove rounding errors."""
    return tuple((np.round(back @ np.array(obj.matrix_world), 4) + 0.0).ravel().tolist())


def _look(obj: bpy.types.Object, back: Matrix4, *, is_named: bool) -> tuple[object, ...]:
    """Return the properties of an object that its node depends on, including a digest of its evaluated mesh."""
    is_node = is_named and (obj.type == "EMPTY" or obj.name.startswith(MARK))
    name = without_number(obj.name) if is_node else ""
    materials = tuple(slot.material for slot in obj.material_slots)
    action = obj.animation_data.action if obj.animation_data is not None else None
    made = _evaluated(obj) if obj.modifiers else ""
    return (name, obj.data, obj.instance_collection, materials, action, made, _place(obj, back))


def _evaluated(obj: bpy.types.Object) -> str:
    """Return a digest of the points of a mesh after its modifiers."""
    points = getattr(obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).data, "vertices", ())
    values = np.empty(3 * len(points), np.float32)
    if len(points):
        points.foreach_get("co", values)
    return hashlib.sha256(np.round(values, 5).tobytes()).hexdigest()
