"""Transforms of objects for placements: channels, matrices in double precision, and transforms that *Apply* moved.

World matrices of Blender are in single precision: a chain of scaled parents loses digits, and far from the origin the
error can be millimetres.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Euler, Quaternion
from mathutils import Matrix as BlenderMatrix

from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.placement import Channels, Matrix, ModelUse, PlacedNode, Placement
from ....io_formats.geometry.triangles import part_of_slots
from ... import animated_blocks, arrays
from .. import node_plan

_FLAT = 1e-6
"""Thickness relative to the size of a mesh below which the mesh counts as flat."""
_EXACT = 1e-5
"""Tolerance for transformed vertices, relative to the size of the mesh."""

_Points = npt.NDArray[np.float64]


def applied_transforms(
    objects: Iterable[bpy.types.Object],
    edits: Mapping[Any, Sequence[str]],
    nodes: Mapping[str, PlacedNode],
    placement: Placement,
) -> dict[Any, Matrix]:
    """Return the matrix (4, 4) by which the user transformed the vertices of each mesh since the import.

    Meshes with other edits, and meshes whose file cannot be read, are left out.
    """
    found: dict[Any, Matrix] = {}
    for obj in objects:
        node = nodes.get(obj.meshferry.node_key)
        if obj.type != "MESH" or node is None or obj.data in found or list(edits[obj.data]) != ["vertices"]:
            continue
        if isinstance(node.content, ModelUse) and not placement.models[node.content.model].is_tree:
            now = arrays.read(obj.data.vertices, "co", 3).astype(np.float64)
            for points in _file_points(obj, node.content, placement):
                matrix = _transform(points.astype(np.float64), now) if points.shape == now.shape else None
                if matrix is not None:
                    found[obj.data] = matrix
    return found


def _file_points(obj: bpy.types.Object, use: ModelUse, placement: Placement) -> list[npt.NDArray[np.float32]]:
    """Return the vertices (P, 3) of the whole mesh in the file, and of the surfaces that an object shows."""
    try:
        (node,) = placement.models[use.model].read().nodes
    except (MeshferryError, ValueError):
        return []
    if node.mesh is None:
        return []
    shown = {use.slots[slot].name for slot in json.loads(obj.meshferry.node_slots or "[]") if slot >= 0}
    kept = [number for number, surface in enumerate(node.mesh.surfaces) if surface.name in shown]
    part = part_of_slots(node.mesh, kept) if kept else node.mesh
    return [node.mesh.points, part.points]


def _transform(points: _Points, now: _Points) -> Matrix | None:
    """Return the affine matrix (4, 4) that maps points ``points`` to ``now``, both (P, 3).

    Return None if no matrix does, or if the points are unchanged.
    """
    if len(points) < 3:
        return None
    centre, centre_now = points.mean(axis=0), now.mean(axis=0)
    old, new = points - centre, now - centre_now
    axes, sizes, _ = np.linalg.svd(old.T @ old)
    if sizes[1] <= _FLAT**2 * sizes[0]:
        return None  # all points are on a line
    if sizes[2] <= _FLAT**2 * sizes[0]:  # all points are in a plane; its normal is scaled like its area
        plane = new.T @ np.linalg.pinv(old.T) @ axes[:, :2]
        normal = np.cross(plane[:, 0], plane[:, 1])
        length = float(np.linalg.norm(normal)) ** 0.5 or 1.0
        old = np.vstack((old, np.cross(axes[:, 0], axes[:, 1]) * np.sqrt(sizes[0])))
        new = np.vstack((new, normal / length * np.sqrt(sizes[0])))
    matrix = np.identity(4)
    matrix[:3, :3] = np.linalg.lstsq(old, new, rcond=None)[0].T
    matrix[:3, 3] = centre_now - matrix[:3, :3] @ centre
    size = max(np.ptp(now, axis=0).max(), np.abs(now).max())
    error = np.abs(points @ matrix[:3, :3].T + matrix[:3, 3] - now).max()
    is_change = np.abs(points - now).max() > _EXACT * size
    return matrix if is_change and error <= _EXACT * size and np.linalg.det(matrix) != 0.0 else None


_TRANSFORMS = ("location", "rotation_", "scale", "delta_")
"""Beginnings of the data paths of properties that form an object's transform."""
_CARRIERS = frozenset({"OBJECT", "ARMATURE", "LATTICE"})
"""Types of parenting in which a child follows the transform of the parent object."""


def local_matrix(obj: bpy.types.Object) -> Matrix:
    """Return the matrix (4, 4) of an object relative to its parent, with parent inverse and delta transforms.

    Children of bones are relative to the armature object, with the bone at rest.
    """
    basis = np.array(obj.matrix_basis, np.float64)
    if obj.parent is None:
        return basis
    return _carrier(obj) @ np.array(obj.matrix_parent_inverse, np.float64) @ basis


def is_driven(obj: bpy.types.Object) -> bool:
    """Return whether constraints, drivers, keys, or a parent bone, vertex, lattice determine an object's transform."""
    return (obj.parent is not None and obj.parent_type not in {"OBJECT", "ARMATURE"}) or is_animated(obj)


def is_animated(obj: bpy.types.Object) -> bool:
    """Return whether constraints, drivers or keys determine an object's transform."""
    if any(not constraint.mute for constraint in obj.constraints):
        return True
    animation = obj.animation_data
    if animation is None:
        return False
    curves = list(animation.drivers)
    for holder in animated_blocks.action_holders(obj):
        curves += animated_blocks.action_curves(holder.action, holder.action_slot)
    return any(curve.data_path.startswith(_TRANSFORMS) for curve in curves)


class ObjectPlaces:
    """Matrices of the objects of one export.

    Objects whose channels do not determine their matrix are evaluated by Blender.
    """

    def __init__(self, depsgraph: bpy.types.Depsgraph) -> None:
        self.depsgraph = depsgraph

    def world(self, obj: bpy.types.Object) -> Matrix:
        """Return the matrix (4, 4) from the space of an object to the world."""
        return self.relative(obj, None)

    def relative(self, obj: bpy.types.Object, frame: bpy.types.Object | None) -> Matrix:
        """Return the matrix (4, 4) from the space of an object to the space of ``frame``, or to the world for None."""
        matrix = np.identity(4)
        at: bpy.types.Object | None = obj
        while at is not None and at != frame:
            if _is_evaluated(at):
                matrix, at = node_plan.world_matrix(at.evaluated_get(self.depsgraph)) @ matrix, None
            else:
                matrix, at = local_matrix(at) @ matrix, at.parent
        return matrix if at == frame or frame is None else self.seen_from(frame, matrix)

    def seen_from(self, frame: bpy.types.Object, world: Matrix) -> Matrix:
        """Return a world matrix (4, 4) relative to an object; the object's transform must be invertible."""
        matrix: Matrix = np.linalg.solve(self.world(frame), world)
        matrix[3] = 0.0, 0.0, 0.0, 1.0  # exactly, without rounding errors
        return matrix


def _carrier(obj: bpy.types.Object) -> Matrix:
    """Return the matrix of the frame of a child relative to the parent object.

    It is that of the bone at rest for a child of a bone, otherwise the identity.
    """
    bone = obj.parent.data.bones.get(obj.parent_bone) if obj.parent_type == "BONE" else None
    if bone is None or bone.use_relative_parent:
        return np.identity(4)
    end = BlenderMatrix.Translation((0.0, bone.length, 0.0))
    return np.array(bone.matrix_local, np.float64) @ np.array(end, np.float64)


def _is_evaluated(obj: bpy.types.Object) -> bool:
    """Return whether the matrix of an object must be evaluated by Blender, since its channels do not determine it."""
    parent = obj.parent
    if parent is not None:
        on_path = parent.type == "CURVE" and parent.data.use_path
        if on_path or obj.parent_type not in {*_CARRIERS, "BONE"}:
            return True
    return is_animated(obj) or (obj.rigid_body is not None and obj.rigid_body.type == "ACTIVE")


_NOISE = 2e-6
"""Tolerance for numbers computed from a matrix: relative to the number, or absolute for numbers below 1."""
_SHEARED = 1e-4
"""Tolerance for a matrix that is composed of its channels again, relative to its largest element."""


def read_channels(
    obj: bpy.types.Object, given: Channels, frame: bpy.types.Object | None, *, is_own_parent: bool
) -> tuple[Channels, bool]:
    """Return the transform of an object without delta transforms, and whether channels can represent it completely.

    Parameters
    ----------
    given:
        The transform in the file.
    frame:
        The ancestor to which the transform is relative; None for the world.
    is_own_parent:
        Whether the object has the same parent as in the file.
    """
    is_plain = obj.parent is None or obj.matrix_parent_inverse == BlenderMatrix.Identity(4)
    if obj.rotation_mode == given.order and is_plain and is_own_parent:
        return Channels(_triple(obj.location), _triple(obj.rotation_euler), _triple(obj.scale), given.order), True
    matrix = _without_deltas(obj)
    if obj.parent is not None:
        matrix = obj.matrix_parent_inverse @ matrix
    above = obj.parent
    while above is not None and above != frame:
        matrix = BlenderMatrix(local_matrix(above).tolist()) @ matrix
        above = above.parent
    location, rotation, scale = matrix.decompose()
    angles = rotation.to_euler(given.order, Euler(given.rotation, given.order))
    found = Channels(
        _near(location, given.location), _near(angles, given.rotation), _near(scale, given.scale), given.order
    )
    wanted = np.array(matrix, np.float64)
    difference = np.abs(found.matrix() - wanted).max()
    return found, bool(difference <= _SHEARED * max(1.0, np.abs(wanted).max()))


def _without_deltas(obj: bpy.types.Object) -> BlenderMatrix:
    """Return the matrix of an object's own channels in any rotation mode."""
    if obj.rotation_mode == "QUATERNION":
        rotation = obj.rotation_quaternion.normalized()
    elif obj.rotation_mode == "AXIS_ANGLE":
        angle, x, y, z = np.array(obj.rotation_axis_angle).tolist()
        rotation = Quaternion((x, y, z), angle)
    else:
        rotation = obj.rotation_euler
    return BlenderMatrix.LocRotScale(obj.location, rotation, obj.scale)


def _near(values: Sequence[float], given: Sequence[float]) -> tuple[float, float, float]:
    """Return three numbers from a matrix, replaced by those of the file where they differ only by rounding."""
    pairs = zip(values, given, strict=True)
    x, y, z = (old if abs(new - old) <= _NOISE * max(1.0, abs(old)) else new for new, old in pairs)
    return x, y, z


def _triple(values: Sequence[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z
