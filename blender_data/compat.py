"""All code that depends on the Blender version in the use of ``bpy``, and no other code."""

from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

MAX_NAME_BYTES = 255 if bpy.app.version >= (5, 0, 0) else 63
"""Largest length of a data block's name in UTF-8 bytes."""


def set_corner_normals(
    mesh: bpy.types.Mesh, normals: npt.NDArray[np.float32], index: npt.NDArray[np.integer] | None = None
) -> None:
    """Set tangent-space custom normals of the corners.

    Parameters
    ----------
    mesh
        Mesh with C corners, edges calculated.
    normals
        (N, 3) float32 unit vectors or zeros; a zero keeps the normal that Blender calculates. N = C without ``index``.
    index
        (C,) row of ``normals`` for each corner. Corners with the same row share a tuple, so that Blender converts a
        million rows in 0.2 s.
    """
    if index is None:
        mesh.normals_split_custom_set(_tuples(normals))
        return
    rows = np.empty(len(normals), object)
    rows[:] = _tuples(normals)
    mesh.normals_split_custom_set(rows.take(index).tolist())


def set_point_normals(mesh: bpy.types.Mesh, normals: npt.NDArray[np.float32]) -> None:
    """Set tangent-space custom normals from one normal for each point, (P, 3) float32."""
    mesh.normals_split_custom_set_from_vertices(_tuples(normals))


def _tuples(rows: npt.NDArray[np.float32]) -> list[tuple[float, float, float]]:
    """Return the rows (N, 3) as tuples, three times as fast as with ``tolist`` and ``map``.

    Blender converts an array row by row with NumPy's scalars. For a million rows this takes 0.5 s longer (5.1 and
    later: 2.5 s) than making tuples and passing these.
    """
    values = iter(rows.reshape(-1).tolist())
    return list(zip(values, values, values, strict=True))


def enable_nodes(material: bpy.types.Material) -> None:
    """Make a material use nodes.

    From 5.0 on every material does, and setting the property is deprecated.
    """
    if bpy.app.version < (5, 0, 0):
        material.use_nodes = True


def select_bone(bone: bpy.types.PoseBone, *, chosen: bool) -> None:
    """Select or deselect a bone in pose mode; up to 4.5 the selection is stored in the armature's bone."""
    owner: Any = bone if bpy.app.version >= (5, 0, 0) else bone.bone
    owner.select = chosen


def show_bone(bone: bpy.types.PoseBone) -> None:
    """Show a bone in pose mode if it is hidden; from 5.0 on this is stored in the pose bone."""
    owner: Any = bone if bpy.app.version >= (5, 0, 0) else bone.bone
    owner.hide = False


def node_tree(material: bpy.types.Material) -> bpy.types.NodeTree | None:
    """Return the shader nodes of a material, or None if it has none."""
    if bpy.app.version < (5, 0, 0) and not material.use_nodes:
        return None
    return material.node_tree


def set_green_down(normal_map: bpy.types.ShaderNodeNormalMap) -> bool:
    """Let a Normal Map node read images whose green points down; return False before 5.2, which does not support it."""
    if not hasattr(normal_map, "convention"):
        return False
    normal_map.convention = "DIRECTX"
    return True


def is_green_down(normal_map: bpy.types.ShaderNodeNormalMap) -> bool:
    """Return whether a Normal Map node reads images whose green points down."""
    return getattr(normal_map, "convention", "OPENGL") == "DIRECTX"


def set_green_up(normal_map: bpy.types.ShaderNodeNormalMap) -> None:
    """Let a Normal Map node read images whose green points up, the only direction before 5.2."""
    if hasattr(normal_map, "convention"):
        normal_map.convention = "OPENGL"


def node_inputs(modifier: bpy.types.NodesModifier) -> list[Any]:
    """Return the input values of a geometry nodes modifier.

    They are custom properties, or from 5.2 on properties of their own.
    """
    if bpy.app.version < (5, 2, 0):
        return list(modifier.values())
    inputs = modifier.properties.inputs
    sockets = (getattr(inputs, prop.identifier) for prop in inputs.bl_rna.properties if prop.type == "POINTER")
    return [getattr(socket, "value", None) for socket in sockets]


def declared_properties(block: Any) -> Any:
    """Return the container of the values of a data block's declared properties, by name, or None.

    Before 5.0 these are its custom properties.
    """
    found = getattr(block, "bl_system_properties_get", None)
    return found() if found is not None else block


def custom_properties(block: bpy.types.ID) -> dict[str, Any]:
    """Return the custom properties of a data block; before 5.0 declared properties are among them and are left out."""
    return {name: value for name, value in block.items() if name not in block.bl_rna.properties}
