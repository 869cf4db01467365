"""Values of sliders -> scales and positions of joints (shape format page, section 3).

Everything is in the avatar's space: metres, X forward, Y to the left, Z up.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..avatar import skeleton_table
from . import parameters
from .parameters import is_male

Floats = npt.NDArray[np.float64]

_SOLE, _CROWN = 0.006, 0.19
"""Distances in metres of the classic body's soles below the ground of the standard skeleton, and of its crown above
mHead at a scale of 1. With them, the heights of the default female and male bodies are right within 1 mm."""

MOVED = 1e-4
"""Distance in metres from the standard position from which a mesh's joint position counts, as in the viewer."""


@functools.cache
def joint_names() -> tuple[str, ...]:
    """Return the names of the 133 bones and 26 collision volumes, parents before children."""
    return tuple(name for name, joint in skeleton_table.table().items() if joint.is_bone or joint.is_collision_volume)


@functools.cache
def joint_index() -> Mapping[str, int]:
    """Return the index of each joint in :func:`joint_names`."""
    return {name: number for number, name in enumerate(joint_names())}


@dataclass(frozen=True)
class ShapedJoints:
    """The joints of a shaped avatar without animation, in the order of :func:`joint_names` (n joints)."""

    scale: Floats
    """(n, 3) own scale of each joint, which it does not pass on to its children; for volumes, their size."""
    position: Floats
    """(n, 3) position relative to the parent in metres, before the parent's scale."""
    world: Floats
    """(n, 3) position in the avatar's space; mPelvis stays where the standard skeleton has it."""

    def _value(self, values: Floats, name: str, axis: int = 2) -> float:
        return float(values[joint_index()[name], axis])

    @property
    def pelvis_to_foot(self) -> float:
        """Distance by which the viewer puts the pelvis above the ground, in metres; 8 cm less than the true one."""
        chain = ("mPelvis", "mHipLeft", "mKneeLeft", "mAnkleLeft", "mFootLeft")
        first, *others = (
            self._value(self.position, joint) * self._value(self.scale, parent)
            for parent, joint in itertools.pairwise(chain)
        )
        return first - sum(others)

    @property
    def height(self) -> float:
        """Height in metres as the viewer counts it; the drawn body is taller."""
        chain = ("mPelvis", "mTorso", "mChest", "mNeck", "mHead")
        spine = sum(
            self._value(self.position, joint) * self._value(self.scale, parent)
            for parent, joint in itertools.pairwise(chain)
        )
        skull = float(np.sqrt(2.0)) * self._value(self.position, "mSkull") * self._value(self.scale, "mHead")
        return self.pelvis_to_foot + spine + skull

    @property
    def body_height(self) -> float:
        """Height in metres of the classic avatar's body without hair and shoes, from the soles to the crown."""
        crown = self._value(self.world, "mHead") + _CROWN * self._value(self.scale, "mHead")
        return crown + _SOLE - self.floor

    @property
    def lowest(self) -> float:
        """Height of the lower one of mFootLeft and mToeLeft in the avatar's space, in metres."""
        return min(self._value(self.world, "mFootLeft"), self._value(self.world, "mToeLeft"))

    @property
    def floor(self) -> float:
        """Height in metres of the ground under the feet of the shape; 0 for the standard skeleton."""
        return self.lowest - standard_joints().lowest


def effective_weights(values: Mapping[int, float]) -> Floats:
    """Return the weights of all parameters in the order of :func:`.parameters.parameters`, (p,).

    ``values`` are those of sliders by id; missing ones have their default, and others are ignored.
    """
    known = parameters.parameters()
    tables = _tables()
    weights = tables.default.copy()
    own = parameters.sliders()
    for number, value in values.items():
        if number in own:
            weights[tables.index[number]] = known[number].clamped(value)
    weights[tables.driven] = np.clip(tables.driven_weights(weights), tables.low, tables.high)
    other_sex = tables.is_female if is_male(values) else tables.is_male
    weights[other_sex] = tables.default[other_sex]
    return weights


def evaluate_shape(
    values: Mapping[int, float],
    overrides: Mapping[str, Floats] | None = None,
    locked: Container[str] = (),
) -> ShapedJoints:
    """Return the joints of a shape.

    Parameters
    ----------
    values:
        Values of sliders by id; missing ones have their default.
    overrides:
        (3,) positions relative to the parent, in metres, that a worn mesh gives to joints; those within 0.1 mm of the
        standard position have no effect.
    locked:
        Joints of which an override also keeps the scale from following the shape.
    """
    return _joints(effective_weights(values), overrides or {}, locked)


def _joints(weights: Floats, overrides: Mapping[str, Floats], locked: Container[str]) -> ShapedJoints:
    tables = _tables()
    summed = np.zeros((2, len(joint_names()), 3))
    # einsum instead of the matrix product, which would start threads for it
    summed.reshape(-1)[tables.rows] = np.einsum("rp,p->r", tables.effects, weights[tables.columns])
    scale = tables.rest_scale + summed[0]
    position = tables.rest_position + summed[1]
    for name, place in overrides.items():
        number = joint_index().get(name)
        if number is None or np.linalg.norm(np.asarray(place) - tables.rest_position[number]) <= MOVED:
            continue
        position[number] = place
        if name in locked:
            scale[number] = tables.rest_scale[number]
    world = position.copy()
    for joints, parents in tables.levels:
        world[joints] = world[parents] + scale[parents] * position[joints]
    return ShapedJoints(scale, position, world)


@functools.cache
def standard_joints() -> ShapedJoints:
    """Return the standard skeleton, to which meshes are bound: all weights are 0."""
    return _joints(np.zeros(len(parameters.parameters())), {}, ())


@functools.cache
def uneven_bones() -> frozenset[str]:
    """Return the names of the bones that a shape can scale by different factors along their axes."""
    tables = _tables()
    whole = np.zeros((2 * len(joint_names()) * 3, len(tables.index)))
    whole[np.ix_(tables.rows, tables.columns)] = tables.effects
    scales = whole[: len(whole) // 2].reshape(len(joint_names()), 3, -1)
    uneven = (np.ptp(scales[:, :, tables.can_act], axis=1) > 0).any(axis=1)
    table = skeleton_table.table()
    return frozenset(name for name, found in zip(joint_names(), uneven, strict=True) if found and table[name].is_bone)


class _Tables:
    """The tables as arrays; p parameters, n joints, d driven parameters."""

    def __init__(self) -> None:
        known = parameters.parameters()
        ramps = parameters.driven_ramps()
        self.index = {number: place for place, number in enumerate(known)}
        self.default = np.array([parameter.default for parameter in known.values()])
        self.is_male = np.array([parameter.sex == "male" for parameter in known.values()])
        self.is_female = np.array([parameter.sex == "female" for parameter in known.values()])
        self.driver = np.array([self.index[ramp.driver] for ramp in ramps])
        self.driven = np.array([self.index[ramp.driven] for ramp in ramps])
        self.low = np.array([known[ramp.driven].minimum for ramp in ramps])
        self.high = np.array([known[ramp.driven].maximum for ramp in ramps])
        self.driver_low = np.array([known[ramp.driver].minimum for ramp in ramps])
        self.driver_high = np.array([known[ramp.driver].maximum for ramp in ramps])
        self.min1, self.max1, self.max2, self.min2 = (
            np.array([getattr(ramp, end) for ramp in ramps]) for end in ("min1", "max1", "max2", "min2")
        )
        self.can_act = np.array([known[number].is_slider or known[number].driver is not None for number in known])
        """(p,) whether the weight of a parameter can differ from its default."""
        names, table = joint_names(), skeleton_table.table()
        self.rest_scale = np.array([table[name].scale for name in names])
        self.rest_position = np.array([table[name].position for name in names])
        effects = self._effect_matrix()
        self.rows, self.columns = (np.flatnonzero(effects.any(axis=axis)) for axis in (1, 0))
        """Components that parameters change, of the scales and then of the positions, and the parameters that do so."""
        self.effects = np.ascontiguousarray(effects[np.ix_(self.rows, self.columns)])
        """(rows, columns): change of each of these components for one unit of each of these weights."""
        self.levels = _levels()

    def _effect_matrix(self) -> Floats:
        """Return the change of all scales, then positions, for one unit of each weight, (2 · n · 3, p)."""
        names, table = joint_names(), skeleton_table.table()
        index = joint_index()
        found = np.zeros((2, len(names), 3, len(self.index)))
        for effect in parameters.effects():
            joint, parameter = index[effect.joint], self.index[effect.parameter]
            found[0, joint, :, parameter] += effect.scale
            found[1, joint, :, parameter] += effect.offset
        for number, name in enumerate(names):
            if table[name].is_collision_volume:  # it also takes the scale of its bone, times its own size
                found[0, number] += self.rest_scale[number, :, None] * found[0, index[table[name].parent]]
        return found.reshape(-1, len(self.index))

    def driven_weights(self, weights: Floats) -> Floats:
        """Return the weights (d,) of driven parameters, before sex and range, from those of their drivers in (p,)."""
        value = weights[self.driver]
        with np.errstate(divide="ignore", invalid="ignore"):
            up = self.low + (value - self.min1) / (self.max1 - self.min1) * (self.high - self.low)
            down = self.high + (value - self.max2) / (self.min2 - self.max2) * (self.low - self.high)
        starts_high = (self.min1 == self.max1) & (self.min1 <= self.driver_low)
        found: Floats = np.select(
            [value <= self.min1, value <= self.max1, value <= self.max2, value <= self.min2],
            [np.where(starts_high, self.high, self.low), up, self.high, down],
            np.where(self.max2 >= self.driver_high, self.high, self.low),
        )
        return found


@functools.cache
def _tables() -> _Tables:
    return _Tables()


def _levels() -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Return the joints of each depth below the root and their parents, as indices."""
    table, index = skeleton_table.table(), joint_index()
    parents = [index.get(table[name].parent, -1) for name in joint_names()]
    depth: list[int] = []
    for parent in parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    found = []
    for level in range(1, max(depth) + 1):
        joints = [number for number, own in enumerate(depth) if own == level]
        found.append((np.array(joints), np.array([parents[number] for number in joints])))
    return found
