"""The parameters of body shapes, also called sliders, and their effects (shape format page, sections 2 and 3.2).

``parameters.csv`` and ``effects.csv`` hold the numbers; ``NOTICE.txt`` says where they come from.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

import numpy as np

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


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


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
        for row in _rows("parameters.csv")
    ]
    return {parameter.id: parameter for parameter in sorted(found, key=lambda parameter: parameter.id)}


@functools.cache
def sliders() -> Mapping[int, Parameter]:
    """Return the parameters of which shapes have values of their own: sliders, the sex and the height above ground."""
    return {number: parameter for number, parameter in parameters().items() if parameter.is_slider}


@functools.cache
def _effect_rows() -> tuple[dict[str, str], ...]:
    return tuple(_rows("effects.csv"))


@functools.cache
def driven_ramps() -> tuple[Ramp, ...]:
    """Return the ramps of all driven parameters."""
    return tuple(
        Ramp(
            int(row["id"]),
            int(row["target"]),
            float(row["min1"]),
            float(row["max1"]),
            float(row["max2"]),
            float(row["min2"]),
        )
        for row in _effect_rows()
        if row["kind"] == "drives"
    )


@functools.cache
def effects() -> tuple[Effect, ...]:
    """Return the effects on bones and collision volumes."""

    def three(row: Mapping[str, str], key: str) -> tuple[float, float, float]:
        x, y, z = (float(row[f"{key}_{axis}"] or 0.0) for axis in "xyz")
        return (x, y, z)

    return tuple(
        Effect(int(row["id"]), row["target"], three(row, "scale"), three(row, "offset"))
        for row in _effect_rows()
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
    return tuple(
        Morph(int(row["id"]), *row["target"].split(":", 1)) for row in _effect_rows() if row["kind"] == "morph"
    )


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
