"""Weights of an object for some of its vertex groups, as one array; other groups are not changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt

from ..mesh_data import vertex_weights

Weights = npt.NDArray[np.float32]

LEAST_WEIGHT = 0.01
"""Share of a vertex's total weight below which a weight is removed."""


@dataclass
class JointWeights:
    """Weights of vertices for named joints."""

    joints: list[str]
    values: Weights
    """(V, J) weights; 0 means no weight."""

    def for_joints(self, joints: Sequence[str]) -> Weights:
        """Return the weights in the order of ``joints``, (V, n); 0 for a joint without weights."""
        place = {name: column for column, name in enumerate(self.joints)}
        found = np.zeros((len(self.values), len(joints)), np.float32)
        known = [(column, place[name]) for column, name in enumerate(joints) if name in place]
        if known:
            here, there = zip(*known, strict=True)
            found[:, here] = self.values[:, there]
        return found

    def renamed(self, joints: Sequence[str]) -> JointWeights:
        """Return the weights with new joint names, (J,). Weights of joints with equal new names are added."""
        names = list(dict.fromkeys(joints))
        values = np.zeros((len(self.values), len(names)), np.float32)
        np.add.at(values.T, [names.index(name) for name in joints], self.values.T)
        return JointWeights(names, values)

    @property
    def used(self) -> list[str]:
        """Names of the joints with weights."""
        return [self.joints[column] for column in np.flatnonzero((self.values > 0).any(axis=0)).tolist()]

    @property
    def unweighted(self) -> int:
        """Number of vertices without weights."""
        return int(np.count_nonzero(~(self.values > 0).any(axis=1)))


def read(obj: bpy.types.Object, joints: Collection[str]) -> JointWeights:
    """Return the weights of a mesh object for its vertex groups that are named after joints."""
    names = [group.name for group in obj.vertex_groups]
    columns = [place for place, name in enumerate(names) if name in joints]
    column_of = np.full(len(names), -1, np.intp)
    column_of[columns] = np.arange(len(columns))
    counts, groups, weights = vertex_weights.read(obj.data)
    vertex = np.repeat(np.arange(len(counts)), counts)
    # Groups that no longer exist have an index beyond the list of names.
    known = groups < len(names)
    known[known] = column_of[groups[known]] >= 0
    values = np.zeros((len(counts), len(columns)), np.float32)
    values[vertex[known], column_of[groups[known]]] = weights[known]
    return JointWeights([names[place] for place in columns], values)


def write(obj: bpy.types.Object, weights: JointWeights, joints: Collection[str]) -> None:
    """Replace the weights of an object for all joints; groups of joints without weights are removed.

    If the object has a Mirror modifier, empty groups of the other side are kept, since the modifier needs them.
    """
    kept = set(weights.used)
    if _flips_groups(obj):
        kept = kept.union(map(bpy.utils.flip_name, kept)).intersection(joints)
    for group in [group for group in obj.vertex_groups if group.name in joints and group.name not in kept]:
        obj.vertex_groups.remove(group)
    names = [*weights.used, *sorted(kept.difference(weights.used))]
    groups = [obj.vertex_groups.get(name) or obj.vertex_groups.new(name=name) for name in names]
    vertex_weights.replace(obj.data, [group.index for group in groups], weights.for_joints(names))
    obj.data.update()


def _flips_groups(obj: bpy.types.Object) -> bool:
    return any(modifier.type == "MIRROR" and modifier.use_mirror_vertex_groups for modifier in obj.modifiers)


def limited(values: Weights, most: int, least: float = LEAST_WEIGHT) -> Weights:
    """Return weights with at most ``most`` for each vertex, none below ``least`` of the sum, and a sum of 1.

    Vertices without weights are not changed.
    """
    found = np.maximum(values, 0.0)
    if found.shape[1] > most:
        weakest = np.argpartition(-found, most - 1, axis=1)[:, most:]
        np.put_along_axis(found, weakest, 0.0, axis=1)
    found[found < least * found.sum(axis=1, keepdims=True)] = 0.0
    total = found.sum(axis=1, keepdims=True)
    limited: Weights = np.divide(found, total, out=np.zeros_like(found), where=total > 0)
    return limited


def mixed(old: JointWeights, new: JointWeights, share: Weights, most: int) -> JointWeights:
    """Mix old and new weights: ``share`` (V,) of 1 means the new ones, 0 the old ones unchanged."""
    joints = list(dict.fromkeys([*old.joints, *new.joints]))
    values = old.for_joints(joints)
    part = share > 0
    of_part = share[part, None]
    blend = of_part * new.for_joints(joints)[part] + (1.0 - of_part) * values[part]
    values[part] = limited(blend, most)
    return JointWeights(joints, values)
