"""Names of mesh attributes that Blender or this extension reserves, and free names for the layers of files."""

import bpy

from .. import arrays, names
from . import file_normals, quantised_values

RESERVED = frozenset(
    {
        *("position", "material_index", "custom_normal", "sharp_edge", "sharp_face", arrays.FILE_VERTEX),
        *(*quantised_values.ATTRIBUTES.values(), quantised_values.COLOR_ATTRIBUTE, file_normals.ATTRIBUTE),
    }
)
"""Attributes that an import makes for other purposes than the further layers of a file."""

_OF_BLENDER = frozenset(
    {
        *("id", "crease_vert", "crease_edge", "bevel_weight_vert", "bevel_weight_edge", "uv_seam", "radius"),
        *("freestyle_edge", "freestyle_face", "velocity", "rest_position", "surface_uv_coordinate"),
    }
)
"""Further attributes to which Blender gives a meaning, some of them only with a certain type and domain."""


def free_name(mesh: bpy.types.Mesh, wanted: str, columns: int) -> str:
    """Return a name for the attribute of a layer of a file, which is neither reserved nor used in the mesh.

    The same holds for ``name.0``, ``name.1`` … of a layer with an attribute for each of its columns.
    """
    taken = {attribute.name for attribute in mesh.attributes} | RESERVED | _OF_BLENDER
    taken.update(layer.attribute for layer in mesh.meshferry.custom_layers)
    number, name = 0, names.fit(wanted)
    while name.startswith(".") or not taken.isdisjoint((name, *(f"{name}.{column}" for column in range(columns)))):
        number += 1
        name = names.fit(f"file {number}: {wanted}")
    return name
