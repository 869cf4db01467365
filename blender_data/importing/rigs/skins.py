"""Store the file's binding of a mesh to its armature as properties of the object, for an unchanged export."""

from __future__ import annotations

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import Skin
from ... import names
from ...properties import store_fields


def store_binding(made: bpy.types.Object, skin: Skin) -> None:
    """Store a node's binding and the current transform of its object, in single precision."""
    kept = made.meshferry.skin
    kept.bind_shape = _row_by_row(skin.bind_shape)
    kept.given_matrix = _row_by_row(np.array(made.matrix_basis, np.float64))
    kept.has_positions = skin.joint_positions is not None
    store_fields(kept, skin)
    others = skin.alt_inverse_bind
    for number, name in enumerate(skin.joint_names):
        joint = kept.joints.add()
        joint.name = names.readable(name)
        joint.inverse_bind = _row_by_row(skin.inverse_bind[number])
        if others is not None:
            joint.alt_inverse_bind = _row_by_row(others[number])
        if skin.joint_positions is not None:
            joint.position = _row_by_row(skin.joint_positions[number])


def _row_by_row(values: npt.ArrayLike) -> list[float]:
    """Return the values as a flat list, row by row. Blender clamps them to the range of single precision."""
    row: list[float] = np.asarray(values, np.float64).reshape(-1).tolist()
    return row
