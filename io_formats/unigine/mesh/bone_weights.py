"""Joint weights of points -> bone weights of coordinate vertices (section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Report, counted
from ...core.scene import AnyArray, Mesh
from ...geometry.triangles import Pool
from . import document as doc

MOST_WEIGHTS = 4
_FULL = 65535
_OFF = 5 / _FULL
"""Tolerance for sums of four weights: files truncate each to 1/65535, so sums this close to 1 stay unchanged."""
_NOISE = 0.01
"""Added to 65535 w before truncation, since w = u / 65535 in single precision can be slightly too small."""


@dataclass
class PointWeights:
    """Quantised weights of all points of a mesh, up to four for each."""

    bones: AnyArray
    """(P, 4) int16 bone indices."""
    values: AnyArray
    """(P, 4) uint16 / 65535; 0 means unused."""

    def moves(self, points: Pool) -> bool:
        """Return whether any of these points has a weight, so that bones move it."""
        return bool(self.values[points.chosen].any())

    def of_points(self, points: Pool) -> doc.Weights:
        """Return the weights of these points in the form that a surface stores, without unused entries."""
        values = self.values[points.chosen]
        kept = values > 0
        return doc.Weights(kept.sum(axis=1, dtype=np.uint8), self.bones[points.chosen][kept], values[kept])


def quantised_weights(mesh: Mesh, bone_count: int, report: Report) -> PointWeights | None:
    """Return the quantised weights of a mesh, or None if it has none.

    The four strongest weights are kept. Sums other than 1 are normalised, with a warning.

    Raises
    ------
    ExportError
        A weight refers to a bone that does not exist.
    """
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return None
    bones, weights = mesh.joint_indices, mesh.joint_weights
    usable = (weights >= 0) & (weights < 1e9)
    if not usable.all():
        number = counted(int((~usable).any(axis=1).sum()), "vertex had weights", "vertices had weights")
        report.change("invalid-weights", "{} that are negative, NaN or infinite; left out", number)
        weights = np.where(usable, weights, np.float32(0))
    bones, weights = _strongest(bones, weights)
    lost = (weights > 0) & ((bones < 0) | (bones >= bone_count))
    if lost.any():
        raise ExportError(
            "{} weighted to bones that the armature does not have; remove those vertex groups",
            counted(int(lost.any(axis=1).sum()), "vertex is", "vertices are"),
        )
    total = weights.sum(axis=1)
    off = (np.abs(total - 1) > _OFF) & (total > 0)
    count = int(np.count_nonzero(off))
    if count:
        weights = weights.astype(np.float64)
        weights[off] /= weights[off].sum(axis=1, keepdims=True)
        number = counted(count, "vertex", "vertices")
        report.change("unnormalised-weights", "the weights of {} did not add up to 1; normalised", number)
    return PointWeights(bones.astype(np.int16), _stored(weights))


def _strongest(bones: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Keep the four strongest weights of each point, in their original order."""
    if weights.shape[1] <= MOST_WEIGHTS:
        return bones, weights
    strongest = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :MOST_WEIGHTS], axis=1)
    return np.take_along_axis(bones, strongest, axis=1), np.take_along_axis(weights, strongest, axis=1)


def _stored(weights: npt.NDArray[np.floating]) -> AnyArray:
    """Quantise weights w to 65535 w, truncated."""
    scaled = weights * weights.dtype.type(_FULL)
    scaled += weights.dtype.type(_NOISE)
    return np.minimum(scaled, _FULL, out=scaled).astype(np.uint16)
