"""Sliders of body shapes, and their effects on scales and positions of joints (shape format page, sections 2 and 3).

``parameters.csv`` and ``effects.csv`` hold the numbers; ``NOTICE.txt`` says where they come from.

Everything is in the avatar's space: metres, X forward, Y to the left, Z up.
"""

import functools
import itertools
from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...geometry.transforms import Floats
from . import joints as avatar_joints

MALE = 80
"""Id of the parameter that decides the sex: male above 0.5."""
HOVER = 11001
"""Id of the height above the ground, which moves no joint."""
MOST_CODE = 255


@dataclass(frozen=True)
class Parameter:
    """One row of the table of parameters."""

    id: int
    name: str
    label: str
    kind: str
    """``driver``, ``skeleton``, ``morph`` or ``alpha``."""
    group: int
    """0: a shape has a value of its own for it; 1: computed from its driver, or animated."""
    sex: str
    """``both``, ``male`` or ``female``: the sex of the shapes in which it has an effect."""
    minimum: float
    maximum: float
    default: float
    wearable: str
    """Kind of body part or clothing that holds the value: ``shape``, ``hair``, ``shoes``; empty if computed."""
    tab: str
    """Tab of the viewer's editor; empty for none."""
    order: float
    """Sorts the sliders of a tab."""
    lowest_label: str
    """Text at the lower end of the slider."""
    highest_label: str
    driver: int | None
    """Id of the parameter that it is computed from."""

    @property
    def is_slider(self) -> bool:
        """Whether shapes have a value of their own for it."""
        return self.group in {0, 3}

    @property
    def extent(self) -> float:
        """Difference between the ends of the range."""
        return self.maximum - self.minimum

    def clamped(self, value: float) -> float:
        """Return the nearest value inside the range."""
        return min(max(value, self.minimum), self.maximum)

    def percent_of(self, value: float) -> float:
        """Return the position of the slider, 0 to 100, for a value."""
        return (self.clamped(value) - self.minimum) / self.extent * 100.0

    def value_at(self, percent: float) -> float:
        """Return the value at a position of the slider, without the rounding error of single precision."""
        return round(self.clamped(percent / 100.0 * self.extent + self.minimum), 6)

    def code_of(self, value: float) -> int:
        """Return the code 0 to 255 that viewers send for a value; it is rounded down."""
        low, extent = np.float32(self.minimum), np.float32(self.maximum) - np.float32(self.minimum)
        return int(np.floor((np.float32(self.clamped(value)) - low) / extent * np.float32(MOST_CODE)))

    def decoded(self, code: int) -> float:
        """Return the value of a code in single precision: values nearer to 0 than one step are 0."""
        low, extent = np.float32(self.minimum), np.float32(self.maximum) - np.float32(self.minimum)
        step = extent * np.float32(1.0 / MOST_CODE)
        value = np.float32(code) * np.float32(1.0 / MOST_CODE) * extent + low
        return 0.0 if abs(value) < step else float(value)


@dataclass(frozen=True)
class Ramp:
    """The dependence of a driven parameter on its driver: from the one end of its range to the other and back."""

    driver: int
    driven: int
    min1: float
    max1: float
    max2: float
    min2: float


@dataclass(frozen=True)
class Effect:
    """What one unit of the weight of a parameter adds to a bone or collision volume, along the avatar's axes."""

    parameter: int
    joint: str
    scale: tuple[float, float, float]
    offset: tuple[float, float, float]
    """In metres, relative to the parent."""


@dataclass(frozen=True)
class Morph:
    """A morph target of the classic avatar that a parameter moves."""

    parameter: int
    mesh: str
    name: str


@functools.cache
def parameters() -> Mapping[int, Parameter]:
    """Return all parameters by id, in the order of the ids."""
    found = [
        Parameter(
            int(row["id"]),
            row["name"],
            row["label"],
            row["kind"],
            int(row["group"]),
            row["sex"],
            float(row["min"]),
            float(row["max"]),
            float(row["default"]),
            row["wearable"],
            row["edit_group"],
            float(row["edit_order"] or 0),
            row["label_min"],
            row["label_max"],
            int(row["driver"]) if row["driver"] else None,
        )
        for row in avatar_joints.rows_of("parameters.csv")
    ]
    return {parameter.id: parameter for parameter in sorted(found, key=lambda parameter: parameter.id)}


@functools.cache
def sliders() -> Mapping[int, Parameter]:
    """Return the parameters of which shapes have values of their own: sliders, the sex and the height above ground."""
    return {number: parameter for number, parameter in parameters().items() if parameter.is_slider}


@functools.cache
def driven_ramps() -> tuple[Ramp, ...]:
    """Return the ramps of all driven parameters."""
    return tuple(
        Ramp(int(row["id"]), int(row["target"]), *(float(row[end]) for end in ("min1", "max1", "max2", "min2")))
        for row in avatar_joints.rows_of("effects.csv")
        if row["kind"] == "drives"
    )


@functools.cache
def effects() -> tuple[Effect, ...]:
    """Return the effects on bones and collision volumes."""
    return tuple(
        Effect(int(row["id"]), row["target"], avatar_joints.three(row, "scale"), avatar_joints.three(row, "offset"))
        for row in avatar_joints.rows_of("effects.csv")
        if row["kind"] in {"bone", "volume"}
    )


@functools.cache
def moving_parameters() -> frozenset[int]:
    """Return the ids of the parameters that move or scale joints, by themselves or by those that they drive."""
    known = parameters()
    return frozenset(effect.parameter for effect in effects()) | frozenset(
        driver for effect in effects() if (driver := known[effect.parameter].driver) is not None
    )


@functools.cache
def morphs() -> tuple[Morph, ...]:
    """Return the morph targets of the classic avatar."""
    rows = avatar_joints.rows_of("effects.csv")
    return tuple(Morph(int(row["id"]), *row["target"].split(":", 1)) for row in rows if row["kind"] == "morph")


STANDARD: Mapping[int, float] = {
    6: 0.22,
    31: 0.0,
    36: 0.0,
    119: 0.0,
    196: -0.5,
    646: -0.3,
    682: 5 / 7,
    683: 0.0,
    693: 0.0,
    757: 0.0,
    759: 0.0,
    764: 3 / 11,
    795: 0.3,
}
"""Values of the female shape that is exactly the standard skeleton; all other parameters have their defaults."""


def complete_values(values: Mapping[int, float]) -> dict[int, float]:
    """Return a value for every slider: the given ones in their ranges, and the defaults of all others."""
    return {number: parameter.clamped(values.get(number, parameter.default)) for number, parameter in sliders().items()}


def is_male(values: Mapping[int, float]) -> bool:
    """Return whether a shape is male."""
    return values.get(MALE, 0.0) > 0.5


def as_others_see(values: Mapping[int, float]) -> dict[int, float]:
    """Return the values that other viewers show: each is sent as a code of one byte, rounded down."""
    own = sliders()
    return {
        number: own[number].decoded(own[number].code_of(value)) for number, value in complete_values(values).items()
    }


_SOLE, _CROWN = 0.006, 0.19
"""Distances in metres of the classic body's soles below the ground of the standard skeleton, and of its crown above
mHead at a scale of 1. With them, the heights of the default female and male bodies are right within 1 mm."""

MOVED = 1e-4
"""Distance in metres from the standard position from which a mesh's joint position counts, as in the viewer."""


@functools.cache
def joint_names() -> tuple[str, ...]:
    """Return the names of the 133 bones and 26 collision volumes, parents before children."""
    return tuple(name for name, joint in avatar_joints.table().items() if joint.is_bone or joint.is_collision_volume)


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

    def _offsets(self, *chain: str) -> list[float]:
        """Return the vertical distance of each joint of a chain from the one before."""
        pairs = itertools.pairwise(chain)
        return [self._value(self.position, joint) * self._value(self.scale, parent) for parent, joint in pairs]

    @property
    def pelvis_to_foot(self) -> float:
        """Distance by which the viewer puts the pelvis above the ground, in metres; 8 cm less than the true one."""
        first, *others = self._offsets("mPelvis", "mHipLeft", "mKneeLeft", "mAnkleLeft", "mFootLeft")
        return first - sum(others)

    @property
    def height(self) -> float:
        """Height in metres as the viewer counts it; the drawn body is taller."""
        spine = sum(self._offsets("mPelvis", "mTorso", "mChest", "mNeck", "mHead"))
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
    """Return the weights of all parameters in the order of :func:`parameters`, (p,).

    ``values`` are those of sliders by id; missing ones have their default, and others are ignored.
    """
    known = parameters()
    tables = _tables()
    weights = tables.default.copy()
    own = sliders()
    for number, value in values.items():
        if number in own:
            weights[tables.index[number]] = known[number].clamped(value)
    weights[tables.driven] = np.clip(tables.driven_weights(weights), tables.low, tables.high)
    other_sex = tables.is_female if is_male(values) else tables.is_male
    weights[other_sex] = tables.default[other_sex]
    return weights


def evaluate_shape(
    values: Mapping[int, float], overrides: Mapping[str, Floats] | None = None, locked: Container[str] = ()
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
    """Return scales and positions of all joints for parameter weights; ``overrides`` are set by meshes."""
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
    return _joints(np.zeros(len(parameters())), {}, ())


class _Tables:
    """The tables as arrays; p parameters, n joints, d driven parameters."""

    def __init__(self) -> None:
        known = parameters()
        ramps = driven_ramps()
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
        names, table = joint_names(), avatar_joints.table()
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
        names, table = joint_names(), avatar_joints.table()
        index = joint_index()
        found = np.zeros((2, len(names), 3, len(self.index)))
        for effect in effects():
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
    table, index = avatar_joints.table(), joint_index()
    parents = [index.get(table[name].parent, -1) for name in joint_names()]
    depth: list[int] = []
    for parent in parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    found = []
    for level in range(1, max(depth) + 1):
        joints = [number for number, own in enumerate(depth) if own == level]
        found.append((np.array(joints), np.array([parents[number] for number in joints])))
    return found
