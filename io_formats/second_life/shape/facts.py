"""What ``meshferry inspect`` prints about a shape."""

from __future__ import annotations

from typing import Any

from ..avatar import armature_sliders, sliders
from .document import Shape

_SHOWN = 0.5
"""Difference from the default, in percent, from which a slider counts as changed: the viewer shows whole numbers."""


def facts(document: Shape) -> dict[str, Any]:
    """Return sex, height and the positions of sliders that differ from their default, in the viewer's order."""
    values = document.complete
    percents = armature_sliders.percents_of(values)
    changed = [
        slider
        for slider in armature_sliders.sliders()
        if slider.number != sliders.MALE and abs(percents[slider.number] - slider.default) > _SHOWN
    ]
    return {
        "version": document.version,
        "name": document.name,
        "wearable": document.wearable,
        "sex": "male" if sliders.is_male(values) else "female",
        "height": round(sliders.evaluate_shape(values).height, 6),
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
