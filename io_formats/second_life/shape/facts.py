"""What ``meshferry inspect`` prints about a shape."""

from __future__ import annotations

from typing import Any

from . import armature_shapes, evaluation, parameters
from .document import Shape

_SHOWN = 0.5
"""Difference from the default, in percent, from which a slider counts as changed: the viewer shows whole numbers."""


def facts(document: Shape) -> dict[str, Any]:
    """Return sex, height and the positions of sliders that differ from their default, in the viewer's order."""
    values = document.complete
    percents = armature_shapes.percents_of(values)
    changed = [
        slider
        for slider in armature_shapes.sliders()
        if slider.number != parameters.MALE and abs(percents[slider.number] - slider.default) > _SHOWN
    ]
    return {
        "version": document.version,
        "name": document.name,
        "wearable": document.wearable,
        "sex": "male" if parameters.is_male(values) else "female",
        "height": round(evaluation.evaluate_shape(values).height, 6),
        "sliders": [
            {
                "id": slider.number,
                "label": slider.label,
                "value": round(values[slider.number], 6),
                "percent": round(percents[slider.number], 3),
            }
            for slider in changed
        ],
        "warnings": list(document.warnings),
    }
