"""Joint weights of points -> bone weights of coordinate vertices (section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import counted
from ...core.scene import AnyArray, Mesh
from ...geometry.submeshes import Pool
from . import document as doc

MOST_WEIGHTS = 4
_FULL = 65535
_OFF = 5 / _FULL
"""Sums that miss 1 by no more are those of files: each of four weights is truncated."""
_NOISE = 0.01
"""A weight that was u / 65535 in single precision may be a little less, and truncating would then lose 1."""


@dataclass
class PointWeights:
    """Weights of all points of a mesh, in the order of their slots."""

    bones: AnyArray
    """(P, 4) int16."""
    values: AnyArray
    """(P, 4) uint16 / 65535; 0 is none."""
    warnings: list[str] = field(default_factory=list)

    def moves(self, points: Pool) -> bool:
        """Return whether any of these points has a weight."""
        return bool(self.values[points.chosen].any())

    def of_points(self, points: Pool) -> doc.Weights:
        """Return the weights of some points as a surface stores them."""
        values = self.values[points.chosen]
        kept = values > 0
        return doc.Weights(kept.sum(axis=1, dtype=np.uint8), self.bones[points.chosen][kept], values[kept])


def of_mesh(mesh: Mesh, bone_count: int) -> PointWeights | None:
    """Return a mesh's weights as a file holds them; None where it has none.

    The strongest four stay; sums that miss 1 are made 1, which is told.

    Raises
    ------
    ExportError
        A weight of a bone that does not exist.
    """
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return None
    bones, weights = mesh.joint_indices, mesh.joint_weights
    said: list[str] = []
    usable = (weights >= 0) & (weights < 1e9)
    if not usable.all():
        number = counted(int((~usable).any(axis=1).sum()), "vertex had weights", "vertices had weights")
        said.append(f"{number} that are negative, NaN or infinite; left out")
        weights = np.where(usable, weights, np.float32(0))
    bones, weights = _strongest(bones, weights)
    lost = (weights > 0) & ((bones < 0) | (bones >= bone_count))
    if lost.any():
        raise ExportError(
            f"{counted(int(lost.any(axis=1).sum()), 'vertex is', 'vertices are')} weighted to bones that the armature "
            "does not have; remove those vertex groups"
        )
    total = weights.sum(axis=1)
    off = (np.abs(total - 1) > _OFF) & (total > 0)
    count = int(np.count_nonzero(off))
    if count:
        weights = weights.astype(np.float64)
        weights[off] /= weights[off].sum(axis=1, keepdims=True)
        said.append(f"the weights of {counted(count, 'vertex', 'vertices')} did not add up to 1; normalised")
    return PointWeights(bones.astype(np.int16), _stored(weights), said)


def _strongest(bones: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Keep the four strongest weights of each point, in the order in which they stand."""
    if weights.shape[1] <= MOST_WEIGHTS:
        return bones, weights
    strongest = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :MOST_WEIGHTS], axis=1)
    return np.take_along_axis(bones, strongest, axis=1), np.take_along_axis(weights, strongest, axis=1)


def _stored(weights: npt.NDArray[np.floating]) -> AnyArray:
    """Truncate 65535 w."""
    scaled = weights * weights.dtype.type(_FULL)
    scaled += weights.dtype.type(_NOISE)
    return np.minimum(scaled, _FULL, out=scaled).astype(np.uint16)
