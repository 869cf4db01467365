"""What ``meshferry inspect`` prints about a shape."""

from __future__ import annotations

from typing import Any

from . import evaluation, parameters
from .document import Shape

_SHOWN = 0.5
"""Difference from the default, in percent, from which a slider counts as changed: the viewer shows whole numbers."""


def facts(document: Shape) -> dict[str, Any]:
    """Return sex, height and the positions of sliders that differ from their default, in percent."""
    values = document.complete
    changed = {
        slider: percent
        for number, slider in parameters.sliders().items()
        if number != parameters.MALE
        and abs((percent := slider.percent_of(values[number])) - slider.percent_of(slider.default)) > _SHOWN
    }
    return {
        "version": document.version,
        "name": document.name,
        "wearable": document.wearable,
        "sex": "male" if parameters.is_male(values) else "female",
        "height": round(evaluation.evaluate(values).height, 6),
        "sliders": [
            {"id": slider.id, "label": slider.label, "value": round(values[slider.id], 6), "percent": round(percent, 3)}
            for slider, percent in changed.items()
        ],
        "warnings": list(document.warnings),
    }
