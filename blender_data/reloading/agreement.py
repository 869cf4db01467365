"""Agreement of objects and their file: marks of what an export wrote, so that a reload does not show it twice."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.format import Format
from ...io_formats.core.scene import Scene
from .. import arrays, compat, import_marks
from ..animation.action_ranges import same_path
from ..armature_modifiers import MESHABLE, armature_of
from ..exporting.node_plan import world_matrix
from ..file_records import digest_of
from ..mesh_data import checksums
from ..names import name_in_file
from ..property_groups import ledger
from .matching import Pairs


def note_export(
    objects: Iterable[bpy.types.Object],
    path: Path,
    scene: Scene,
    target: Format,
    values: Mapping[str, Any],
    *,
    is_stored: bool = True,
) -> None:
    """Note in the ledgers of the imports of a file what an export wrote of their objects.

    Parameters
    ----------
    scene:
        The exported scene, whose nodes have the names of their objects.
    values:
        Values of the options of the export.
    is_stored:
        Whether data blocks may be changed, so that it is also stored on them.
    """
    for home in bpy.data.collections:
        if home.meshferry.import_id and same_path(home.meshferry.source_path, str(path)):
            inside, key = import_marks.objects_in(home), home.meshferry.import_id
            own = [obj for obj in objects if obj in inside or obj.meshferry.import_id == key]
            if not own:  # the objects are those of another import of the file
                continue
            noted = ledger.ledgers().setdefault(ledger.key_of(home), ledger.Ledger(agreed=home.meshferry.file.digest))
            noted.digest = digest_of(path)
            noted.marks |= {uid: {**marks, "import_id": key} for uid, marks in _marks(own, scene, target, values)}
            if is_stored:
                noted.agreed = noted.digest
                noted.settle(home)


def _marks(
    objects: Collection[bpy.types.Object], scene: Scene, target: Format, values: Mapping[str, Any]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the marks of the exported ones of the objects of an import, each with its ``session_uid``."""
    can, nodes, inside = target.capabilities, {node.name for node in scene.nodes}, {*objects}
    joined = {above for obj in objects if (above := _joined_into(obj, nodes)) is not None}
    for obj in objects:
        if name_in_file(obj) not in nodes and obj.type != "ARMATURE":
            continue
        marks = {**ledger.marks_of(obj), "node_path": import_marks.path_of(obj)}
        space = {"place": import_marks.space_of(obj), "is_placed": can.node_hierarchy}
        space["is_baked"] = obj in joined or is_baked(obj, can)
        if can.node_hierarchy:
            marks["given_transform"] = import_marks.transform_of(obj)
            name_of = import_marks.path_of if obj.parent in inside else import_marks.node_of
            marks["given_parent_key"] = name_of(obj.parent)
        else:
            space["applied"] = _applied(obj, scene, can, values).reshape(-1).tolist()
        yield obj.session_uid, {**marks, "given_space": json.dumps(space)}


def _joined_into(obj: bpy.types.Object, nodes: Collection[str]) -> bpy.types.Object | None:
    """Return the object into whose node an export joined the mesh of another one, or None."""
    if obj.type not in MESHABLE or name_in_file(obj) in nodes:
        return None
    above = obj.parent
    while above is not None and name_in_file(above) not in nodes:
        above = above.parent
    return above


def is_baked(obj: bpy.types.Object, can: Capabilities) -> bool:
    """Return whether an export writes more than the mesh and the transform of an object: modifiers, instances, text."""
    keys = obj.data.shape_keys if obj.type == "MESH" else None
    is_shaped = keys is not None and keys.animation_data is None and any(key.value for key in keys.key_blocks)
    skipped = {"MESH_CACHE", *(("ARMATURE",) if can.skeletons else ())}
    return bool(
        obj.type not in {"MESH", "EMPTY", "ARMATURE"}
        or obj.instance_type != "NONE"
        or any(not constraint.mute for constraint in obj.constraints)
        or any(modifier.show_viewport and modifier.type not in skipped for modifier in obj.modifiers)
        or (is_shaped and not can.shape_keys)
    )


def _applied(obj: bpy.types.Object, scene: Scene, can: Capabilities, values: Mapping[str, Any]) -> Any:
    """Return the matrix (4, 4) from the space of an object to that of a file without transforms."""
    if can.lod_models:
        found = next((node.to_object for node in scene.nodes if node.name == name_in_file(obj)), None)
        return np.identity(4) if found is None else np.linalg.inv(found)
    choice = values.get("space", "TURNED_AND_SCALED")
    rig = armature_of(obj) if can.skeletons and obj.type in MESHABLE else None
    carrier = world_matrix(rig or obj)
    space = np.identity(4) if choice == "OWN" else carrier.copy()
    if choice == "TURNED_AND_SCALED":
        space[:3, 3] = 0
    return space @ np.linalg.pinv(carrier) @ world_matrix(obj) if rig is not None else space


def conflicts(pairs: Pairs, can: Capabilities, *, was_exported: bool) -> list[bpy.types.Object]:
    """Return the new objects of changed nodes that hold more than the data of their old objects, which thus stay.

    ``was_exported`` is whether an export of which nothing was noted may have written the file.
    """
    found = []
    parts: dict[str, set[bpy.types.Mesh]] = {}
    for obj in bpy.data.objects:
        if obj.type == "MESH" and obj.meshferry.node_path and obj not in pairs:
            parts.setdefault(obj.meshferry.node_path, set()).add(obj.data)
    for new, old in pairs.items():
        space = import_marks.space_given(old)
        matrix = np.reshape(space.get("applied", np.identity(4)), (4, 4))
        is_applied = not np.allclose(matrix, np.identity(4), atol=1e-7)
        baked = space.get("is_baked", was_exported and is_baked(old, can))
        is_lost = is_applied and (
            np.linalg.det(matrix) < 1e-9 or old.type == "ARMATURE" or armature_of(old) is not None
        )
        if new.type != old.type or baked or is_lost or _is_split(parts.get(old.meshferry.node_path, ()), new):
            found.append(new)
    return found


def _is_split(parts: Collection[bpy.types.Mesh], new: bpy.types.Object) -> bool:
    """Return whether meshes of a node's object and its copies have the faces of the new one: *Separate* split it."""
    faces = len(new.data.polygons) if new.type == "MESH" else 0
    counts = [len(mesh.polygons) for mesh in parts]
    return len(counts) > 1 and max(counts) < faces and sum(counts) <= faces


def take_back(new: bpy.types.Object, old: bpy.types.Object) -> None:
    """Transform a new mesh into the space of its old object, whose transform the last export applied to the mesh."""
    applied = import_marks.space_given(old).get("applied")
    if applied is None or new.type != "MESH":
        return
    forth = np.reshape(applied, (4, 4))
    if np.array_equal(forth, np.identity(4)):
        return
    mesh: bpy.types.Mesh = new.data
    normals = arrays.read(mesh.corner_normals, "vector", 3) @ forth[:3, :3].astype(np.float32)
    has_normals = mesh.has_custom_normals
    mesh.transform(Matrix(np.linalg.inv(forth).tolist()), shape_keys=True)
    if has_normals:
        mesh.attributes.remove(mesh.attributes["custom_normal"])
        compat.set_corner_normals(mesh, normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30))
    checksums.renew_fingerprint(mesh)
