"""Split weights between bones and the collision volumes that are their children, and join them again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt

from . import joint_weights
from .heat_weights import bone_distances
from .joint_weights import JointWeights, Points, Weights, world_points

_ROUNDING = 1e-6
"""Share of a weight that is left over by rounding only."""
_NEAREST = 2
"""Number of nearest volumes of a bone between which a weight is divided."""


@dataclass(frozen=True)
class Family:
    """A bone and the collision volumes that are its children."""

    bone: str
    volumes: tuple[str, ...]
    sizes: tuple[float, ...]
    """Radius of each volume in metres."""
    lines: Points
    """(n, 2, 3) Head and end of each volume in world space."""


@dataclass(frozen=True)
class Factors:
    """Shares of the full weights of volumes, by their names."""

    wanted: Mapping[str, float]
    last: Mapping[str, float]
    """Those that the object got last; volumes that are not named have their full weights."""


def split(
    obj: bpy.types.Object, families: Sequence[Family], joints: Collection[str], factors: Factors, most: int
) -> JointWeights:
    """Return the weights of an object with parts of the weights of bones moved to their volumes.

    The sum of a bone and its volumes is preserved, so that factors of 0 restore the weights before the first split. The
    full weight of each volume is the one that the object has; where it has none for the volumes of a bone, it follows
    from the distances to them. An object with weights for volumes keeps those of a family whose factors do not change.
    A vertex gets at most ``most`` weights, as far as possible by joining its smallest
    weights with others of the same family.
    """
    before = joint_weights.read(obj, joints)
    members = [name for family in families for name in (family.bone, *family.volumes)]
    names = list(dict.fromkeys([*before.joints, *members]))
    values = before.for_joints(names).astype(np.float64)
    column = {name: number for number, name in enumerate(names)}
    points = world_points(obj)
    is_fitted = not {name for family in families for name in family.volumes}.isdisjoint(before.used)
    family_of = np.arange(len(names))
    for family in families:
        bone, volumes = column[family.bone], [column[name] for name in family.volumes]
        family_of[volumes] = bone
        if is_fitted and all(factors.wanted[name] == factors.last.get(name, 1.0) for name in family.volumes):
            continue
        total = values[:, [bone, *volumes]].sum(axis=1)
        used = np.flatnonzero(total > 0)
        full = _full(values[np.ix_(used, volumes)], total[used], points[used], family, factors)
        split_off = full * [factors.wanted[name] for name in family.volumes]
        values[np.ix_(used, volumes)] = split_off
        rest = total[used] - split_off.sum(axis=1)
        values[used, bone] = np.where(rest > _ROUNDING * total[used], rest, 0.0)
    return JointWeights(names, _joined(values, family_of, most).astype(np.float32))


def _full(weights: Points, total: Points, points: Points, family: Family, factors: Factors) -> Points:
    """Return the weights of a family's volumes for factors of 1, (P, n).

    Parameters
    ----------
    weights, total, points:
        (P, n) present weights of the volumes, (P,) sums of the family's weights, (P, 3) points in world space.
    """
    last = np.array([factors.last.get(name, 1.0) for name in family.volumes])
    is_lost = last <= 0
    full = np.divide(weights, last, out=np.zeros_like(weights), where=~is_lost)
    is_new = ~(full > 0).any(axis=1)
    if is_new.any():
        full[is_new] = _shares(points[is_new], family) * total[is_new, None]
    if is_lost.any() and not is_new.all():
        full[np.ix_(~is_new, is_lost)] = (_shares(points[~is_new], family) * total[~is_new, None])[:, is_lost]
    return full * np.minimum(1.0, total / np.maximum(full.sum(axis=1), 1e-12))[:, None]


def _shares(points: Points, family: Family) -> Points:
    """Return the share of each volume in each point, (P, n); the shares of a point sum up to 1."""
    distances = bone_distances(points, family.lines)
    distance = np.concatenate([np.empty((0, len(family.volumes))), *(block for block, _target in distances)])
    size = np.array(family.sizes)
    near = (size / np.maximum(distance, 0.1 * size)) ** 4
    if near.shape[1] > _NEAREST:
        farther = np.argpartition(-near, _NEAREST - 1, axis=1)[:, _NEAREST:]
        np.put_along_axis(near, farther, 0.0, axis=1)
    return near / near.sum(axis=1, keepdims=True)


def _joined(values: npt.NDArray[np.float64], family_of: npt.NDArray[np.intp], most: int) -> Weights:
    """For vertices with more than ``most`` weights, add the smallest weights to the largest of the same family."""
    # (J, J): 1 where a joint belongs to the family of a bone; np.add.at would take ten times as long
    members = np.zeros((len(family_of), len(family_of)), np.float32)
    members[np.arange(len(family_of)), family_of] = 1.0
    while True:
        rows = np.flatnonzero((values > 0).sum(axis=1) > most)
        part = values[rows]
        counts = (part > 0).astype(np.float32) @ members
        candidates = np.where((part > 0) & (counts[:, family_of] > 1), part, np.inf)
        smallest = candidates.argmin(axis=1)
        can = np.isfinite(candidates[np.arange(len(rows)), smallest])
        if not can.any():
            return values.astype(np.float32)
        rows, smallest = rows[can], smallest[can]
        relatives = np.where(family_of == family_of[smallest][:, None], values[rows], -1.0)
        relatives[np.arange(len(rows)), smallest] = -1.0
        largest = relatives.argmax(axis=1)
        values[rows, largest] += values[rows, smallest]
        values[rows, smallest] = 0.0
