"""Values of parameters as files list them -> values of sliders, and messages about the others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ...core.messages import Report
from ..avatar import sliders

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def number(text: str) -> float | None:
    """Return a number, which may be NaN or infinite, or None if the text is not one."""
    return float(text) if _NUMBER.fullmatch(text) else None


def integer(text: str) -> int | None:
    """Return a whole number, or None if the text is not one."""
    return int(text) if _INTEGER.fullmatch(text) else None


class ValueList:
    """The values of sliders that a file lists; of a slider that it lists twice, the last one counts.

    Parameters
    ----------
    wearable:
        Kind of wearable whose sliders are taken; empty for all. Parameters that are not sliders are ignored: they are
        computed from sliders, or do not concern the shape.
    """

    def __init__(self, wearable: str = "") -> None:
        self._sliders = {
            number: slider for number, slider in sliders.sliders().items() if wearable in ("", slider.wearable)
        }
        self._values: dict[int, float] = {}
        self._is_listed: set[int] = set()
        self._left_out: dict[int, None] = {}
        self._repeated: dict[int, None] = {}
        self._codes: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._is_listed)

    def add(self, parameter: int, value: float, *, is_code: bool = False) -> None:
        """Add a value, or the code of one; NaN stands for a missing value."""
        slider = self._sliders.get(parameter)
        if slider is None:
            return
        self._is_listed.add(parameter)
        if not math.isfinite(value):
            self._left_out[parameter] = None
            return
        if is_code:
            value = slider.decoded(int(value))
        if self._values.get(parameter, value) != value:
            self._repeated[parameter] = None
        self._values[parameter] = value
        self._codes.pop(parameter, None)
        if is_code:
            self._codes[parameter] = None

    def finish(self, report: Report) -> dict[int, float]:
        """Return the values, within the ranges of their sliders; report changed and missing ones."""
        found = {number: self._sliders[number].clamped(value) for number, value in self._values.items()}
        clamped = [number for number, value in self._values.items() if found[number] != value]
        template = "{} outside their range and clamped: {}"
        report.change_of("shape-values-clamped", template, self._labels(clamped), "value was", "values were")
        template = "{} not finite and left out: {}"
        report.loss_of("shape-values-left-out", template, self._labels(self._left_out), "value is", "values are")
        template = "{} listed twice with different values, the last of which counts: {}"
        report.change_of("shape-values-repeated", template, self._labels(self._repeated), "slider is", "sliders are")
        return found

    def codes(self) -> tuple[str, ...]:
        """Return the labels of the sliders that have a code only."""
        return tuple(self._labels(self._codes))

    def _labels(self, numbers: Iterable[int]) -> list[str]:
        return [self._sliders[number].label for number in numbers]
