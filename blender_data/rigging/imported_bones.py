"""Bones that an import made: whether they still rest where it put them."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_DRIFT = 1e-4
"""Tolerance for the axes of an unmoved bone: editing an ancestor changes the axes of very short bones by this much."""

_POSITION_DRIFT = 1e-6
"""Tolerance for the position of an unmoved bone, relative to the largest coordinate of the rig."""


def rest_matrices(bones: Sequence[bpy.types.Bone]) -> Array:
    """Return the rest matrices of bones in the space of their armature, (J, 4, 4) float64."""
    return np.array([bone.matrix_local for bone in bones], np.float64).reshape(-1, 4, 4)


def kept_matrices(bones: Sequence[bpy.types.Bone], name: str) -> Array:
    """Return the matrices stored as properties of bones, (J, 4, 4) float64; zeros for bones without one."""
    kept = [np.asarray(getattr(bone.meshferry, name), np.float64).reshape(4, 4) for bone in bones]
    return np.array(kept, np.float64).reshape(-1, 4, 4)


def unmoved_bones(bones: Sequence[bpy.types.Bone]) -> npt.NDArray[np.bool_]:
    """Return which bones rest where an import put them, (J,)."""
    return are_unmoved(rest_matrices(bones), kept_matrices(bones, "rest_matrix"))


def are_unmoved(rest: Array, kept: Array) -> npt.NDArray[np.bool_]:
    """Return whether each bone is unmoved, (J,), from its rest matrices now and on import.

    The tolerances allow for changes of bones whose ancestors were edited.
    """
    apart = np.abs(rest - kept)
    extent = np.abs(kept[:, :3, 3]).max(initial=0.0)
    turned: npt.NDArray[np.bool_] = apart[:, :3, :3].reshape(-1, 9).max(axis=1, initial=0.0) > _DRIFT
    return ~turned & (apart[:, :3, 3].max(axis=1, initial=0.0) <= _POSITION_DRIFT * extent)
