"""Local transforms of objects relative to the node above them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Quaternion, Vector

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Text, error

Matrix4 = npt.NDArray[np.float64]

_FLAT = 1e-12


@dataclass(frozen=True)
class Transform:
    """Translation, rotation (w, x, y, z) and scale, and whether a shear had to be dropped."""

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    sheared: bool = False


IDENTITY = Transform()


def world_matrix(obj: bpy.types.Object) -> Matrix4:
    """Return the world matrix of an evaluated object, (4, 4) float64."""
    return np.array(obj.matrix_world, np.float64)


class SingularTransformError(ExportError):
    """An object of zero scale, or whose transform is NaN or infinite."""


def require_size(obj: bpy.types.Object, matrix: Matrix4) -> None:
    """Raise an error that names the object if its transform is singular, so that it cannot be inverted."""
    problem = _singularity(obj, matrix)
    if problem:
        raise SingularTransformError(problem)


def all_singular(
    context: bpy.types.Context, objects: Iterable[bpy.types.Object], first: SingularTransformError
) -> ExportError:
    """Return one error that names all objects with a singular transform.

    ``first`` is the error that the export raised for one of them.
    """
    depsgraph = context.evaluated_depsgraph_get()
    shown = [obj for obj in objects if obj.type != "EMPTY" and obj.visible_get(view_layer=context.view_layer)]
    found = [first.message, *(_singularity(obj, world_matrix(obj.evaluated_get(depsgraph))) for obj in shown)]
    problems = [problem for problem in dict.fromkeys(found) if problem]
    return ExportError.of(*(error("singular-transform", "{}", problem) for problem in problems))


def _singularity(obj: bpy.types.Object, matrix: Matrix4) -> Text:
    """Return the reason why a transform cannot be inverted, or an empty string."""
    if not np.isfinite(matrix).all():
        return Text("'{}' has a transform with NaN or infinite values", obj.name)
    lengths = np.linalg.norm(matrix[:3, :3], axis=0)
    if (lengths < _FLAT).any() or abs(np.linalg.det(matrix[:3, :3])) < _FLAT * max(1e-9, lengths.max()) ** 3:
        axis = "XYZ"[int(lengths.argmin())]
        return Text("'{}' has zero scale on {}; give it a size, or leave it out", obj.name, axis)
    return Text("")


def local_transform(obj: bpy.types.Object, above: bpy.types.Object | None) -> Transform:
    """Return an evaluated object's transform relative to the evaluated object of the node above it."""
    if has_plain_channels(obj, above):
        return _from_channels(obj)
    matrix = Matrix(obj.matrix_world)
    if above is not None:
        # Use double precision, since nested scales of 0.01 lose digits in single precision.
        matrix = Matrix(np.linalg.pinv(world_matrix(above)) @ world_matrix(obj))
    return decompose(matrix)


def relative_transform(obj: bpy.types.Object, origin: Matrix4) -> Transform:
    """Return an evaluated object's transform relative to an invertible world matrix."""
    return decompose(Matrix(np.linalg.inv(origin) @ world_matrix(obj)))


def channels_of(obj: bpy.types.Object, channels: str) -> Matrix4:
    """Return the world matrix of an evaluated object, reduced to some channels; see ``Origin.channels``."""
    if channels == "ALL":
        return world_matrix(obj)
    location, rotation, _scale = obj.matrix_world.decompose()
    return np.array(
        Matrix.LocRotScale(location, rotation if channels == "LOCATION_ROTATION" else None, None), np.float64
    )


def has_plain_channels(obj: bpy.types.Object, above: bpy.types.Object | None) -> bool:
    """Return whether location, rotation and scale of an object are its whole transform relative to ``above``."""
    parent = obj.parent
    if (parent.original if parent else None) != (above.original if above else None):
        return False
    return (
        (parent is None or (hangs_on_object(obj) and obj.matrix_parent_inverse == Matrix.Identity(4)))
        and all(constraint.mute for constraint in obj.constraints)
        and obj.rigid_body is None
        and obj.delta_location == Vector((0, 0, 0))
        and obj.delta_scale == Vector((1, 1, 1))
        and _no_delta_rotation(obj)
    )


def hangs_on_object(obj: bpy.types.Object) -> bool:
    """Return whether a child follows its parent object itself, and not a bone, a vertex or a curve path."""
    parent = obj.parent
    return obj.parent_type == "OBJECT" and not (parent.type == "CURVE" and parent.data.use_path)


def _no_delta_rotation(obj: bpy.types.Object) -> bool:
    if obj.rotation_mode in {"QUATERNION", "AXIS_ANGLE"}:
        return obj.delta_rotation_quaternion == Quaternion((1, 0, 0, 0))
    return tuple(obj.delta_rotation_euler) == (0, 0, 0)


def _from_channels(obj: bpy.types.Object) -> Transform:
    mode = obj.rotation_mode
    if mode == "QUATERNION":
        rotation = obj.rotation_quaternion.normalized()
    elif mode == "AXIS_ANGLE":
        channel: tuple[float, ...] = tuple(obj.rotation_axis_angle)
        rotation = Quaternion(channel[1:], channel[0]) if any(channel[1:]) else Quaternion()
    else:
        rotation = obj.rotation_euler.to_quaternion()
    return Transform(tuple(obj.location), tuple(rotation), tuple(obj.scale))


def decompose(matrix: Matrix) -> Transform:
    """Decompose a matrix; shear is dropped with a warning."""
    translation, rotation, scale = matrix.decompose()
    again = np.array(Matrix.LocRotScale(translation, rotation, scale), np.float64)
    given = np.array(matrix, np.float64)
    size = max(1e-9, float(np.abs(given[:3, :3]).max()))
    sheared = bool(np.abs(again - given)[:3, :3].max() > 1e-4 * size)
    return Transform(tuple(translation), tuple(rotation.normalized()), tuple(scale), sheared)
